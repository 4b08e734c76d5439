package portals

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/poison"
)

// transfer is a data movement operation as the initiator asked for it.
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

// Op is an operation to transmit: a request, an acknowledgement or a reply. It
// belongs to the transport from NextOp to Release.
type Op struct {
	mark      poison.Mark
	Header    Header
	Triggered bool // fired by a counter
	Issued    bool // issued by a handler
	source    Region
	offset    uint64 // of the payload in source
	length    uint64
	inline    []byte // payload kept in the operation; nil: in source
	buf       []byte // recycled storage of inline
	delivery  *Delivery
	state     opState
}

type opState uint8

const (
	opFree opState = iota
	opQueued
	opTaken
	opSent
)

// Length returns the bytes of payload that travel with the header.
func (op *Op) Length() uint64 {
	op.mark.Live("portals: an operation")
	return op.length
}

// Inline returns the payload when the operation itself holds it (old values of
// fetching atomics, volatile buffers, bytes of a handler), nil when it lies in
// the memory Segments names.
func (op *Op) Inline() []byte { return op.inline }

// Segments iterates over the host memory of n bytes of payload from offset off;
// empty for inline payload.
func (op *Op) Segments(off, n uint64) SegIter {
	if op.inline != nil || off >= op.length {
		return SegIter{}
	}
	return op.source.Segments(op.offset+off, min(n, op.length-off))
}

// Read copies payload from offset off into dst, which must not reach past the
// payload, and reports whether the memory was accessible.
func (ni *NI) Read(op *Op, off uint64, dst []byte) bool {
	op.mark.Live("portals: an operation")
	if op.inline != nil {
		return off <= uint64(len(op.inline)) && copy(dst, op.inline[off:]) == len(dst)
	}
	if off > op.length || uint64(len(dst)) > op.length-off {
		return false
	}
	return readMem(ni.proc.cfg.Memory, &op.source, op.offset+off, dst)
}

// outbox is the queue of operations to transmit.
type outbox struct {
	ring    []*Op
	head, n int
}

func (o *outbox) push(op *Op) {
	if o.n == len(o.ring) {
		bigger := make([]*Op, max(16, 2*len(o.ring)))
		for i := range o.n {
			bigger[i] = o.ring[(o.head+i)%len(o.ring)]
		}
		o.ring, o.head = bigger, 0
	}
	i := o.head + o.n
	if i >= len(o.ring) {
		i -= len(o.ring)
	}
	o.ring[i] = op
	o.n++
}

func (o *outbox) pop() *Op {
	if o.n == 0 {
		return nil
	}
	op := o.ring[o.head]
	o.ring[o.head] = nil
	o.head++
	if o.head == len(o.ring) {
		o.head = 0
	}
	o.n--
	return op
}

// NextOp returns the next operation to transmit, in order, or nil. An interface
// that was shut down still gives out what it owes.
func (ni *NI) NextOp() *Op {
	op := ni.outbox.pop()
	if op != nil {
		op.state = opTaken
	}
	return op
}

// QueuedOps returns how many operations NextOp would give.
func (ni *NI) QueuedOps() int { return ni.outbox.n }

// Release gives an operation back. Releasing one that Sent was not told about
// is a programmer's mistake.
func (ni *NI) Release(op *Op) {
	if op.state != opSent {
		panic("portals: Release of an Op that was not sent")
	}
	op.state = opFree
	op.source.IOVec = nil
	op.inline = nil
	if op.mark.Release("portals: an operation"); poison.On {
		*op = Op{mark: op.mark}
	}
	ni.opPool.put(op)
}

func (ni *NI) newOp() *Op {
	op := ni.opPool.get()
	*op = Op{buf: op.buf, state: opQueued}
	return op
}

func (ni *NI) queue(op *Op) {
	ni.outbox.push(op)
	if ni.tracer != nil {
		ni.trace(TraceRecord{What: TraceOpQueued, Header: &op.Header, PT: op.Header.PT})
	}
	if f := ni.proc.cfg.Hooks.OpQueued; f != nil {
		f(ni)
	}
}

// keep makes n bytes of inline payload.
func (op *Op) keep(n int) []byte {
	if cap(op.buf) < n {
		op.buf = make([]byte, n)
	}
	op.inline = op.buf[:n:n]
	return op.inline
}

