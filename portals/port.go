package portals

// Port is a network interface as the transport sees it. At the initiator NextOp
// returns the next operation to send. The transport reports its fate by Sent,
// Release, Acked, ReplyTo and Lost. At the target Receive, Write and Finish
// deliver a message. Operations in flight at the last NIFini are still sent and
// accepted, but have no effect.
type Port struct {
	state
	Index int // for the transport's own use: its name for the interface
	// Stranger, if not nil, reports whether a user shares the device and nothing
	// else with the process. A stranger's message that no entry of its list allows is
	// a permission violation, also if it matches none: it triggers no flow control.
	// Portals 4.x looks at the user where an entry matches, so that anybody could
	// disable a portal table entry.
	Stranger func(uid uint32) bool
}

// NI returns the interface as programs see it.
func (port *Port) NI() *NI { return port.ni }

// Kind returns which of the four interfaces it is.
func (port *Port) Kind() NIKind { return port.kind }

// ID returns NID and PID of the process, even after the last NIFini.
func (port *Port) ID() ID { return PhysID(port.names.self.NID, port.names.self.PID) }

// Limits returns the limits granted.
func (port *Port) Limits() Limits { return *port.limits }

// Bundling reports whether a bundle is open. The transport may then delay
// operations of the host.
func (port *Port) Bundling() bool { return port.bundles > 0 }

// Read copies payload from offset off into dst, which must not extend beyond
// the payload. It reports whether the memory was accessible.
func (port *Port) Read(op *Op, off uint64, dst []byte) bool {
	op.mark.Live("portals: an operation")
	if op.inline != nil {
		return off <= uint64(len(op.inline)) && copy(dst, op.inline[off:]) == len(dst)
	}
	if off > op.length || uint64(len(dst)) > op.length-off {
		return false
	}
	return readMem(port.memory, &op.source, op.offset+off, dst)
}

// NextOp returns the next operation to transmit, in order, or nil. After a
// shutdown an interface still returns its remaining operations.
func (port *Port) NextOp() *Op {
	op := port.outbox.pop()
	if op != nil {
		op.state = opTaken
	}
	return op
}

// QueuedOps returns how many operations NextOp would return.
func (port *Port) QueuedOps() int { return port.outbox.n }

// Release gives an operation back. It is a programmer's mistake to release an
// operation before Sent.
func (port *Port) Release(op *Op) {
	if op.state != opSent {
		panic("portals: Release of an Op that was not sent")
	}
	port.outbox.recycle(op)
}

// DisableForFlowControl disables a portal table entry because the device ran
// out of a resource, such as handler contexts or packet buffer (Portals 4.x
// §2.7; sPIN'17 §2). The owner gets one PT_DISABLED event. It has no effect on
// an entry that is not allocated, is disabled, or has no flow control. The
// result reports whether the entry refuses messages now.
func (port *Port) DisableForFlowControl(index uint32) bool {
	if port.dead || index >= uint32(len(port.pts)) || port.pts[index] == nil {
		return false
	}
	p := port.pts[index]
	if !p.disabled {
		port.queues.exhausted(p, 0)
	}
	return p.disabled
}

// Cookie returns the cookie of a handler's request that waits for its answer.
// It is 0 for an operation of the host, and after the answer.
func (port *Port) Cookie(op *Op) uint64 {
	if !op.Issued {
		return 0
	}
	if p := port.pending.at(op.Header.Ref); p != nil && p.waiting && !p.replying {
		return p.cookie
	}
	return 0
}
