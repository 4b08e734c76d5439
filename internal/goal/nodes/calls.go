package nodes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// A call is an allreduce of the library, by processes, in NICs or in switches, for
// which the schedule has one computation at each member. The members of several
// calls begin them in the order of the schedule's collectives, as MPI asks for.

// elementBytes is the size of an element of a call, an int32: all modules add them.
const elementBytes = 4

// CheckCalls returns an InputError if the library cannot do what Config.Calls names.
func CheckCalls(s *goal.Schedule, cfg *Config) error {
	switch {
	case len(cfg.Calls) == 0:
		return nil
	case cfg.Empty:
		return InputError{fmt.Errorf("nodes: without payload nothing can be added: allreduce by %s needs it", cfg.MPI.Allreduce)}
	}
	for _, c := range s.Collectives() {
		switch {
		case !cfg.Calls[c.Name]:
		case c.Kind != goal.AllReduce:
			return InputError{fmt.Errorf("nodes: %s by %s: expected an allreduce, not %s", c.Name, cfg.MPI.Allreduce, c.Kind)}
		case c.Bytes == 0 || c.Bytes%elementBytes != 0 || c.Bytes > longestMessage:
			return InputError{fmt.Errorf("nodes: %s by %s: %d bytes, expected whole int32, 4 to %d bytes", c.Name, cfg.MPI.Allreduce, c.Bytes, longestMessage)}
		}
	}
	return nil
}

// groups are the members of the calls of a schedule.
type groups struct {
	members [][]int // of each group, by rank
	of      []int   // of each collective: the group, or noCall
}

const noCall = -1

// groupsOf finds the members of what the library does.
func groupsOf(s *goal.Schedule, cfg *Config) *groups {
	g := &groups{of: slices.Repeat([]int{noCall}, len(s.Collectives()))}
	if len(cfg.Calls) == 0 {
		return g
	}
	members := make([][]int, len(g.of))
	for rank, ops := range s.All() {
		for i := range ops.Len() {
			if c := ops.Collective(i); c >= 0 && cfg.Calls[s.Collectives()[c].Name] {
				members[c] = append(members[c], rank)
			}
		}
	}
	known := make(map[string]int)
	for c, of := range members {
		if len(of) == 0 {
			continue
		}
		key := fmt.Sprint(of)
		number, has := known[key]
		if !has {
			number = len(g.members)
			known[key], g.members = number, append(g.members, of)
		}
		g.of[c] = number
	}
	return g
}

// findCalls finds the calls of a rank.
func (p *player) findCalls(s *goal.Schedule, g *groups) {
	for i := range p.ops.Len() {
		if c := p.ops.Collective(i); c >= 0 && g.of[c] != noCall {
			p.calls = append(p.calls, call{op: i, coll: c, group: g.of[c], bytes: int(s.Collectives()[c].Bytes)}) //nolint:gosec // checked
		}
	}
	slices.SortFunc(p.calls, func(a, b call) int { return cmp.Compare(a.coll, b.coll) })
	for k, c := range p.calls {
		if p.callOf == nil {
			p.callOf, p.due = make(map[int]int), make(map[int][]int)
		}
		p.callOf[c.op] = k
		if p.due[c.group] == nil {
			p.groups = append(p.groups, c.group)
		}
		p.due[c.group] = append(p.due[c.group], k)
	}
}

// call is a call of a rank.
type call struct {
	op, coll, group, bytes int

	ready  bool
	result runtime.View
}

// called returns the call that an operation stands for; nil: it is none.
func (p *player) called(i int) *call {
	if k, known := p.callOf[i]; known {
		return &p.calls[k]
	}
	return nil
}

// dueCall returns a call that can begin: the next of its group; nil: there is none.
func (p *player) dueCall() *call {
	for _, g := range p.groups {
		if list := p.due[g]; len(list) > 0 && p.calls[list[0]].ready {
			return &p.calls[list[0]]
		}
	}
	return nil
}

// call begins a call.
func (g *program) call(c *call) error {
	g.due[c.group] = g.due[c.group][1:]
	g.begun++
	g.part(c.op, g.now())
	for _, v := range []*runtime.View{&g.places[c.op], &c.result} {
		memory, err := g.pool.get(c.bytes)
		if err != nil {
			return err
		}
		*v = memory
	}
	data := g.places[c.op].Slice(0, c.bytes)
	data.Fill(func(at int, b []byte) {
		for i := 0; i < len(b); i += elementBytes {
			binary.LittleEndian.PutUint32(b[i:], uint32(g.rank+1)*element(at+i))
		}
	})
	q, err := mpi.GroupOf(g.r, c.group).Start(mpi.Allreduce{Send: data, Recv: c.result.Slice(0, c.bytes), Type: mpi.Int32, Op: mpi.Sum})
	if err != nil {
		return err
	}
	q.User = c.op
	g.starts(g, c.op)
	return nil
}

// element is the contribution of rank 0 at an offset.
func element(at int) uint32 { return uint32(at/elementBytes) + 1 }

// answered ends a call, after a look at the result.
func (g *program) answered(c *call) error {
	of, sum := mpi.GroupOf(g.r, c.group), uint32(0) // of the ranks, each plus 1
	for i := range of.Size() {
		sum += uint32(of.Translate(i) + 1)
	}
	b := c.result.Slice(0, c.bytes).Read()
	for at := 0; at < len(b); at += elementBytes {
		if got, want := binary.LittleEndian.Uint32(b[at:]), sum*element(at); got != want {
			return fmt.Errorf("allreduce of %d bytes: element %d is %d, expected %d", c.bytes, at/elementBytes, int32(got), int32(want))
		}
	}
	c.result.Discard()
	g.pool.put(c.result)
	return nil
}

// fellBack returns an error if processes did a call that NICs were to do.
func fellBack(w *mpi.World, o mpi.Options) error {
	for _, f := range w.Fallbacks() {
		return fmt.Errorf("nodes: processes did %d calls of allreduce that %s was to do: %s", f.Calls, o.Allreduce, f.Why)
	}
	return nil
}
