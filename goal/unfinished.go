package goal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// maxListed is the most operations of each kind that an UnfinishedError lists;
// it counts them all.
const maxListed = 20

// UnfinishedError gives the reasons why a schedule did not finish.
type UnfinishedError struct {
	// Cycle is a cycle of operations: each waits for the next, and the last for
	// the first. It is empty if there is none.
	Cycle []OpRef
	// Receives have found no message, Sends no receive. Both are in order of
	// the receiving ranks.
	Receives, Sends []OpRef
	// Truncated are sends above the eager limit whose receive is not above it.
	// Their rank never learns that they are done.
	Truncated []OpRef
	// NumReceives, NumSends and NumTruncated are the total numbers; at most 20
	// of each are listed.
	NumReceives, NumSends, NumTruncated int
	// Blocked counts operations that never started.
	Blocked int
}

// Error names the operations, one per line.
func (e *UnfinishedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "goal: the schedule does not finish: %d operations never started, %d receives found no message, "+
		"%d messages found no receive", e.Blocked, e.NumReceives, e.NumSends)
	for i, r := range e.Cycle {
		if i == 0 {
			fmt.Fprintf(&b, "\n  cycle: %v", r)
		} else {
			fmt.Fprintf(&b, "\n    waits for %v", r)
		}
	}
	if len(e.Cycle) > 0 {
		b.WriteString("\n    waits for the first")
	}
	for _, list := range []struct {
		what  string
		refs  []OpRef
		total int
	}{
		{"no message for", e.Receives, e.NumReceives},
		{"no receive for", e.Sends, e.NumSends},
		{"received as if eager, so never done:", e.Truncated, e.NumTruncated},
	} {
		for _, r := range list.refs {
			fmt.Fprintf(&b, "\n  %s %v", list.what, r)
		}
		if more := list.total - len(list.refs); more > 0 {
			fmt.Fprintf(&b, "\n  and %d more", more)
		}
	}
	return b.String()
}

// Reasons why an operation is not done at the end of a run.
const (
	isDone   = iota
	isPosted // a receive without a message
	isSent   // a send without a receive, or with one that does not release it
	isBlocked
)

// postMortem finds out which operations wait for which after a run.
type postMortem struct {
	m     *Simulator
	order []uint32 // the operations, by their depth in the dependencies of their rank
	roots int      // operations of depth 0
	state []uint8
	// The operations whose release operation i misses are
	// pred[first[i]:first[i+1]].
	first, pred []uint32
	// Blocked sends and receives, sorted by meeting, to find possible partners.
	sends, recvs []uint32
}

// unfinished returns the reasons why a run left operations behind.
func (m *Simulator) unfinished() error {
	p := &postMortem{m: m}
	p.sort()
	e := &UnfinishedError{}
	p.settle(e)
	p.predecessors()
	for _, i := range p.order {
		if p.state[i] != isBlocked {
			continue
		}
		switch m.s.at(i).kind() {
		case Send:
			p.sends = append(p.sends, i)
		case Recv:
			p.recvs = append(p.recvs, i)
		}
	}
	order := func(a, b uint32) int { return cmp.Compare(p.meeting(a), p.meeting(b)) }
	slices.SortStableFunc(p.sends, order)
	slices.SortStableFunc(p.recvs, order)
	for _, id := range p.cycle() {
		e.Cycle = append(e.Cycle, m.ref(id))
	}
	return e
}

func (m *Simulator) ref(id uint32) OpRef {
	r := m.s.rank(id)
	return m.s.Ref(int(r), int(id-m.s.ranks[r].first))
}

// sort finds the order of the operations. Those that a cycle keeps from running
// are last.
func (p *postMortem) sort() {
	s := p.m.s
	depth := make([]uint32, s.ids())
	var left, ready []uint32
	deepest := uint32(0)
	var cyclic []uint32
	for _, at := range s.ranks {
		left, ready = left[:0], ready[:0]
		for i := range at.n {
			left = append(left, s.deps(at.first+i))
			if left[i] == 0 {
				ready = append(ready, i)
			}
		}
		for n := 0; n < len(ready); n++ {
			i := at.first + ready[n]
			deepest = max(deepest, depth[i])
			for e := s.edges(i); len(e.list) > 0; {
				x, _ := e.next()
				depth[x] = max(depth[x], depth[i]+1)
				if left[x-at.first]--; left[x-at.first] == 0 {
					ready = append(ready, x-at.first)
				}
			}
		}
		for i, n := range left {
			if n > 0 {
				cyclic = append(cyclic, at.first+uint32(i))
			}
		}
	}
	for _, i := range cyclic {
		depth[i] = deepest + 1
	}
	for _, at := range s.ranks {
		for i := range at.n {
			p.order = append(p.order, at.first+i)
		}
	}
	slices.SortStableFunc(p.order, func(a, b uint32) int { return cmp.Compare(depth[a], depth[b]) })
	for p.roots < len(p.order) && depth[p.order[p.roots]] == 0 {
		p.roots++
	}
}

