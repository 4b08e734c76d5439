package nic

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// issue is a request of a handler that takes effect at the handler's own time.
type issue struct {
	mark      poison.Mark
	act       hpu.Op
	ni        *Interface
	op        *portals.Op // to transmit
	completes *pending    // the message that the operation's end completes
	device    bool        // it counts against the egress
	command   bool        // it counts against the command queue
	ct        portals.Handle
	a, b      uint64
	data      []byte // to send, from HPU memory
	page      *host.Page
	timer     *timer  // that the issue waits for
	owner     *Memory // OpTimerCancel: owner of the timer; an operation: whose it is
	datagrams bool    // for a put
	// OpAck: the message to acknowledge. An operation from host memory: the
	// message whose data must have landed before. nil: none.
	in *inbound
}

func (c *Core) issue() *issue {
	i := c.issues.take()
	*i = issue{}
	return i
}

func (c *Core) releaseIssue(i *issue) {
	c.drop(i.data, i.page)
	if i.mark.Release("an operation of a handler"); poison.On {
		*i = issue{mark: i.mark}
	}
	c.issues.give(i)
}

// optCompleteEntry is the option bit of an operation record that lets the
// operation's end complete the entry (docs/abi.md).
const optCompleteEntry = 1

// optDatagrams is the option bit that makes each packet of a put a separate
// message.
const optDatagrams = 2

// noFetch is the fetch_offset of an atomic that fetches nothing (docs/abi.md).
const noFetch = 1<<64 - 1

// issueLater checks an operation now and lets it leave at time at. Checking now
// lets the handler see a wrong argument. The bytes from HPU memory are copied
// now, because the handler may reuse the buffer.
func (d *act) issueLater(r *run, act hpu.Op, rec *hpu.Operation, delay uint64, at sim.Time) int64 {
	if delay > uint64(MaxTime/sim.Nanosecond) {
		return hpu.Invalid
	}
	ho, result := d.checked(r, act, rec)
	if result != hpu.OK {
		return result
	}
	return d.issueOp(r, act, rec, &ho, at.Later(sim.Time(delay)*sim.Nanosecond))
}

// checked is the operation of a record, if the handler may issue it.
func (d *act) checked(r *run, act hpu.Op, rec *hpu.Operation) (ho portals.HandlerOp, result int64) {
	d.core.used.Add(used.Command)
	ho, result = d.handlerOp(r, act, rec)
	switch {
	case result != hpu.OK:
	case rec.Options&optDatagrams != 0 && (rec.AckReq != 0 || act != hpu.OpPutFromHost && act != hpu.OpPutFromDevice):
		result = hpu.Invalid
	case commands(act) && d.requests.full(r.task.in.handlers.memory, d.spec.HandlerCommands):
		result = hpu.NoSpace
	}
	return ho, result
}

// issueOp passes an operation through portals and schedules its departure.
func (d *act) issueOp(r *run, act hpu.Op, rec *hpu.Operation, ho *portals.HandlerOp, at sim.Time) int64 {
	in := r.task.in
	var completes *pending
	answered := ho.Kind != portals.OpPut && ho.Kind != portals.OpAtomic
	if rec.Options&optCompleteEntry != 0 {
		completes = in.unfinish()
		if answered {
			ho.Cookie = d.requests.note(ho.Cookie, completes)
		}
	}
	d.out.drain()
	i := d.core.issue()
	if len(ho.Data) > 0 {
		i.data, i.page = d.core.keep(ho.Data)
		ho.Data, ho.Kept = i.data, true
	}
	if err := in.iface.Port.Issue(ho); err != nil {
		d.requests.forget(ho.Cookie)
		d.core.releaseIssue(i)
		return hpu.Invalid
	}
	i.act, i.ni, i.op = act, in.iface, in.iface.Port.NextOp()
	i.op.Cause = in.frame.effect()
	d.trace.by(r, i.op, at)
	if completes != nil {
		completes.operations++
		in.open, in.opened = completes, true
		if !answered { // otherwise its reply completes the entry
			i.completes = completes
		}
	}
	i.device, i.command = sends(act, rec), commands(act)
	if act == hpu.OpPutFromHost || act == hpu.OpAtomicFromHost {
		i.in = r.task.in
	}
	if i.owner = in.handlers.memory; i.device {
		d.requests.promise(i.owner, 1)
	}
	if i.command {
		d.requests.command(i.owner, 1)
	}
	i.datagrams = rec.Options&optDatagrams != 0
	if act == hpu.OpTimer || act == hpu.OpTimerAt {
		t := d.timers.take(i, in.handlers.memory, d)
		t.Init(d.engine, d.id, kindIssue, i)
		t.Set(at)
		return t.handle()
	}
	d.post(at, kindIssue, 0, i)
	return hpu.OK
}

