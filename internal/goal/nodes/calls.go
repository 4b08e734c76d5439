package nodes

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A call is a collective of the library, by processes, in NICs or in switches, for
// which the schedule has one computation at each member. The members of several
// calls begin them in the order of the schedule's collectives, as MPI asks for.
// Processes do the kinds that a mode does not have (Does).

// elementBytes is the size of an element of a call, an int32: all modules add them.
const elementBytes = 4

// CallKinds lists the kinds of collectives that the library does.
func CallKinds() []goal.CollectiveKind {
	return []goal.CollectiveKind{goal.AllReduce, goal.AllGather, goal.ReduceScatter, goal.Broadcast, goal.Reduce, goal.Barrier}
}

// Does reports whether a mode does a kind, rather than processes.
func Does(m mpi.Mode, kind goal.CollectiveKind) bool {
	return kind == goal.AllReduce || m.Rooted() && slices.Contains(CallKinds(), kind)
}

// adds reports whether a kind adds vectors.
func adds(kind goal.CollectiveKind) bool {
	return kind == goal.AllReduce || kind == goal.Reduce || kind == goal.ReduceScatter
}

// Callable returns why the library cannot do a collective of a number of members; nil:
// it can.
func Callable(c goal.Collective, members int) error {
	n := uint64(max(members, 1)) //nolint:gosec // a number of ranks
	switch {
	case !slices.Contains(CallKinds(), c.Kind):
		return fmt.Errorf("expected one of %v, not %s", CallKinds(), c.Kind)
	case c.Kind == goal.Barrier:
		return nil
	case c.Kind == goal.AllGather && c.Bytes > longestMessage/n:
		return fmt.Errorf("%d bytes of each of %d members, expected at most %d of all", c.Bytes, members, longestMessage)
	case !adds(c.Kind) && c.Bytes > longestMessage:
		return fmt.Errorf("%d bytes, expected at most %d", c.Bytes, longestMessage)
	case c.Kind == goal.ReduceScatter && c.Bytes%(n*elementBytes) != 0:
		return fmt.Errorf("%d bytes, expected whole int32 for each of %d members", c.Bytes, members)
	case adds(c.Kind) && (c.Bytes == 0 || c.Bytes%elementBytes != 0 || c.Bytes > longestMessage):
		return fmt.Errorf("%d bytes, expected whole int32, 4 to %d bytes", c.Bytes, longestMessage)
	}
	return nil
}