// settle finds the state of each operation and lists the entries left in
// queues.
func (p *postMortem) settle(e *UnfinishedError) {
	m := p.m
	p.state = make([]uint8, m.s.ids())
	for _, i := range p.order {
		p.state[i] = isBlocked
	}
	held := make(map[uint32]uint8)
	note := func(id uint32, state uint8, refs *[]OpRef, total *int) {
		held[id] = state
		if *total++; len(*refs) < maxListed {
			*refs = append(*refs, m.ref(id))
		}
	}
	for r := range m.ranks {
		for i := m.ranks[r].recvs.first; i != none; i = m.entries.all[i].link {
			if entry := &m.entries.all[i]; entry.stamp > 0 {
				note(entry.op&idMask, isPosted, &e.Receives, &e.NumReceives)
			}
		}
		for i := m.ranks[r].msgs.first; i != none; i = m.entries.all[i].link {
			if entry := &m.entries.all[i]; entry.stamp > 0 {
				note(entry.op&idMask, isSent, &e.Sends, &e.NumSends)
			}
		}
	}
	for _, id := range m.stuck {
		note(id, isSent, &e.Truncated, &e.NumTruncated)
	}
	// Repeat the releases of the run, without the releases of held operations.
	left := make([]uint32, len(p.state))
	for _, i := range p.order {
		left[i] = m.s.deps(i)
	}
	ready := slices.Clone(p.order[:p.roots])
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		p.state[i] = held[i]
		for x := range p.releases(i, true) {
			if left[x]--; left[x] == 0 {
				ready = append(ready, x)
			}
		}
	}
	for _, state := range p.state {
		if state == isBlocked {
			e.Blocked++
		}
	}
}

// releases iterates over the operations that operation i has released, or has
// not: first those that it releases when it starts.
func (p *postMortem) releases(i uint32, has bool) iter.Seq[uint32] {
	started := p.state[i] != isBlocked
	over := started && p.state[i] != isPosted && (p.state[i] != isSent || p.m.s.size(i) <= p.m.p.Eager)
	return func(yield func(uint32) bool) {
		for _, start := range []bool{true, false} {
			if start && started != has || !start && over != has {
				continue
			}
			for e := p.m.s.edges(i); len(e.list) > 0; {
				if x, atStart := e.next(); atStart == start && !yield(x) {
					return
				}
			}
		}
	}
}

// predecessors lists, for each operation, the operations whose release it
// misses.
func (p *postMortem) predecessors() {
	p.first = make([]uint32, len(p.state)+1)
	for _, i := range p.order {
		for x := range p.releases(i, false) {
			p.first[x]++
		}
	}
	sum := uint32(0)
	for i, n := range p.first {
		sum += n
		p.first[i] = sum
	}
	p.pred = make([]uint32, sum)
	for _, i := range p.order {
		for x := range p.releases(i, false) {
			p.first[x]--
			p.pred[p.first[x]] = i
		}
	}
}

// meeting returns the receiving rank of a message in the high bits, and the
// sending rank in the low bits.
func (p *postMortem) meeting(i uint32) uint64 {
	op, rank := p.m.s.at(i), p.m.s.rank(i)
	if op.kind() == Recv {
		return meeting(rank, op.peer)
	}
	return meeting(op.peer, rank)
}

func meeting(at, from uint32) uint64 { return uint64(at)<<32 | uint64(from) }

// partner returns the first operation of a sorted list with a meeting from
// first to last and a tag that matches; none: there is none.
func (p *postMortem) partner(list []uint32, first, last, tag uint64) uint32 {
	at, _ := slices.BinarySearchFunc(list, first, func(i uint32, m uint64) int { return cmp.Compare(p.meeting(i), m) })
	for _, i := range list[at:] {
		if p.meeting(i) > last {
			return none
		}
		if tagsMatch(p.m.s.tag(i), tag) {
			return i
		}
	}
	return none
}

// edge returns the nth operation that an operation waits for; none: there are
// fewer. An entry of a match list waits for the first blocked operation that
// would match it.
func (p *postMortem) edge(i uint32, n int) uint32 {
	op, rank, tag := p.m.s.at(i), p.m.s.rank(i), p.m.s.tag(i)
	pred := p.pred[p.first[i]:p.first[i+1]]
	switch {
	case p.state[i] == isBlocked && n < len(pred):
		return pred[n]
	case p.state[i] == isBlocked || n > 0:
		return none
	case p.state[i] == isPosted && op.peer == Any:
		return p.partner(p.sends, meeting(rank, 0), meeting(rank, Any), tag)
	case p.state[i] == isPosted:
		return p.partner(p.sends, meeting(rank, op.peer), meeting(rank, op.peer), tag)
	}
	to := p.partner(p.recvs, meeting(op.peer, rank), meeting(op.peer, rank), tag)
	if to == none {
		to = p.partner(p.recvs, meeting(op.peer, Any), meeting(op.peer, Any), tag)
	}
	return to
}

// cycle returns operations that each wait for the next, the last for the first;
// empty: there is no cycle.
func (p *postMortem) cycle() []uint32 {
	const (
		fresh = iota
		onPath
		over
	)
	mark := make([]uint8, len(p.state))
	next := make([]int, len(p.state)) // number of edges already followed
	for _, i := range p.order {
		if p.state[i] == isDone || mark[i] != fresh {
			continue
		}
		path := []uint32{i}
		mark[i] = onPath
		for len(path) > 0 {
			from := path[len(path)-1]
			to := p.edge(from, next[from])
			next[from]++
			switch {
			case to == none:
				mark[from] = over
				path = path[:len(path)-1]
			case mark[to] == onPath:
				return path[slices.Index(path, to):]
			case mark[to] == fresh:
				mark[to] = onPath
				path = append(path, to)
			}
		}
	}
	return nil
}
