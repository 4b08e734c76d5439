package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Config is the parts of a NIC and its connections.
type Config struct {
	Engine *sim.Engine
	ID     sim.ID // the actor whose events the NIC handles
	Rank   int    // of the node in the network
	Nodes  int    // in the network
	Core   *Core  // shared by the NICs that one core of the simulating machine handles

	Spec      *Spec
	HPU       *HPUSpec
	Pools     Pools
	Serve     Serve
	Tenants   Tenants
	Transport *TransportSpec
	Fabric    *fabric.Spec
	Bus       *host.Bus
	Record    int // bytes of the record of an event in host memory
	// bytes of the longest message whose data is written and read in the order
	// of its initiator's requests
	Ordered int
	// RoundTrip is the unloaded round trip of a full packet to a node and of its
	// acknowledgement. Needed with Transport.Law.
	RoundTrip func(node int) sim.Time
	// LawModule returns the module in place of Transport.Law, or of Transport.Way;
	// nil: none. Needed with Transport.Law.
	LawModule func(way bool) (*LawModule, error)
	Faulty    bool // the network loses, damages, doubles or delays packets

	// Log receives the lines that handlers log; nil: they are dropped.
	Log func(rank int, at sim.Time, program, line string)
	// Watch is called at every step of every handler; nil: no calls.
	Watch func(s *HandlerStep)
	// InjectDMA, if not nil, is called at the beginning of every DMA operation
	// of a handler that is otherwise allowed. A negative answer, such as
	// hpu.Fault, becomes the result of the operation. Such an operation takes
	// its time but moves no byte.
	InjectDMA func(rank int, op hpu.Op) int64
}

// NIC is a programmable network interface: the stages of the package, one after
// the other. Between two events of a node, events of other nodes replace its
// data in the cache of the simulating machine. Loading the cache lines that an
// event needs is most of its cost. So each stage is a number of whole lines,
// and its first line holds the fields that every packet needs.
type NIC struct {
	env      env
	deposit  deposit
	receive  receive
	match    match
	link     link
	transmit transmit
	schedule schedule
	act      act
	reliable *reliable // nil: the network is treated as lossless

	report     Report
	serve      Serve
	memories   []*Memory
	memoryUsed int64                      // bytes of hpu.node_memory that the programs have
	optional   map[sim.Kind]optionalStage // by its events >> stageBits
}

// optionalStage handles its events. It sends messages on by the interfaces of
// the stages beside it.
type optionalStage interface {
	handle(e *sim.Event)
}

// optional are the stages that some NICs have, from the matching outwards. To
// add one, write its file and a line here. connect puts the stage between two
// others: it sets their fields, and keeps what stood there as its own next. For
// example, a stage in front of receive takes the place of link.next. connect
// returns nil if this NIC does not have the stage.
var optional = []struct {
	events  sim.Kind // the first: a multiple of stageOf that no other stage has
	connect func(n *NIC, cfg *Config) optionalStage
}{
	{kindsOfReliable, connectReliable},
}

// Init makes n a NIC. Connect it before the first event.
func (n *NIC) Init(cfg *Config) {
	n.env = env{
		engine: cfg.Engine, id: cfg.ID, rank: int32(cfg.Rank), spec: cfg.Spec, hpu: cfg.HPU, fabric: cfg.Fabric, bus: cfg.Bus,
		record: cfg.Record, ordered: cfg.Ordered, core: cfg.Core, report: &n.report,
	}
	e := &n.env
	if cfg.Watch != nil {
		e.watch = &watch{act: &n.act, tell: cfg.Watch}
	}
	n.transmit = transmit{env: e, next: &n.link, handlers: &n.act.requests, nodes: uint32(cfg.Nodes), behind: map[int32]int{}}
	n.link = link{env: e, next: &n.receive, room: &n.act, classes: len(cfg.Fabric.Buffer) > 0}
	n.receive = receive{env: e, next: &n.match, open: map[uint64]*inbound{}}
	n.match = match{env: e, handlers: &n.schedule, next: &n.deposit, answers: &n.act.requests, own: &n.transmit, out: &n.transmit}
	n.schedule = schedule{env: e, act: &n.act, next: &n.deposit, programs: n, tenants: newTenants(e, cfg.Tenants), sparse: cfg.Nodes >= lazy.Many}
	n.deposit = deposit{env: e, waiters: &n.act.requests}
	n.schedule.build(cfg.Pools)
	n.serve = cfg.Serve
	n.act = act{
		tells: cfg.HPU.Costs.Depends(),
		env:   e, sched: &n.schedule, out: &n.transmit, room: &n.link, deposits: &n.deposit, runs: n.schedule.runs,
		log: cfg.Log, inject: cfg.InjectDMA, nodes: uint32(cfg.Nodes),
		dma: dmaRoom{hpu: cfg.HPU, turns: newTurns(cfg.HPU, n.schedule.tenants)}, requests: requests{sched: &n.schedule, tenants: n.schedule.tenants},
	}
	if n.schedule.tenants != nil {
		n.schedule.tenants.act = &n.act
	}
	if n.act.dma.turns != nil {
		host.Share(cfg.Bus, n.schedule.tenants.parts(cfg.HPU.Arbiter))
	}
	n.link.turns = newEgressTurns(cfg.HPU, cfg.Spec, n.schedule.tenants)
	for _, o := range optional {
		if s := o.connect(n, cfg); s != nil {
			if n.optional == nil {
				n.optional = map[sim.Kind]optionalStage{}
			}
			n.optional[o.events>>stageBits] = s
		}
	}
	if cfg.Faulty && n.reliable == nil {
		n.link.known, n.link.numbers = map[int32]*arrivedOf{}, map[int32]uint64{}
	}
	e.trace = newTimeline(e, &n.schedule)
}

