package portals

import (
	"github.com/spinsim/spinsim/internal/poison"
)

// Op is an operation to transmit: a request, an acknowledgement or a reply. The
// transport owns it from NextOp to Release.
type Op struct {
	mark poison.Mark

	// The fields that reading a packet of the payload needs, side by side:
	inline []byte // payload kept in the operation; nil: in source
	offset uint64 // of the payload in source
	length uint64
	source Region

	Header    Header
	Triggered bool // fired by a counter
	Issued    bool // issued by a handler
	state     opState
	// Cause is for the transport's timelines: the flow that the operation
	// belongs to. It is the Cause of the interface at the time of the call
	// (NI.SetCause), or 0.
	Cause    uint64
	buf      []byte // recycled storage of inline
	delivery *Delivery
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

// Inline returns the payload if the operation itself holds it: old values of
// fetching atomics, volatile buffers, bytes of a handler. It returns nil if the
// payload is in the memory of Segments.
func (op *Op) Inline() []byte { return op.inline }

// Segments iterates over the host memory of n bytes of payload from offset off
// on. It is empty for inline payload.
func (op *Op) Segments(off, n uint64) SegIter {
	if op.inline != nil || off >= op.length {
		return SegIter{}
	}
	return op.source.Segments(op.offset+off, min(n, op.length-off))
}

// outbox is the queue of operations to transmit.
type outbox struct {
	ring    []*Op
	head, n int
	cause   uint64
	spare   *pool[Op]
}

// make returns an operation to fill in and push.
func (o *outbox) make() *Op {
	op := o.spare.get()
	*op = Op{buf: op.buf, state: opQueued, Cause: o.cause}
	return op
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

// keep reserves n bytes of inline payload.
func (op *Op) keep(n int) []byte {
	if cap(op.buf) < n {
		op.buf = make([]byte, n)
	}
	op.inline = op.buf[:n:n]
	return op.inline
}

// recycle takes an operation back from the transport.
func (o *outbox) recycle(op *Op) {
	op.state = opFree
	op.source.IOVec = nil
	op.inline = nil
	if op.mark.Release("portals: an operation"); poison.On {
		*op = Op{mark: op.mark}
	}
	o.spare.put(op)
}
