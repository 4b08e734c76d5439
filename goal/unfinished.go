package goal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxListed bounds the operations that an UnfinishedError lists of each kind; it counts all.
const maxListed = 20

// UnfinishedError says why a schedule did not come to its end.
type UnfinishedError struct {
	// Cycle is a circle of operations: each waits for the next and the last for the first. It is empty if there is none.
	Cycle []OpRef
	// Receives have found no message, Sends no receive; both in order of the receiving ranks.
	Receives, Sends []OpRef
	// Truncated are sends above the eager limit whose receive was not: nothing tells their rank that they are done.
	Truncated []OpRef
	// NumReceives, NumSends and NumTruncated count them all; at most 20 of each are listed.
	NumReceives, NumSends, NumTruncated int
	// Blocked counts operations that never started.
	Blocked int
}

// Error names the operations, one a line.
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

// What keeps an operation from being done at the end of a run.
const (
	isDone   = iota
	isPosted // a receive without a message
	isSent   // a send without a receive, or with one that does not release it
	isBlocked
)

// postMortem finds out who waits for whom after a run.
type postMortem struct {
	m     *Simulator
	state []uint8
	// Who waits for releases of whom: the predecessors of operation i are pred[first[i]:first[i+1]].
	first, pred []uint32
	// Blocked sends by target and blocked receives by rank, which may have been meant for each other.
	sends, recvs []uint32
}

// unfinished explains the end of a run that left operations behind.
func (m *Simulator) unfinished() error {
	p := &postMortem{m: m}
	e := &UnfinishedError{}
	p.settle(e)
	p.predecessors()
	for i, state := range p.state {
		if state != isBlocked {
			continue
		}
		switch m.ops[i].kind {
		case Send:
			p.sends = append(p.sends, uint32(i))
		case Recv:
			p.recvs = append(p.recvs, uint32(i))
		}
	}
	slices.SortStableFunc(p.sends, func(a, b uint32) int { return cmp.Compare(m.ops[a].peer, m.ops[b].peer) })
	slices.SortStableFunc(p.recvs, func(a, b uint32) int { return cmp.Compare(m.ops[a].rank, m.ops[b].rank) })
	for _, id := range p.cycle() {
		e.Cycle = append(e.Cycle, m.ref(id))
	}
	return e
}

// ref describes an operation of the simulator.
func (m *Simulator) ref(id uint32) OpRef {
	r := m.ops[id].rank
	return m.s.Ref(int(r), int(m.origin[id]-m.s.ranks[r].first))
}

// settle finds the state of each operation and lists the leftovers of the queues.
func (p *postMortem) settle(e *UnfinishedError) {
	m := p.m
	p.state = make([]uint8, len(m.origin))
	for i := range p.state {
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
		for id := m.ranks[r].recvs.first; id != none; id = m.ops[id].link {
			if m.ops[id].stamp > 0 {
				note(id, isPosted, &e.Receives, &e.NumReceives)
			}
		}
		for id := m.ranks[r].msgs.first; id != none; id = m.ops[id].link {
			if m.ops[id].stamp > 0 {
				note(id, isSent, &e.Sends, &e.NumSends)
			}
		}
	}
	for _, id := range m.stuck {
		note(id, isSent, &e.Truncated, &e.NumTruncated)
	}
	// Run through the releases again, without those of what is held.
	left := make([]uint32, len(p.state))
	for i := range left {
		left[i] = m.ops[i].deps
	}
	ready := make([]uint32, 0, m.roots)
	for i := range m.roots {
		ready = append(ready, uint32(i))
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		p.state[i] = held[i]
		for _, x := range m.succ[m.ops[i].start:p.released(i)] {
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

// released returns the end of what an operation that has started released.
func (p *postMortem) released(i uint32) uint32 {
	op := &p.m.ops[i]
	if p.state[i] == isPosted || p.state[i] == isSent && op.size > p.m.p.Eager {
		return op.done
	}
	return p.m.succEnd(i)
}

// predecessors lists for each operation those whose release it misses.
func (p *postMortem) predecessors() {
	m := p.m
	p.first = make([]uint32, len(p.state)+1)
	missing := func(i int) []uint32 {
		switch p.state[i] {
		case isDone:
			return nil
		case isBlocked:
			return m.succ[m.ops[i].start:m.succEnd(uint32(i))]
		}
		return m.succ[p.released(uint32(i)):m.succEnd(uint32(i))]
	}
	for i := range p.state {
		for _, x := range missing(i) {
			p.first[x]++
		}
	}
	sum := uint32(0)
	for i, n := range p.first {
		sum += n
		p.first[i] = sum
	}
	p.pred = make([]uint32, sum)
	for i := range p.state {
		for _, x := range missing(i) {
			p.first[x]--
			p.pred[p.first[x]] = uint32(i)
		}
	}
}

// waitsFor calls f for the operations that an operation waits for, until f returns false.
func (p *postMortem) waitsFor(i uint32, f func(y uint32) bool) {
	ops := p.m.ops
	op := &ops[i]
	switch p.state[i] {
	case isBlocked:
		for _, y := range p.pred[p.first[i]:p.first[i+1]] {
			if !f(y) {
				return
			}
		}
	case isPosted:
		at, _ := slices.BinarySearchFunc(p.sends, op.rank, func(s, r uint32) int { return cmp.Compare(ops[s].peer, r) })
		for _, s := range p.sends[at:] {
			if ops[s].peer != op.rank {
				return
			}
			if (op.peer == Any || op.peer == ops[s].rank) && tagsMatch(op.tag, ops[s].tag) && !f(s) {
				return
			}
		}
	case isSent:
		at, _ := slices.BinarySearchFunc(p.recvs, op.peer, func(x, r uint32) int { return cmp.Compare(ops[x].rank, r) })
		for _, x := range p.recvs[at:] {
			if ops[x].rank != op.peer {
				return
			}
			if (ops[x].peer == Any || ops[x].peer == op.rank) && tagsMatch(op.tag, ops[x].tag) && !f(x) {
				return
			}
		}
	}
}

// cycle returns operations of which each waits for the next and the last for the first, or none.
func (p *postMortem) cycle() []uint32 {
	const (
		fresh = iota
		onPath
		over
	)
	mark := make([]uint8, len(p.state))
	next := make(map[uint32]int) // how many of its edges an operation on the path has gone
	for i, state := range p.state {
		if state == isDone || mark[i] != fresh {
			continue
		}
		path := []uint32{uint32(i)}
		mark[i] = onPath
		for len(path) > 0 {
			from := path[len(path)-1]
			skip, to := next[from], none
			p.waitsFor(from, func(y uint32) bool {
				if skip--; skip < 0 {
					to = y
				}
				return to == none
			})
			next[from]++
			switch {
			case to == none:
				mark[from] = over
				delete(next, from)
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
