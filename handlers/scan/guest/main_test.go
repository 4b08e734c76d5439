package main

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

const mtu = 2304

// bench is a device with a table of rows of 4 numbers of 4 bytes, u0 to u3.
type bench struct {
	t *testing.T
	d *spintest.Device
	s *scan.State
	h spintest.Handlers[scan.State]
}

func newBench(t *testing.T, wasm bool, rows int) *bench {
	b := &bench{t: t, d: spintest.New(t, spintest.Config{HostMem: rows * 16, MTU: mtu})}
	state := scan.State{Rows: uint64(rows), RowBytes: 16, Chunk: mtu, Slots: 2, Workers: 3, Buffers: 2, Free: 3, SelfPT: 4, SelfBits: 5, Budget: 20000}
	behind := state.Lay()
	b.s = spintest.NewState[scan.State](b.d, behind)
	*b.s = state
	b.h = spintest.Handlers[scan.State]{Header: worker, Payload: request}
	if wasm {
		b.h = wasmtest.Handlers[scan.State](t, b.d, scan.Library.Wasm, wasmtest.Names{Header: scan.Worker, Payload: scan.Request}, behind)
	}
	return b
}

// slot is slotAt outside of handlers.
func (b *bench) slot(i uint32) *scan.Slot {
	return (*scan.Slot)(unsafe.Add(unsafe.Pointer(b.s), unsafe.Sizeof(*b.s)+uintptr(b.s.SlotsAt+i*scan.SlotSize)))
}

func message(q scan.Query, code ...scan.Instruction) spintest.Message {
	q.Program = uint32(len(code))
	data := spin.EncodeState(&q)
	for i := range code {
		data = append(data, spin.EncodeState(&code[i])...)
	}
	return spintest.Message{Data: data, SourceNID: 7, SourcePID: 3}
}

// ask delivers a query and all that its workers ask for, and returns the rows
// that were sent, by batch and packet, and the total.
func (b *bench) ask(m spintest.Message) (rows []byte, t scan.Total) {
	before := len(b.d.Calls)
	require.False(b.t, spintest.Deliver(b.d, b.h, b.s, m).Failed)
	packets := map[[2]uint64][]byte{}
	batches := uint64(0)
	ended := 0
	for i := before; i < len(b.d.Calls); i++ {
		c := b.d.Calls[i]
		switch c.Name {
		case "to_self":
			require.Equal(b.t, [2]uint64{4, 5}, [2]uint64{uint64(c.Op.PTIndex), c.Op.MatchBits})
			h := spin.Header{Type: spin.MsgSelf, HdrData: c.Op.HdrData}
			require.Equal(b.t, spin.Drop, spintest.Run(b.d, b.h.Header, &h, b.s))
		case "put_from_device":
			require.Equal(b.t, [4]uint64{7, 3, 9, 77}, [4]uint64{uint64(c.Op.TargetNID), uint64(c.Op.TargetPID), uint64(c.Op.PTIndex), c.Op.MatchBits})
			require.LessOrEqual(b.t, len(c.Data), mtu)
			if c.Op.HdrData == scan.Data(11, scan.KindTotal) {
				require.NoError(b.t, spin.DecodeState(c.Data, &t))
				ended++
				continue
			}
			require.Equal(b.t, scan.Data(11, scan.KindRows), c.Op.HdrData)
			var h scan.Head
			require.NoError(b.t, spin.DecodeState(c.Data, &h))
			at := [2]uint64{h.Batch, uint64(h.Part)}
			require.NotContains(b.t, packets, at)
			packets[at] = c.Data[scan.HeadSize:]
			batches = max(batches, h.Batch+1)
		}
	}
	require.Equal(b.t, 1, ended)
	require.Len(b.t, packets, int(t.Packets))
	for batch := range batches {
		for part := uint64(0); packets[[2]uint64{batch, part}] != nil; part++ {
			rows = append(rows, packets[[2]uint64{batch, part}]...)
		}
	}
	return rows, t
}

// below is u0 < limit.
func below(limit uint32) []scan.Instruction {
	return []scan.Instruction{{Op: scan.Load, Kind: scan.U32}, {Op: scan.Const, Value: uint64(limit)}, {Op: scan.LessU}}
}

