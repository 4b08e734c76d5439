package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const records = 4

type rig struct {
	device   *spintest.Device
	handlers spintest.Handlers[txlog.State]
	state    *txlog.State
}

// each runs f on the Go source and on the module.
func each(t *testing.T, f func(*testing.T, *rig)) {
	for _, wasm := range []bool{false, true} {
		t.Run(map[bool]string{false: "native", true: "tinygo"}[wasm], func(t *testing.T) {
			d := spintest.New(t, spintest.Config{HostMem: 256, HandlerHostMem: records * txlog.RecordSize, MTU: 64, NID: 3})
			r := &rig{d, spintest.Handlers[txlog.State]{Header: logHeader, Completion: logCompletion}, &txlog.State{Last: records - 1}}
			if wasm {
				r.handlers = wasmtest.Handlers[txlog.State](t, d, txlog.Library.Wasm, wasmtest.Names{Header: txlog.Header, Completion: txlog.Completion}, 0)
			}
			f(t, r)
		})
	}
}

// at is a place in the log.
func (r *rig) at(t *testing.T, place int) (one txlog.Record) {
	require.NoError(t, spin.DecodeState(r.device.HandlerHost[place*txlog.RecordSize:], &one))
	return one
}

func header(r *rig, kind spin.MessageType, offset, n uint64) spin.Code {
	return spintest.Run(r.device, r.handlers.Header, &spin.Header{Type: kind, Length: n, MLength: n, SourceNID: 7, SourcePID: 2, MatchBits: 99, Offset: offset}, r.state)
}

// What reads is in the log before it reads, and needs no other handler.
func TestReads(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		require.Equal(t, spin.Proceed, header(r, spin.MsgGet, 16, 8))
		require.Equal(t, txlog.Record{Number: 1, Offset: 16, Length: 8, NID: 7, PID: 2, Tag: 99, Kind: txlog.Read}, r.at(t, 0))
		for i, kind := range []spin.MessageType{spin.MsgFetchAtomic, spin.MsgSwap} {
			require.Equal(t, spin.ProcessData, header(r, kind, 24, 8), "it writes, too")
			require.Equal(t, uint32(txlog.Read), r.at(t, i+1).Kind)
		}
	})
}

// What writes is in the log when it has written, not before: else whoever reads
// meanwhile would be taken for one who has seen it.
func TestWrites(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for _, kind := range []spin.MessageType{spin.MsgPut, spin.MsgAtomic} {
			require.Equal(t, spin.ProcessData, header(r, kind, 16, 8))
			require.Zero(t, r.state.Next)
		}
		code := spintest.Run(r.device, r.handlers.Completion, &spin.Completion{SourceNID: 7, SourcePID: 2, MatchBits: 99, Offset: 16, MLength: 8}, r.state)
		require.Equal(t, spin.Success, code)
		require.Equal(t, txlog.Record{Number: 1, Offset: 16, Length: 8, NID: 7, PID: 2, Tag: 99, Kind: txlog.Write}, r.at(t, 0))
	})
}

// The log begins anew when it is full; numbers do not.
func TestLogIsARing(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for i := range uint64(6) {
			header(r, spin.MsgGet, i, 1)
		}
		for place, number := range []uint64{5, 6, 3, 4} {
			require.Equal(t, number, r.at(t, place).Number)
			require.Equal(t, number-1, r.at(t, place).Offset)
		}
	})
}

// An access that cannot be logged fails.
func TestLogThatIsNotThere(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		r.device.Fail("dma_to_host", spin.Denied, 1)
		require.Equal(t, spin.Fail, header(r, spin.MsgGet, 0, 8))
	})
}
