package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// dmaHandle is one non-blocking DMA operation of a handler.
type dmaHandle struct {
	used, done, waited bool
	result             int64
	faulted            *dmaOp  // it is to be tried again
	refused            refused // what was asked for, if the result says that it has failed
}

// refused is an access of a handler that has failed.
type refused struct {
	op      hpu.Op
	address uint64
	bytes   int
	tries   int
}

// Ended implements host.Client: the data of an operation has landed, or its answer is at the NIC, or it has failed. A handler that waits learns of
// a fault; what nobody waits for yet is tried again.
func (d *act) Ended(a *host.Access, _ int, s host.Status) {
	o := a.Ref.(*dmaOp)
	if s == host.Fault && o.result >= hpu.OK && !o.awaited() && o.tries < d.spec.FaultTries {
		d.pause(o)
		return
	}
	if s != host.OK {
		d.bus.Drop(a)
	}
	d.end(o, s)
	d.core.releaseDMA(o)
}

// look finds the handle of an operation by which its handler can look for its end; nil: it has none, or has ended.
func (o *dmaOp) look() *dmaHandle {
	if o.handle < 0 || !o.run.active || o.run.generation != o.generation {
		return nil
	}
	return &o.run.handles[o.handle]
}

// awaited reports whether a handler is suspended until the operation ends.
func (o *dmaOp) awaited() bool {
	h := o.look()
	return o.handle == noHandle || h != nil && h.waited
}

// pause gives memory time to become present; a handler that looks for the end of the operation meanwhile learns of the fault.
func (d *act) pause(o *dmaOp) {
	o.tries++
	if h := o.look(); h != nil {
		h.faulted = o
	}
	d.post(d.now()+d.spec.FaultPause, kindDMAAgain, 0, o)
}

// again puts an operation that has failed on the bus once more, unless its handler has been told.
func (d *act) again(o *dmaOp) {
	if o.ended {
		d.core.releaseDMA(o)
		return
	}
	if h := o.look(); h != nil {
		h.faulted = nil
	}
	d.bus.Again(&o.access, 0)
}

// tell ends an operation that is to be tried again: its handler looks for its end.
func (d *act) tell(o *dmaOp) {
	o.ended = true
	d.bus.Drop(&o.access)
	d.end(o, host.Fault)
}

// end is the end of an operation, for whoever waits for it.
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
	o.memory.uses--
	if o.result < hpu.OK && o.handle >= 0 && o.look() == nil {
		d.unheard(o.in, HandlerError{Program: o.memory.name}, o.refused(), o.result)
	}
	if o.op == hpu.OpDMAToHost {
		d.deposits.wrote(o.in, o.write)
	}
	d.dmaEnded(o.access.Length)
	switch h := o.look(); {
	case h != nil:
		waited := h.waited
		*h = dmaHandle{used: true, done: true, result: o.result}
		if o.result < hpu.OK {
			h.refused = o.refused()
		}
		if waited {
			*h = dmaHandle{}
			d.sched.resumable(o.run, o.result)
		}
	case o.handle == noHandle:
		o.run.landed = o.op == hpu.OpDMAToHost
		d.sched.resumable(o.run, o.result)
	}
}

func (o *dmaOp) refused() refused {
	address, _ := o.access.At(0)
	return refused{op: o.op, address: address, bytes: o.access.Length, tries: o.tries}
}

// unlooked reports operations that have failed without the handler's having looked at their ends; it has ended.
func (d *act) unlooked(r *run) {
	for i := range r.handles {
		if h := &r.handles[i]; h.done && h.result < hpu.OK {
			d.unheard(r.task.in, HandlerError{Program: r.task.in.handlers.memory.name, Handler: r.task.kind.String()}, h.refused, h.result)
		}
	}
}

// unheard reports an operation that has failed and whose handler does not know. If it should have changed memory the message has failed; in may be
// gone if it was only to read.
func (d *act) unheard(in *inbound, e HandlerError, f refused, result int64) {
	what := "a read of"
	switch f.op {
	case hpu.OpDMAToHost:
		what = "a write of"
	case hpu.OpDMACAS, hpu.OpDMAFAdd:
		what = "an atomic on"
	}
	status := fmt.Sprintf("result %d", result)
	switch result {
	case hpu.Fault:
		status = d.refusal(host.Fault, f.tries)
	case hpu.Denied:
		status = d.refusal(host.Denied, f.tries)
	}
	if f.op == hpu.OpDMAToHost {
		in.failed(portals.NISegv)
	}
	e.Rank, e.At = int(d.rank), d.now()
	e.Err = fmt.Errorf("%s %d bytes of host memory at %#x that it did not wait for failed: %s", what, f.bytes, f.address, status)
	d.report.handlerFailed(e)
}

// testDMA answers dma_test at the present moment.
func (d *act) testDMA(r *run, handle uint64) int64 {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		return hpu.Invalid
	}
	h := &r.handles[handle]
	if h.faulted != nil {
		d.tell(h.faulted)
	}
	if !h.done {
		return 0
	}
	result := h.result
	*h = dmaHandle{}
	if result < 0 {
		return result
	}
	return 1
}

// waitDMA carries out dma_wait: the handler goes on at once if the operation is done, or has failed and is to be tried again, and else gives its
// core away.
func (d *act) waitDMA(r *run, handle uint64) (result int64, ready bool) {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		return hpu.Invalid, true
	}
	h := &r.handles[handle]
	if h.faulted != nil {
		d.tell(h.faulted)
	}
	if h.done {
		result = h.result
		*h = dmaHandle{}
		return result, true
	}
	h.waited = true
	return 0, false
}
