// Reads the rows of a table in host memory for which a predicate holds, and
// sends them (sPIN'17 §5.4, conditional read).
//
//spin:library scan 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/spin"
)

// The most cycles of a row and of an instruction, for the size of batches.
const (
	rowCycles         = 200
	instructionCycles = 100
	partCycles        = 200
)

func slotAt(s *scan.State, i uint32) *scan.Slot {
	return spin.Behind[scan.Slot](s, s.SlotsAt+i*scan.SlotSize)
}

// buffers takes two buffers of a packet.
func buffers(s *scan.State) (i uint32, rows, out spin.Ptr) {
	chunk := (s.Chunk + 7) &^ 7
	i = spin.Acquire(&s.Free)
	rows = spin.After(s) + spin.Ptr(s.BuffAt+i*2*chunk)
	return i, rows, rows + spin.Ptr(chunk)
}

// request checks a query, keeps it in a slot, and starts workers, messages to self.
//
//go:wasmexport request
func request(p *spin.Payload, s *scan.State) spin.Code {
	if p.Offset != 0 || uint64(p.Length) != p.MLength || p.Length < scan.QuerySize {
		spin.FAdd(&s.Counts.Illegal, 1)
		return spin.Success
	}
	q := (*scan.Query)(unsafe.Pointer(unsafe.SliceData(p.Bytes())))
	status, width := uint64(scan.OK), uint64(0)
	code := spin.View[scan.Instruction](p.Bytes()[scan.QuerySize:])
	if uint64(p.Length) != scan.QuerySize+16*uint64(q.Program) || q.First > s.Rows || q.Rows > s.Rows-q.First || q.Parts > scan.MaxParts {
		status = scan.Illegal
	} else if _, ok := scan.Verify(code, s.RowBytes); !ok {
		status = scan.Illegal
	}
	for i := uint32(0); status == scan.OK && i < q.Parts; i++ {
		if part := &q.Part[i]; part.Offset > s.RowBytes || part.Length > s.RowBytes-part.Offset {
			status = scan.Illegal
		} else if width += uint64(part.Length); width > scan.MaxRow {
			status = scan.Illegal
		}
	}
	if status == scan.Illegal {
		spin.FAdd(&s.Counts.Illegal, 1)
	} else if slot, number := take(s); slot == nil {
		spin.FAdd(&s.Counts.Busy, 1)
		status = scan.Busy
	} else {
		start(s, slot, number, p, q, code, width)
		return spin.Success
	}
	i, _, out := buffers(s)
	r := total(out, q, p.SourceNID, p.SourcePID, &scan.Total{Status: status})
	spin.Release(&s.Free, i)
	if r.Failed() {
		return spin.Fail
	}
	return spin.Success
}

// take takes a slot.
func take(s *scan.State) (*scan.Slot, uint32) {
	for i := range s.Slots {
		if slot := slotAt(s, i); slot.Used == 0 && spin.CAS(&slot.Used, 0, 1) {
			return slot, i
		}
	}
	return nil, 0
}

// start fills a slot and starts its workers.
func start(s *scan.State, slot *scan.Slot, number uint32, p *spin.Payload, q *scan.Query, code []scan.Instruction, width uint64) {
	slot.Query, slot.NID, slot.PID, slot.Width = *q, p.SourceNID, p.SourcePID, width
	slot.Matched, slot.Sent, slot.Packets, slot.Status = 0, 0, 0, scan.OK
	copy(slot.Code[:], code)
	fit := uint64(s.Chunk / s.RowBytes) // only whole rows are read, as many at a time as fit
	slot.Batch = s.Budget / (rowCycles + uint64(q.Program)*instructionCycles + uint64(q.Parts)*partCycles) / fit * fit
	slot.Batch = min(max(slot.Batch, 1), 8*fit)
	slot.Batches = (q.Rows + slot.Batch - 1) / slot.Batch
	slot.Batches = max(slot.Batches, 1) // without rows, one empty batch
	slot.Left = slot.Batches
	for w := uint64(0); w < uint64(s.Workers) && w < slot.Batches; w++ {
		again(s, number, w)
	}
}

// again asks for a batch.
func again(s *scan.State, slot uint32, batch uint64) {
	op := spin.Op{PTIndex: s.SelfPT, MatchBits: s.SelfBits, HdrData: uint64(slot)<<48 | batch}
	spin.ToSelf(&op)
}