// sends reports whether an action is a message from HPU memory without an
// awaited answer. Such a message counts against the egress.
func sends(act hpu.Op, rec *hpu.Operation) bool {
	return act == hpu.OpPutFromDevice || act == hpu.OpAtomicFromDevice && rec.Fetch == 0
}

// commands reports whether an action waits at the NIC for host memory or a
// point in time and cannot suspend the handler. Such an action counts against
// the command queue.
func commands(act hpu.Op) bool {
	switch act {
	case hpu.OpPutFromHost, hpu.OpGetFromHost, hpu.OpAtomicFromHost, hpu.OpTimer, hpu.OpTimerAt, hpu.OpToSelf:
		return true
	}
	return false
}

// toSelf reports whether an action is a message to the handler's own process.
func toSelf(act hpu.Op) bool {
	return act == hpu.OpToSelf || act == hpu.OpTimer || act == hpu.OpTimerAt
}

func (d *act) handlerOp(r *run, act hpu.Op, rec *hpu.Operation) (ho portals.HandlerOp, result int64) {
	in := r.task.in
	ho = portals.HandlerOp{
		MD: portals.Handle(rec.MD), AckReq: portals.AckReq(min(rec.AckReq, 0xff)), Target: in.iface.target(rec),
		PT: rec.PTIndex, MatchBits: rec.MatchBits, RemoteOffset: rec.RemoteOffset, UserPtr: rec.UserPtr, HdrData: rec.HdrData,
		Op: portals.AtomicOp(min(rec.AtomicOp, 0xff)), Type: portals.Datatype(min(rec.Datatype, 0xff)), Length: rec.Length,
	}
	if rec.UserHdrLen > 0 && act != hpu.OpPutFromDevice && !toSelf(act) {
		return ho, hpu.NotSupported
	}
	if !toSelf(act) && !in.iface.NI.Kind().Logical() && rec.TargetNID >= d.nodes {
		return ho, hpu.Invalid // no such node
	}
	memory := r.ctx.Program().Present()
	switch act {
	case hpu.OpPutFromDevice, hpu.OpToSelf, hpu.OpTimer, hpu.OpTimerAt:
		if rec.Length+uint64(rec.UserHdrLen) > uint64(d.fabric.MTU) { // before anything is copied
			return ho, hpu.Invalid
		}
		ho.Kind = portals.OpPut
		ho.Data = d.gather(memory, rec)
		if act != hpu.OpPutFromDevice {
			ho.Target = in.iface.self()
		}
	case hpu.OpPutFromHost:
		ho.Kind = portals.OpPut
	case hpu.OpGetFromHost, hpu.OpGetFromDevice:
		ho.Kind = portals.OpGet
	case hpu.OpAtomicFromHost, hpu.OpAtomicFromDevice:
		atomicOp(&ho, act, rec, memory)
	}
	return ho, in.hostPlaces(&ho, act, rec)
}

// hostPlaces fills in where in host memory an operation from host takes its
// data and puts the answer. The result is DENIED if a place is outside the
// range.
func (in *inbound) hostPlaces(ho *portals.HandlerOp, act hpu.Op, rec *hpu.Operation) (result int64) {
	takes, puts := act == hpu.OpPutFromHost || act == hpu.OpAtomicFromHost, act == hpu.OpGetFromHost
	at := rec.Offset
	if ho.Kind == portals.OpFetchAtomic || ho.Kind == portals.OpSwap {
		puts, at = act == hpu.OpAtomicFromHost && rec.FetchOffset != noFetch, rec.FetchOffset
	}
	if !takes && !puts {
		return hpu.OK
	}
	region := in.hostRegion(rec.Space)
	within := func(off uint64) bool { return off <= region.Length && rec.Length <= region.Length-off }
	if region == nil || takes && !within(rec.Offset) || puts && !within(at) {
		return hpu.Denied
	}
	if takes {
		ho.Source, ho.SourceOffset = *region, rec.Offset
	}
	if puts {
		ho.Dest, ho.DestOffset = *region, at
	}
	return hpu.OK
}

