package portals

// HandlerOp is an operation of a handler (sPIN'17 §2, for example "put from
// host" and "put from device"). A host operation's data is in a descriptor.
// Here the handler names the memory. Checks, limits and outbox are the same.
type HandlerOp struct {
	Kind OpKind // OpPut, OpGet, OpAtomic, OpFetchAtomic or OpSwap

	// The source of put, atomic, fetching atomic and swap is either Data, bytes
	// of HPU memory that Issue copies, at most max_payload_size. Or, if Data is
	// nil, it is Length bytes of host memory at SourceOffset of Source.
	Data         []byte
	Kept         bool // Data does not change before the release of the operation: Issue makes no copy
	Source       Region
	SourceOffset uint64
	// Dest is the host memory for the reply of a get or fetching operation. If
	// it is empty, the reply's bytes are for the device: the transport
	// recognises the reply by its Cookie and keeps them.
	Dest       Region
	DestOffset uint64
	Length     uint64 // bytes; ignored with Data

	MD     Handle // descriptor for events and counters, or 0 for none
	Cookie uint64 // returned in Delivery.Cookie of the reply

	AckReq       AckReq
	Target       ID
	PT           uint32
	MatchBits    uint64
	RemoteOffset uint64
	UserPtr      uint64
	HdrData      uint64
	Op           AtomicOp
	Type         Datatype
	Operand      []byte // swaps: one element of Type
}

// Issue sends an operation of a handler. Errors: ErrNoInit, ErrArgInvalid.
func (port *Port) Issue(o *HandlerOp) error {
	x := transfer{
		kind: o.Kind, ack: o.AckReq, op: o.Op, typ: o.Type, length: o.Length, target: o.Target, pt: o.PT,
		matchBits: o.MatchBits, remoteOffset: o.RemoteOffset, userPtr: o.UserPtr, hdrData: o.HdrData,
		operandLen: len(o.Operand),
	}
	copy(x.operand[:], o.Operand)
	if err := port.checkIssue(o, &x); err != nil {
		return err
	}
	op := port.outbox.make()
	op.Issued = true
	pend, ref := port.pending.add()
	pend.kind, pend.length, pend.userPtr = x.kind, x.length, x.userPtr
	pend.issued, pend.cookie = true, o.Cookie
	if x.kind.fetches() {
		pend.dest, pend.getOff = o.Dest, o.DestOffset
	}
	port.fillHeader(&op.Header, &x, ref)
	op.Header.AckReq = NoAck
	if x.kind.carries() {
		op.length = x.length
		if o.Data != nil {
			if o.Kept {
				op.inline = o.Data
			} else {
				copy(op.keep(len(o.Data)), o.Data)
			}
		} else {
			op.source, op.offset = o.Source, o.SourceOffset
		}
	}
	if m := port.mds.all.get(o.MD); m != nil {
		if x.kind.carries() {
			pend.putMD = o.MD
			m.refs++
		}
		if x.kind.fetches() {
			pend.getMD = o.MD
			m.refs++
		} else if m.wantsAck(x.ack) {
			pend.ack, op.Header.AckReq = x.ack, x.ack
		}
	}
	pend.sent = !x.kind.carries()
	pend.waiting = x.kind.fetches() || pend.ack != NoAck
	port.queue(op)
	return nil
}

func (port *Port) checkIssue(o *HandlerOp, x *transfer) error {
	const fn = "Issue"
	if port.dead {
		return ErrNoInit
	}
	if !o.Kind.request() {
		return invalid(fn, "kind %v is no request", o.Kind)
	}
	if o.MD != InvalidHandle && port.mds.all.get(o.MD) == nil {
		return invalid(fn, "memory descriptor handle %#x names nothing", uint32(o.MD))
	}
	if x.kind.carries() {
		if o.Data != nil {
			x.length = uint64(len(o.Data))
			if x.length > port.limits.MaxPayloadSize {
				return invalid(fn, "%d bytes from the device, largest is %d", x.length, port.limits.MaxPayloadSize)
			}
		} else if !within(&o.Source, o.SourceOffset, x.length) {
			return invalid(fn, "%d bytes at offset %d of host memory of %d", x.length, o.SourceOffset, o.Source.Length)
		}
	}
	if x.kind.fetches() && o.Dest.Length > 0 && !within(&o.Dest, o.DestOffset, x.length) {
		return invalid(fn, "reply of %d bytes at offset %d of host memory of %d", x.length, o.DestOffset, o.Dest.Length)
	}
	return port.checkRequest(fn, x)
}
