package nodes

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// cores are the processors of a rank that uses several cpu or nic indices. Each
// cpu index is a core of the host, and stands for a thread of the program. Each
// NIC has a library behind a lock, as with MPI_THREAD_MULTIPLE. So the process
// of a NIC, which is its library, goes from core to core: a thread's send or
// receive takes its own core, and what arrives takes a core that does not
// compute.
type cores struct {
	*player
	list   []core // ascending by their cpu index
	of     [1 << 8]uint8
	libs   []library // one for each NIC
	stamps []uint32  // when each operation was released
	stamp  uint32
	ended  int      // libraries
	busy   int      // cores that compute
	since  sim.Time // they have done so, one of them at least
}

// library is the one of a NIC.
type library struct {
	*cores
	g      *program
	at     int  // the core where it is; none: all cores compute
	parked bool // it waits, but not for messages
	looks  bool // it has not yet found that it has nothing to do
	over   bool
	signal portals.Handle // counter that ends a wait for messages
	news   bool           // something has changed since it looked
	failed error          // of tell
}

// core is one of them.
type core struct {
	number int        // of the host
	ready  [][2]queue // for each NIC, receives and sends
	calcs  queue
	calc   int // the computation under way, or none
	length sim.Time
	thread host.Thread
}

const (
	none = -1
	all  = -2 // NICs
)

func (c *core) idle() bool { return c.calc == none }

// computes reports whether a computation is next on an idle core.
func (c *core) computes() bool {
	for nic := range c.ready {
		if r := &c.ready[nic]; !r[readyRecv].empty() || !r[readySend].empty() {
			return false
		}
	}
	return c.idle() && !c.calcs.empty()
}

// newCores gives a rank a core for each of its cpu indices, by its number on the
// host. No numbers: its process has what it needs.
func newCores(p *player, numbers []int) {
	if numbers == nil && len(p.programs) == 1 {
		return
	}
	c := &cores{player: p, list: make([]core, len(numbers)), libs: make([]library, len(p.programs)), stamps: make([]uint32, p.ops.Len())}
	p.cores = c
	for k, index := range indices(p.ops) {
		c.list[k] = core{number: numbers[k], calc: none, ready: make([][2]queue, len(p.programs))}
		c.of[index] = uint8(k)
	}
	for nic := range c.libs {
		g := &p.programs[nic]
		g.lib = &c.libs[nic]
		*g.lib = library{cores: c, g: g, at: none, looks: true}
	}
}

// core returns the place of an operation's core.
func (c *cores) core(i int) int { return int(c.of[c.ops.Op(i).CPU]) }

// push puts an operation into its queue.
func (c *cores) push(by *program, i uint32) {
	c.stamps[i] = c.stamp
	c.stamp++
	k, kind := c.core(int(i)), queueOf[c.ops.Op(int(i)).Kind]
	if kind == readyCalc {
		c.list[k].calcs.push(i)
		for nic := range c.libs {
			if c.libs[nic].at == k {
				c.hint(by, nic)
			}
		}
		return
	}
	nic := c.nics.of(c.rank, int(i))
	c.list[k].ready[nic][kind].push(i)
	c.hint(by, nic)
}

// hint makes the library of a NIC look again, or all of them, but for the one that
// noticed. What a computation has changed, all are told at its end.
func (c *cores) hint(by *program, nic int) {
	if by == nil {
		return
	}
	for k := range c.libs {
		if l := &c.libs[k]; (nic == all || nic == k) && l != by.lib && !l.news && l.g.r != nil {
			l.tell()
		}
	}
}

// begin starts the library, and the first one the threads.
func (l *library) begin() (err error) {
	r := l.g.r
	objects := r.Proc().NI().Objects()
	if l.signal, err = objects.CTAlloc(); err != nil {
		return err
	}
	objects.Label(l.signal, "computations")
	mpi.TaggedOf(r).Also(r.Proc().NI(), l.signal)
	if l.g.nic > 0 {
		return nil
	}
	r.Proc().Reads(used.Cores)
	for k := range l.list {
		at := &l.list[k]
		name := fmt.Sprintf("rank %d thread %d", l.rank, k)
		r.Proc().Node().CPU().Spawn(&at.thread, at.number, name, nil, func(*host.Thread) error { return l.work(at) }).Background()
	}
	return nil
}

// end ends the library and, if the others have ended, the threads.
func (l *library) end() error {
	l.over, l.at = true, none
	if l.ended++; l.ended == len(l.libs) {
		for k := range l.list {
			l.list[k].thread.Wake()
		}
	}
	mpi.TaggedOf(l.g.r).Also(nil, portals.CTNone)
	return l.g.r.Proc().NI().Objects().CTFree(l.signal)
}

// next takes one step of the library.
func (l *library) next() error {
	g := l.g
	if err := l.heard(); err != nil {
		return err
	}
	if !l.settle() {
		l.wait()
		return nil
	}
	for kind, begin := range []func(int) error{readyRecv: g.receive, readySend: g.send} {
		if k := l.first(kind); k != none {
			l.enter(k)
			return begin(l.list[k].ready[g.nic][kind].pop())
		}
	}
	if call := l.dueCall(); call != nil {
		l.enter(l.core(call.op))
		return g.call(call)
	}
	switch q, err := g.r.Test(); {
	case err != nil:
		return err
	case q != nil:
		return g.over(q)
	}
	l.looks = l.news // while it handled what had arrived
	switch {
	case l.list[l.at].computes() && !l.watched():
		l.start(l.at, g)
	case l.news:
	case g.r.Active() > 0:
		return l.await()
	case l.others():
		l.wait()
	default:
		return l.waiting()
	}
	return nil
}

