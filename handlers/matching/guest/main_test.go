package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const mtu = 64

type entry = spintest.Handlers[matching.State]

// each runs f with a fresh device, as Go and as wasm.
func each(t *testing.T, f func(*testing.T, *spintest.Device, entry)) {
	for _, name := range []string{"native", "tinygo"} {
		t.Run(name, func(t *testing.T) {
			d := spintest.New(t, spintest.Config{HostMem: 4096, MTU: mtu, NID: 9})
			h := entry{Header: header, Payload: payload}
			if name == "tinygo" {
				h = wasmtest.Handlers[matching.State](t, d, matching.Library.Wasm, wasmtest.Names{Header: matching.Header, Payload: matching.Payload}, 0)
			}
			f(t, d, h)
		})
	}
}

func deliver(d *spintest.Device, h entry, m spintest.Message) spintest.Outcome {
	return spintest.Deliver(d, h, &matching.State{PT: 5}, m)
}

// announce is a large message of total bytes with its first part, one byte value after the other.
func announce(total uint64, first int) spintest.Message {
	data := spin.EncodeState(&matching.Announcement{Total: total, Tag: 77})
	for i := range first {
		data = append(data, byte(i+1))
	}
	return spintest.Message{
		Data: data, UserHdrLen: matching.AnnouncementSize, HdrData: matching.Large | 3, SourceNID: 4, SourcePID: 2, Offset: 100,
	}
}

// The rest comes from the sender to the place behind the first part, and completes the entry.
func TestLargeMessageGetsTheRest(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry) {
		m := announce(1000, 2*mtu)
		m.Order = []int{2, 0, 1}
		out := deliver(d, h, m)
		require.Equal(t, spin.ProcessDataPending, out.Header, out.Traps)
		for _, code := range out.Payloads {
			require.Equal(t, spin.Success, code)
		}
		gets := d.Named("get_from_host")
		require.Len(t, gets, 1)
		op := gets[0].Op
		require.Equal(t, []uint64{4, 2, 5, 77, 2 * mtu, 100 + 2*mtu, 1000 - 2*mtu},
			[]uint64{uint64(op.TargetNID), uint64(op.TargetPID), uint64(op.PTIndex), op.MatchBits, op.RemoteOffset, op.Offset, op.Length})
		require.Equal(t, spin.MEHostMem, op.Space)
		require.Equal(t, spin.CompleteEntry, op.Options)
		require.Equal(t, m.Data[matching.AnnouncementSize:], d.Host[100:100+2*mtu])
		require.Equal(t, make([]byte, 100), d.Host[:100])
		require.Equal(t, make([]byte, 10), d.Host[100+2*mtu:][:10])
	})
}

// An announcement without a first part gets everything.
func TestAnnouncementAlone(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry) {
		require.Equal(t, spin.ProcessDataPending, deliver(d, h, announce(1000, 0)).Header)
		op := d.Named("get_from_host")[0].Op
		require.Equal(t, []uint64{0, 100, 1000}, []uint64{op.RemoteOffset, op.Offset, op.Length})
	})
}

// A small message is deposited by the entry, its first bytes included, whatever they look like.
func TestSmallMessageIsLeftToTheEntry(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry) {
		for _, n := range []int{0, 3, mtu} {
			m := announce(1000, mtu)
			m.Data, m.HdrData = m.Data[:n], 3
			require.Equal(t, spin.Proceed, deliver(d, h, m).Header)
		}
		require.Empty(t, d.Calls)
	})
}

// What no sender of ours sends must not make a device read beyond the message
// or get a negative length.
func TestBadAnnouncements(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry) {
		short := announce(1000, 0)
		short.Data = short.Data[:8]
		require.Equal(t, spin.Fail, deliver(d, h, short).Header)
		require.Equal(t, spin.Fail, deliver(d, h, announce(10, 11)).Header)
		require.Empty(t, d.Named("get_from_host"))
	})
}

// A receive that is too small denies the get; the failure must reach the host.
func TestFailures(t *testing.T) {
	each(t, func(t *testing.T, d *spintest.Device, h entry) {
		d.Fail("get_from_host", spin.Denied, 1)
		require.Equal(t, spin.Fail, deliver(d, h, announce(1000, mtu)).Header)
		d.Fail("dma_to_host_nb", spin.NoSpace, 1)
		require.Contains(t, deliver(d, h, announce(1000, 8)).Payloads, spin.Fail)
	})
}