// Rows that match come once each, those parts of them that were asked for, in
// the order of the table by batch; others do not.
func TestSelects(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { selects(t, rt, false) })
}

// The module does what its source does.
func TestModuleSelects(t *testing.T) {
	random := rapid.Custom(func(rt *rapid.T) bool { selects(t, rt, true); return true })
	for seed := range 20 {
		random.Example(seed)
	}
}

func selects(t *testing.T, rt *rapid.T, wasm bool) {
	rows := rapid.IntRange(0, 1500).Draw(rt, "rows")
	b := newBench(t, wasm, rows)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
	for i := range b.d.Host {
		b.d.Host[i] = byte(rng.Uint32())
	}
	share := []uint32{0, 1 << 20, 1 << 28, 1 << 31, 1<<32 - 1}[rng.IntN(5)]
	q := scan.Query{Limit: []uint64{0, 10, 1 << 40}[rng.IntN(3)], Bits: 77, PT: 9, Tag: 11}
	q.First = uint64(rng.IntN(rows + 1))
	q.Rows = uint64(rng.IntN(rows - int(q.First) + 1))
	q.Parts = uint32(1 + rng.IntN(4))
	for i := range q.Parts {
		q.Part[i].Offset = uint32(rng.IntN(17))
		q.Part[i].Length = uint32(rng.IntN(17 - int(q.Part[i].Offset)))
	}
	got, total := b.ask(message(q, below(share)...))
	var want []byte
	matched := uint64(0)
	for r := q.First; r < q.First+q.Rows; r++ {
		if row := b.d.Host[r*16:][:16]; binary.LittleEndian.Uint32(row) < share {
			if matched++; matched <= q.Limit {
				for _, p := range q.Part[:q.Parts] {
					want = append(want, row[p.Offset:p.Offset+p.Length]...)
				}
			}
		}
	}
	require.Equal(rt, matched, total.Matched)
	require.Equal(rt, min(matched, q.Limit), total.Sent)
	require.Len(rt, got, len(want))
	if matched <= q.Limit { // else which ones is open
		require.Equal(rt, string(want), string(got))
	}
	require.Zero(rt, b.slot(0).Used+b.slot(1).Used)
	require.EqualValues(rt, 3, b.s.Free, "buffers")
	require.EqualValues(rt, 1, b.s.Counts.Scans)
	require.Equal(rt, q.Rows, b.s.Counts.Looked)
}

// What is no query is refused, and what finds no slot is sent back; nothing is read for either.
func TestRefuses(t *testing.T) {
	b := newBench(t, false, 10)
	good := scan.Query{Rows: 10, Limit: 10, Bits: 77, PT: 9, Tag: 11, Parts: 1, Part: [scan.MaxParts]scan.Part{{Length: 4}}}
	refused := func(m spintest.Message, status uint64) {
		_, total := b.ask(m)
		require.Equal(t, scan.Total{Status: status}, total)
	}
	for _, spoil := range []func(*scan.Query){
		func(q *scan.Query) { q.Rows = 11 },
		func(q *scan.Query) { q.First = 1 },
		func(q *scan.Query) { q.First, q.Rows = ^uint64(0), 2 },
		func(q *scan.Query) { q.Parts = 5 },
		func(q *scan.Query) { q.Part[0].Offset = 17 },
		func(q *scan.Query) { q.Part[0] = scan.Part{Offset: 8, Length: ^uint32(0) - 3} },
	} {
		q := good
		spoil(&q)
		refused(message(q, below(5)...), scan.Illegal)
	}
	refused(message(good), scan.Illegal)
	refused(message(good, scan.Instruction{Op: scan.Load, Kind: scan.U64, Offset: 9}), scan.Illegal)
	refused(message(good, scan.Instruction{Op: scan.And}), scan.Illegal)
	m := message(good, below(5)...)
	m.Data = append(m.Data, 0)
	refused(m, scan.Illegal)
	for n := range scan.QuerySize { // too short to know who asks
		require.False(t, spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: make([]byte, n)}).Failed)
	}
	b.slot(0).Used, b.slot(1).Used = 1, 1
	refused(message(good, below(5)...), scan.Busy)
	require.Empty(t, b.d.Named("dma_from_host"))
	require.EqualValues(t, 10, b.s.Counts.Illegal-scan.QuerySize+1)
	require.EqualValues(t, 1, b.s.Counts.Busy)
}

