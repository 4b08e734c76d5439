package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const mtu = 64

type entry = spintest.Handlers[pingpong.State]

func newDevice(t *testing.T) *spintest.Device {
	return spintest.New(t, spintest.Config{HostMem: 1024, MTU: mtu})
}

// each runs f with the handlers of a variant, as Go and as wasm.
func each(t *testing.T, native entry, names wasmtest.Names, f func(*testing.T, *spintest.Device, entry)) {
	t.Run("native", func(t *testing.T) { f(t, newDevice(t), native) })
	t.Run("tinygo", func(t *testing.T) {
		d := newDevice(t)
		f(t, d, wasmtest.Handlers[pingpong.State](t, d, pingpong.Library.Wasm, names, 0))
	})
}

func eachStore(t *testing.T, f func(*testing.T, *spintest.Device, entry)) {
	each(t, entry{Payload: storePayload, Completion: storeCompletion},
		wasmtest.Names{Payload: pingpong.StorePayload, Completion: pingpong.StoreCompletion}, f)
}

func eachStream(t *testing.T, f func(*testing.T, *spintest.Device, entry)) {
	each(t, entry{Payload: streamPayload, Completion: streamCompletion},
		wasmtest.Names{Payload: pingpong.StreamPayload, Completion: pingpong.StreamCompletion}, f)
}

var state = pingpong.State{MatchBits: 0xabc, PT: 5, MaxPayload: mtu}

func ping(n int) spintest.Message {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i)
	}
	return spintest.Message{Data: data, Offset: 100, SourceNID: 3, SourcePID: 4, HdrData: 99}
}

// pong is the operation that all pongs share.
func pong(length uint64) spin.Op {
	return spin.Op{Length: length, TargetNID: 3, TargetPID: 4, PTIndex: 5, MatchBits: 0xabc, HdrData: 99}
}

// requirePong checks a put but for the address of its source.
func requirePong(t *testing.T, name string, want spin.Op, data []byte, got spintest.Call) {
	t.Helper()
	got.Op.Local = 0
	require.Equal(t, name, got.Name)
	require.Equal(t, want, got.Op)
	require.Equal(t, string(data), string(got.Data))
}

func TestStoreAnswersOnePacketFromDevice(t *testing.T) {
	eachStore(t, func(t *testing.T, d *spintest.Device, h entry) {
		for _, n := range []int{0, 1, mtu} {
			m, s := ping(n), state
			d.Calls = nil
			out := spintest.Deliver(d, h, &s, m)
			require.False(t, out.Failed)
			require.Len(t, d.Calls, 1)
			want := pong(uint64(n))
			want.Offset = d.Calls[0].Op.Offset // of no meaning from device
			requirePong(t, "put_from_device", want, m.Data, d.Calls[0])
		}
		require.Equal(t, make([]byte, 1024), d.Host, "the data never reaches host memory")
	})
}

func TestStoreAnswersLargerFromHost(t *testing.T) {
	eachStore(t, func(t *testing.T, d *spintest.Device, h entry) {
		m, s := ping(2*mtu+1), state
		m.Order = []int{2, 0, 1}
		out := spintest.Deliver(d, h, &s, m)
		require.False(t, out.Failed)
		require.Equal(t, []string{"dma_to_host", "dma_to_host", "dma_to_host", "put_from_host"}, d.Names())
		want := pong(2*mtu + 1)
		want.Offset = 100
		requirePong(t, "put_from_host", want, m.Data, d.Calls[3])
		require.Equal(t, m.Data, d.Host[100:100+len(m.Data)])
	})
}

// A pong with holes would be taken for a whole one.
func TestStoreDoesNotAnswerIncompleteMessage(t *testing.T) {
	eachStore(t, func(t *testing.T, d *spintest.Device, h entry) {
		m, s := ping(2*mtu), state
		m.Lost = []int{1}
		require.Equal(t, spin.Fail, spintest.Deliver(d, h, &s, m).Completion)
		d.Fail("dma_to_host", spin.Denied, 1)
		out := spintest.Deliver(d, h, &s, ping(2*mtu))
		require.Equal(t, []spin.Code{spin.Fail, spin.Success}, out.Payloads)
		require.Equal(t, spin.Fail, out.Completion)
		require.Empty(t, d.Puts())
	})
}

func TestStreamAnswersEachPacket(t *testing.T) {
	eachStream(t, func(t *testing.T, d *spintest.Device, h entry) {
		m, s := ping(2*mtu+1), state
		m.Order = []int{1, 2, 0}
		out := spintest.Deliver(d, h, &s, m)
		require.False(t, out.Failed)
		require.Len(t, d.Calls, 3)
		for i, packet := range m.Order {
			at := packet * mtu
			data := m.Data[at:min(at+mtu, len(m.Data))]
			want := pong(uint64(len(data)))
			want.RemoteOffset = uint64(at)
			requirePong(t, "put_from_device", want, data, d.Calls[i])
		}
		require.Equal(t, make([]byte, 1024), d.Host)
	})
}

func TestStreamAnswersMessageWithoutPayload(t *testing.T) {
	eachStream(t, func(t *testing.T, d *spintest.Device, h entry) {
		s := state
		require.Equal(t, spin.Success, spintest.Deliver(d, h, &s, ping(0)).Completion)
		want := pong(0)
		want.Offset = 100
		requirePong(t, "put_from_device", want, nil, d.Calls[0])
	})
}

func TestFailedPutFails(t *testing.T) {
	eachStream(t, func(t *testing.T, d *spintest.Device, h entry) {
		s := state
		d.Fail("put_from_device", spin.NoSpace, 1)
		require.Equal(t, []spin.Code{spin.Fail, spin.Success}, spintest.Deliver(d, h, &s, ping(2*mtu)).Payloads)
	})
}
