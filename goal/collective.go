package goal

import (
	"fmt"
	"slices"
	"strings"
)

// CollectiveKind is what a collective operation does, as a schedule names it.
type CollectiveKind string

// The kinds of collectives. Bytes of a collective are what a member contributes,
// or what the root has: of an allgather one block of the result, of an alltoall
// the blocks for all members.
const (
	AllReduce     CollectiveKind = "allreduce"
	AllGather     CollectiveKind = "allgather"
	ReduceScatter CollectiveKind = "reducescatter"
	AllToAll      CollectiveKind = "alltoall"
	Broadcast     CollectiveKind = "broadcast"
	Reduce        CollectiveKind = "reduce"
	Gather        CollectiveKind = "gather"
	Scatter       CollectiveKind = "scatter"
	Barrier       CollectiveKind = "barrier"
)

// CollectiveKinds lists the kinds.
func CollectiveKinds() []CollectiveKind {
	return []CollectiveKind{AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce, Gather, Scatter, Barrier}
}

// Rooted reports whether one member is the root.
func (k CollectiveKind) Rooted() bool {
	return k == Broadcast || k == Reduce || k == Gather || k == Scatter
}

// Collective is an operation of several ranks: its members, those with
// operations that belong to it. What it is changes no time of the schedule.
type Collective struct {
	// Name tells the collectives of a schedule apart: a letter, then letters,
	// digits and _, at most MaxName of them, but not "end".
	Name string
	// Kind is one of CollectiveKinds.
	Kind CollectiveKind
	// Bytes is how much a member contributes: see the kinds.
	Bytes uint64
	// Root is a rank; 0 for kinds that have none.
	Root int
}

// MaxName is the longest name of a collective, in bytes.
const MaxName = 255

// endName ends the operations of a collective in a text.
const endName = "end"

// String writes the collective as the text format does.
func (c Collective) String() string {
	text := fmt.Sprintf("%s %s %db", c.Name, c.Kind, c.Bytes)
	if c.Kind.Rooted() {
		text += fmt.Sprintf(" root %d", c.Root)
	}
	return text
}

// check returns an error if a field is none of those that its comment promises.
func (c *Collective) check() error {
	word := c.Name != "" && isLetter(c.Name[0])
	for i := range len(c.Name) {
		word = word && isWord[c.Name[i]]
	}
	switch {
	case !word || c.Name == endName || len(c.Name) > MaxName:
		return fmt.Errorf("collective %.40q: expected a name of a letter and up to %d letters, digits and _, but not %q", c.Name, MaxName-1, endName)
	case !slices.Contains(CollectiveKinds(), c.Kind):
		return fmt.Errorf("collective %s: kind %.40q, expected one of %s", c.Name, c.Kind, kindList())
	case c.Root != 0 && !c.Kind.Rooted():
		return fmt.Errorf("collective %s: root %d, and %s has no root", c.Name, c.Root, c.Kind)
	}
	return nil
}

func kindList() string {
	var names []string
	for _, k := range CollectiveKinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// naming are the collectives of a builder.
type naming struct {
	index map[string]uint32 // by name: the number, from 1
	from  []place           // where each one was named first
}

// place is a place in a text, from 1; 0: in none.
type place struct{ line, column int }

// declare notes a collective and returns its number, from 1. ok: it has not been
// another one before.
func (b *Builder) declare(c *Collective, from place) (n uint32, ok bool) {
	if n = b.naming.index[c.Name]; n != 0 {
		return n, b.s.colls[n-1] == *c
	}
	if b.naming.index == nil {
		b.naming.index = make(map[string]uint32)
	}
	b.s.colls = append(double(b.s.colls, 1), *c)
	b.naming.from = append(double(b.naming.from, 1), from)
	n = uint32(len(b.s.colls))
	b.naming.index[c.Name] = n
	return n, true
}

// Begin makes the operations that follow in the current rank parts of a
// collective, up to End, the next Begin or the next rank. All ranks must say the
// same of a collective.
func (b *Builder) Begin(c Collective) {
	if b.count != nil {
		return
	}
	if err := c.check(); err != nil {
		b.fail("%v", err)
		return
	}
	n, ok := b.declare(&c, place{})
	if !ok {
		b.fail("%s", changed(&c, &b.s.colls[n-1]))
		return
	}
	b.s.coll = n
}

// End ends what Begin began.
func (b *Builder) End() { b.s.coll = 0 }

// checkRoots finds roots that are no ranks.
func (s *Schedule) checkRoots() error {
	for i := range s.colls {
		if c := &s.colls[i]; c.Root < 0 || c.Root >= s.Ranks() {
			return fmt.Errorf("goal: collective %v: rank %d of %d ranks", c, c.Root, s.Ranks())
		}
	}
	return nil
}

// sortCollectives puts the collectives into the order of their first operations.
// One that has none is left out.
func (s *Schedule) sortCollectives() {
	if len(s.colls) == 0 {
		return
	}
	to := make([]uint32, len(s.colls))
	sorted := make([]Collective, 0, len(s.colls))
	for _, v := range s.All() {
		for i := range v.Len() {
			if c := v.Collective(i); c >= 0 && to[c] == 0 {
				sorted = append(sorted, s.colls[c])
				to[c] = uint32(len(sorted))
			}
		}
	}
	s.renumber(to)
	s.colls = sorted
}

// renumber changes the numbers of collectives of all operations.
func (s *store) renumber(to []uint32) {
	for i := range s.segments {
		for k, n := range s.segments[i].colls {
			if n != 0 {
				s.segments[i].colls[k] = to[n-1]
			}
		}
	}
}

// setCollective makes an operation part of a collective.
func (s *store) setCollective(id, n uint32) {
	c := &s.segments[id>>segmentBits]
	if c.colls == nil {
		c.colls = make([]uint32, len(c.ops))
	}
	c.colls[id%segmentOps] = n
}

// collective returns the number of an operation's collective, from 1; 0: none.
func (s *store) collective(id uint32) uint32 {
	if colls := s.segments[id>>segmentBits].colls; colls != nil {
		return colls[id%segmentOps]
	}
	return 0
}

// Collectives returns the named collectives of the schedule in the order of
// their first operations, rank by rank. The caller does not change them.
func (s *Schedule) Collectives() []Collective { return s.colls }

// Collective returns the place of an operation's collective in
// Schedule.Collectives; -1: it belongs to none.
func (r Rank) Collective(i int) int { return int(r.s.collective(r.id(i))) - 1 }
