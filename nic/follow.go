package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// follow tells a sim.Follower how far messages have come. It is a part of the
// timeline: without a tracer there is none, and its methods do nothing.
type follow struct {
	*env
	to sim.Follower
	// by an operation or DMA operation of a handler: which handler it was, and
	// when
	asked map[any]asked
	flows map[*portals.Op]uint64 // messages whose initiator will be told of their ends
	step  sim.Step               // reused: what a Follower is given is its for the call only
}

// asked is what a handler has asked for.
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

// following returns who is to be told, nil if there is nobody.
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

// of is packet i of a message, which no handler has.
func of(m *Frame, i int) sim.Task {
	return sim.Task{Flow: m.Flow(), Packet: int32(i), Handler: sim.NoHandler}
}

// taskOf names the handler that a context runs.
func taskOf(r *run) sim.Task {
	return sim.Task{Flow: r.task.in.frame.Flow(), Packet: r.task.packet, Handler: int8(r.task.kind)}
}

// by notes the handler that has asked for something, for the moment at which it takes effect.
func (t *timeline) by(r *run, what any, at sim.Time) {
	if f := t.following(); f != nil {
		f.asked[what] = asked{taskOf(r), at}
	}
}

// forget drops what was noted of something that does not happen.
func (t *timeline) forget(what any) {
	if f := t.following(); f != nil {
		delete(f.asked, what)
	}
}

// message is an operation that has become one.
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

// answered is a message that the NIC itself has made, because of one that has just ended.
func (t *timeline) answered(m *Frame) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepMessage, Task: of(m, 0), Because: sim.OfEnd})
	}
}

// part is a message that was cut off another.
func (t *timeline) part(m *Frame, op *portals.Op) {
	f := t.following()
	if f == nil {
		return
	}
	whole := f.flows[op]
	f.tell(sim.Step{Kind: sim.StepMessage, Task: of(m, 0), Because: sim.OfHandler, By: sim.Task{Flow: whole, Handler: sim.NoHandler}})
}

// ready is a packet whose data is at the NIC.
func (t *timeline) ready(m *Frame, i int) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepReady, Task: of(m, i)})
	}
}

// onWire is a packet of a message that takes the link.
func (t *timeline) onWire(p *fabric.Packet, flow uint64, i int, from, to sim.Time) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepWire, Task: sim.Task{Flow: flow, Packet: int32(i), Handler: sim.NoHandler}, Bytes: int64(p.Bytes), From: from, To: to})
	}
}

// arrived is a packet at the NIC that receives it.
func (t *timeline) arrived(m *Frame, i int) {
	if f := t.following(); f != nil {
		from, to := m.Span(i)
		f.tell(sim.Step{Kind: sim.StepArrived, Task: of(m, i), Bytes: int64(to - from)})
	}
}

// found is a packet whose message has been found.
func (t *timeline) found(in *inbound, i int) {
	if f := t.following(); f != nil {
		from, to := in.frame.Span(i)
		f.tell(sim.Step{Kind: sim.StepFound, Task: of(in.frame, i), Bytes: int64(to - from)})
	}
}

// crosses is an access that takes the bus.
func (t *timeline) crosses(a *host.Access, toHost bool, from, to sim.Time, bytes int) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{
			Kind: sim.StepTransfer, Task: sim.Task{Flow: a.Flow, Handler: sim.NoHandler}, Out: !toHost, Bytes: int64(bytes), Asked: f.now(), From: from, To: to,
		})
	}
}

// landed is the end of an access for a packet, or for what a handler has asked for.
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

// done is a message that the host can see.
func (t *timeline) done(m *Frame) {
	if f := t.following(); f != nil {
		f.tell(sim.Step{Kind: sim.StepDone, Task: of(m, 0)})
	}
}

// counted is a counter that a handler has changed.
func (t *timeline) counted(i *issue) {
	f := t.following()
	if f == nil {
		return
	}
	a := f.asked[i]
	delete(f.asked, i)
	f.tell(sim.Step{Kind: sim.StepDone, Task: a.by})
}

// sent is the end of an operation at its initiator.
func (t *timeline) sent(op *portals.Op) {
	f := t.following()
	if f == nil {
		return
	}
	flow := f.flows[op]
	delete(f.flows, op)
	if op.Header.Kind == portals.OpAck {
		return // nobody waits for that
	}
	f.tell(sim.Step{Kind: sim.StepDone, Task: sim.Task{Flow: flow, Handler: sim.NoHandler}, Sent: true})
}

// computes is a segment of a handler.
func (t *timeline) computes(r *run, end sim.Time) {
	f := t.following()
	if f == nil {
		return
	}
	s := sim.Step{Kind: sim.StepSegment, Task: taskOf(r), Processor: int32(r.core.index), From: r.start, To: end}
	if r.resumed {
		s.Why = whyStopped(r)
	}
	f.tell(s)
}

// whyStopped says what a handler has waited for.
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