// watched reports whether another library on its core has more to do.
func (l *library) watched() bool {
	for nic := range l.libs {
		if o := &l.libs[nic]; o != l && o.at == l.at && o.looks {
			return true
		}
	}
	return false
}

// others reports whether anything but this library can go on. A library that does
// not wait may have the last message in hand: it has no request then, but what it
// does takes time.
func (l *library) others() bool {
	for nic := range l.libs {
		if o := &l.libs[nic]; o != l && !o.over && (!o.parked || o.news) {
			return true
		}
	}
	return l.busy > 0
}

// dueCall returns the next call whose core is idle; nil: there is none. All calls
// take the first NIC.
func (l *library) dueCall() *call {
	if l.g.nic > 0 {
		return nil
	}
	for _, group := range l.groups {
		if list := l.due[group]; len(list) > 0 {
			if call := &l.calls[list[0]]; call.ready && l.list[l.core(call.op)].idle() {
				return call
			}
		}
	}
	return nil
}

// first returns the idle core with the oldest operation of a kind; none: there
// is no such operation.
func (l *library) first(kind int) int {
	best, oldest := none, uint32(0)
	for k := range l.list {
		if q := &l.list[k].ready[l.g.nic][kind]; l.list[k].idle() && !q.empty() {
			if stamp := l.stamps[q.items[q.head]]; best == none || stamp < oldest {
				best, oldest = k, stamp
			}
		}
	}
	return best
}

// enter moves the library to a core, and starts what others have to compute.
func (l *library) enter(k int) {
	if l.at != k {
		l.at = k
		l.g.r.Proc().Thread().MoveTo(l.list[k].number)
	}
	l.compute(l.g)
}

// settle moves the library to an idle core, if possible to one that has nothing
// to compute; false: there is none.
func (l *library) settle() bool {
	best := l.at
	if best != none && !l.list[best].idle() {
		best = none
	}
	for k := range l.list {
		if at := &l.list[k]; at.idle() && (best == none || !at.computes() && l.list[best].computes()) {
			best = k
		}
	}
	if best == none {
		l.at, l.looks = none, false
		return false
	}
	l.enter(best)
	return true
}

// await waits until a message is over or something changes.
func (l *library) await() error {
	for !l.news {
		if err := mpi.TaggedOf(l.g.r).Step(); err != nil {
			return err
		}
		if q := mpi.TaggedOf(l.g.r).Completed(); q != nil {
			return l.g.over(q)
		}
	}
	return nil
}

// wait waits until something changes.
func (l *library) wait() {
	for l.parked = true; !l.news; {
		l.g.r.Proc().Thread().Spin("a computation")
	}
	l.parked = false
}

// tell makes the library look at what has changed.
func (l *library) tell() {
	if l.over {
		return
	}
	l.news, l.looks = true, true
	if l.parked {
		l.g.r.Proc().Thread().Wake()
		return
	}
	l.failed = cmp.Or(l.failed, l.g.r.Proc().NI().Objects().CTSet(l.signal, portals.CTEvent{Success: 1}))
}

// heard forgets what tell has said.
func (l *library) heard() error {
	l.looks = true
	if !l.news || l.failed != nil {
		return l.failed
	}
	l.news = false
	return l.g.r.Proc().NI().Objects().CTSet(l.signal, portals.CTEvent{})
}

// compute starts what is next on idle cores, but for those where a library looks
// for messages first. What a computation's end has released, libraries look at.
func (c *cores) compute(by *program) {
	for again := c.settled(); again; {
		again = false
		for k := range c.list {
			if c.list[k].computes() && !c.visited(by, k) {
				c.start(k, by)
				again = true // it may have released others
			}
		}
	}
}

// settled reports whether each library has a core.
func (c *cores) settled() bool {
	return !slices.ContainsFunc(c.libs, func(l library) bool { return l.at == none && !l.over })
}

// visited reports whether a library is on a core and, if another asks, looks there.
func (c *cores) visited(by *program, k int) bool {
	return slices.ContainsFunc(c.libs, func(l library) bool { return l.at == k && (l.looks || by == nil) })
}

// start starts the next computation of a core. Libraries that wait for messages
// there must go elsewhere.
func (c *cores) start(k int, by *program) {
	for nic := range c.libs {
		if l := &c.libs[nic]; l.at == k {
			l.at = none
			c.hint(by, nic)
		}
	}
	at := &c.list[k]
	at.calc = at.calcs.pop()
	at.length = c.begin(by, at.calc)
	if c.busy++; c.busy == 1 {
		c.since = c.now()
	}
	at.thread.Wake()
}

// work is the thread of a core: its computations.
func (c *cores) work(at *core) error {
	for c.ended < len(c.libs) {
		if at.idle() {
			at.thread.Spin("a computation")
			continue
		}
		at.thread.Run(at.length, "compute")
		i := at.calc
		at.calc = none
		if c.busy--; c.busy == 0 {
			c.player.busy += c.now() - c.since
		}
		c.ends(nil, i)
		c.compute(nil)
		for nic := range c.libs {
			c.libs[nic].tell()
		}
	}
	return nil
}

// indices returns the cpu indices of a rank, ascending.
func indices(ops goal.Rank) []uint8 {
	var seen [1 << 8]bool
	for i := range ops.Len() {
		seen[ops.Op(i).CPU] = true
	}
	return trues(&seen)
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
	shared := !cfg.threads && SeveralNICs(s) // one core may have several libraries
	if s.MaxCPU() == 0 && !cfg.threads && !shared {
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
			list := indices(s.Rank(r))
			if shared && len(list) == 1 {
				numbers[r] = []int{(r - first) % most}
			} else if len(list) > 1 || cfg.threads && list != nil {
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
