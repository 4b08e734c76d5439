package goal

import (
	"errors"
	"slices"

	"github.com/spinsim/spinsim/internal/memory"
)

// Step is a part of a critical path.
type Step struct {
	// Op is the operation: a computation or a send. For a step at the target of
	// a message, it is the send of that message.
	Op OpRef
	// Rank is the rank where the step takes place.
	Rank int
	// Kind is Calc, Send, or Recv for a message at its target. The step of a
	// receive operation takes no time: it is a rendezvous that releases the
	// sender.
	Kind Kind
	// Start and End are times in ns. A step starts when the previous one ends,
	// but a message starts the latency L after the end of its send.
	Start, End int64
}

// CriticalPath is the chain of steps that determines the finishing time of a
// schedule.
type CriticalPath struct {
	// Steps are in order of time. The last ends when the last rank finishes.
	Steps []Step
	// CalcNS, SendNS and RecvNS are the total times of the steps of each kind,
	// LatencyNS the time between steps.
	CalcNS, SendNS, RecvNS, LatencyNS int64
}

// CriticalPath runs the schedule and follows the clocks back from the end. An
// operation starts at the time of its processor's or network interface's clock,
// which an earlier operation has set. A message may also start when it arrives.
// WithTrace has no effect here.
func (m *Simulator) CriticalPath(p Params, options ...Option) (CriticalPath, Result, error) {
	if p.Model == ATLAHS {
		return CriticalPath{}, Result{}, errors.New("goal: the critical path is one of the LogGOPS model only")
	}
	rec := &recorder{m: m}
	watched := append(slices.Clip(options), func(m *Simulator) {
		rec.start = memory.Make[int64](2 * m.s.ids())
		rec.cause = memory.Make[uint32](2 * m.s.ids())
		rec.clock = memory.Make[setting](len(m.ranks) * m.stride)
		for i := range rec.clock {
			rec.clock[i].by = none
		}
		m.watch = rec
	})
	res, err := m.Run(p, watched...)
	if err != nil {
		return CriticalPath{}, res, err
	}
	return rec.path(res), res, nil
}

// recorder is a watcher. It records which event set each clock, and for each
// event which event let it start. Event 2i is operation i, event 2i+1 its
// message.
type recorder struct {
	m     *Simulator
	start []int64
	cause []uint32
	clock []setting // stride clocks per rank
}

// setting is the time of a clock and the event that set it.
type setting struct {
	t  int64
	by uint32
}

func (r *recorder) cpu(rank uint32, u unit) *setting {
	return &r.clock[int(rank)*r.m.stride+int(u.cpu)]
}

func (r *recorder) recvNIC(rank uint32, u unit) *setting {
	return &r.clock[int(rank)*r.m.stride+r.m.recvNIC(u)]
}

func (r *recorder) sendNIC(rank uint32, u unit) *setting {
	return &r.clock[int(rank)*r.m.stride+r.m.sendNIC(u)]
}

// began records an event at time t. If neither clock is at t, the cause is
// otherwise.
func (r *recorder) began(event uint32, t int64, otherwise uint32, cpu, nic *setting) {
	r.start[event], r.cause[event] = t, otherwise
	if nic.by != none && nic.t == t {
		r.cause[event] = nic.by
	}
	if cpu.by != none && cpu.t == t {
		r.cause[event] = cpu.by
	}
}

func (r *recorder) calc(op uint32, t, end int64) {
	cpu := r.cpu(r.m.s.rank(op), r.m.s.unit(op))
	r.began(2*op, t, none, cpu, cpu)
	*cpu = setting{end, 2 * op}
}

func (r *recorder) send(op uint32, t, end, gap int64) {
	rank, u := r.m.s.rank(op), r.m.s.unit(op)
	cpu, nic := r.cpu(rank, u), r.sendNIC(rank, u)
	r.began(2*op, t, none, cpu, nic)
	*cpu, *nic = setting{end, 2 * op}, setting{gap, 2 * op}
}

func (r *recorder) message(op uint32, t, end, gap int64) {
	peer, u := r.m.s.at(op).peer, r.m.s.unit(op)
	cpu, nic := r.cpu(peer, u), r.recvNIC(peer, u)
	r.began(2*op+1, t, 2*op, cpu, nic)
	*cpu, *nic = setting{end, 2*op + 1}, setting{gap, 2*op + 1}
}

func (r *recorder) recv(op uint32, t int64) {
	cpu := r.cpu(r.m.s.rank(op), r.m.s.unit(op))
	r.began(2*op, t, none, cpu, cpu)
}

// received is never called: ATLAHS' model has no critical path.
func (r *recorder) received(uint32, uint32, uint32, int64, int64, int64) {}

func (r *recorder) raised(rank uint32, u unit, by uint32, t int64) {
	event := 2 * (by & idMask)
	if by&evMsg != 0 {
		event++
	}
	for _, c := range []*setting{r.cpu(rank, u), r.sendNIC(rank, u)} {
		if c.t < t {
			*c = setting{t, event}
		}
	}
}

// path goes back from the clock at the finishing time.
func (r *recorder) path(res Result) CriticalPath {
	var c CriticalPath
	event, end := none, res.MaxNS
	for cpu := range r.m.cpus {
		if s := r.cpu(uint32(res.MaxRank), unit{cpu: uint8(cpu)}); s.t == end {
			event = s.by
		}
	}
	for event != none {
		op := r.m.s.at(event / 2)
		step := Step{Op: r.m.ref(event / 2), Rank: int(r.m.s.rank(event / 2)), Kind: op.kind(), Start: r.start[event], End: end}
		if event%2 == 1 {
			step.Kind, step.Rank = Recv, int(op.peer)
		}
		switch step.Kind {
		case Calc:
			c.CalcNS += step.End - step.Start
		case Send:
			c.SendNS += step.End - step.Start
		case Recv:
			c.RecvNS += step.End - step.Start
		}
		c.Steps = append(c.Steps, step)
		end = step.Start
		if cause := r.cause[event]; event%2 == 1 && cause == event-1 {
			c.LatencyNS += r.m.p.L
			end -= r.m.p.L
		}
		event = r.cause[event]
	}
	slices.Reverse(c.Steps)
	return c
}
