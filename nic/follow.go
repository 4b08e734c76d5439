package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// follow reports the progress of messages to a sim.Follower. It is part of the
// timeline: without a tracer it is nil, and its methods do nothing.
type follow struct {
	*env
	to sim.Follower
	// by operation or DMA operation of a handler: which handler requested it,
	// and when
	asked map[any]asked
	flows map[*portals.Op]uint64 // messages whose initiator will learn of their end
	step  sim.Step               // reused: a Follower may use a step only during the call
}

// asked is a handler that has requested an operation, and the time.
type asked struct {
	by sim.Task
	at sim.Time
}

func newFollow(e *env) *follow {
	to, is := e.engine.Tracer().(sim.Follower)
	if !is {
		return nil
	}
	return &follow{env: e, to: to, asked: map[any]asked{}, flows: map[*portals.Op]uint64{}}
}

// following returns the follower to report to; nil: there is none.
func (t *timeline) following() *follow {
	if t == nil {
		return nil
	}
	return t.follow
}

// tell gives the follower a step at the present time.
func (f *follow) tell(s sim.Step) {
	s.Rank = f.rank
	if s.To == 0 {
		s.To = f.now()
	}
	f.step = s
	f.to.Step(&f.step)
}

// of is the task of packet i of a message without a handler.
func of(m *Frame, i int) sim.Task {
	return sim.Task{Flow: m.Flow(), Packet: int32(i), Handler: sim.NoHandler}
}

// taskOf is the task of the handler that a context runs.
func taskOf(r *run) sim.Task {
	return sim.Task{Flow: r.task.in.frame.Flow(), Packet: r.task.packet, Handler: int8(r.task.kind)}
}

// by notes which handler has requested something, until it takes effect.
func (t *timeline) by(r *run, what any, at sim.Time) {
	if f := t.following(); f != nil {
		f.asked[what] = asked{taskOf(r), at}
	}
}

// expired notes that a message is an expiry of a periodic timer.
func (t *timeline) expired(of *timer, op *portals.Op) {
	if f := t.following(); f != nil {
		f.asked[op] = asked{f.asked[of].by, f.now()}
	}
}

// forget drops the note of a request that does not happen.
func (t *timeline) forget(what any) {
	if f := t.following(); f != nil {
		delete(f.asked, what)
	}
}

// message reports that an operation has become a message.
func (t *timeline) message(m *Frame, op *portals.Op) {
	f := t.following()
	if f == nil {
		return
	}
	s := sim.Step{Kind: sim.StepMessage, Task: of(m, 0)}
	if a, is := f.asked[op]; is {
		delete(f.asked, op)
		s.Because, s.By, s.Asked = sim.OfHandler, a.by, a.at
	} else if op.Triggered || m.Header.Kind == portals.OpAck || m.Header.Kind == portals.OpReply {
		s.Because = sim.OfEnd
	}
	f.flows[op] = m.Flow()
	f.tell(s)
}

// answered reports a message that the NIC has made because another has just
// ended.
func (t *timeline) answered(m *Frame) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepMessage, Task: of(m, 0), Because: sim.OfEnd})
	}
}

// part reports a message that was cut off another.
func (t *timeline) part(m *Frame, op *portals.Op) {
	f := t.following()
	if f == nil {
		return
	}
	whole := f.flows[op]
	f.tell(sim.Step{Kind: sim.StepMessage, Task: of(m, 0), Because: sim.OfHandler, By: sim.Task{Flow: whole, Handler: sim.NoHandler}})
}

// ready reports that the data of a packet is at the NIC.
func (t *timeline) ready(m *Frame, i int) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepReady, Task: of(m, i)})
	}
}

// onWire reports a packet that takes the link.
func (t *timeline) onWire(p *fabric.Packet, flow uint64, i int, from, to sim.Time) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepWire, Task: sim.Task{Flow: flow, Packet: int32(i), Handler: sim.NoHandler}, Bytes: int64(p.Bytes), From: from, To: to})
	}
}

// arrived reports a packet that has reached the receiver's NIC.
func (t *timeline) arrived(m *Frame, i int) {
	if f := t.following(); f != nil {
		from, to := m.Span(i)
		f.tell(sim.Step{Kind: sim.StepArrived, Task: of(m, i), Bytes: int64(to - from)})
	}
}

// found reports that the message of a packet has been found.
func (t *timeline) found(in *inbound, i int) {
	if f := t.following(); f != nil {
		from, to := in.frame.Span(i)
		f.tell(sim.Step{Kind: sim.StepFound, Task: of(in.frame, i), Bytes: int64(to - from)})
	}
}

// crosses reports an access that takes the bus.
func (t *timeline) crosses(a *host.Access, toHost bool, from, to sim.Time, bytes int) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{
			Kind: sim.StepTransfer, Task: sim.Task{Flow: a.Flow, Handler: sim.NoHandler}, Out: !toHost, Bytes: int64(bytes), Asked: f.now(), From: from, To: to,
		})
	}
}

// landed reports the end of an access for a packet or a handler.
func (t *timeline) landed(in *inbound, i int) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepLanded, Task: of(in.frame, i)})
	}
}

func (t *timeline) handlerLanded(o *dmaOp) {
	f := t.following()
	if f == nil {
		return
	}
	a := f.asked[o]
	delete(f.asked, o)
	f.tell(sim.Step{Kind: sim.StepLanded, Task: a.by, From: a.at})
}

// done reports that the host can see a message.
func (t *timeline) done(m *Frame) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepDone, Task: of(m, 0)})
	}
}

// counted reports that a handler has changed a counter.
func (t *timeline) counted(i *issue) {
	f := t.following()
	if f == nil {
		return
	}
	a := f.asked[i]
	delete(f.asked, i)
	f.tell(sim.Step{Kind: sim.StepDone, Task: a.by})
}

// sent reports the end of an operation at its initiator.
func (t *timeline) sent(op *portals.Op) {
	f := t.following()
	if f == nil {
		return
	}
	flow := f.flows[op]
	delete(f.flows, op)
	if op.Header.Kind == portals.OpAck {
		return // nobody waits for it
	}
	f.tell(sim.Step{Kind: sim.StepDone, Task: sim.Task{Flow: flow, Handler: sim.NoHandler}, Sent: true})
}

// computes reports a segment of a handler.
func (t *timeline) computes(r *run, end sim.Time) {
	f := t.following()
	if f == nil {
		return
	}
	s := sim.Step{Kind: sim.StepSegment, Task: taskOf(r), Processor: r.core.index, From: r.start, To: end}
	if r.resumed {
		s.Why = whyStopped(r)
	}
	f.tell(s)
}

// whyStopped returns why a handler has waited.
func whyStopped(r *run) sim.Stopped {
	switch op := r.wait.op; {
	case sends(op, &r.desc):
		return sim.ForEgress
	case op == hpu.OpGetFromDevice || op == hpu.OpAtomicFromDevice:
		return sim.ForReply
	case op == hpu.OpYield:
		return sim.ForOthers
	}
	return sim.ForMemory
}
