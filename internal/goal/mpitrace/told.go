package mpitrace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/goal"
)

// told is what a trace of dumpi tells of communicators and groups.
type told struct {
	handle  uint64   // of what is new; nullHandle: the rank gets none
	groups  []uint64 // of which a group is made
	combine func(a, b []int) ([]int, error)
	group   bool  // the communicator is of a group
	members []int // the group's
	grid    []int // how many members a communicator has in each dimension
	keep    []int // 0 for each dimension of the parent's that goes
	first   int   // so many members of the parent; -1: all
	answer  int
}

// commCalls are the calls that tell of communicators and groups.
var commCalls = map[string]func(d *dumpi, c *call){
	"Comm_rank": func(d *dumpi, c *call) { d.tells(c, inquire, "comm", "").answer = d.int("rank") },
	"Comm_size": func(d *dumpi, c *call) { d.tells(c, inquire, "comm", "").answer = d.int("size") },
	"Comm_dup":  func(d *dumpi, c *call) { d.tells(c, create, "oldcomm", "newcomm") },
	"Comm_create": func(d *dumpi, c *call) {
		t := d.tells(c, create, "oldcomm", "newcomm")
		t.group, t.groups, c.part.split = true, []uint64{d.natural("group")}, true
	},
	"Comm_split": func(d *dumpi, c *call) {
		t := d.tells(c, create, "oldcomm", "newcomm")
		c.part.split, c.part.color, c.part.key = true, d.int("color"), d.int("key")
		if t.handle == nullHandle {
			c.part.color = undefined
		}
	},
	"Cart_create": func(d *dumpi, c *call) {
		t := d.tells(c, create, "oldcomm", "newcomm")
		t.first = 1
		for _, n := range d.naturals("dims") {
			size := uint64(t.first)
			d.fits(d.at, times(&size, n))
			t.first, t.grid = int(size), append(t.grid, int(n))
		}
		d.notes.reordered += min(1, int(d.natural("reorder")))
	},
	"Graph_create": func(d *dumpi, c *call) {
		d.tells(c, create, "oldcomm", "newcomm").first = int(d.natural("nodes"))
		d.notes.reordered += min(1, int(d.natural("reorder")))
	},
	"Cart_sub":   func(d *dumpi, c *call) { d.tells(c, create, "oldcomm", "newcomm").keep = d.list("remain_dims") },
	"Comm_group": func(d *dumpi, c *call) { d.tells(c, group, "comm", "group") },
	"Group_incl": ofGroup("ranks", include), "Group_excl": ofGroup("ranks", exclude),
	"Group_range_incl": ofGroup("ranges", include), "Group_range_excl": ofGroup("ranges", exclude),
	"Group_union": ofGroups(func(a, b []int) ([]int, error) {
		return slices.Concat(a, without(b, a)), nil
	}),
	"Group_intersection": ofGroups(func(a, b []int) ([]int, error) { return without(a, without(a, b)), nil }),
	"Group_difference":   ofGroups(func(a, b []int) ([]int, error) { return without(a, b), nil }),
}

// tells begins what a call tells.
func (d *dumpi) tells(c *call, v verb, comm, made string) *told {
	t := &told{handle: nullHandle, first: -1}
	c.verb, c.part.told, c.handle.size = v, t, explicit
	if comm != "" {
		d.comm(c, comm)
	}
	if made != "" {
		t.handle = d.natural(made)
	}
	return t
}

// ofGroup is a call that makes a group of members of another one.
func ofGroup(list string, of func(a, ranks []int) ([]int, error)) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		t := d.tells(c, group, "", "newgroup")
		t.groups = []uint64{d.natural("group")}
		ranks, ranges := []int(nil), [][3]int(nil)
		if list == "ranks" {
			ranks = d.list(list)
		} else {
			ranges = d.ranges(list)
		}
		t.combine = func(a, _ []int) ([]int, error) {
			all, err := spread(ranks, ranges, len(a))
			if err != nil {
				return nil, err
			}
			return of(a, all)
		}
	}
}

// ofGroups is a call that makes a group of two.
func ofGroups(of func(a, b []int) ([]int, error)) func(d *dumpi, c *call) {
	return func(d *dumpi, c *call) {
		t := d.tells(c, group, "", "newgroup")
		t.groups, t.combine = []uint64{d.natural("group1"), d.natural("group2")}, of
	}
}