// worker examines the rows of a batch, and asks for its next one.
//
//go:wasmexport worker
func worker(h *spin.Header, s *scan.State) spin.Code {
	if h.Type != spin.MsgSelf {
		return spin.ProcessData
	}
	number, n := uint32(h.HdrData>>48), h.HdrData&(1<<48-1)
	slot := slotAt(s, number)
	var b batch
	i, in, out := buffers(s)
	b.slot, b.number, b.out, b.fill = slot, n, out, scan.HeadSize
	first := n * slot.Batch
	rows := slot.Query.Rows - first
	if rows > slot.Batch {
		rows = slot.Batch
	}
	b.run(s, in, slot.Query.First+first, rows)
	b.flush(s)
	spin.FAdd(&slot.Matched, b.matched)
	s.Counts.Looked += rows
	s.Counts.Matched += b.matched
	if b.failed {
		slot.Status = scan.Failed
	}
	if next := n + uint64(s.Workers); next < slot.Batches {
		again(s, number, next)
	}
	if spin.FAdd(&slot.Left, ^uint64(0)) == 1 {
		t := scan.Total{Status: slot.Status, Matched: slot.Matched, Sent: min(slot.Sent, slot.Query.Limit), Packets: slot.Packets}
		b.failed = total(out, &slot.Query, slot.NID, slot.PID, &t).Failed() || b.failed
		s.Counts.Scans++
		slot.Used = 0
	}
	spin.Release(&s.Free, i)
	if b.failed {
		return spin.Fail
	}
	return spin.Drop
}

// batch is a worker at a batch.
type batch struct {
	slot    *scan.Slot
	number  uint64
	out     spin.Ptr
	fill    uint64 // bytes in out
	rows    uint32 // in out
	part    uint32 // packets sent
	matched uint64
	failed  bool
}

// run reads rows, as many at a time as fit a buffer.
func (b *batch) run(s *scan.State, in spin.Ptr, first, rows uint64) {
	size := uint64(s.RowBytes)
	fit := uint64(s.Chunk) / size
	code := b.slot.Code[:b.slot.Query.Program]
	for rows > 0 && !b.failed {
		n := min(rows, fit)
		all := in.Bytes(uint32(n * size))
		if spin.DMAFromHost(spin.MEHostMem, first*size, all).Failed() {
			b.failed = true
			return
		}
		for ; len(all) > 0; all = all[size:] {
			if row := all[:size]; scan.Eval(code, row) {
				b.matched++
				b.take(s, row)
			}
		}
		rows -= n
		first += n
	}
}

// take puts a row into the packet, unless the client's limit is reached.
func (b *batch) take(s *scan.State, row []byte) {
	slot := b.slot
	if slot.Query.Limit == 0 || spin.FAdd(&slot.Sent, 1) >= slot.Query.Limit {
		return
	}
	if b.fill+slot.Width > uint64(s.Chunk) {
		b.flush(s)
	}
	to := b.out.Bytes(s.Chunk)
	for i := range slot.Query.Parts {
		part := &slot.Query.Part[i]
		b.fill += uint64(copy(to[b.fill:], row[part.Offset:part.Offset+part.Length]))
	}
	b.rows++
}

// flush sends the packet.
func (b *batch) flush(s *scan.State) {
	if b.rows == 0 {
		return
	}
	*spin.At[scan.Head](b.out) = scan.Head{Batch: b.number, Part: b.part, Rows: b.rows}
	if send(b.out, b.fill, &b.slot.Query, b.slot.NID, b.slot.PID, scan.KindRows).Failed() {
		b.failed = true
	}
	spin.FAdd(&b.slot.Packets, 1)
	s.Counts.Packets++
	b.fill, b.rows = scan.HeadSize, 0
	b.part++
}

// total ends an answer.
func total(out spin.Ptr, q *scan.Query, nid, pid uint32, t *scan.Total) spin.Result {
	*spin.At[scan.Total](out) = *t
	return send(out, scan.TotalSize, q, nid, pid, scan.KindTotal)
}

func send(at spin.Ptr, n uint64, q *scan.Query, nid, pid, kind uint32) spin.Result {
	op := spin.Op{Local: at, Length: n, TargetNID: nid, TargetPID: pid, PTIndex: q.PT, MatchBits: q.Bits, HdrData: scan.Data(q.Tag, kind)}
	return spin.PutFromDevice(&op)
}

func main() {}