// Connect gives the NIC its port in the network.
func (n *NIC) Connect(p fabric.Port) { n.link.port = p }

// Queued notes that an interface of the node has an operation to send. It is
// for portals.Hooks.OpQueued.
func (n *NIC) Queued(port *portals.Port) { n.transmit.opQueued(port) }

// Handle carries out one event of the node.
func (n *NIC) Handle(e *sim.Event) {
	n.env.handling = true
	n.handle(e)
	if n.env.queued {
		n.transmit.drain()
	}
	n.env.handling = false
	if poison.On {
		n.check()
	}
}

func (n *NIC) handle(e *sim.Event) {
	if poison.On {
		live(e.P)
	}
	if e.Kind >= sim.KindShared {
		n.link.handle(e)
		return
	}
	switch e.Kind >> stageBits { // compiled to a jump table
	case host.KindBus >> stageBits:
		n.env.bus.Handle(e)
	case kindsOfTransmit >> stageBits:
		n.transmit.handle(e)
	case kindsOfLink >> stageBits:
		n.link.handle(e)
	case kindsOfReceive >> stageBits:
		n.receive.handle(e)
	case kindsOfSchedule >> stageBits:
		n.schedule.handle(e)
	case kindsOfAct >> stageBits:
		n.act.handle(e)
	case kindsOfDeposit >> stageBits:
		n.deposit.handle(e)
	default:
		s := n.optional[e.Kind>>stageBits]
		if s == nil {
			unknown("any stage", e)
		}
		s.handle(e)
	}
}

// Stats counts the work of a NIC since the start of the run.
type Stats struct {
	PacketsSent     int64
	PacketsReceived int64
	// for lack of room, of a process or of memory, or because they came without
	// their data
	PacketsDropped int64
	// messages with packets dropped for lack of room, of a process, of memory,
	// or of a way to the other node
	MessagesLost  int64
	HandlerCalls  int64
	HandlerCycles int64 // charged to handlers
	// the sum over handlers of the time from beginning to end, with waits
	HandlerTime  sim.Time
	FirstHandler sim.Time // when the first handler ended; 0: none has
	LastHandler  sim.Time // when the last one ended
	// actions of handlers on counters that were freed before the action's time
	LostActions int64
	// expiries of periodic timers that found the message of an earlier one
	// still being handled, so that they have no message of their own
	MissedExpiries int64
	FlowControl    int64 // messages that triggered flow control
	Retransmitted  int64 // packets that a reliable transport has sent again
	Duplicates     int64 // packets that reached a reliable transport twice
}

// Stats returns the counts.
func (n *NIC) Stats() Stats {
	s := Stats{
		PacketsSent: n.link.sent, PacketsReceived: n.link.arrived,
		PacketsDropped: n.schedule.dropped + n.match.dropped + n.env.account.dropped + n.transmit.unread, MessagesLost: int64(n.report.Messages()),
		HandlerCalls: n.schedule.calls, HandlerCycles: n.schedule.cycles, HandlerTime: n.schedule.inside, FirstHandler: n.schedule.firstEnd, LastHandler: n.schedule.lastEnd,
		LostActions: n.act.lost, MissedExpiries: n.act.timers.missed, FlowControl: n.schedule.triggered,
	}
	if t := n.schedule.tenants; t != nil && t.module != nil {
		s.HandlerCalls, s.HandlerCycles = s.HandlerCalls+t.module.calls, s.HandlerCycles+t.module.cycles
	}
	if n.reliable != nil {
		s.Retransmitted, s.Duplicates = n.reliable.again, n.reliable.twice
		if l := n.reliable.laws; l != nil {
			s.HandlerCalls, s.HandlerCycles = s.HandlerCalls+l.calls, s.HandlerCycles+l.cycles
		}
	}
	return s
}

