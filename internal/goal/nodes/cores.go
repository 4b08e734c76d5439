package nodes

import (
	"fmt"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// cores are the processors of a rank that uses several cpu indices: each index
// is a core of the node, and stands for a thread of the program. The threads
// share one library behind one lock, as with MPI_THREAD_MULTIPLE. So the
// process of the rank, which is the library, goes from core to core: a thread's
// send or receive takes its own core, and what arrives takes a core that does
// not compute.
type cores struct {
	p      *player
	r      *mpi.Rank
	list   []core // ascending by their cpu index
	of     [1 << 8]uint8
	at     int  // where the library is; none: all cores compute
	parked bool // the library waits, but not for messages
	over   bool
	signal portals.Handle // counter that ends a wait for messages
	news   bool           // a computation has ended since the library looked
	stamps []uint32       // when each operation was released
	stamp  uint32
	busy   int      // cores that compute
	since  sim.Time // they have done so, one of them at least
}

// core is one of them.
type core struct {
	number int // of the node
	ready  [3]queue
	calc   int // the computation under way, or none
	length sim.Time
	thread host.Thread
}

const none = -1

func (c *core) idle() bool { return c.calc == none }

// computes reports whether a computation is next on an idle core.
func (c *core) computes() bool {
	return c.idle() && c.ready[readyRecv].empty() && c.ready[readySend].empty() && !c.ready[readyCalc].empty()
}

// newCores gives a rank a core for each of its cpu indices, by its number on the
// node. nil: it needs no more than its process has.
func newCores(p *player, numbers []int) *cores {
	if numbers == nil {
		return nil
	}
	c := &cores{p: p, at: none, list: make([]core, len(numbers)), stamps: make([]uint32, p.ops.Len())}
	for k, index := range indices(p.ops) {
		c.list[k].number, c.list[k].calc = numbers[k], none
		c.of[index] = uint8(k)
	}
	return c
}

// core returns the place of an operation's core.
func (c *cores) core(i int) int { return int(c.of[c.p.ops.Op(i).CPU]) }

func (c *cores) push(i uint32) {
	c.stamps[i] = c.stamp
	c.stamp++
	c.list[c.core(int(i))].ready[queueOf[c.p.ops.Op(int(i)).Kind]].push(i)
}

// begin starts the threads.
func (c *cores) begin(r *mpi.Rank) (err error) {
	c.r = r
	objects := r.Proc().NI().Objects()
	if c.signal, err = objects.CTAlloc(); err != nil {
		return err
	}
	objects.Label(c.signal, "computations")
	mpi.TaggedOf(r).Also(r.Proc().NI(), c.signal)
	r.Proc().Reads(used.Cores)
	for k := range c.list {
		at := &c.list[k]
		name := fmt.Sprintf("rank %d thread %d", c.p.rank, k)
		r.Proc().Node().CPU().Spawn(&at.thread, at.number, name, nil, func(*host.Thread) error { return c.work(at) }).Background()
	}
	return nil
}

// end ends the threads.
func (c *cores) end() error {
	c.over = true
	for k := range c.list {
		c.list[k].thread.Wake()
	}
	mpi.TaggedOf(c.r).Also(nil, portals.CTNone)
	return c.r.Proc().NI().Objects().CTFree(c.signal)
}

// next takes one step of the library.
func (c *cores) next(r *mpi.Rank) error {
	p := c.p
	if err := c.heard(); err != nil {
		return err
	}
	if !c.settle() {
		c.wait()
		return nil
	}
	for kind, begin := range []func(*mpi.Rank, int) error{readyRecv: p.receive, readySend: p.send} {
		if k := c.first(kind); k != none {
			c.enter(k)
			return begin(r, c.list[k].ready[kind].pop())
		}
	}
	if call := c.dueCall(); call != nil {
		c.enter(c.core(call.op))
		return p.call(r, call)
	}
	switch q, err := r.Test(); {
	case err != nil:
		return err
	case q != nil:
		return p.over(r, q)
	case c.list[c.at].computes():
		k := c.at
		c.at = none
		c.start(&c.list[k])
	case c.news: // while the library handled what had arrived
	case r.Active() > 0:
		return c.await()
	case c.busy > 0:
		c.wait()
	default:
		return p.waiting()
	}
	return nil
}

// dueCall returns the next call whose core is idle; nil: there is none.
func (c *cores) dueCall() *call {
	for _, g := range c.p.groups {
		if list := c.p.due[g]; len(list) > 0 {
			if call := &c.p.calls[list[0]]; call.ready && c.list[c.core(call.op)].idle() {
				return call
			}
		}
	}
	return nil
}

// first returns the idle core with the oldest operation of a kind; none: there
// is no such operation.
func (c *cores) first(kind int) int {
	best, oldest := none, uint32(0)
	for k := range c.list {
		if q := &c.list[k].ready[kind]; c.list[k].idle() && !q.empty() {
			if stamp := c.stamps[q.items[q.head]]; best == none || stamp < oldest {
				best, oldest = k, stamp
			}
		}
	}
	return best
}

// enter moves the library to a core, and starts what others have to compute.
func (c *cores) enter(k int) {
	if c.at != k {
		c.at = k
		c.r.Proc().Thread().MoveTo(c.list[k].number)
	}
	c.compute()
}

// settle moves the library to an idle core, if possible to one that has nothing
// to compute; false: there is none.
func (c *cores) settle() bool {
	best := c.at
	if best != none && !c.list[best].idle() {
		best = none
	}
	for k := range c.list {
		if at := &c.list[k]; at.idle() && (best == none || !at.computes() && c.list[best].computes()) {
			best = k
		}
	}
	if best == none {
		c.at = none
		return false
	}
	c.enter(best)
	return true
}

// await waits until a message is over or a computation ends.
func (c *cores) await() error {
	for !c.news {
		if err := mpi.TaggedOf(c.r).Step(); err != nil {
			return err
		}
		if q := mpi.TaggedOf(c.r).Completed(); q != nil {
			return c.p.over(c.r, q)
		}
	}
	return nil
}

// wait waits until a computation ends.
func (c *cores) wait() {
	for c.parked = true; !c.news; {
		c.r.Proc().Thread().Spin("a computation")
	}
	c.parked = false
}

// tell makes the library look at what the end of a computation has released.
func (c *cores) tell() error {
	c.news = true
	if c.parked {
		c.r.Proc().Thread().Wake()
		return nil
	}
	return c.r.Proc().NI().Objects().CTSet(c.signal, portals.CTEvent{Success: 1})
}

// heard forgets what tell has said.
func (c *cores) heard() error {
	if !c.news {
		return nil
	}
	c.news = false
	return c.r.Proc().NI().Objects().CTSet(c.signal, portals.CTEvent{})
}

// compute starts what is next on idle cores, but for the one where the library
// is: on one core at least it looks for messages before it computes.
func (c *cores) compute() {
	for again := c.at != none; again; {
		again = false
		for k := range c.list {
			if at := &c.list[k]; k != c.at && at.computes() {
				c.start(at)
				again = true // it may have released others
			}
		}
	}
}

// start starts the next computation of a core.
func (c *cores) start(at *core) {
	at.calc = at.ready[readyCalc].pop()
	at.length = c.p.begin(c.r, at.calc)
	if c.busy++; c.busy == 1 {
		c.since = c.r.Now()
	}
	at.thread.Wake()
}

// work is the thread of a core: its computations.
func (c *cores) work(at *core) error {
	for !c.over {
		if at.idle() {
			at.thread.Spin("a computation")
			continue
		}
		at.thread.Run(at.length, "compute")
		i := at.calc
		at.calc = none
		if c.busy--; c.busy == 0 {
			c.p.busy += c.r.Now() - c.since
		}
		c.p.ends(c.r, i)
		c.compute()
		if err := c.tell(); err != nil {
			return err
		}
	}
	return nil
}

// indices returns the cpu indices of a rank, ascending.
func indices(ops goal.Rank) (list []uint8) {
	var seen [1 << 8]bool
	for i := range ops.Len() {
		seen[ops.Op(i).CPU] = true
	}
	for index, is := range seen {
		if is {
			list = append(list, uint8(index))
		}
	}
	return list
}

// Several reports whether a rank uses several cpu indices.
func Several(s *goal.Schedule) bool { return threads(s) > 0 }

// threads returns how many cpu indices all ranks use that use several.
func threads(s *goal.Schedule) (n int64) {
	if s.MaxCPU() == 0 {
		return 0
	}
	for _, ops := range s.All() {
		if list := indices(ops); len(list) > 1 {
			n += int64(len(list))
		}
	}
	return n
}

// layout gives each rank that uses several cpu indices as many cores of its node:
// the one of its process, and further ones that no other rank has. The error is
// an InputError if a node has too few.
func layout(s *goal.Schedule, cfg *Config) (numbers [][]int, err error) {
	numbers = make([][]int, s.Ranks())
	if s.MaxCPU() == 0 && !cfg.threads {
		return numbers, nil
	}
	o, most := cfg.MPI, cfg.Profile.Host.Cores
	for first := 0; first < s.Ranks(); {
		node, _ := o.Program(first)
		end := first + 1
		for end < s.Ranks() {
			if at, _ := o.Program(end); at != node {
				break
			}
			end++
		}
		next, several := end-first, false
		for r := first; r < end; r++ {
			if list := indices(s.Rank(r)); len(list) > 1 || cfg.threads && list != nil {
				several = true
				numbers[r] = []int{r - first}
				for range list[1:] {
					numbers[r] = append(numbers[r], next)
					next++
				}
			}
		}
		if several && next > most {
			return nil, InputError{tooFew(cfg, first, end, next)}
		}
		first = end
	}
	return numbers, nil
}

// CheckCores returns an InputError if ranks use more cpu indices than their node
// has cores.
func CheckCores(s *goal.Schedule, cfg *Config) error {
	_, err := layout(s, cfg)
	return err
}

// tooFew is the error for the ranks of a node.
func tooFew(cfg *Config, first, end, uses int) error {
	who := fmt.Sprintf("rank %d uses", first)
	if end > first+1 {
		who = fmt.Sprintf("ranks %d to %d, of one node, use", first, end-1)
	}
	return fmt.Errorf("nodes: %s %d cpu indices, expected at most %d, the cores of a node (host.cores of profile %s)", who, uses, cfg.Profile.Host.Cores, cfg.Profile.Name)
}
