package nic

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// Posted writes of handlers (docs/abi.md, Posted writes). Nobody waits for
// them, so the device finishes them before the message's completion handler
// begins. PsPIN does the same: it reports the end of a handler when its
// commands have ended (task_frontend.sv).

// postWrite takes the bytes of a posted write, which goes on the bus at the
// handler's own time. If the device has no room, the handler waits.
func (d *act) postWrite(r *run, a *hpu.Action, at sim.Time) (result int64, blocked bool) {
	if a.Space&hpu.TellFaults != 0 {
		return hpu.Invalid, false // nobody could be told of a fault
	}
	o, result := d.newDMA(r, a.Op, a.Space, a.Offset, a.Local, a.Len, a.A, a.B)
	if o == nil {
		return result, false
	}
	if !d.dma.open(o) {
		d.discard(o)
		return 0, true
	}
	d.trace.by(r, o, at)
	d.dma.take(o)
	o.posts()
	d.post(at, kindDMAIssue, 0, o)
	return hpu.OK, false
}

// discard gives back an operation that does not begin.
func (d *act) discard(o *dmaOp) {
	d.core.drop(o.data, o.page)
	o.use(-1)
	d.trace.forget(o)
	d.core.releaseDMA(o)
}

// posts marks an operation as posted: only the completion handler of its
// message waits for it.
func (o *dmaOp) posts() {
	o.posted, o.handle = true, released
	o.in.data++
}

// postedEnded ends a posted write of a message. The completion handler may have
// waited for it.
func (d *act) postedEnded(in *inbound) {
	in.data--
	if in.data == 0 && in.left == 0 && in.completes {
		d.post(d.now(), kindDelivered, 0, in)
	}
}

// posted reports whether an action is a posted write.
func posted(op hpu.Op) bool { return op == hpu.OpDMAToHostPosted || op == hpu.OpHostWrite }

// immediate reports whether an action carries the 8 bytes that it writes.
func immediate(op hpu.Op) bool { return op == hpu.OpHostWrite || op == hpu.OpHostWriteNB }