// pendingOp is what the initiator remembers of a request until it is complete.
type pendingOp struct {
	gen      uint32
	used     bool
	sent     bool // SEND is done or there is none
	waiting  bool // an acknowledgement or reply is due
	replying bool // the reply is arriving
	kind     OpKind
	ack      AckReq
	putMD    Handle
	getMD    Handle
	length   uint64
	getOff   uint64
	userPtr  uint64
	issued   bool // by a handler: replies go to dest, not to a descriptor
	dest     Region
	cookie   uint64
}

func (ni *NI) newPending() (*pendingOp, uint64) {
	var i uint32
	if n := len(ni.pendingFree); n > 0 {
		i = ni.pendingFree[n-1]
		ni.pendingFree = ni.pendingFree[:n-1]
	} else {
		i = uint32(len(ni.pending))
		ni.pending = append(ni.pending, pendingOp{gen: 1})
	}
	p := &ni.pending[i]
	*p = pendingOp{gen: p.gen, used: true}
	return p, uint64(p.gen)<<32 | uint64(i)
}

func (ni *NI) pendingAt(ref uint64) *pendingOp {
	i := ref & 0xffffffff
	if i >= uint64(len(ni.pending)) {
		return nil
	}
	p := &ni.pending[i]
	if !p.used || p.gen != uint32(ref>>32) {
		return nil
	}
	return p
}

// settlePending frees a request that is complete.
func (ni *NI) settlePending(p *pendingOp, ref uint64) {
	if !p.sent || p.waiting {
		return
	}
	ni.mdUnref(p.putMD)
	ni.mdUnref(p.getMD)
	p.used = false
	p.dest.IOVec = nil
	if p.gen++; p.gen == 0 {
		p.gen = 1
	}
	ni.pendingFree = append(ni.pendingFree, uint32(ref))
}

// hold keeps the descriptors of a transfer from being released.
func (ni *NI) hold(x *transfer) {
	if m := ni.mds.get(x.putMD); m != nil {
		m.refs++
	}
	if m := ni.mds.get(x.getMD); m != nil {
		m.refs++
	}
}

// check validates a transfer.
func (ni *NI) check(fn string, x *transfer) error {
	if ni.dead {
		return ErrNoInit
	}
	if x.kind.carries() {
		if err := ni.checkMD(fn, "put", x.putMD, x.putOff, x.length); err != nil {
			return err
		}
	}
	if x.kind.fetches() {
		if err := ni.checkMD(fn, "get", x.getMD, x.getOff, x.length); err != nil {
			return err
		}
	}
	return ni.checkRequest(fn, x)
}

