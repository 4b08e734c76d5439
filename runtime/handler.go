package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
)

// startTask gives a task a context of an idle core.
func (n *Node) startTask(coreIndex int, t task) {
	p := &n.hpus
	c := &p.cores[coreIndex]
	r := &p.runs[coreIndex*p.perCore]
	for i := 1; r.active; i++ {
		r = &p.runs[coreIndex*p.perCore+i]
	}
	c.running = true
	c.active++
	r.active = true
	r.task = t
	r.charged = 0
	r.landed = false
	r.handles = r.handles[:0]
	r.generation++
	if d := n.profile.HPU.Dispatch; d > 0 {
		n.post(n.now()+d, kindDispatched, uint64(r.index), nil)
		return
	}
	n.execute(r)
}

// execute starts the handler of a context: it writes the record the handler reads and runs its first segment.
func (n *Node) execute(r *run) {
	m := r.task.m
	h := m.rx.handlers
	r.ctx = h.memory.program.Context(r.index)
	r.first, r.start = n.now(), n.now()
	var fn hpu.Func
	bytes, record := 0, 0
	switch r.task.kind {
	case headerHandler:
		fn, record = h.header, hpu.HeaderSize
		bytes = n.writeHeader(r, m)
	case payloadHandler:
		fn, record = h.payload, hpu.PayloadSize
		bytes = n.writePayload(r, m)
	case completionHandler:
		fn, record = h.completion, hpu.CompletionSize
		n.writeCompletion(r, m)
	}
	spec := &n.profile.HPU
	budget := spec.MaxCycles + spec.MaxCyclesPerByte*int64(bytes)
	n.stats.HandlerCalls++
	n.watch.began(r, record)
	n.segmentRan(r, r.ctx.Start(fn, r.ctx.ArgsAddr(), h.state, budget))
}

// resumeRun goes on with a suspended handler on its idle core.
func (n *Node) resumeRun(r *run) {
	n.hpus.coreOf(r).running = true
	r.start = n.now()
	n.watch.answered(r)
	n.segmentRan(r, r.ctx.Resume(r.ready))
}

// segmentRan books the core for the segment that has just been executed.
func (n *Node) segmentRan(r *run, s hpu.Status) {
	r.status = s
	end := r.start + n.profile.HPU.Time(r.ctx.Cycles()-r.charged)
	n.trace.segment(r, n.hpus.perCore, end)
	n.post(end, kindSegmentEnd, uint64(r.index), nil)
}

// segmentEnd is the moment at which a segment has used up its cycles.
func (n *Node) segmentEnd(r *run) {
	n.stats.HandlerCycles += r.ctx.Cycles() - r.charged
	r.charged = r.ctx.Cycles()
	if r.status == hpu.Blocked {
		n.suspended(r)
		return
	}
	n.stats.LastHandler = n.now()
	if n.stats.FirstHandler == 0 {
		n.stats.FirstHandler = n.now()
	}
	c := n.hpus.coreOf(r)
	t := r.task
	out := r.ctx.Outcome()
	n.watch.ended(r, &out)
	t.m.rx.landed = r.landed
	r.active = false
	r.task = task{}
	if poison.On {
		r.spoil()
	}
	c.active--
	n.ended(t, out)
	n.coreIdle(c)
}

// ended acts on the result of a handler (sPIN'17 §3.2, return codes).
func (n *Node) ended(t task, out hpu.Outcome) {
	m := t.m
	r := &m.rx
	fail := n.judge(t, &out)
	if fail != portals.NIOK && r.fail == portals.NIOK {
		r.fail = fail
	}
	switch t.kind {
	case headerHandler:
		n.headerEnded(m, out.Code)
	case payloadHandler:
		if out.Code == hpu.Drop || fail != portals.NIOK {
			r.dropped += uint64(r.payloadBytes(m, int(t.packet)))
		}
		n.dealt(m)
	case completionHandler:
		r.pending = r.pending || out.Code == hpu.SuccessPending
		n.complete(m)
	}
}

