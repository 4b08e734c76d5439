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

// player carries out the operations of a rank.
type player struct {
	rank     int
	ops      goal.Rank
	nics     *interfaces
	programs []program
	deps     []uint32 // releases that each operation waits for
	places   []runtime.View
	state    []state
	sequence []uint32 // number of the message that a receive has taken
	from     []uint32 // its source
	tags     []uint32
	posted   []uint32 // receives in the order of posting
	ready    [3]queue // receives, sends, computations
	left     int      // operations that are not done
	busy     sim.Time // computing
	finish   sim.Time
	jitter   float64        // the share by which a computation takes longer at most
	drawn    *rand.Rand     // of it; nil: none
	calls    []call         // in the order in which they begin
	callOf   map[int]int    // by the operation
	groups   []int          // of the calls
	due      map[int][]int  // of each group, the calls that have not begun
	cores    *cores         // nil: one core and one NIC
	entered  int            // programs
	begun    int            // calls
	windows  map[int]Window // of its parts in collectives
}

// program is what a rank does at one of its NICs.
type program struct {
	*player
	nic  int
	r    *mpi.Rank
	pool pool
	lib  *library // nil: the rank has one core and one NIC
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

func newPlayer(rank int, ops goal.Rank, nics *interfaces, cfg *Config) *player {
	n := ops.Len()
	p := &player{
		nics: nics, programs: make([]program, len(nics.list)),
		rank: rank, ops: ops, left: n, deps: make([]uint32, n), places: make([]runtime.View, n), state: make([]state, n),
		sequence: make([]uint32, n), from: make([]uint32, n), tags: make([]uint32, n),
	}
	for i := range p.programs {
		p.programs[i] = program{player: p, nic: i, pool: pool{empty: cfg.Empty, cold: cfg.Cold}}
	}
	for i := range n {
		p.deps[i] = uint32(ops.Deps(i))
	}
	if p.jitter = cfg.Profile.Host.Jitter; p.jitter > 0 {
		p.drawn = rand.New(rand.NewPCG(cfg.Seed, uint64(rank)))
	}
	return p
}

// play carries out the operations of a NIC, and those that need none.
func (g *program) play(r *mpi.Rank) error {
	g.r, g.pool.r = r, r
	step := g.next
	if g.lib != nil {
		if err := g.lib.begin(); err != nil {
			return err
		}
		step = g.lib.next
	}
	if g.entered++; g.entered == len(g.programs) {
		for i, d := range g.deps {
			if d == 0 {
				g.release(g, uint32(i))
			}
		}
	}
	for g.left > 0 {
		if err := step(); err != nil {
			return fmt.Errorf("rank %d: %w", g.rank, err)
		}
	}
	if g.lib != nil {
		if err := g.lib.end(); err != nil {
			return err
		}
	}
	g.finish = max(g.finish, r.Now())
	return g.ordered()
}

// next takes one step.
func (g *program) next() error {
	switch {
	case !g.ready[readyRecv].empty():
		return g.receive(g.ready[readyRecv].pop())
	case !g.ready[readySend].empty():
		return g.send(g.ready[readySend].pop())
	}
	if c := g.dueCall(); c != nil {
		return g.call(c)
	}
	q, err := g.r.Test()
	if err == nil && q == nil {
		if !g.ready[readyCalc].empty() {
			g.compute(g.ready[readyCalc].pop())
			return nil
		}
		if q, err = g.r.Next(); err == nil && q == nil {
			return g.waiting()
		}
	}
	if err != nil {
		return err
	}
	return g.over(q)
}

// waiting says that nothing can happen any more.
func (p *player) waiting() error {
	if p.begun < len(p.calls) {
		return fmt.Errorf("%d operations wait for each other or for a call of the library; the members of several begin them in the order in which the schedule first names them", p.left)
	}
	return fmt.Errorf("%d operations wait for each other", p.left)
}

// release makes an operation one that can begin. by is who noticed; nil: a
// computation.
func (p *player) release(by *program, i uint32) {
	if c := p.called(int(i)); c != nil {
		c.ready = true
		if p.cores != nil {
			p.cores.hint(by, 0)
		}
		return
	}
	if p.cores != nil {
		p.cores.push(by, i)
		return
	}
	p.ready[queueOf[p.ops.Op(int(i)).Kind]].push(i)
}

func (p *player) releaseAll(by *program, list iter.Seq[int]) {
	for i := range list {
		if p.deps[i]--; p.deps[i] == 0 {
			p.release(by, uint32(i))
		}
	}
}

func (p *player) starts(by *program, i int) {
	p.state[i] = started
	p.releaseAll(by, p.ops.AfterStart(i))
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

func (p *player) ends(by *program, i int) {
	p.state[i] = done
	p.part(i, p.now())
	if p.left--; p.left == 0 && p.cores != nil {
		p.cores.hint(by, all)
	}
	p.releaseAll(by, p.ops.AfterDone(i))
}

// now is the present time. All programs of a rank are on one clock.
func (p *player) now() sim.Time { return p.programs[0].r.Now() }

func (g *program) compute(i int) {
	d := g.begin(g, i)
	g.busy += d
	g.r.Compute(d)
	g.ends(g, i)
}

// begin begins a computation and returns how long it takes.
func (p *player) begin(by *program, i int) sim.Time {
	p.part(i, p.now())
	p.starts(by, i)
	p.programs[0].r.Proc().Reads(used.Compute)
	d := sim.Time(p.ops.Op(i).Size) * sim.Nanosecond
	if p.drawn != nil {
		d += sim.Time(float64(d) * p.jitter * p.drawn.Float64())
	}
	return d
}

func (g *program) receive(i int) error {
	op := g.ops.Op(i)
	m, err := g.pool.get(int(op.Size))
	if err != nil {
		return err
	}
	source := mpi.AnySource
	if op.Peer != goal.Any {
		source = g.nics.mpiRank(int(op.Peer), g.nic)
	}
	q, err := g.r.Irecv(m.Slice(0, int(op.Size)), source, uint32(op.Tag))
	if err != nil {
		return err
	}
	q.User, g.places[i] = i, m
	g.posted = append(g.posted, uint32(i))
	g.starts(g, i)
	return nil
}

func (g *program) send(i int) error {
	g.part(i, g.now())
	op := g.ops.Op(i)
	m, err := g.pool.get(int(op.Size))
	if err != nil {
		return err
	}
	data, to := m.Slice(0, int(op.Size)), g.nics.mpiRank(int(op.Peer), g.nic)
	s := g.r.Upcoming(to, uint32(op.Tag), int(op.Size))
	if g.pool.empty {
		data.Touch(true)
	} else {
		data.Fill(func(at int, piece []byte) { fill(at, piece, s) })
	}
	q, err := g.r.Isend(data, to, uint32(op.Tag))
	if err != nil {
		return err
	}
	q.User, g.places[i] = i, m
	g.starts(g, i)
	return nil
}

// over ends the operation that a request belongs to.
func (g *program) over(q *mpi.Request) error {
	i := q.User
	if c := g.called(i); c != nil {
		if err := g.answered(c); err != nil {
			return err
		}
	} else if q.Receives() {
		s := q.Status()
		if data := g.places[i].Slice(0, s.Bytes); g.pool.empty {
			data.Touch(false)
		} else if err := check(data, s); err != nil {
			return err
		}
		g.sequence[i], g.from[i], g.tags[i] = s.Sequence, uint32(s.Source), s.Tag
	}
	g.places[i].Discard()
	g.pool.put(g.places[i])
	g.r.Free(q)
	g.ends(g, i)
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
				p.rank, p.sequence[i], int(s.source)%p.nics.ranks, s.tag)
		}
		next[s] = p.sequence[i] + 1
	}
	return nil
}