// CheckCalls returns an InputError if the library cannot do what Config.Calls names.
func CheckCalls(s *goal.Schedule, cfg *Config) error {
	switch {
	case len(cfg.Calls) == 0:
		return nil
	case cfg.Empty:
		return InputError{fmt.Errorf("nodes: without payload nothing can be added: allreduce by %s needs it", cfg.MPI.Allreduce)}
	}
	contents := s.Contents()
	for i, c := range s.Collectives() {
		if !cfg.Calls[c.Name] {
			continue
		}
		if err := Callable(c, contents[i].Ranks); err != nil {
			return InputError{fmt.Errorf("nodes: %s by %s: %w", c.Name, cfg.MPI.Allreduce, err)}
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
			what := s.Collectives()[c]
			k := call{op: i, coll: c, group: g.of[c], kind: what.Kind, bytes: int(what.Bytes)} //nolint:gosec // checked
			if k.root = slices.Index(g.members[k.group], what.Root); k.kind == goal.Barrier {
				k.bytes = 0
			}
			p.calls = append(p.calls, k)
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

	kind   goal.CollectiveKind
	root   int // in the group
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
	of, factor := mpi.GroupOf(g.r, c.group), uint32(g.rank+1)
	var err error
	if g.places[c.op], err = g.pool.get(c.bytes); err == nil {
		c.result, err = g.pool.get(c.gets(of))
	}
	if err != nil {
		return err
	}
	if c.kind == goal.Broadcast && of.Rank() != c.root {
		factor = 0
	}
	data, result := g.places[c.op].Slice(0, c.bytes), c.result.Slice(0, c.gets(of))
	data.Fill(func(at int, b []byte) {
		i := 0
		for ; i+elementBytes <= len(b); i += elementBytes {
			binary.LittleEndian.PutUint32(b[i:], factor*element(at+i))
		}
		for x := factor * element(at+i); i < len(b); i++ { // of a broadcast
			b[i], x = byte(x), x>>8
		}
	})
	q, err := of.Start(c.operation(data, result))
	if err != nil {
		return err
	}
	q.User = c.op
	g.starts(g, c.op)
	return nil
}

// gets is how many bytes of a result the call may have.
func (c *call) gets(of *mpi.Comm) int {
	switch c.kind {
	case goal.AllGather:
		return c.bytes * of.Size()
	case goal.ReduceScatter:
		return c.bytes / of.Size()
	}
	return c.bytes
}

// operation is what the library is to do.
func (c *call) operation(data, result runtime.View) mpi.Operation {
	switch c.kind {
	case goal.AllGather:
		return mpi.Allgather{Send: mpi.Data{Memory: data}, Recv: mpi.Data{Memory: result}}
	case goal.ReduceScatter:
		return mpi.ReduceScatter{Send: data, Recv: result, Type: mpi.Int32, Op: mpi.Sum}
	case goal.Broadcast:
		return mpi.Bcast{Data: mpi.Data{Memory: data}, Root: c.root}
	case goal.Reduce:
		return mpi.Reduce{Send: mpi.Data{Memory: data}, Recv: mpi.Data{Memory: result}, Type: mpi.Int32, Op: mpi.Sum, Root: c.root}
	case goal.Barrier:
		return mpi.Barrier{}
	}
	return mpi.Allreduce{Send: data, Recv: result, Type: mpi.Int32, Op: mpi.Sum}
}

// element is the contribution of rank 0 at an offset.
func element(at int) uint32 { return uint32(at/elementBytes) + 1 }

// answered ends a call, after a look at the result.
func (g *program) answered(c *call) error {
	of, factor := mpi.GroupOf(g.r, c.group), uint32(0) // of the ranks, each plus 1
	if adds(c.kind) {
		for i := range of.Size() {
			factor += uint32(of.Translate(i) + 1)
		}
	}
	result, n, first := c.result.Slice(0, c.gets(of)), c.bytes, 0
	switch c.kind {
	case goal.Broadcast:
		result, factor = g.places[c.op].Slice(0, c.bytes), uint32(of.Translate(c.root)+1)
	case goal.ReduceScatter:
		n = result.Len()
		first = of.Rank() * n
	case goal.Reduce:
		if of.Rank() != c.root {
			result = result.Slice(0, 0)
		}
	}
	b := result.Read()
	for at := 0; at < len(b); at += n {
		if c.kind == goal.AllGather {
			factor = uint32(of.Translate(at/n) + 1)
		}
		if err := c.check(b[at:at+n], first, factor); err != nil {
			return err
		}
	}
	c.result.Discard()
	g.pool.put(c.result)
	return nil
}

// check compares elements, the first of which is at a place of a vector, with what
// they are expected to be.
func (c *call) check(b []byte, first int, factor uint32) error {
	for at := 0; at < len(b); at += elementBytes {
		var whole [elementBytes]byte
		n := copy(whole[:], b[at:])
		got, want := binary.LittleEndian.Uint32(whole[:]), factor*element(first+at)&(1<<(8*n)-1)
		if got != want {
			return fmt.Errorf("%s of %d bytes: element %d is %d, expected %d", c.kind, c.bytes, at/elementBytes, int32(got), int32(want))
		}
	}
	return nil
}

// checkBarriers returns an error if a rank has left a barrier of the library before
// another one has entered it.
func checkBarriers(s *goal.Schedule, cfg *Config, players []*player) error {
	for i, c := range s.Collectives() {
		if c.Kind != goal.Barrier || !cfg.Calls[c.Name] {
			continue
		}
		entered, left := sim.Time(0), sim.MaxTime
		for _, p := range players {
			if w, is := p.windows[i]; is {
				entered, left = max(entered, w.Start), min(left, w.End)
			}
		}
		if entered > left {
			return fmt.Errorf("nodes: barrier %s: a rank left it at %v, before another entered it at %v", c.Name, left, entered)
		}
	}
	return nil
}

// fellBack returns an error if processes did a call that NICs were to do.
func fellBack(w *mpi.World, o mpi.Options) error {
	for _, f := range w.Fallbacks() {
		return fmt.Errorf("nodes: processes did %d calls that %s was to do: %s", f.Calls, o.Allreduce, f.Why)
	}
	return nil
}
