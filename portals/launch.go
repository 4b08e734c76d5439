package portals

import "github.com/spinsim/spinsim/internal/used"

func within(r *Region, off, n uint64) bool {
	return off <= r.Length && n <= r.Length-off
}

// transfer is a data movement operation with the initiator's arguments.
type transfer struct {
	kind         OpKind
	ack          AckReq
	op           AtomicOp
	typ          Datatype
	putMD, getMD Handle
	putOff       uint64
	getOff       uint64
	length       uint64
	target       ID
	pt           uint32
	matchBits    uint64
	remoteOffset uint64
	userPtr      uint64
	hdrData      uint64
	operand      [MaxOperand]byte
	operandLen   int
}

func (st *state) queue(op *Op) {
	st.outbox.push(op)
	if st.witness.tracer != nil {
		st.witness.trace(TraceRecord{What: TraceOpQueued, Header: &op.Header, PT: op.Header.PT})
	}
	if f := st.proc.cfg.Hooks.OpQueued; f != nil {
		f(st.port)
	}
}

// check validates a transfer.
func (st *state) check(fn string, x *transfer) error {
	if st.dead {
		return ErrNoInit
	}
	if x.kind.carries() {
		if err := st.mds.check(fn, "put", x.putMD, x.putOff, x.length); err != nil {
			return err
		}
	}
	if x.kind.fetches() {
		if err := st.mds.check(fn, "get", x.getMD, x.getOff, x.length); err != nil {
			return err
		}
	}
	return st.checkRequest(fn, x)
}

// checkRequest checks the arguments that do not depend on descriptors.
func (st *state) checkRequest(fn string, x *transfer) error {
	if x.ack >= ackCount {
		return invalid(fn, "acknowledgement request %d", x.ack)
	}
	if _, ok := st.names.physical(x.target); !ok {
		return invalid(fn, "target %v is no process", x.target)
	}
	limit := st.limits.MaxMsgSize
	if x.kind.isAtomic() {
		limit = st.limits.atomic(x.kind)
		st.proc.used.Add(used.Atomic)
		st.proc.used.AddIf(x.kind != OpAtomic, used.FetchAtomic)
		if err := checkAtomic(x.kind, x.op, x.typ, x.length); err != "" {
			return invalid(fn, "%s", err)
		}
		if x.kind == OpSwap && x.op.needsOperand() && x.operandLen < x.typ.Size() {
			return invalid(fn, "operand of %d bytes, %v has %d", x.operandLen, x.typ, x.typ.Size())
		}
	}
	if x.length > limit {
		return invalid(fn, "length %d, largest is %d", x.length, limit)
	}
	return nil
}

// launch puts a checked transfer into the outbox. It holds the descriptors.
func (st *state) launch(x *transfer, triggered bool) {
	op := st.outbox.make()
	op.Triggered = triggered
	pend, ref := st.pending.add()
	pend.kind, pend.ack, pend.length, pend.getOff = x.kind, x.ack, x.length, x.getOff
	pend.putMD, pend.getMD, pend.userPtr = x.putMD, x.getMD, x.userPtr
	st.fillHeader(&op.Header, x, ref)
	if m := st.mds.all.get(x.putMD); m != nil && x.kind.carries() {
		op.source, op.offset, op.length = m.region, x.putOff, x.length
		if m.opts&OptMDUnordered != 0 {
			op.Header.Flags |= FlagUnordered
		}
		if m.opts&OptMDUnreliable != 0 {
			op.Header.Flags |= FlagUnreliable
		}
		if !m.wantsAck(x.ack) {
			pend.ack, op.Header.AckReq = NoAck, NoAck
		}
		volatile := m.opts&OptMDVolatile != 0
		st.proc.used.AddIf(volatile, used.Volatile)
		if volatile && x.length <= st.limits.MaxVolatileSize &&
			readMem(st.memory, &m.region, x.putOff, op.keep(int(x.length))) {
			op.source = Region{}
		} else {
			op.inline = nil
		}
	}
	if m := st.mds.all.get(x.getMD); m != nil && x.kind == OpGet && m.opts&OptMDUnordered != 0 {
		op.Header.Flags |= FlagUnordered
	}
	pend.sent = !x.kind.carries()
	pend.waiting = x.kind.fetches() || pend.ack != NoAck
	if x.kind.fetches() {
		pend.ack = NoAck
	}
	st.queue(op)
}

func (st *state) fillHeader(h *Header, x *transfer, ref uint64) {
	*h = Header{
		Kind: x.kind, NI: st.kind, AckReq: x.ack, Op: x.op, Type: x.typ, Initiator: st.names.self,
		UID: st.uid, PT: x.pt, MatchBits: x.matchBits, HdrData: x.hdrData, RLength: x.length,
		RemoteOffset: x.remoteOffset, Ref: ref, Operand: x.operand,
	}
	var ok bool
	if h.Target, ok = st.names.physical(x.target); !ok {
		// A triggered operation to a rank that a later SetMap has removed goes
		// nowhere, and not to process 0 of node 0.
		h.Target = PhysID(NIDAny, PIDAny)
	}
}

func (st *state) start(fn string, x *transfer) error {
	if err := st.check(fn, x); err != nil {
		return err
	}
	st.mds.hold(x.putMD)
	st.mds.hold(x.getMD)
	st.launch(x, false)
	return nil
}

// settlePending forgets a complete request.
func (st *state) settlePending(p *pendingOp, ref uint64) {
	if !p.sent || p.waiting {
		return
	}
	st.mds.unhold(p.putMD)
	st.mds.unhold(p.getMD)
	st.pending.remove(p, ref)
}
