package runtime

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// issue is something a handler has asked for that takes effect at the handler's own time.
type issue struct {
	mark      poison.Mark
	act       hpu.Op
	ni        *NI
	op        *portals.Op // operation to transmit
	completes *unfinished // message that the end of the operation completes
	device    bool        // it counts against the egress
	command   bool        // it counts against the command queue
	ct        portals.Handle
	a, b      uint64
	m         *message // OpAck: the message to acknowledge; from host memory: the one whose data must have landed; nil: none
	next      *issue
}

type issuePool struct{ free *issue }

func (p *issuePool) get() *issue {
	i := p.free
	if i == nil {
		return new(issue)
	}
	p.free = i.next
	*i = issue{}
	return i
}

func (p *issuePool) put(i *issue) {
	if i.mark.Release("an operation of a handler"); poison.On {
		*i = issue{mark: i.mark}
		return
	}
	i.next = p.free
	p.free = i
}

// optCompleteEntry is the bit of an operation record's options that makes the operation's end complete the entry
// (docs/abi.md).
const optCompleteEntry = 1

// noFetch is the fetch_offset of an atomic that fetches nothing (docs/abi.md).
const noFetch = 1<<64 - 1

// issueLater checks an operation now, so that the handler learns of a wrong argument, and lets it leave at time at. The
// bytes from HPU memory are those of now: the handler may use the buffer again.
func (n *Node) issueLater(r *run, act hpu.Op, d *hpu.Operation, delay uint64, at sim.Time) int64 {
	ho, result := n.handlerOp(r, act, d)
	switch {
	case result != hpu.OK:
		return result
	case delay > uint64(nic.MaxTime/sim.Nanosecond):
		return hpu.Invalid
	case commands(act) && n.hpus.commands == n.profile.NIC.HandlerCommands:
		return hpu.NoSpace
	}
	return n.issueOp(r, act, d, &ho, at.Later(sim.Time(delay)*sim.Nanosecond))
}

// issueOp passes an operation through portals and schedules its departure.
func (n *Node) issueOp(r *run, act hpu.Op, d *hpu.Operation, ho *portals.HandlerOp, at sim.Time) int64 {
	rx := &r.task.m.rx
	var completes *unfinished
	answered := ho.Kind != portals.OpPut && ho.Kind != portals.OpAtomic
	if d.Options&optCompleteEntry != 0 {
		completes = rx.unfinish()
		if answered {
			ho.Cookie = n.note(ho.Cookie, completes)
		}
	}
	n.drain()
	if err := rx.ni.port.Issue(ho); err != nil {
		n.forget(ho.Cookie)
		return hpu.Invalid
	}
	i := n.cluster.issues.get()
	i.act, i.ni, i.op = act, rx.ni, rx.ni.port.NextOp()
	if completes != nil {
		completes.operations++
		rx.open = completes
		if !answered { // else its reply completes the entry
			i.completes = completes
		}
	}
	i.device, i.command = sends(act, d), commands(act)
	if act == hpu.OpPutFromHost || act == hpu.OpAtomicFromHost {
		i.m = r.task.m
	}
	if i.device {
		n.hpus.promised++
	}
	if i.command {
		n.hpus.commands++
	}
	n.post(at, kindIssue, 0, i)
	return hpu.OK
}

// sends reports whether an action is a message from HPU memory that no answer is awaited for: it counts against the egress.
func sends(act hpu.Op, d *hpu.Operation) bool {
	return act == hpu.OpPutFromDevice || act == hpu.OpAtomicFromDevice && d.Fetch == 0
}

// commands reports whether an action waits at the NIC for host memory or a moment and cannot suspend the handler: it counts against
// the command queue.
func commands(act hpu.Op) bool {
	switch act {
	case hpu.OpPutFromHost, hpu.OpGetFromHost, hpu.OpAtomicFromHost, hpu.OpTimer, hpu.OpToSelf:
		return true
	}
	return false
}

// handlerOp translates an operation record.
func (n *Node) handlerOp(r *run, act hpu.Op, d *hpu.Operation) (ho portals.HandlerOp, result int64) {
	rx := &r.task.m.rx
	ho = portals.HandlerOp{
		MD: portals.Handle(d.MD), AckReq: portals.AckReq(min(d.AckReq, 0xff)), Target: rx.ni.target(d),
		PT: d.PTIndex, MatchBits: d.MatchBits, RemoteOffset: d.RemoteOffset, UserPtr: d.UserPtr, HdrData: d.HdrData,
		Op: portals.AtomicOp(min(d.AtomicOp, 0xff)), Type: portals.Datatype(min(d.Datatype, 0xff)), Length: d.Length,
	}
	if d.UserHdrLen > 0 && act != hpu.OpPutFromDevice && act != hpu.OpToSelf && act != hpu.OpTimer {
		return ho, hpu.NotSupported
	}
	if act != hpu.OpToSelf && act != hpu.OpTimer && !rx.ni.Kind().Logical() && !n.cluster.has(d.TargetNID) {
		return ho, hpu.Invalid // no such node
	}
	memory := r.ctx.Program().Memory()
	switch act {
	case hpu.OpPutFromDevice, hpu.OpToSelf, hpu.OpTimer:
		if d.Length+uint64(d.UserHdrLen) > uint64(n.profile.Fabric.MTU) { // before anything is copied
			return ho, hpu.Invalid
		}
		ho.Kind = portals.OpPut
		ho.Data = n.gather(memory, d)
		if act != hpu.OpPutFromDevice {
			ho.Target = rx.ni.self()
		}
	case hpu.OpPutFromHost:
		ho.Kind = portals.OpPut
	case hpu.OpGetFromHost, hpu.OpGetFromDevice:
		ho.Kind = portals.OpGet
	case hpu.OpAtomicFromHost, hpu.OpAtomicFromDevice:
		atomicOp(&ho, act, d, memory)
	}
	return ho, rx.hostPlaces(&ho, act, d)
}