// A scan that could not read or send all of its rows says so, once, when all of
// its workers have ended; the next one is not touched by that.
func TestSaysWhatFailed(t *testing.T) {
	for _, wasm := range []bool{false, true} {
		for name, result := range map[string]spin.Result{"dma_from_host": spin.Denied, "put_from_device": spin.NoSpace} {
			b := newBench(t, wasm, 1000)
			all := message(scan.Query{Rows: 1000, Limit: 1000, Bits: 77, PT: 9, Tag: 11, Parts: 1, Part: [scan.MaxParts]scan.Part{{Length: 16}}}, below(1)...)
			b.d.Fail(name, result, 1)
			require.False(t, spintest.Deliver(b.d, b.h, b.s, all).Failed)
			codes := map[spin.Code]int{}
			var totals []scan.Total
			for i := 0; i < len(b.d.Calls); i++ { //nolint:intrange // there are more and more
				c := b.d.Calls[i]
				if c.Name == "to_self" {
					h := spin.Header{Type: spin.MsgSelf, HdrData: c.Op.HdrData}
					codes[spintest.Run(b.d, b.h.Header, &h, b.s)]++
				}
				if c.Name == "put_from_device" && c.Op.HdrData == scan.Data(11, scan.KindTotal) {
					totals = append(totals, scan.Total{})
					require.NoError(t, spin.DecodeState(c.Data, &totals[0]))
				}
			}
			require.Len(t, totals, 1)
			require.EqualValues(t, scan.Failed, totals[0].Status, "%s, wasm %t", name, wasm)
			require.Equal(t, 1, codes[spin.Fail])
			require.Positive(t, codes[spin.Drop])
			require.Zero(t, b.slot(0).Used)
			require.EqualValues(t, 3, b.s.Free, "buffers")
			rows, total := b.ask(all)
			require.EqualValues(t, scan.OK, total.Status)
			require.Len(t, rows, 16*1000)
		}
	}
}

// FuzzRequest: no message ends a handler with an error, or has it read beside the table.
func FuzzRequest(f *testing.F) {
	f.Add([]byte{})
	f.Add(message(scan.Query{Rows: 10, Limit: 10, Parts: 1, Part: [scan.MaxParts]scan.Part{{Length: 16}}}, below(1<<31)...).Data)
	f.Add(message(scan.Query{Rows: 1 << 63, First: 1 << 63}, below(1)...).Data)
	f.Add(message(scan.Query{Rows: 10}, scan.Instruction{Op: scan.Load, Kind: scan.Bytes, Offset: 12, Length: 8}).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		b := newBench(t, false, 10)
		out := spintest.Deliver(b.d, b.h, b.s, spintest.Message{Data: data})
		require.False(t, out.Failed, "%+v", out)
		for i := 0; i < len(b.d.Named("to_self")); i++ { //nolint:intrange // there are more and more
			h := spin.Header{Type: spin.MsgSelf, HdrData: b.d.Named("to_self")[i].Op.HdrData}
			require.Equal(t, spin.Drop, spintest.Run(b.d, b.h.Header, &h, b.s))
		}
	})
}

// Records are what handlers and hosts both take them for.
func TestSizes(t *testing.T) {
	require.EqualValues(t, scan.QuerySize, unsafe.Sizeof(scan.Query{}))
	require.EqualValues(t, scan.SlotSize, unsafe.Sizeof(scan.Slot{}))
	require.EqualValues(t, scan.HeadSize, unsafe.Sizeof(scan.Head{}))
	require.EqualValues(t, scan.TotalSize, unsafe.Sizeof(scan.Total{}))
	require.EqualValues(t, 16, unsafe.Sizeof(scan.Instruction{}))
}
