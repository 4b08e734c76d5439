package mpitrace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// comm is a communicator.
type comm struct {
	id      int
	members []int // ranks of the world
	context int   // apart from others of its members; -1: none yet
	grid    []int // how many members are in each dimension
}

// creation is a call of all members of a communicator that makes others.
type creation struct {
	parent   *comm
	by       *part // the first call
	split    bool
	votes    map[int]*part // of members, by their rank in the world
	children []birth       // nil: not all members have called
}

// birth is a new communicator.
type birth struct {
	color int
	comm  *comm
}

// nth is the nth creation of a communicator.
type nth struct {
	parent *comm
	n      int
}

// comms finds the communicators of all ranks' handles.
type comms struct {
	all       []*comm
	creations map[nth]*creation
	ranks     []naming
	assumed   map[uint64]bool // handles of nothing, taken for the world's
}

// naming is what a rank calls communicators.
type naming struct {
	known   map[uint64]named
	groups  map[uint64][]int
	made    []*creation // in order, that have no handle yet
	counted map[*comm]int
	next    int // call
	world   bool
}

type named struct {
	handle
	comm *comm     // nil: it is of
	made *creation // whose members may not all have called
}

func newComms(ranks int) *comms {
	w := &comms{creations: make(map[nth]*creation), ranks: make([]naming, ranks), assumed: make(map[uint64]bool)}
	members := make([]int, ranks)
	for r := range members {
		members[r] = r
		w.ranks[r].known, w.ranks[r].counted = make(map[uint64]named), make(map[*comm]int)
	}
	w.add(members).context = 0
	return w
}

func (w *comms) add(members []int) *comm {
	c := &comm{id: len(w.all), members: members, context: -1}
	w.all = append(w.all, c)
	return c
}

// errLater means that other ranks' calls must be read first.
var errLater = errors.New("not all members of a communicator have created it")

// find finds the communicators of all calls. The error has the place of a call.
func (w *comms) find(traces []trace) error {
	for again := true; again; {
		again = false
		for r := range traces {
			n := &w.ranks[r]
			for ; n.next < len(traces[r].calls); n.next++ {
				c := &traces[r].calls[n.next]
				if c.handle.size == 0 {
					continue
				}
				err := w.bind(r, c)
				if errors.Is(err, errLater) {
					break
				}
				if err != nil {
					return traces[r].at(c, err)
				}
				again = true
			}
		}
	}
	for r := range traces {
		if n := w.ranks[r].next; n < len(traces[r].calls) {
			return traces[r].at(&traces[r].calls[n], errLater)
		}
	}
	return nil
}

// bind finds the communicator of a call, and notes what the call creates.
func (w *comms) bind(r int, c *call) (err error) {
	if c.handle.size == explicit {
		return w.bindTold(r, c)
	}
	if c.comm, err = w.lookup(r, c.handle); err != nil || c.verb != create {
		return err
	}
	made, err := w.vote(r, c)
	if n := &w.ranks[r]; err == nil && (!made.split || c.part.color != undefined) {
		n.made = append(n.made, made)
	}
	return err
}

// vote notes a call of a member that makes communicators.
func (w *comms) vote(r int, c *call) (*creation, error) {
	n := &w.ranks[r]
	key := nth{c.comm, n.counted[c.comm]}
	n.counted[c.comm]++
	made := w.creations[key]
	if made == nil {
		made = &creation{parent: c.comm, by: c.part, split: c.part.split, votes: make(map[int]*part)}
		w.creations[key] = made
	}
	if !c.part.alike(made.by) {
		return made, fmt.Errorf("%s, where another member of the communicator makes others in another way", c.part.name)
	}
	made.votes[r] = c.part
	return made, w.deliver(made)
}

// deliver makes the new communicators once all members have called.
func (w *comms) deliver(made *creation) error {
	switch {
	case made.children != nil:
		return nil
	case !made.split:
		made.children = []birth{{0, w.add(made.parent.members)}}
		return nil
	case len(made.votes) < len(made.parent.members):
		return nil
	}
	if t := made.by.told; t != nil && t.group {
		if err := made.colors(); err != nil {
			return err
		}
	}
	order := slices.Clone(made.parent.members) // by the rank in the parent
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := made.votes[a], made.votes[b]
		return cmp.Or(cmp.Compare(x.color, y.color), cmp.Compare(x.key, y.key))
	})
	made.children = []birth{}
	for i := 0; i < len(order); {
		color, from := made.votes[order[i]].color, i
		for i < len(order) && made.votes[order[i]].color == color {
			i++
		}
		if color != undefined {
			child := w.add(order[from:i])
			if t := made.votes[order[from]].told; t != nil {
				child.grid = t.grid
			}
			made.children = append(made.children, birth{color, child})
		}
	}
	return nil
}

// lookup returns the communicator that a rank means.
func (w *comms) lookup(r int, h handle) (*comm, error) {
	n := &w.ranks[r]
	if k, known := n.known[h.value]; known && k.handle == h {
		return k.comm, nil
	}
	found, err := w.first(r, h)
	if err != nil {
		return nil, err
	}
	n.known[h.value] = named{handle: h, comm: found}
	return found, nil
}

// first returns the communicator of a handle that a rank uses for the first time.
func (w *comms) first(r int, h handle) (*comm, error) {
	n, world := &w.ranks[r], w.all[0]
	whole := h.size == len(world.members) && h.rank == r
	if whole && !n.world {
		n.world = true
		return world, nil
	}
	for i, made := range n.made {
		if h.size > len(made.parent.members) {
			continue
		}
		if made.children == nil {
			return nil, errLater
		}
		for _, b := range made.children {
			if made.split && b.color != made.votes[r].color {
				continue
			}
			if len(b.comm.members) == h.size && b.comm.members[h.rank] == r {
				n.made = slices.Delete(n.made, i, i+1)
				return b.comm, nil
			}
		}
	}
	switch {
	case h.size == 1:
		return w.add([]int{r}), nil
	case whole:
		w.assumed[h.value] = true
		return world, nil
	}
	return nil, fmt.Errorf("the trace does not tell the members of communicator %d, in which rank %d is %d of %d: expected one of MPI_Comm_dup, MPI_Comm_split, or with the ranks of its parent", h.value, r, h.rank, h.size)
}

// contexts give communicators numbers for tags: those with a member in common have
// different ones.
type contexts struct{ next []int }

func (x *contexts) of(c *comm) int {
	if c.context < 0 {
		for _, r := range c.members {
			c.context = max(c.context, x.next[r])
		}
		for _, r := range c.members {
			x.next[r] = c.context + 1
		}
	}
	return c.context
}