// judge reports a failed handler and replaces its code: a killed handler moves the entry into flow control.
func (n *Node) judge(t task, out *hpu.Outcome) portals.FailType {
	var err error
	var fail portals.FailType
	switch {
	case out.Err != nil:
		err, fail = out.Err, portals.NIDropped
		switch {
		case out.Err.Kind == hpu.TrapBudget:
			n.triggerFlowControl(t.m)
		case out.Err.Kind.Code() == hpu.Segv:
			fail = portals.NISegv
		}
	case out.Code == hpu.Segv:
		err, fail = errors.New("returned SEGV"), portals.NISegv
	case out.Code == hpu.Fail:
		err, fail = errors.New("returned FAIL"), portals.NIDropped
	case !legal(t.kind, out.Code):
		err, fail = fmt.Errorf("returned %d, which is no return code of a %s handler", out.Code, t.kind), portals.NIDropped
	default:
		return portals.NIOK
	}
	out.Code = hpu.Fail
	h := t.m.rx.handlers
	n.cluster.handlerFailed(HandlerError{Rank: int(n.rank), At: n.now(), Program: h.memory.name, Handler: t.kind.String(), Err: err})
	return fail
}

// failure reports whether a code says that the handler has failed, which all kinds may return.
func failure(c hpu.Code) bool { return c == hpu.Fail || c == hpu.Segv }

func legal(k handlerKind, c hpu.Code) bool {
	switch k {
	case headerHandler:
		return c >= hpu.Drop && c <= hpu.ProceedPending
	case payloadHandler:
		return c == hpu.Success || c == hpu.Drop
	default:
		return c == hpu.Success || c == hpu.SuccessPending
	}
}

// headerEnded lets the packets of the message go the way the header handler chose.
func (n *Node) headerEnded(m *message, code hpu.Code) {
	r := &m.rx
	r.pending = code == hpu.DropPending || code == hpu.ProcessDataPending || code == hpu.ProceedPending
	switch code {
	case hpu.ProcessData, hpu.ProcessDataPending:
		n.processData(m)
	case hpu.Proceed, hpu.ProceedPending:
		if r.lostFirst { // the user header was not counted, but would have been deposited now
			n.lose(m, r.lost.cause, 0, uint64(min(r.skip, int(r.d.MLength))))
		}
		r.skip = 0
		r.phase = phaseDeposit
	default:
		r.phase = phaseDiscard
		r.dropped, r.lost = r.d.MLength, loss{} // what was lost would have been discarded now
	}
	waiting := r.waiting
	r.waiting = r.waiting[len(r.waiting):]
	if len(waiting) == 0 && r.left == 0 { // flow control has dropped every packet
		r.left = 1
		n.dealt(m)
		return
	}
	for _, i := range waiting {
		from, to := m.span(int(i))
		n.hpus.buffered -= int64(to - from)
		n.packet(m, int(i))
	}
	r.waiting = waiting[:0]
}

// processData begins the payload handlers, or the default action for the data if the entry has none. Atomics have no default
// action behind a user header that is no whole number of elements.
func (n *Node) processData(m *message) {
	r := &m.rx
	r.completes = r.handlers.completion.Valid()
	switch {
	case r.handlers.payload.Valid():
		r.phase = phaseHandlers
	case atomic(m.hdr.Kind) && r.skip%m.hdr.Type.Size() != 0:
		r.phase = phaseDiscard
		r.dropped = r.d.MLength
		if r.fail == portals.NIOK {
			r.fail = portals.NIOpViolation
		}
	default:
		r.phase = phaseDeposit
	}
}

func atomic(k portals.OpKind) bool {
	return k == portals.OpAtomic || k == portals.OpFetchAtomic || k == portals.OpSwap
}