// Used returns what has happened at the NIC as far as it counts it; see Core.Used
// for the rest.
func (n *NIC) Used() (s used.Set) {
	if n.env.bus == nil {
		return s // the run was stopped before it was made
	}
	moved := n.link.sent+n.link.arrived > 0
	s.AddIf(moved, used.Arrival)
	s.AddIf(moved || n.env.bus.Bytes() > 0, used.Transfer)
	s.AddIf(n.link.wired, used.Network)
	s.AddIf(n.link.looped, used.Loopback)
	s.AddIf(n.reliable != nil && n.link.sent > 0, used.Reliable)
	s.AddIf(n.schedule.calls+n.schedule.dropped+int64(n.schedule.waiting) > 0, used.Handler)
	return s
}

// Report returns what went wrong.
func (n *NIC) Report() *Report { return &n.report }

// Sent draws a packet that enters the link on the timeline. It is for
// fabric.Fabric.Watch.
func (n *NIC) Sent(p *fabric.Packet, from, to sim.Time) {
	switch ref := p.Ref.(type) {
	case *Frame:
		n.env.trace.wire(p, ref, from, to)
	case *segment:
		n.env.trace.wireSegment(p, ref.kind, ref.flow, ref.i, from, to)
	}
}

// FrameOf is the frame that p is a packet of; nil: p is a packet of the
// transport itself.
func FrameOf(p *fabric.Packet) *Frame {
	f, _ := p.Ref.(*Frame)
	return f
}

// Waiting reports suspended handlers, handlers that wait for a processor,
// periodic timers, and entries that wait for another message.
func (n *NIC) Waiting(report func(sim.Waiting)) {
	s := &n.schedule
	for _, r := range s.runs {
		if r != nil && r.active {
			w := sim.Waiting{
				Who:   fmt.Sprintf("rank %d %s %d: %s handler of %s", n.env.rank, r.core.pool.name, r.core.number, r.task.kind, r.task.in.handlers.memory.name),
				Since: r.since, What: r.wait.String(),
			}
			if r.since < 0 { // a run that a limit has ended
				w.Since, w.What = r.start, "the end of its own cycles"
			}
			report(w)
		}
	}
	if h := s.homes; h != nil && h.tasks.len() > 0 {
		report(sim.Waiting{Who: fmt.Sprintf("rank %d", n.env.rank), Since: h.tasks.front().in.started, What: fmt.Sprintf("a cluster for %d handlers", h.tasks.len())})
	}
	for i := range s.pools {
		p := &s.pools[i]
		if k := p.tasks.len(); k > 0 {
			report(sim.Waiting{
				Who: fmt.Sprintf("rank %d", n.env.rank), Since: p.tasks.front().in.started, What: fmt.Sprintf("an %s for %d handlers", p.name, k),
			})
		}
	}
	if t := s.tenants; t != nil && t.waiting > 0 {
		report(sim.Waiting{Who: fmt.Sprintf("rank %d", n.env.rank), Since: t.oldest(), What: fmt.Sprintf("an HPU for %d handlers of tenants", t.waiting)})
	}
	for _, t := range n.act.timers.all {
		if t.issue != nil && t.period > 0 {
			report(sim.Waiting{
				Who: fmt.Sprintf("rank %d: a periodic timer of %s", n.env.rank, t.owner.name), Since: max(0, t.next-t.period),
				What: fmt.Sprintf("a handler to cancel it: it expires each %v", t.period),
			})
		}
	}
	for _, i := range n.transmit.interfaces {
		i.Port.WaitingEntries(func(e portals.WaitingEntry) {
			report(sim.Waiting{
				Who:   fmt.Sprintf("rank %d: an entry of portal table entry %d, user pointer %d,", n.env.rank, e.PT, e.UserPtr),
				Since: sim.Time(e.Note), What: "another message: the handlers of the one before have returned PENDING",
			})
		})
	}
}

// Add adds the counts of another NIC to s. FirstHandler becomes the earlier
// time and LastHandler the later one.
func (s *Stats) Add(o *Stats) {
	s.PacketsSent += o.PacketsSent
	s.PacketsReceived += o.PacketsReceived
	s.PacketsDropped += o.PacketsDropped
	s.MessagesLost += o.MessagesLost
	s.HandlerCalls += o.HandlerCalls
	s.HandlerCycles += o.HandlerCycles
	s.HandlerTime = s.HandlerTime.Plus(o.HandlerTime)
	if o.FirstHandler != 0 && (s.FirstHandler == 0 || o.FirstHandler < s.FirstHandler) {
		s.FirstHandler = o.FirstHandler
	}
	s.LastHandler = max(s.LastHandler, o.LastHandler)
	s.LostActions += o.LostActions
	s.MissedExpiries += o.MissedExpiries
	s.FlowControl += o.FlowControl
	s.Retransmitted += o.Retransmitted
	s.Duplicates += o.Duplicates
}
