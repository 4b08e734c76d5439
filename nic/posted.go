package nic

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// Posted writes of handlers (docs/abi.md, Posted writes): nobody waits for
// them, so the device sees to it that they are done before the message's
// completion handler begins, as PsPIN does, which reports the end of a handler
// when its commands have ended (task_frontend.sv).

// postWrite takes the bytes of a posted write, which goes on the bus at the
// handler's own time. If the device has no room for it the handler waits for
// that.
func (d *act) postWrite(r *run, a *hpu.Action, at sim.Time) (result int64, blocked bool) {
	if a.Space&hpu.TellFaults != 0 {
		return hpu.Invalid, false // whom?
	}
	o, result := d.newDMA(r, a.Op, a.Space, a.Offset, a.Local, a.Len, a.A, a.B)
	if o == nil {
		return result, false
	}
	if !d.dmaRoom(o) {
		d.discard(o)
		return 0, true
	}
	d.trace.by(r, o, at)
	d.dmaBytes += int64(o.access.Length)
	o.posts()
	d.post(at, kindDMAIssue, 0, o)
	return hpu.OK, false
}

// discard gives an operation back that does not begin.
func (d *act) discard(o *dmaOp) {
	d.core.releaseBuffer(o.data)
	o.use(-1)
	d.trace.forget(o)
	d.core.releaseDMA(o)
}

// posts makes an operation one that nobody waits for, but the completion handler of its message.
func (o *dmaOp) posts() {
	o.posted, o.handle = true, released
	o.in.data++
}

// postedEnded is the end of a posted write of a message: its completion handler
// may have waited for it.
func (d *act) postedEnded(in *inbound) {
	in.data--
	if in.data == 0 && in.left == 0 && in.completes {
		d.post(d.now(), kindDelivered, 0, in)
	}
}

// posted reports whether an action is a write that nobody waits for.
func posted(op hpu.Op) bool { return op == hpu.OpDMAToHostPosted || op == hpu.OpHostWrite }

// immediate reports whether an action carries the 8 bytes that it writes.
func immediate(op hpu.Op) bool { return op == hpu.OpHostWrite || op == hpu.OpHostWriteNB }