// writeHeader writes the header record (docs/abi.md) and the user header.
func (n *Node) writeHeader(r *run, m *message) (bytes int) {
	h, d := &m.hdr, m.rx.d
	base, mem := r.ctx.ArgsAddr(), r.ctx.Program().Memory()
	user := min(m.rx.skip, len(m.data), m.mtu)
	copy(mem[r.ctx.PacketAddr():], m.data[:user])
	rec := mem[base : base+hpu.HeaderSize]
	le := binary.LittleEndian
	le.PutUint32(rec[0:], recordType(m))
	le.PutUint32(rec[4:], uint32(user))
	le.PutUint64(rec[8:], h.RLength)
	le.PutUint64(rec[16:], d.MLength)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	putProcess(rec[32:], h.Target, h.NI.Logical())
	le.PutUint64(rec[40:], h.MatchBits)
	le.PutUint64(rec[48:], d.Offset)
	le.PutUint64(rec[56:], h.HdrData)
	le.PutUint64(rec[64:], m.flow)
	le.PutUint32(rec[72:], r.ctx.PacketAddr())
	le.PutUint32(rec[76:], uint32(d.List)) // bit 0: overflow list
	le.PutUint32(rec[80:], uint32(h.Op))
	le.PutUint32(rec[84:], uint32(h.Type))
	le.PutUint64(rec[88:], 0)
	return user
}

// recordType numbers requests as docs/abi.md does.
func recordType(m *message) uint32 {
	if m.self {
		return uint32(portals.OpSwap) + 1
	}
	return uint32(m.hdr.Kind)
}

// writePayload writes the payload record (docs/abi.md) and copies the packet into the context's buffer.
func (n *Node) writePayload(r *run, m *message) (bytes int) {
	h, d, rx := &m.hdr, m.rx.d, &m.rx
	from, to := m.span(int(r.task.packet))
	n.hpus.buffered -= int64(to - from)
	from, to = max(from, rx.skip), min(to, int(d.MLength))
	to = max(from, to)
	base, packet, mem := r.ctx.ArgsAddr(), r.ctx.PacketAddr(), r.ctx.Program().Memory()
	copy(mem[packet:], m.data[from:to])
	rec := mem[base : base+hpu.PayloadSize]
	le := binary.LittleEndian
	le.PutUint32(rec[0:], packet)
	le.PutUint32(rec[4:], uint32(to-from))
	le.PutUint64(rec[8:], uint64(from-rx.skip))
	le.PutUint64(rec[16:], m.flow)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	le.PutUint64(rec[32:], h.HdrData)
	le.PutUint64(rec[40:], h.MatchBits)
	le.PutUint64(rec[48:], d.Offset+uint64(from-rx.skip))
	le.PutUint64(rec[56:], d.MLength)
	return to - from
}

// writeCompletion writes the completion record (docs/abi.md).
func (n *Node) writeCompletion(r *run, m *message) {
	h, rx := &m.hdr, &m.rx
	base := r.ctx.ArgsAddr()
	rec := r.ctx.Program().Memory()[base : base+hpu.CompletionSize]
	le := binary.LittleEndian
	le.PutUint64(rec[0:], rx.dropped)
	le.PutUint32(rec[8:], flag(rx.flowCtl))
	le.PutUint32(rec[12:], flag(rx.fail != portals.NIOK))
	le.PutUint64(rec[16:], m.flow)
	putProcess(rec[24:], h.Initiator, h.NI.Logical())
	le.PutUint64(rec[32:], h.HdrData)
	le.PutUint64(rec[40:], h.MatchBits)
	le.PutUint64(rec[48:], rx.d.Offset)
	le.PutUint64(rec[56:], rx.d.MLength)
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// putProcess writes a process identifier: node and process, or rank and 0 on a logical interface.
func putProcess(rec []byte, id portals.ID, logical bool) {
	nid, pid := id.NID, id.PID
	if logical {
		nid, pid = id.Rank, 0
	}
	binary.LittleEndian.PutUint32(rec, nid)
	binary.LittleEndian.PutUint32(rec[4:], pid)
}
