package portals

import (
	"github.com/spinsim/spinsim/internal/poison"
)

// Delivery is a message under delivery: a request between Receive and the final
// Finish, or a reply between ReplyTo and Finish. Deliveries of one interface
// may be open at the same time and finish in any order.
type Delivery struct {
	mark    poison.Mark
	Header  Header   // the message's header
	Fail    FailType // why it is not delivered; NIOK when it is
	List    List     // list it matched in
	Handle  Handle   // entry it matched; reply: the get's descriptor
	UserPtr uint64   // user pointer of the entry; reply: of the operation
	Offset  uint64   // where it lands in the entry or descriptor
	MLength uint64   // bytes to land, after truncation
	Spin    *Spin    // handlers of the entry, nil for none
	Cookie  uint64   // reply: HandlerOp.Cookie of the operation, 0 for host operations

	owner    *Port
	matched  bool
	reply    bool
	open     bool
	pt       *pt
	entry    *entry
	region   Region
	header   *unexpected
	old      []byte // previous values, fetching atomics
	buf      []byte // recycled storage of old
	segv     bool
	slot     bool // an event queue slot is promised
	ordered  bool // locally managed: in the entry's order of matching
	finished bool // and waiting for older deliveries
	outcome  FailType
	landed   uint64
	older    *Delivery
	newer    *Delivery
}

// Matched reports whether the message has a place to go. If not, Fail says why,
// and Finish answers the initiator.
func (d *Delivery) Matched() bool { return d.matched }

// Region returns the memory of the entry (reply: of the descriptor), whole.
// Offsets of handlers count from its beginning.
func (d *Delivery) Region() *Region {
	d.mark.Live("portals: a delivery")
	return &d.region
}

// Segments iterates over the host memory of n bytes of the message from offset
// off in the message. It ends with MLength.
func (d *Delivery) Segments(off, n uint64) SegIter {
	if off >= d.MLength {
		return SegIter{}
	}
	return d.region.Segments(d.Offset+off, min(n, d.MLength-off))
}

// Done is the outcome of a message delivered as its header says: MLength bytes,
// and the failure of the delivery if there is one.
func (d *Delivery) Done() Outcome { return Outcome{Delivered: d.MLength, Fail: d.Fail} }

// Outcome is how the delivery of a message ended.
type Outcome struct {
	Delivered uint64   // bytes really delivered; reported as mlength
	Fail      FailType // NIOK, or what the communication event reports
	// Pending: the entry is not completed by this message; the communication
	// event, the counters and the answer wait for a second Finish of the same
	// delivery (sPIN'17 §2, the _PENDING return codes).
	Pending bool
}

// failure is the fail type to report.
func (d *Delivery) failure(o Outcome) FailType {
	switch {
	case o.Fail != NIOK:
		return o.Fail
	case d.segv:
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
	d.older, d.newer, d.ordered = nil, nil, false
}

// applyAtomic applies the elements in data, at offset off of the message, to
// the target's memory in place and keeps the old values of fetching operations.
// It reports whether the memory was accessible.
func (d *Delivery) applyAtomic(mem Memory, off uint64, data []byte) bool {
	h := &d.Header
	size := uint64(h.Type.Size())
	if off%size != 0 {
		panic("portals: Write of an atomic at an offset that is no multiple of the datatype")
	}
	for uint64(len(data)) >= size {
		it := d.region.Segments(d.Offset+off, uint64(len(data)))
		addr, n, _ := it.Next()
		b, ok := bytesAt(mem, addr, n)
		if !ok {
			return false
		}
		whole := uint64(len(b)) / size * size
		if whole > 0 {
			if d.old != nil {
				copy(d.old[off:], b[:whole])
			}
			combine(h.Op, h.Type, b[:whole], data[:whole], h.Operand[:])
		} else {
			// The element lies in more than one piece of memory.
			whole = size
			var tmp [MaxOperand]byte
			if !readMem(mem, &d.region, d.Offset+off, tmp[:size]) {
				return false
			}
			if d.old != nil {
				copy(d.old[off:], tmp[:size])
			}
			combine(h.Op, h.Type, tmp[:size], data[:size], h.Operand[:])
			if !writeMem(mem, &d.region, d.Offset+off, tmp[:size]) {
				return false
			}
		}
		off += whole
		data = data[whole:]
	}
	return true
}