// atomicOp fills in the other fields of an atomic: its kind, its operand and
// its data in HPU memory.
func atomicOp(ho *portals.HandlerOp, act hpu.Op, rec *hpu.Operation, memory []byte) {
	fetches := act == hpu.OpAtomicFromHost && rec.FetchOffset != noFetch || act == hpu.OpAtomicFromDevice && rec.Fetch != 0
	switch {
	case ho.Op >= portals.OpSWAP:
		ho.Kind = portals.OpSwap
		if rec.Operand != 0 {
			ho.Operand = memory[rec.Operand:min(uint64(rec.Operand)+portals.MaxOperand, uint64(len(memory)))]
		}
	case fetches:
		ho.Kind = portals.OpFetchAtomic
	default:
		ho.Kind = portals.OpAtomic
	}
	if act == hpu.OpAtomicFromDevice {
		ho.Data = memory[rec.Local : uint64(rec.Local)+rec.Length]
	}
}

// gather returns the payload of a put from the device: user header, then data.
func (d *act) gather(memory []byte, rec *hpu.Operation) []byte {
	data := memory[rec.Local : uint64(rec.Local)+rec.Length]
	if rec.UserHdrLen == 0 {
		return data
	}
	d.scratch = append(d.scratch[:0], memory[rec.UserHdr:uint64(rec.UserHdr)+uint64(rec.UserHdrLen)]...)
	d.scratch = append(d.scratch, data...)
	return d.scratch
}

// issueDue runs at the handler's own time: the request takes effect.
func (d *act) issueDue(i *issue) {
	switch i.act {
	case hpu.OpCTSet:
		d.counterResult(i.ni.NI.CTSet(i.ct, portals.CTEvent{Success: i.a, Failure: i.b}))
		d.trace.counted(i)
	case hpu.OpCTInc:
		d.counterResult(i.ni.NI.CTInc(i.ct, portals.CTEvent{Success: i.a, Failure: i.b}))
		d.trace.counted(i)
	case hpu.OpAck:
		fail := portals.FailType(i.a)
		if fail == portals.NIOK && i.in.damaged() { // the device knows more than portals
			fail = i.in.lost.failure()
		}
		i.ni.Port.Acknowledge(i.in.d, fail)
		d.trace.counted(i)
	case hpu.OpTimerCancel:
		if t := d.timers.find(i.a, i.owner); t != nil { // it has not expired
			t.cancel()
		}
	default:
		if t := i.timer; t != nil {
			if t.period > 0 {
				t.expire()
				return
			}
			d.timers.give(t)
		}
		if i.in != nil && i.in.underway > 0 {
			// Store and forward: the data is sent "after the packet is
			// delivered to host memory" (sPIN'17 §4.4.1).
			i.in.await(i)
			return
		}
		o := d.out.prepare(i.ni, i.op, i)
		o.completes = i.completes
		o.frame.Self = toSelf(i.act)
		o.device = i.device
		if i.command {
			o.command = i.owner
		}
		o.datagrams(i.datagrams)
		if o.device {
			d.requests.promise(i.owner, -1)
		}
		d.out.start(o)
	}
	d.core.releaseIssue(i)
}

// counterResult counts an action on a counter that was freed between the
// handler's call and the action's time.
func (d *act) counterResult(err error) {
	if err != nil {
		d.lost++
	}
}

// issueCounter schedules a counter operation or an acknowledgement for the
// handler's own time.
func (d *act) issueCounter(r *run, a *hpu.Action, at sim.Time) int64 {
	i := d.core.issue()
	i.act, i.ni, i.ct, i.a, i.b, i.in = a.Op, r.task.in.iface, portals.Handle(a.CT), a.A, a.B, r.task.in
	if a.Op == hpu.OpAck {
		if r.task.in.acknowledged || a.A >= uint64(len(portals.FailNames)) {
			d.core.releaseIssue(i)
			return hpu.Invalid
		}
		r.task.in.acknowledged = true
	} else if _, err := i.ni.NI.CTGet(i.ct); err != nil || a.Op == hpu.OpCTInc && a.A != 0 && a.B != 0 {
		// Portals 4.x §3.14.8 forbids both.
		d.core.releaseIssue(i)
		return hpu.Invalid
	}
	d.trace.by(r, i, at)
	d.post(at, kindIssue, 0, i)
	return hpu.OK
}

// target is the process in an operation record.
func (i *Interface) target(rec *hpu.Operation) portals.ID {
	if i.NI.Kind().Logical() {
		return portals.RankID(rec.TargetNID)
	}
	return portals.PhysID(rec.TargetNID, rec.TargetPID)
}
