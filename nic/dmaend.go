package nic

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// dmaHandle is a non-blocking DMA operation of a handler.
type dmaHandle struct {
	used, done, waited bool
	result             int64
	failed             failedAccess // valid if the result is an error
}

// failedAccess is a handler's access to host memory that has failed. It is
// valid if result is an error.
type failedAccess struct {
	result  int64 // first, because the other fields matter only if it is an error
	address uint64
	bytes   int
	tries   int
	op      hpu.Op
}

// Ended implements host.Client: the data of an operation has landed, its answer
// is at the NIC, or it has failed. An operation with a page fault is tried
// again, unless its handler wants to see faults.
func (d *act) Ended(a *host.Access, _ int, s host.Status) {
	o := a.Ref.(*dmaOp)
	if s == host.Fault && !o.told && o.result >= hpu.OK && int(a.Tries) < d.faultTries() {
		a.Tries++
		o.tries = max(o.tries, a.Tries)
		d.post(d.now()+d.spec.FaultPause, kindDMAAgain, 0, a)
		return
	}
	if s != host.OK {
		d.bus.Drop(a)
	}
	if d.dma.turns != nil {
		if !o.landed(d, a, s) {
			return
		}
		s = o.status
	}
	d.trace.handlerLanded(o)
	d.end(o, s)
	d.core.releaseDMA(o)
}

// look finds the handle with which the handler can test its operation; nil:
// there is no handle, or the handler has ended.
func (o *dmaOp) look() *dmaHandle {
	if o.handle < 0 || !o.run.active || o.run.generation != o.generation {
		return nil
	}
	return &o.run.handles[o.handle]
}

// end ends an operation and lets its waiters continue.
func (d *act) end(o *dmaOp, s host.Status) {
	if o.result >= hpu.OK {
		switch s {
		case host.Fault:
			o.result = hpu.Fault
		case host.Denied:
			o.result = hpu.Denied
		}
	}
	d.move(o)
	d.watch.landed(o)
	o.use(-1)
	if o.result < hpu.OK && (o.posted || o.handle >= 0) && o.look() == nil {
		d.unheard(o.in, HandlerError{Program: o.memory.name}, o.failure())
	}
	if o.posted {
		d.postedEnded(o.in)
	}
	if o.op == hpu.OpDMAToHost {
		d.deposits.wrote(o.in, int(o.write))
	}
	d.dmaEnded(o)
	switch h := o.look(); {
	case h != nil:
		waited := h.waited
		*h = dmaHandle{used: true, done: true, result: o.result}
		if o.result < hpu.OK {
			h.failed = o.failure()
		}
		if waited {
			d.sched.resumable(o.run, o.run.take(h))
		}
	case o.handle == noHandle:
		o.run.landed = o.op == hpu.OpDMAToHost
		if o.result < hpu.OK {
			o.run.failed = o.failure()
		}
		d.sched.resumable(o.run, o.result)
	case o.handle >= 0:
		o.run.late--
	}
	if o.op != hpu.OpDMAToHost {
		d.changed(o.memory)
	}
}

// take gives a handler the result of an operation and frees the handle.
func (r *run) take(h *dmaHandle) int64 {
	result := h.result
	if result < hpu.OK {
		r.failed = h.failed
	}
	*h = dmaHandle{}
	return result
}

func (o *dmaOp) failure() failedAccess {
	address, _ := o.access.At(0)
	return failedAccess{op: o.op, address: address, bytes: o.access.Length, tries: int(o.tries), result: o.result}
}

// unlooked follows the end of a handler. It reports failed operations whose
// results the handler did not read, and counts operations that are still on
// their way.
func (d *act) unlooked(r *run) {
	if !r.looks {
		return
	}
	for i := range r.handles {
		switch h := &r.handles[i]; {
		case h.used && !h.done:
			r.late++
		case h.done && h.result < hpu.OK:
			d.unheard(r.task.in, HandlerError{Program: r.task.in.handlers.memory.name, Handler: r.task.kind.String()}, h.failed)
		}
	}
}

// unheard reports a failed operation whose handler does not know of the
// failure. A failed write also fails its message. After a failed read, in may
// be gone.
func (d *act) unheard(in *inbound, e HandlerError, f failedAccess) {
	if f.op == hpu.OpDMAToHost {
		in.failed(portals.NISegv)
	}
	e.Rank, e.At = int(d.rank), d.now()
	e.Err = errors.New(d.failedAccess(&f, "that it did not wait for"))
	d.report.handlerFailed(e)
}

// failedAccess describes a failed access and its result, with which in between.
func (e *env) failedAccess(f *failedAccess, which string) string {
	what := "a read of"
	switch f.op {
	case hpu.OpDMAToHost:
		what = "a write of"
	case hpu.OpDMACAS, hpu.OpDMAFAdd:
		what = "an atomic on"
	}
	status := fmt.Sprintf("result %d", f.result)
	switch f.result {
	case hpu.Fault:
		status = e.refusal(host.Fault, f.tries)
	case hpu.Denied:
		status = e.refusal(host.Denied, f.tries)
	}
	return fmt.Sprintf("%s %d bytes of host memory at %#x %s failed: %s", what, f.bytes, f.address, which, status)
}

// testDMA answers dma_test.
func (r *run) testDMA(handle uint64) int64 {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		return hpu.Invalid
	}
	h := &r.handles[handle]
	if !h.done {
		return 0
	}
	if result := r.take(h); result < 0 {
		return result
	}
	return 1
}

// waitDMA carries out dma_wait. The handler continues at once if the operation
// is done; otherwise it gives its core away.
func (r *run) waitDMA(handle uint64) (result int64, ready bool) {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		return hpu.Invalid, true
	}
	h := &r.handles[handle]
	if h.done {
		return r.take(h), true
	}
	h.waited = true
	return 0, false
}
