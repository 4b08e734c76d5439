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
// The operations of a simulator are sorted by their depth in the dependencies
// of their rank, then by rank. The ranks of a program reach a depth at about
// the same time, so a run goes through memory mostly forwards.
type Simulator struct {
	s *Schedule

	// Constant for a schedule.
	ops []simOp // one more at the end: its start ends the last lists
	// per operation: the operations it releases when it starts, then those it
	// releases when it is done
	succ   []uint32
	origin []uint32 // per operation: its number in the schedule
	roots  int      // operations of depth 0
	cpus   int
	nics   int
	stride int // clocks per rank: cpus, receiving nics, sending nics

	// The state of a run.
	p        Params
	noise    *Noise
	watch    watcher
	queue    queue
	stamp    uint32 // number of the next event
	ranks    []rankState
	clock    []int64 // nil if each rank has one processor and one network interface
	match    matcher
	wait     waitQueues
	released []uint32
	open     int // operations that have not run
	waiting  int // messages in unexpected queues
	stuck    []uint32
	result   Result

	limits sim.Limits
	ctx    context.Context // of the run
}

// simOp is an operation for the event loop. Constant and changing fields are
// side by side, because the cache lines touched limit the speed of large runs.
type simOp struct {
	size  uint64
	peer  uint32
	tag   uint32
	rank  uint32
	start uint32 // first operation released when it starts
	done  uint32 // first operation released when it is done; ends at the next start
	kind  Kind
	cpu   uint8
	nic   uint8
	deps  uint32 // number of releases it waits for
	opState
}

// opState is the changing part of an operation. An operation is in at most one
// queue at a time. A send is first in a wait queue of its rank. Then its
// message is in a wait queue of the target, and then among the unexpected
// messages.
type opState struct {
	link  uint32 // before release: missing releases; then: pointer of its queue
	child uint32 // further pointer
	stamp uint32 // order in the queue
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
	_    uint32
}

// NewSimulator prepares a schedule to run. It takes about 52 bytes per
// operation, 4 per dependency and 64 per rank. A schedule with several
// processors or network interfaces takes 8 bytes more per rank for each
// processor and 16 for each network interface.
func NewSimulator(s *Schedule) *Simulator {
	m := &Simulator{s: s}
	for i := range s.ops {
		m.cpus = max(m.cpus, int(s.ops[i].cpu))
		if s.ops[i].kind != Calc {
			m.nics = max(m.nics, int(s.ops[i].nic))
		}
	}
	m.cpus++
	m.nics++
	m.stride = m.cpus + 2*m.nics
	m.sortOps()
	m.match.ops, m.match.scanLimit = m.ops, scanLimit
	m.ranks = memory.Make[rankState](len(s.ranks))
	if m.stride != len(m.ranks[0].clock) {
		m.clock = memory.Make[int64](len(s.ranks) * m.stride)
	}
	m.result.FinishNS = memory.Make[int64](len(s.ranks))
	return m
}

// sortOps fills the constant arrays.
func (m *Simulator) sortOps() {
	s := m.s
	place, counts := depths(s)
	m.roots = 0
	if len(counts) > 0 {
		m.roots = int(counts[0])
	}
	next := uint32(0)
	for d, n := range counts {
		counts[d] = next
		next += n
	}
	m.ops = memory.Make[simOp](len(s.ops) + 1)
	m.origin = memory.Make[uint32](len(s.ops))
	for r, at := range s.ranks {
		for i := at.first; i < at.first+at.n; i++ {
			to := counts[place[i]]
			counts[place[i]]++
			place[i] = to
			p := &s.ops[i]
			m.ops[to] = simOp{
				size: p.size, peer: p.peer, tag: p.tag, rank: uint32(r), kind: p.kind, cpu: p.cpu, nic: p.nic,
				deps: p.deps,
			}
			m.origin[to] = i
		}
	}
	m.succ = memory.Make[uint32](len(s.succ))[:0]
	for to, i := range m.origin {
		p, op := &s.ops[i], &m.ops[to]
		first := s.ranks[op.rank].first
		op.start = uint32(len(m.succ))
		for _, x := range s.succ[p.start:s.succEnd(int(i))] {
			m.succ = append(m.succ, place[first+x])
		}
		op.done = uint32(len(m.succ))
		for _, x := range s.succ[p.done:p.start] {
			m.succ = append(m.succ, place[first+x])
		}
	}
	m.ops[len(s.ops)].start = uint32(len(m.succ))
}

// depths returns the depth of each operation in the dependencies of its rank,
// and the number of operations at each depth. Operations that a cycle keeps
// from running get the largest depth.
func depths(s *Schedule) (depth, counts []uint32) {
	depth = memory.Make[uint32](len(s.ops))
	var left, ready []uint32
	deepest := uint32(0)
	var cyclic []uint32
	for _, at := range s.ranks {
		ops := s.ops[at.first:][:at.n]
		level := depth[at.first:][:at.n]
		left, ready = left[:0], ready[:0]
		for i := range ops {
			left = append(left, ops[i].deps)
			if ops[i].deps == 0 {
				ready = append(ready, uint32(i))
			}
		}
		for n := 0; n < len(ready); n++ {
			i := ready[n]
			deepest = max(deepest, level[i])
			for _, x := range s.succ[ops[i].done:s.succEnd(int(at.first+i))] {
				level[x] = max(level[x], level[i]+1)
				if left[x]--; left[x] == 0 {
					ready = append(ready, x)
				}
			}
		}
		if len(ready) < len(ops) {
			for i := range ops {
				if left[i] > 0 {
					cyclic = append(cyclic, at.first+uint32(i))
				}
			}
		}
	}
	for _, i := range cyclic {
		depth[i] = deepest + 1
	}
	counts = make([]uint32, deepest+2)
	for _, d := range depth {
		counts[d]++
	}
	return depth, counts
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
	m.p, m.noise, m.watch = p, nil, nil
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
	if err := m.loop(); err != nil {
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
	var bytes, calc uint64
	for i := range s.ops {
		if op := &s.ops[i]; op.kind == Calc {
			calc = max(calc, op.size)
		} else {
			bytes = max(bytes, op.size)
		}
	}
	if err := p.fits(bytes, calc); err != nil {
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
	for i := range m.ops {
		m.ops[i].opState = opState{link: m.ops[i].deps}
	}
	m.stamp, m.waiting, m.open = 0, 0, len(m.origin)
	m.stuck = m.stuck[:0]
	m.result.Messages, m.result.Mismatched = 0, 0
	m.released = m.released[:0]
	for i := range m.roots {
		if n := len(m.released); n > 0 && m.ops[i].rank != m.ops[m.released[n-1]].rank {
			m.schedule()
		}
		m.released = append(m.released, uint32(i))
	}
	if n := len(m.released); n > 0 {
		m.schedule()
	}
}

func (m *Simulator) finish() (Result, error) {
	res := &m.result
	res.Ranks = len(m.ranks)
	res.Events = int64(len(m.origin)-m.open) + res.Messages
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
	if res.MaxNS > maxTime {
		return Result{}, fmt.Errorf("goal: rank %d: %w", res.MaxRank, ErrOverflow)
	}
	if m.open > 0 || m.waiting > 0 {
		return *res, m.unfinished()
	}
	return *res, nil
}

// sizeCost returns the cost of all bytes of a message but the first.
func sizeCost(size uint64, perByte int64) int64 {
	if size == 0 {
		return 0
	}
	return int64(size-1) * perByte
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
