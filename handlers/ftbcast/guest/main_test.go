package main

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const (
	mtu  = 64
	size = 70*mtu + 5 // more packets than a word has bits
)

const bitmap = 16 // bytes behind the state

type rig struct {
	device   *spintest.Device
	handlers spintest.Handlers[ftbcast.State]
	state    *ftbcast.State
}

// each runs f on the Go source and on the module, at rank 3, whose neighbours
// are 4 and 5, its children, and 9.
func each(t *testing.T, f func(*testing.T, *rig)) {
	for _, wasm := range []bool{false, true} {
		t.Run(map[bool]string{false: "native", true: "tinygo"}[wasm], func(t *testing.T) {
			d := spintest.New(t, spintest.Config{HostMem: size, MTU: mtu, NID: 3})
			r := &rig{d, spintest.Handlers[ftbcast.State]{Payload: firstPayload}, spintest.NewState[ftbcast.State](d, bitmap)}
			*r.state = ftbcast.State{MatchBits: 77, Size: size, PT: 6, Rank: 3, Packet: mtu, Packets: 71, Neighbours: 3, Children: 2}
			copy(r.state.Neighbour[:], []uint32{4, 5, 9})
			if wasm {
				r.handlers = wasmtest.Handlers[ftbcast.State](t, d, ftbcast.Library.Wasm, wasmtest.Names{Payload: ftbcast.Payload}, bitmap)
			}
			f(t, r)
		})
	}
}

func (r *rig) deliver(source uint32, at, n int) spintest.Outcome {
	m := spintest.Message{Data: make([]byte, n), Offset: uint64(at), HdrData: 9, SourceNID: source}
	for i := range m.Data {
		m.Data[i] = byte(at + i + 1)
	}
	r.device.Calls = nil
	return spintest.Deliver(r.device, r.handlers, r.state, m)
}

func (r *rig) targets() (list []uint32) {
	for _, c := range r.device.Puts() {
		list = append(list, c.Op.TargetNID)
	}
	return list
}

// The first copy of a packet is delivered and goes to all children but the one
// that it came from; others go nowhere. With the last packet the broadcast goes
// to the other neighbours.
func TestFirstCopyOnly(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for packet := range 71 {
			n := min(mtu, size-packet*mtu)
			require.Equal(t, []spin.Code{spin.Success}, r.deliver(5, packet*mtu, n).Payloads)
			require.Equal(t, []uint32{4, 9}[:1+packet/70], r.targets())
			require.Equal(t, byte(packet*mtu+1), r.device.Host[packet*mtu])
			op := r.device.Puts()[0].Op
			require.Equal(t, []uint64{77, 6, uint64(packet * mtu), 9, uint64(n)}, []uint64{op.MatchBits, uint64(op.PTIndex), op.RemoteOffset, op.HdrData, op.Length})
			require.Equal(t, spin.Datagrams, op.Options)
			if packet == 70 {
				call := r.device.Puts()[1]
				require.Equal(t, "put_from_host", call.Name)
				require.Equal(t, []uint64{77, 6, 0, 9, size}, []uint64{call.Op.MatchBits, uint64(call.Op.PTIndex), call.Op.RemoteOffset, call.Op.HdrData, call.Op.Length})
				require.Equal(t, spin.Datagrams, call.Op.Options)
				require.Equal(t, r.device.Host, call.Data, "all of it is there")
			}
			for _, from := range []uint32{4, 5, 9} {
				require.Equal(t, []spin.Code{spin.Drop}, r.deliver(from, packet*mtu, n).Payloads)
				require.Empty(t, r.device.Calls, "nothing is done for a copy")
			}
		}
	})
}

// What the root sends to itself lies in its memory; it goes to all.
func TestRootSendsToItself(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		require.Equal(t, []spin.Code{spin.Success, spin.Success}, r.deliver(3, 0, mtu+1).Payloads)
		require.Equal(t, []uint32{4, 5, 4, 5}, r.targets())
		require.Equal(t, make([]byte, size), r.device.Host)
	})
}

// A packet that is no part of the broadcast, or beyond it, claims nothing.
func TestStrangePackets(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for _, at := range []int{1, mtu - 1, 70*mtu + 1} {
			require.Equal(t, []spin.Code{spin.Drop}, r.deliver(5, at, 4).Payloads)
		}
		r.state.Size-- // of an entry that is longer
		require.Equal(t, []spin.Code{spin.Drop}, r.deliver(5, 70*mtu, 5).Payloads)
		require.Equal(t, make([]byte, bitmap), unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(r.state), unsafe.Sizeof(*r.state))), bitmap))
		require.Empty(t, r.targets())
	})
}

// A neighbour that cannot be sent to does not keep the others from it.
func TestPutFails(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.device.Fail("put_from_device", spin.NoSpace, 1)
		require.Equal(t, []spin.Code{spin.Fail}, r.deliver(5, 0, mtu).Payloads)
		require.Equal(t, []uint32{4}, r.targets())
		r.device.Fail("put_from_device", spin.NoSpace, 1)
		require.Equal(t, []spin.Code{spin.Fail}, r.deliver(9, mtu, mtu).Payloads)
		require.Equal(t, []uint32{4, 5}, r.targets())
	})
}

// Where no more commands may be pending, spare copies wait until they may.
func TestSpareCopiesWait(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.state.Size, r.state.Packets = 2*mtu, 2
		r.deliver(4, 0, mtu)
		r.device.Fail("put_from_host", spin.NoSpace, 3)
		require.Equal(t, []spin.Code{spin.Success}, r.deliver(4, mtu, mtu).Payloads)
		require.Len(t, r.device.Named("yield"), 3)
		require.Len(t, r.device.Named("put_from_host"), 4)
	})
}

// A broadcast of one packet goes to all from the device.
func TestOnePacket(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.state.Size, r.state.Packets = 5, 1
		require.Equal(t, []spin.Code{spin.Success}, r.deliver(4, 0, 5).Payloads)
		require.Equal(t, []uint32{5, 9}, r.targets())
		require.Equal(t, []string{"cas", "dma_to_host", "put_from_device", "put_from_device"}, r.device.Names())
	})
}

func TestWithoutPayload(t *testing.T) {
	for _, wasm := range []bool{false, true} {
		d := spintest.New(t, spintest.Config{HostMem: 8, MTU: mtu, NID: 3})
		s := ftbcast.State{MatchBits: 77, PT: 6, Rank: 3, Packet: mtu, Neighbours: 2}
		copy(s.Neighbour[:], []uint32{4, 5})
		h := spintest.Handlers[ftbcast.State]{Header: firstHeader}
		if wasm {
			h = wasmtest.Handlers[ftbcast.State](t, d, ftbcast.Library.Wasm, wasmtest.Names{Header: ftbcast.Header}, 0)
		}
		require.Equal(t, spin.Proceed, spintest.Deliver(d, h, &s, spintest.Message{SourceNID: 4}).Header)
		require.Len(t, d.Puts(), 1)
		require.Equal(t, spin.DropPending, spintest.Deliver(d, h, &s, spintest.Message{SourceNID: 5}).Header)
		require.Len(t, d.Puts(), 1)
		s.Got = 0
		require.Equal(t, spin.DropPending, spintest.Deliver(d, h, &s, spintest.Message{SourceNID: 4, Data: []byte{1}}).Header)
	}
}
