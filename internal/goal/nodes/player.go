package nodes

import (
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// player is the program of a rank.
type player struct {
	rank     int
	ops      goal.Rank
	deps     []uint32 // releases that each operation waits for
	places   []runtime.View
	state    []state
	sequence []uint32 // number of the message that a receive has taken
	from     []uint32 // its source
	tags     []uint32
	posted   []uint32 // receives in the order of posting
	ready    [3]queue // receives, sends, computations
	left     int      // operations that are not done
	pool     pool
	busy     sim.Time // computing
	finish   sim.Time
	jitter   float64        // the share by which a computation takes longer at most
	drawn    *rand.Rand     // of it; nil: none
	calls    []call         // in the order in which they begin
	callOf   map[int]int    // by the operation
	groups   []int          // of the calls
	due      map[int][]int  // of each group, the calls that have not begun
	cores    *cores         // nil: one
	begun    int            // calls
	windows  map[int]Window // of its parts in collectives
}

type state uint8

const (
	waiting state = iota // waits for a release, or in a queue
	started
	done
)

// The queues of a player, the preferred one first.
const (
	readyRecv = iota
	readySend
	readyCalc
)

var queueOf = [...]int{goal.Recv: readyRecv, goal.Send: readySend, goal.Calc: readyCalc}

// queue is a first-in first-out list of operations.
type queue struct {
	items []uint32
	head  int
}

func (q *queue) empty() bool { return q.head == len(q.items) }

func (q *queue) push(i uint32) { q.items = append(q.items, i) }

func (q *queue) pop() int {
	i := q.items[q.head]
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return int(i)
}

func newPlayer(rank int, ops goal.Rank, cfg *Config) *player {
	n := ops.Len()
	p := &player{
		pool: pool{empty: cfg.Empty, cold: cfg.Cold},
		rank: rank, ops: ops, left: n, deps: make([]uint32, n), places: make([]runtime.View, n), state: make([]state, n),
		sequence: make([]uint32, n), from: make([]uint32, n), tags: make([]uint32, n),
	}
	for i := range n {
		p.deps[i] = uint32(ops.Deps(i))
	}
	if p.jitter = cfg.Profile.Host.Jitter; p.jitter > 0 {
		p.drawn = rand.New(rand.NewPCG(cfg.Seed, uint64(rank)))
	}
	return p
}

// play carries out all operations.
func (p *player) play(r *mpi.Rank) error {
	p.pool.r = r
	for i, d := range p.deps {
		if d == 0 {
			p.release(uint32(i))
		}
	}
	step := p.next
	if p.cores != nil {
		if err := p.cores.begin(r); err != nil {
			return err
		}
		step = p.cores.next
	}
	for p.left > 0 {
		if err := step(r); err != nil {
			return fmt.Errorf("rank %d: %w", p.rank, err)
		}
	}
	if p.cores != nil {
		if err := p.cores.end(); err != nil {
			return err
		}
	}
	p.finish = r.Now()
	return p.ordered()
}

// next takes one step.
func (p *player) next(r *mpi.Rank) error {
	switch {
	case !p.ready[readyRecv].empty():
		return p.receive(r, p.ready[readyRecv].pop())
	case !p.ready[readySend].empty():
		return p.send(r, p.ready[readySend].pop())
	}
	if c := p.dueCall(); c != nil {
		return p.call(r, c)
	}
	q, err := r.Test()
	if err == nil && q == nil {
		if !p.ready[readyCalc].empty() {
			p.compute(r, p.ready[readyCalc].pop())
			return nil
		}
		if q, err = r.Next(); err == nil && q == nil {
			return p.waiting()
		}
	}
	if err != nil {
		return err
	}
	return p.over(r, q)
}

// waiting says that nothing can happen any more.
func (p *player) waiting() error {
	if p.begun < len(p.calls) {
		return fmt.Errorf("%d operations wait for each other or for a call of allreduce; the members of several begin them in the order in which the schedule first names them", p.left)
	}
	return fmt.Errorf("%d operations wait for each other", p.left)
}

func (p *player) release(i uint32) {
	if c := p.called(int(i)); c != nil {
		c.ready = true
		return
	}
	if p.cores != nil {
		p.cores.push(i)
		return
	}
	p.ready[queueOf[p.ops.Op(int(i)).Kind]].push(i)
}

func (p *player) releaseAll(list iter.Seq[int]) {
	for i := range list {
		if p.deps[i]--; p.deps[i] == 0 {
			p.release(uint32(i))
		}
	}
}

func (p *player) starts(i int) {
	p.state[i] = started
	p.releaseAll(p.ops.AfterStart(i))
}

// part notes that an operation began or ended.
func (p *player) part(i int, now sim.Time) {
	c := p.ops.Collective(i)
	if c < 0 {
		return
	}
	w, known := p.windows[c]
	if !known {
		w.Start = now
		if p.windows == nil {
			p.windows = make(map[int]Window)
		}
	}
	w.End = now
	p.windows[c] = w
}

func (p *player) ends(r *mpi.Rank, i int) {
	p.state[i] = done
	p.part(i, r.Now())
	p.left--
	p.releaseAll(p.ops.AfterDone(i))
}

func (p *player) compute(r *mpi.Rank, i int) {
	d := p.begin(r, i)
	p.busy += d
	r.Compute(d)
	p.ends(r, i)
}

// begin begins a computation and returns how long it takes.
func (p *player) begin(r *mpi.Rank, i int) sim.Time {
	p.part(i, r.Now())
	p.starts(i)
	r.Proc().Reads(used.Compute)
	d := sim.Time(p.ops.Op(i).Size) * sim.Nanosecond
	if p.drawn != nil {
		d += sim.Time(float64(d) * p.jitter * p.drawn.Float64())
	}
	return d
}

func (p *player) receive(r *mpi.Rank, i int) error {
	op := p.ops.Op(i)
	m, err := p.pool.get(int(op.Size))
	if err != nil {
		return err
	}
	source := int(op.Peer)
	if op.Peer == goal.Any {
		source = mpi.AnySource
	}
	q, err := r.Irecv(m.Slice(0, int(op.Size)), source, uint32(op.Tag))
	if err != nil {
		return err
	}
	q.User, p.places[i] = i, m
	p.posted = append(p.posted, uint32(i))
	p.starts(i)
	return nil
}

func (p *player) send(r *mpi.Rank, i int) error {
	p.part(i, r.Now())
	op := p.ops.Op(i)
	m, err := p.pool.get(int(op.Size))
	if err != nil {
		return err
	}
	data := m.Slice(0, int(op.Size))
	s := r.Upcoming(int(op.Peer), uint32(op.Tag), int(op.Size))
	if p.pool.empty {
		data.Touch(true)
	} else {
		data.Fill(func(at int, piece []byte) { fill(at, piece, s) })
	}
	q, err := r.Isend(data, int(op.Peer), uint32(op.Tag))
	if err != nil {
		return err
	}
	q.User, p.places[i] = i, m
	p.starts(i)
	return nil
}

// over ends the operation that a request belongs to.
func (p *player) over(r *mpi.Rank, q *mpi.Request) error {
	i := q.User
	if c := p.called(i); c != nil {
		if err := p.answered(r, c); err != nil {
			return err
		}
	} else if q.Receives() {
		s := q.Status()
		if data := p.places[i].Slice(0, s.Bytes); p.pool.empty {
			data.Touch(false)
		} else if err := check(data, s); err != nil {
			return err
		}
		p.sequence[i], p.from[i], p.tags[i] = s.Sequence, uint32(s.Source), s.Tag
	}
	p.places[i].Discard()
	p.pool.put(p.places[i])
	r.Free(q)
	p.ends(r, i)
	return nil
}

// ordered checks that messages of the same source and tag were received in the
// order of sending. Each of them matches every receive that one of them
// matched.
func (p *player) ordered() error {
	type stream struct{ source, tag uint32 }
	next := make(map[stream]uint32)
	for _, i := range p.posted {
		s := stream{p.from[i], p.tags[i]}
		if p.sequence[i] < next[s] {
			return fmt.Errorf("rank %d: message %d from rank %d with tag %d came to a later receive than one sent after it",
				p.rank, p.sequence[i], s.source, s.tag)
		}
		next[s] = p.sequence[i] + 1
	}
	return nil
}