// checkRequest validates what does not depend on descriptors.
func (ni *NI) checkRequest(fn string, x *transfer) error {
	if x.ack >= ackCount {
		return invalid(fn, "acknowledgement request %d", x.ack)
	}
	if _, ok := ni.target(x.target); !ok {
		return invalid(fn, "target %v is no process", x.target)
	}
	limit := ni.limits.MaxMsgSize
	if x.kind.isAtomic() {
		limit = ni.limits.MaxAtomicSize
		if x.kind != OpAtomic {
			limit = ni.limits.MaxFetchAtomicSize
		}
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

func (ni *NI) checkMD(fn, side string, h Handle, off, n uint64) error {
	m := ni.mds.get(h)
	if m == nil {
		return invalid(fn, "%s memory descriptor handle %#x names nothing", side, uint32(h))
	}
	end, carry := bits.Add64(off, n, 0)
	if carry != 0 || end > m.region.Length {
		return invalid(fn, "%d bytes at offset %d of a %s memory descriptor of %d", n, off, side, m.region.Length)
	}
	return nil
}

// launch puts a checked transfer into the outbox. The descriptors are held.
func (ni *NI) launch(x *transfer, triggered bool) {
	op := ni.newOp()
	op.Triggered = triggered
	pend, ref := ni.newPending()
	pend.kind, pend.ack, pend.length, pend.getOff = x.kind, x.ack, x.length, x.getOff
	pend.putMD, pend.getMD, pend.userPtr = x.putMD, x.getMD, x.userPtr
	ni.fillHeader(&op.Header, x, ref)
	if m := ni.mds.get(x.putMD); m != nil && x.kind.carries() {
		op.source, op.offset, op.length = m.region, x.putOff, x.length
		if m.opts&OptMDUnordered != 0 {
			op.Header.Flags |= FlagUnordered
		}
		if m.opts&OptMDUnreliable != 0 {
			op.Header.Flags |= FlagUnreliable
		}
		if !ni.wantsAck(m, x.ack) {
			pend.ack, op.Header.AckReq = NoAck, NoAck
		}
		if m.opts&OptMDVolatile != 0 && x.length <= ni.limits.MaxVolatileSize &&
			readMem(ni.proc.cfg.Memory, &m.region, x.putOff, op.keep(int(x.length))) {
			op.source = Region{}
		} else {
			op.inline = nil
		}
	}
	if m := ni.mds.get(x.getMD); m != nil && x.kind == OpGet && m.opts&OptMDUnordered != 0 {
		op.Header.Flags |= FlagUnordered
	}
	pend.sent = !x.kind.carries()
	pend.waiting = x.kind.fetches() || pend.ack != NoAck
	if x.kind.fetches() {
		pend.ack = NoAck
	}
	ni.queue(op)
}

func (ni *NI) fillHeader(h *Header, x *transfer, ref uint64) {
	*h = Header{
		Kind: x.kind, NI: ni.kind, AckReq: x.ack, Op: x.op, Type: x.typ, Initiator: ni.self,
		UID: ni.proc.cfg.UID, PT: x.pt, MatchBits: x.matchBits, HdrData: x.hdrData, RLength: x.length,
		RemoteOffset: x.remoteOffset, Ref: ref, Operand: x.operand,
	}
	var ok bool
	if h.Target, ok = ni.target(x.target); !ok {
		// A triggered operation whose rank a later SetMap has left out: nobody, not process 0 of node 0.
		h.Target = PhysID(NIDAny, PIDAny)
	}
}

// wantsAck reports whether anybody at the initiator would notice an
// acknowledgement; one that nobody notices is not asked for (Portals 4.x §3.15).
func (ni *NI) wantsAck(m *md, ack AckReq) bool {
	counts := m.opts&OptMDEventCTAck != 0 && m.ct != CTNone
	return counts && ack != NoAck || ack == Ack && m.eq != EQNone
}

func (ni *NI) start(fn string, x *transfer) error {
	if err := ni.check(fn, x); err != nil {
		return err
	}
	ni.hold(x)
	ni.launch(x, false)
	return nil
}

// Put (PtlPut) sends length bytes of a descriptor to a target. SEND follows
// when the bytes have left, ACK, if asked for, when the target has them.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Put(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64,
) error {
	x := transfer{
		kind: OpPut, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData,
	}
	return ni.start("Put", &x)
}

// Get (PtlGet) reads length bytes of a target into a descriptor. REPLY follows.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Get(mdh Handle, localOffset, length uint64, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr uint64,
) error {
	x := transfer{
		kind: OpGet, getMD: mdh, getOff: localOffset, length: length, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
	}
	return ni.start("Get", &x)
}

// Atomic (PtlAtomic) combines length bytes with the target's memory, element by
// element. Events are those of Put, with ATOMIC at the target. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *NI) Atomic(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpAtomic, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData, op: op, typ: typ,
	}
	return ni.start("Atomic", &x)
}

// FetchAtomic (PtlFetchAtomic) is Atomic that returns the target's old values
// into getMD. SEND on putMD and REPLY on getMD follow. Errors: ErrNoInit,
// ErrArgInvalid.
func (ni *NI) FetchAtomic(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64, target ID,
	ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpFetchAtomic, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ,
	}
	return ni.start("FetchAtomic", &x)
}

// Swap (PtlSwap) replaces the target's values, unconditionally (OpSWAP, any
// length) or one element depending on operand (the others), and returns the old
// values into getMD. operand is one element of typ and ignored by OpSWAP.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) Swap(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64, target ID,
	ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, operand []byte, op AtomicOp, typ Datatype,
) error {
	x := transfer{
		kind: OpSwap, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ, operandLen: len(operand),
	}
	copy(x.operand[:], operand)
	return ni.start("Swap", &x)
}