// ranges reads arrays of a first rank, a last one, and a stride.
func (d *dumpi) ranges(name string) (list [][3]int) {
	a := d.find(name)
	inner, open := strings.CutPrefix(a.value, "[[")
	inner, closed := strings.CutSuffix(inner, "]]")
	switch {
	case a.value == ignored:
		return nil
	case !open || !closed:
		d.fail(a.line, "%s: %s=%.40q, expected arrays such as [[0, 3, 1]]", d.name, name, a.value)
		return nil
	}
	for text := range strings.SplitSeq(inner, "], [") {
		numbers := strings.Split(text, ", ")
		if len(numbers) != 3 {
			d.fail(a.line, "%s: %s=%.40q, expected arrays of three numbers", d.name, name, a.value)
			return nil
		}
		list = append(list, [3]int{d.number(a, numbers[0]), d.number(a, numbers[1]), d.number(a, numbers[2])})
	}
	return list
}

// spread lists ranks, and the ranks in ranges. All must be of a group, each once.
func spread(ranks []int, ranges [][3]int, size int) ([]int, error) {
	list, is := []int(nil), make([]bool, size)
	add := func(rank int) error {
		if rank < 0 || rank >= size || is[rank] {
			return fmt.Errorf("rank %d, expected different ranks of a group of %d", rank, size)
		}
		list, is[rank] = append(list, rank), true
		return nil
	}
	for _, rank := range ranks {
		if err := add(rank); err != nil {
			return nil, err
		}
	}
	for _, r := range ranges {
		first, last, stride := r[0], r[1], r[2]
		if stride == 0 {
			return nil, errors.New("a stride of 0")
		}
		for rank := first; stride > 0 && rank <= last || stride < 0 && rank >= last; rank += stride {
			if err := add(rank); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func include(a, ranks []int) (list []int, _ error) {
	for _, rank := range ranks {
		list = append(list, a[rank])
	}
	return list, nil
}

func exclude(a, ranks []int) ([]int, error) {
	gone, _ := include(a, ranks)
	return without(a, gone), nil
}

// without lists what is in a and not in b.
func without(a, b []int) (list []int) {
	in := make(map[int]bool, len(b))
	for _, r := range b {
		in[r] = true
	}
	for _, r := range a {
		if !in[r] {
			list = append(list, r)
		}
	}
	return list
}

// bindTold finds the communicator of a call with an explicit handle, and notes
// what the call makes.
func (w *comms) bindTold(r int, c *call) (err error) {
	n := &w.ranks[r]
	if c.verb == group && c.part.told.combine != nil {
		return n.combine(c.part.told)
	}
	if c.comm, err = w.named(r, c.handle.value); err != nil {
		if (c.verb == inquire || c.verb == group) && !errors.Is(err, errLater) {
			delete(n.groups, c.part.told.handle)
			return nil // such as of processes outside the world: what uses it fails
		}
		return err
	}
	switch c.verb {
	case inquire:
		return c.part.inquired(c.comm, r)
	case group:
		n.groups[c.part.told.handle] = c.comm.members
	case collect:
		return c.part.fits(c.comm, r)
	case create:
		if err := w.place(r, c); err != nil {
			return err
		}
		made, err := w.vote(r, c)
		if c.part.told.handle != nullHandle {
			n.known[c.part.told.handle] = named{made: made}
		}
		return err
	default:
	}
	return nil
}

// named returns the communicator that a rank has a name for.
func (w *comms) named(r int, value uint64) (*comm, error) {
	n := &w.ranks[r]
	k, known := n.known[value]
	switch {
	case known && k.comm != nil:
		return k.comm, nil
	case known && k.made.children == nil:
		return nil, errLater
	case known:
		for _, b := range k.made.children {
			if !k.made.split || b.color == k.made.votes[r].color {
				n.known[value] = named{comm: b.comm}
				return b.comm, nil
			}
		}
		return nil, fmt.Errorf("rank %d is no member of communicator %d, as the calls that make it say", r, value)
	case value == selfHandle:
		c := w.add([]int{r})
		n.known[value] = named{comm: c}
		return c, nil
	}
	return nil, fmt.Errorf("communicator %d is made by no call before: expected %d, MPI_COMM_WORLD, %d, MPI_COMM_SELF, "+
		"or one of MPI_Comm_dup, _create, _split, MPI_Cart_create, MPI_Cart_sub or MPI_Graph_create", value, worldHandle, selfHandle)
}

// alike tells if two members' calls make the same.
func (p *part) alike(o *part) bool {
	if p.told == nil {
		return p.split == o.split
	}
	t, u := p.told, o.told
	return p.name == o.name && t.first == u.first && slices.Equal(t.grid, u.grid) && slices.Equal(t.keep, u.keep)
}

// combine makes a group of others.
func (n *naming) combine(t *told) error {
	var both [2][]int
	for i, g := range t.groups {
		members, known := n.groups[g]
		if !known {
			return fmt.Errorf("group %d is made by no call before", g)
		}
		both[i] = members
	}
	made, err := t.combine(both[0], both[1])
	n.groups[t.handle] = made
	return err
}

// inquired compares an answer with what the calls before say.
func (p *part) inquired(c *comm, r int) error {
	expected := len(c.members)
	if p.name == "MPI_Comm_rank" {
		expected = slices.Index(c.members, r)
	}
	switch {
	case p.told.answer == expected:
		return nil
	case c.id == 0 && p.name == "MPI_Comm_rank":
		return fmt.Errorf("MPI_Comm_rank says %d, and the file belongs to rank %d", p.told.answer, r)
	case c.id == 0:
		return fmt.Errorf("MPI_Comm_size says %d, and the trace has %d files", p.told.answer, expected)
	default:
		return fmt.Errorf("%s says %d, expected %d, as the calls say that make the communicator", p.name, p.told.answer, expected)
	}
}

// fits compares a collective with its communicator.
func (p *part) fits(c *comm, r int) error {
	size := len(c.members)
	if p.kind.Rooted() && (p.root < 0 || p.root >= size) {
		return fmt.Errorf("%s: root %d of %d members", p.name, p.root, size)
	}
	for _, list := range [][]uint64{p.counts, p.back} {
		if list != nil && len(list) != size {
			return fmt.Errorf("%s: %d counts, expected one for each of %d members", p.name, len(list), size)
		}
	}
	switch {
	case p.each:
		p.bytes *= uint64(size)
	case p.kind == goal.AllGather && p.back != nil:
		p.bytes = p.back[slices.Index(c.members, r)]
	}
	return nil
}

// place finds the color and the key with which a rank gets a communicator.
func (w *comms) place(r int, c *call) error {
	p, t := c.part, c.part.told
	me := slices.Index(c.comm.members, r)
	switch {
	case t.group:
		members, known := w.ranks[r].groups[t.groups[0]]
		if !known {
			return fmt.Errorf("group %d is made by no call before", t.groups[0])
		}
		t.members = members
	case t.keep != nil:
		grid := c.comm.grid
		if len(grid) != len(t.keep) {
			return fmt.Errorf("%s of %d dimensions, and the communicator has %d", p.name, len(t.keep), len(grid))
		}
		p.split = true
		size := 1                             // of the dimensions that go: their place is the color
		for i := len(grid) - 1; i >= 0; i-- { // the last dimension is the fastest
			at := me % grid[i]
			if me /= grid[i]; t.keep[i] != 0 {
				t.grid = slices.Insert(t.grid, 0, grid[i])
				continue
			}
			p.color += at * size
			size *= grid[i]
		}
	case t.first >= 0:
		if t.first > len(c.comm.members) {
			return fmt.Errorf("%s of %d ranks, and the communicator has %d", p.name, t.first, len(c.comm.members))
		}
		if p.split = true; me >= t.first {
			p.color = undefined
		}
	}
	return nil
}

// colors gives the members of each group of MPI_Comm_create a color.
func (made *creation) colors() error {
	for i, r := range made.parent.members {
		if v := made.votes[r]; !slices.Contains(v.told.members, r) {
			v.color = undefined
		} else if v.told.members[0] == r {
			for key, m := range v.told.members {
				other := made.votes[m]
				if other == nil || !slices.Equal(other.told.members, v.told.members) {
					return fmt.Errorf("%s: rank %d has another group than rank %d", v.name, m, r)
				}
				other.color, other.key = i, key
			}
		}
	}
	return nil
}
