package portals

import (
	"github.com/spinsim/spinsim/internal/poison"
)

// Delivery is a message during its delivery: a request between Receive and the
// final Finish, or a reply between ReplyTo and Finish. Deliveries of one
// interface may be open at the same time and finish in any order.
//
// A message needs many events of its node. Between them its delivery leaves the
// caches of the simulating machine. So the fields that every put needs are
// together in the first 64 bytes, and most messages touch no others.
type Delivery struct {
	mark    poison.Mark
	Header  *Header // the message's header
	Spin    *Spin   // handlers of the entry, nil for none
	Offset  uint64  // where it lands in the entry or descriptor
	MLength uint64  // bytes to land, after truncation
	entry   *entry  // it matched; nil: none, or a reply
	pt      *pt
	landed  uint64
	Fail    FailType // why it is not delivered; NIOK when it is
	List    List     // list it matched in
	outcome FailType
	kind    OpKind // of the header
	flags   deliveryFlags

	reply  reply
	header *unexpected
	old    []byte // previous values, fetching atomics; its storage is used again
	older  *Delivery
	newer  *Delivery
	kept   Header // where the header is when the transport need not have it any more
}

// deliveryPool has unused deliveries.
type deliveryPool struct{ all pool[Delivery] }

func (p *deliveryPool) take(h *Header) *Delivery {
	d := p.all.get()
	d.Header, d.kind, d.flags, d.Fail, d.List, d.outcome = h, h.Kind, deliveryOpen, NIOK, PriorityList, NIOK
	d.Offset, d.MLength, d.landed = 0, 0, 0
	if h.Kind.request() && (h.Kind.fetches() || h.AckReq != NoAck && h.AckReq < ackCount) {
		d.flags |= deliveryDue
	}
	return d
}

// release gives a delivery back. Rarely used fields are cleared where they are
// used.
func (p *deliveryPool) release(d *Delivery) {
	if d.is(deliveryOrdered) { // the interface was closed before its turn came
		d.older, d.newer = nil, nil
	}
	d.flags = 0
	d.Header, d.entry, d.pt, d.Spin = nil, nil, nil, nil
	switch d.kind {
	case OpReply:
		d.reply = reply{}
	case OpFetchAtomic, OpSwap:
		d.old = d.old[:0]
	}
	if d.List == OverflowList {
		d.header = nil
	}
	if d.mark.Release("portals: a delivery"); poison.On {
		*d = Delivery{mark: d.mark}
	}
	p.all.put(d)
}

// reply has the fields of a reply's delivery, which has no entry.
type reply struct {
	region     Region // where it lands
	descriptor Handle // the get's
	cookie     uint64
}

// deliveryFlags are bits of a Delivery.
type deliveryFlags uint16

const (
	deliveryOpen     deliveryFlags = 1 << iota // not finished
	deliveryMatched                            // it has a place to go
	deliveryReply                              // of a reply that somebody waits for
	deliveryDue                                // an acknowledgement or reply is to be sent
	deliverySegv                               // memory was not accessible
	deliverySlot                               // an event queue slot is promised
	deliveryOrdered                            // locally managed: in the entry's order of matching
	deliveryFinished                           // and waiting for older deliveries
	deliveryWaits                              // the entry waits for another message
)

func (d *Delivery) is(f deliveryFlags) bool { return d.flags&f != 0 }

// Matched reports whether the message has a place. If not, Fail gives the
// reason, and Finish answers the initiator.
func (d *Delivery) Matched() bool { return d.is(deliveryMatched) }

// Handle returns the handle of the matched entry, or of the get's descriptor
// for a reply.
func (d *Delivery) Handle() Handle {
	if d.entry != nil {
		return d.entry.handle
	}
	return d.reply.descriptor
}

// Cookie returns HandlerOp.Cookie of the operation for a reply. It is 0 for
// host operations and requests.
func (d *Delivery) Cookie() uint64 {
	if d.kind != OpReply {
		return 0
	}
	return d.reply.cookie
}

// Region returns the whole memory of the entry, or of the descriptor for a
// reply. Handlers' offsets count from its beginning.
func (d *Delivery) Region() *Region {
	d.mark.Live("portals: a delivery")
	if d.entry != nil {
		return &d.entry.region
	}
	return &d.reply.region
}

