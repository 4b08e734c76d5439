package goal

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
)

// none ends a list of operations.
const none = ^uint32(0)

// Simulator runs one schedule on the LogGOPS model (LogGOPS'10), any number of
// times, with any parameters. It keeps all memory between runs. It is not safe
// for concurrent use; several simulators may share a schedule.
//
// It reads the operations where the schedule has them. Its own memory for an
// operation is a counter of a byte, and a place in a queue while it waits there.
type Simulator struct {
	s *Schedule

	// Constant for a schedule.
	cpus   int
	nics   int
	stride int // clocks per rank: cpus, receiving nics, sending nics

	// The state of a run.
	p     Params
	noise *Noise
	watch watcher
	pairs func(from, send, to, recv int)
	queue queue
	stamp uint32 // number of the next event
	ranks []rankState
	clock []int64 // nil if each rank has one processor and one network interface
	// per operation: missing releases; with manyDeps: in many
	left     []uint8
	many     map[uint32]uint32
	entries  entries
	match    matcher
	wait     waitQueues
	released []uint32
	open     int // operations that have not run
	waiting  int // messages in unexpected queues
	stuck    []uint32
	result   Result

	// of ATLAHS' model; at: per operation the time when it is ready, then that
	// of the arrival of its message
	heap timeHeap
	at   []int64
	late bool // a time is above maxTime

	limits sim.Limits
	ctx    context.Context // of the run
}

// rankState is the state of a rank. It is one cache line, because a large run
// visits its ranks in no order.
type rankState struct {
	// The clocks, if each rank has one processor and one network interface.
	// Otherwise they are in Simulator.clock.
	clock [3]int64
	// Posted receives and unexpected messages.
	recvs, msgs matchList
	// The numbers of the wait queues of the three classes plus 1, or 0; used
	// under the same condition as clock.
	wait [3]uint32
	free uint32 // of entries
}

// NewSimulator prepares a schedule to run. It takes about a byte per operation
// and 72 per rank. A schedule with several processors or network interfaces
// takes 8 bytes more per rank for each processor and 16 for each network
// interface. A run adds 16 bytes for each operation that waits, and 16 for each
// event.
func NewSimulator(s *Schedule) *Simulator {
	m := &Simulator{s: s, cpus: int(s.cpu) + 1, nics: int(s.nic) + 1}
	m.stride = m.cpus + 2*m.nics
	m.left = memory.Make[uint8](s.ids())
	m.ranks = memory.Make[rankState](len(s.ranks))
	m.match = matcher{s: &s.store, ranks: m.ranks, entries: &m.entries, scanLimit: scanLimit}
	if m.stride != len(m.ranks[0].clock) {
		m.clock = memory.Make[int64](len(s.ranks) * m.stride)
	}
	m.result.FinishNS = memory.Make[int64](len(s.ranks))
	return m
}

// Option changes a run.
type Option func(*Simulator)

// Run runs the schedule from the start and returns the finishing time of each
// rank. The slice in the result is valid until the next run.
//
// If some operations never run, or a message is never received, the error is an
// *UnfinishedError. The result then still holds for the other operations.
func (m *Simulator) Run(p Params, options ...Option) (Result, error) {
	if err := m.s.Check(p); err != nil {
		return Result{}, err
	}
	m.p, m.noise, m.watch, m.pairs = p, nil, nil, nil
	m.limits, m.ctx = sim.Limits{}, context.Background()
	for _, o := range options {
		o(m)
	}
	if m.noise != nil {
		if err := m.noise.fits(m.s.Ranks()); err != nil {
			return Result{}, err
		}
	}
	m.start()
	var err error
	if p.Model == ATLAHS {
		err = atlahs{m}.loop()
	} else {
		err = m.loop()
	}
	if err != nil {
		return Result{}, err
	}
	return m.finish()
}

// Check returns an error if a parameter is out of range, or if an operation
// takes too long with them: the error then wraps ErrOverflow.
func (s *Schedule) Check(p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if err := p.fits(s.bytes, s.calc); err != nil {
		return fmt.Errorf("goal: %v: %w", s.tooLarge(p), err)
	}
	return nil
}

// tooLarge returns the first operation whose costs do not fit; there is one.
func (s *Schedule) tooLarge(p Params) (r OpRef) {
	for rank := range s.Ranks() {
		for i := range s.Rank(rank).Len() {
			r = s.Ref(rank, i)
			bytes, calc := r.Op.Size, uint64(0)
			if r.Op.Kind == Calc {
				bytes, calc = calc, bytes
			}
			if p.fits(bytes, calc) != nil {
				return r
			}
		}
	}
	return r
}

// start sets the state of time 0 and releases the roots.
func (m *Simulator) start() {
	m.queue.reset()
	m.wait.reset()
	m.match.reset()
	clear(m.clock)
	for i := range m.ranks {
		m.ranks[i] = rankState{recvs: matchList{first: none}, msgs: matchList{first: none}, wait: m.ranks[i].wait}
	}
	m.entries.reset()
	clear(m.many)
	for n := range m.s.segments {
		c := &m.s.segments[n]
		left := m.left[n*segmentOps:][:len(c.ops)]
		for i := range c.ops {
			left[i] = c.ops[i].deps
		}
		for i, deps := range c.many { //lint:maporder into another map
			if m.many == nil {
				m.many = make(map[uint32]uint32)
			}
			m.many[uint32(n)<<segmentBits+i] = deps
		}
	}
	m.stamp, m.waiting, m.open = 0, 0, m.s.Len()
	m.stuck = m.stuck[:0]
	m.result.Messages, m.result.Mismatched = 0, 0
	m.released = m.released[:0]
	schedule := m.schedule
	if m.late = false; m.p.Model == ATLAHS {
		schedule = atlahs{m}.schedule
		atlahs{m}.start()
	}
	for _, at := range m.s.ranks {
		for id := at.first; id < at.first+at.n; id++ {
			if m.left[id] == 0 {
				m.released = append(m.released, id)
			}
		}
		schedule()
	}
}

func (m *Simulator) finish() (Result, error) {
	res := &m.result
	res.Ranks = len(m.ranks)
	res.Events = int64(m.s.Len()-m.open) + res.Messages
	res.MaxNS, res.MaxRank = -1, 0
	for r := range res.FinishNS {
		t := int64(0)
		for _, c := range m.clocks(uint32(r))[:m.cpus] {
			t = max(t, c)
		}
		res.FinishNS[r] = t
		if t > res.MaxNS {
			res.MaxNS, res.MaxRank = t, r
		}
	}
	if res.MaxNS > maxTime || m.late {
		return Result{}, fmt.Errorf("goal: rank %d: %w", res.MaxRank, ErrOverflow)
	}
	if m.open > 0 || m.waiting > 0 {
		return *res, m.unfinished()
	}
	return *res, nil
}

// clocks returns the clocks of a rank: processors, receiving network
// interfaces, sending network interfaces.
func (m *Simulator) clocks(rank uint32) []int64 {
	if m.clock == nil {
		return m.ranks[rank].clock[:]
	}
	at := int(rank) * m.stride
	return m.clock[at : at+m.stride : at+m.stride]
}

// busy returns the time when a processor is free again, if it starts at t to
// work for the given time.
func (m *Simulator) busy(rank uint32, t, work int64) int64 {
	if m.noise == nil {
		return t + work
	}
	return m.noise.end(rank, t, work)
}
