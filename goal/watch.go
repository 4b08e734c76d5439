package goal

// watcher observes the events of a run. Operations are numbered as in the
// simulator.
type watcher interface {
	// calc reports a computation that keeps its processor busy.
	calc(op uint32, t, end int64)
	// send reports a send that keeps its processor busy until end and its
	// network interface until gap.
	send(op uint32, t, end, gap int64)
	// message reports a message that keeps processor and network interface of
	// the target busy.
	message(op uint32, t, end, gap int64)
	// received reports message send at receive recv in ATLAHS' model. It keeps
	// the network interface of operation by busy until gap, and then the
	// receive's processor until end.
	received(send, recv, by uint32, t, gap, end int64)
	// recv reports a released receive, to be posted at t, the time of its
	// processor's clock.
	recv(op uint32, t int64)
	// raised reports that the clocks of the sender of a rendezvous message go
	// up to t. The cause is event by: a receive, or with evMsg the message of a
	// send.
	raised(rank uint32, u unit, by uint32, t int64)
}

// Unit is a part of a rank that can be busy.
type Unit uint8

// The units of a rank. There is one Processor per processor index; of the
// others there is one per network interface index.
const (
	Processor Unit = iota
	SendInterface
	RecvInterface
)

// String returns cpu, nic-send or nic-recv.
func (u Unit) String() string {
	return [...]string{"cpu", "nic-send", "nic-recv"}[u]
}

// Span is a time in which a unit of a rank is busy.
type Span struct {
	// Rank is the rank of the unit; Index distinguishes units of a kind.
	Rank  int
	Unit  Unit
	Index uint8
	// Kind is the activity of the unit: compute, send a message or receive one.
	Kind Kind
	// Start and End are times in ns.
	Start, End int64
	// Flow is the number of the message, from 1, the same in the spans at both
	// ends. It is 0 for Calc.
	Flow uint64
	// OpRank and Op identify the operation for Schedule.Ref: the computation,
	// or the send of the message, also in spans of its target.
	OpRank, Op int
}

// WithTrace calls f for every span of the run, in order of events. It does not
// change the result.
func WithTrace(f func(Span)) Option {
	return func(m *Simulator) { m.watch = &tracer{m: m, f: f} }
}

// WithMatches calls f whenever a receive takes a message: operation send of rank
// from, operation recv of rank to. It does not change the result.
func WithMatches(f func(from, send, to, recv int)) Option {
	return func(m *Simulator) { m.pairs = f }
}

type tracer struct {
	m *Simulator
	f func(Span)
}

func (t *tracer) span(op uint32, kind Kind, start int64) Span {
	s := Span{Kind: kind, Start: start, OpRank: int(t.m.s.rank(op))}
	s.Op = int(op - t.m.s.ranks[s.OpRank].first)
	s.Rank = s.OpRank
	if kind != Calc {
		s.Flow = uint64(t.m.s.serial(op)) + 1
	}
	return s
}

func (t *tracer) calc(op uint32, start, end int64) {
	s := t.span(op, Calc, start)
	s.Index, s.End = t.m.s.unit(op).cpu, end
	t.f(s)
}

func (t *tracer) send(op uint32, start, end, gap int64) {
	t.both(op, t.span(op, Send, start), SendInterface, end, gap)
}

func (t *tracer) message(op uint32, start, end, gap int64) {
	s := t.span(op, Recv, start)
	s.Rank = int(t.m.s.at(op).peer)
	t.both(op, s, RecvInterface, end, gap)
}

func (t *tracer) both(op uint32, s Span, unit Unit, end, gap int64) {
	s.Index, s.End = t.m.s.unit(op).cpu, end
	t.f(s)
	s.Unit, s.Index, s.End = unit, t.m.s.unit(op).nic, gap
	t.f(s)
}

func (t *tracer) received(send, recv, by uint32, start, gap, end int64) {
	s := t.span(send, Recv, start)
	s.Rank = int(t.m.s.rank(recv))
	s.Unit, s.Index, s.End = RecvInterface, t.m.s.unit(by).nic, gap
	t.f(s)
	s.Unit, s.Index, s.Start, s.End = Processor, t.m.s.unit(recv).cpu, gap, end
	t.f(s)
}

func (t *tracer) recv(uint32, int64)                 {}
func (t *tracer) raised(uint32, unit, uint32, int64) {}