// Segments iterates over the host memory of n bytes of the message from offset
// off in the message on. It ends at MLength.
func (d *Delivery) Segments(off, n uint64) SegIter {
	if off >= d.MLength {
		return SegIter{}
	}
	return d.Region().Segments(d.Offset+off, min(n, d.MLength-off))
}

// Piece returns the first range of Segments. length may be less than n, and is
// 0 beyond the end.
func (d *Delivery) Piece(off, n uint64) (addr, length uint64) {
	r := d.Region()
	if r.IOVec == nil && off < d.MLength {
		return r.Start + d.Offset + off, min(n, d.MLength-off)
	}
	it := d.Segments(off, n)
	addr, length, _ = it.Next()
	return addr, length
}

// keepHeader makes the delivery independent of the transport's header, which
// may be reused after Finish.
func (d *Delivery) keepHeader() {
	if d.Header != &d.kept {
		d.kept = *d.Header
		d.Header = &d.kept
	}
}

// Done returns the outcome of a message that was delivered without handlers:
// all MLength bytes, with the failure of the delivery, if any.
func (d *Delivery) Done() Outcome { return Outcome{Delivered: d.MLength, Fail: d.Fail} }

// Outcome is the end of a delivery.
type Outcome struct {
	Delivered uint64   // bytes really delivered; reported as mlength
	Fail      FailType // NIOK, or what the communication event reports
	// Pending: this message does not complete the entry. The communication
	// event, the counters and the answer wait for a second Finish of the same
	// delivery (sPIN'17 §2, the _PENDING return codes).
	Pending bool
	// Waits: this message ends but does not complete the entry. It is answered,
	// but has no event and no count. An entry that is used once is back in its
	// place for another message. A message that has failed completes its entry.
	Waits bool
	Note  uint64 // with Waits: the transport's, for WaitingEntry
}

// failure is the fail type to report.
func (d *Delivery) failure(o Outcome) FailType {
	switch {
	case o.Fail != NIOK:
		return o.Fail
	case d.is(deliverySegv):
		return NISegv
	}
	return d.Fail
}

// leaveOrder takes the delivery out of the order of its entry.
func (d *Delivery) leaveOrder() {
	e := d.entry
	if d.older == nil {
		e.firstOpen = d.newer
	} else {
		d.older.newer = d.newer
	}
	if d.newer == nil {
		e.lastOpen = d.older
	} else {
		d.newer.older = d.older
	}
	d.older, d.newer = nil, nil
	d.flags &^= deliveryOrdered
}

// applyAtomic applies the elements in data, at offset off of the message, to
// the target's memory, and keeps the old values of fetching operations. It
// returns how many bytes it has applied: fewer than all if memory is
// inaccessible.
func (d *Delivery) applyAtomic(mem Memory, off uint64, data []byte) (applied int) {
	h, r := d.Header, d.Region()
	size := uint64(h.Type.Size())
	if off%size != 0 {
		panic("portals: Write of an atomic at an offset that is no multiple of the datatype")
	}
	for uint64(len(data)) >= size {
		it := r.Segments(d.Offset+off, uint64(len(data)))
		addr, n, _ := it.Next()
		b, ok := bytesAt(mem, addr, n, true)
		if !ok {
			return applied
		}
		whole := uint64(len(b)) / size * size
		if whole > 0 {
			if len(d.old) > 0 {
				copy(d.old[off:], b[:whole])
			}
			combine(h.Op, h.Type, b[:whole], data[:whole], h.Operand[:])
		} else {
			// The element is split over several pieces of memory.
			whole = size
			var tmp [MaxOperand]byte
			if !readMem(mem, r, d.Offset+off, tmp[:size]) {
				return applied
			}
			if len(d.old) > 0 {
				copy(d.old[off:], tmp[:size])
			}
			combine(h.Op, h.Type, tmp[:size], data[:size], h.Operand[:])
			if writeMem(mem, r, d.Offset+off, tmp[:size]) < int(size) {
				return applied
			}
		}
		applied += int(whole)
		off += whole
		data = data[whole:]
	}
	return applied
}