// hostPlaces fills in where in host memory an operation from host takes its data and puts the answer; DENIED if that is outside
// the range.
func (r *receive) hostPlaces(ho *portals.HandlerOp, act hpu.Op, d *hpu.Operation) (result int64) {
	takes, puts := act == hpu.OpPutFromHost || act == hpu.OpAtomicFromHost, act == hpu.OpGetFromHost
	at := d.Offset
	if ho.Kind == portals.OpFetchAtomic || ho.Kind == portals.OpSwap {
		puts, at = act == hpu.OpAtomicFromHost && d.FetchOffset != noFetch, d.FetchOffset
	}
	if !takes && !puts {
		return hpu.OK
	}
	region, ok := r.hostRegion(d.Space)
	within := func(off uint64) bool { return off <= region.Length && d.Length <= region.Length-off }
	if !ok || takes && !within(d.Offset) || puts && !within(at) {
		return hpu.Denied
	}
	if takes {
		ho.Source, ho.SourceOffset = region, d.Offset
	}
	if puts {
		ho.Dest, ho.DestOffset = region, at
	}
	return hpu.OK
}

// atomicOp fills in what an atomic needs besides: its kind, its operand and its data in HPU memory.
func atomicOp(ho *portals.HandlerOp, act hpu.Op, d *hpu.Operation, memory []byte) {
	fetches := act == hpu.OpAtomicFromHost && d.FetchOffset != noFetch || act == hpu.OpAtomicFromDevice && d.Fetch != 0
	switch {
	case ho.Op >= portals.OpSWAP:
		ho.Kind = portals.OpSwap
		if d.Operand != 0 {
			ho.Operand = memory[d.Operand:min(uint64(d.Operand)+portals.MaxOperand, uint64(len(memory)))]
		}
	case fetches:
		ho.Kind = portals.OpFetchAtomic
	default:
		ho.Kind = portals.OpAtomic
	}
	if act == hpu.OpAtomicFromDevice {
		ho.Data = memory[d.Local : uint64(d.Local)+d.Length]
	}
}

// gather returns the payload of a put from the device: user header, then data.
func (n *Node) gather(memory []byte, d *hpu.Operation) []byte {
	data := memory[d.Local : uint64(d.Local)+d.Length]
	if d.UserHdrLen == 0 {
		return data
	}
	n.scratch = append(n.scratch[:0], memory[d.UserHdr:uint64(d.UserHdr)+uint64(d.UserHdrLen)]...)
	n.scratch = append(n.scratch, data...)
	return n.scratch
}

// issueDue is the handler's own time: what it asked for takes effect.
func (n *Node) issueDue(i *issue) {
	switch i.act {
	case hpu.OpCTSet:
		n.counterResult(i.ni.CTSet(i.ct, portals.CTEvent{Success: i.a, Failure: i.b}))
	case hpu.OpCTInc:
		n.counterResult(i.ni.CTInc(i.ct, portals.CTEvent{Success: i.a, Failure: i.b}))
	case hpu.OpAck:
		fail := portals.FailType(i.a)
		if fail == portals.NIOK && i.m.rx.damaged() { // the device knows better
			fail = portals.NIDropped
		}
		i.ni.port.Acknowledge(i.m.rx.d, fail)
	default:
		if i.m != nil && i.m.rx.lands > n.now() {
			// Store and forward: the data is sent "after the packet is delivered to host memory" (sPIN'17 §4.4.1).
			n.post(i.m.rx.lands, kindIssue, 0, i)
			i.m = nil
			return
		}
		m := n.prepare(i.ni, i.op)
		m.completes = i.completes
		m.self = i.act == hpu.OpToSelf || i.act == hpu.OpTimer
		m.device, m.command = i.device, i.command
		if m.device {
			n.hpus.promised--
		}
		n.send(m)
	}
	n.cluster.issues.put(i)
}

// counterResult notes a counter that was freed between the handler's call and its effect.
func (n *Node) counterResult(err error) {
	if err != nil {
		n.stats.LostActions++
	}
}

// issueCounter makes a counter operation or an acknowledgement of the handler's own time.
func (n *Node) issueCounter(r *run, a *hpu.Action, at sim.Time) int64 {
	i := n.cluster.issues.get()
	i.act, i.ni, i.ct, i.a, i.b, i.m = a.Op, r.task.m.rx.ni, portals.Handle(a.CT), a.A, a.B, r.task.m
	if a.Op == hpu.OpAck {
		if r.task.m.rx.acknowledged || a.A >= uint64(len(portals.FailNames)) {
			n.cluster.issues.put(i)
			return hpu.Invalid
		}
		r.task.m.rx.acknowledged = true
	} else if _, err := i.ni.CTGet(i.ct); err != nil || a.Op == hpu.OpCTInc && a.A != 0 && a.B != 0 { // Portals 4.x §3.14.8: not both
		n.cluster.issues.put(i)
		return hpu.Invalid
	}
	n.post(at, kindIssue, 0, i)
	return hpu.OK
}

// self is the name of the process on its interface.
func (ni *NI) self() portals.ID {
	if id, err := ni.ID(); err == nil {
		return id
	}
	return ni.own
}

// target is the process that an operation record names.
func (ni *NI) target(d *hpu.Operation) portals.ID {
	if ni.Kind().Logical() {
		return portals.RankID(d.TargetNID)
	}
	return portals.PhysID(d.TargetNID, d.TargetPID)
}
