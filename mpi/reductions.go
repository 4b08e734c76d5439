package mpi

import (
	"math/bits"

	"github.com/spinsim/spinsim/runtime"
)

// fold reduces the number of ranks to a power of two. Among the first 2*rem
// ranks, those with parity out give their vector to their neighbour. fold
// returns the rank's number among the ranks that are left (-1: it is not), and
// how many are left.
func (s builder) fold(acc, tmp runtime.View, out int) (number, power int) {
	me, size := s.comm.rank, s.comm.Size()
	power = below(size)
	rem := size - power
	switch {
	case me >= 2*rem:
		return me - rem, power
	case me%2 == out:
		s.send(acc, me^1)
		s.fence()
		return -1, power
	}
	s.receive(tmp, me^1)
	s.fence()
	s.reduce(acc, tmp, me&1 == 1)
	return me / 2, power
}

// unfolded returns the rank that has a number after fold.
func (s builder) unfolded(number, power, out int) int {
	if rem := s.comm.Size() - power; number >= rem {
		return number + rem
	}
	return 2*number + 1 - out
}

// reduceTo chooses among the algorithms of Reduce. in is the rank's vector,
// which must not change unless it is recv. recv counts only at the root.
func (s builder) reduceTo(in, recv runtime.View, root int) {
	c := s.comm
	n := in.Len()
	if n == 0 {
		return
	}
	acc := recv
	if c.rank != root {
		acc = s.temp(n)
	}
	s.copy(acc, in)
	if c.Size() == 1 {
		return
	}
	if op := s.call.op; n > reduceShort && op.own == nil && n/s.call.t.size >= below(c.Size()) {
		s.halvingReduce(acc, root)
	} else {
		s.binomialReduce(acc, root)
	}
}

// binomialReduce combines a rank's vector with the vectors of its subtree, the
// nearest child first. Ranks are counted from the root. If the operation does
// not commute, rank 0 is the root of the tree and passes the result on.
func (s builder) binomialReduce(acc runtime.View, root int) {
	me, size := s.comm.rank, s.comm.Size()
	top := root
	if !s.call.op.commutes {
		top = 0
	}
	rel := (me - top + size) % size
	var tmp runtime.View
	for d := 1; d < size; d *= 2 {
		if rel&d != 0 {
			s.send(acc, (me-d+size)%size)
			s.fence()
			break
		}
		if rel+d < size {
			if tmp.Proc() == nil {
				tmp = s.temp(acc.Len())
			}
			s.receive(tmp, (me+d)%size)
			s.fence()
			s.reduce(acc, tmp, false)
		}
	}
	if top != root {
		switch me {
		case top:
			s.send(acc, root)
			s.fence()
		case root:
			s.receive(acc, top)
			s.fence()
		}
	}
}

// halves holds the pieces that a rank has after each step of halving.
type halves struct {
	p        parts
	from, to [32]int
	steps    int
}

// halvingScatter is a reduce-scatter; the number of ranks is a power of two. In
// step k, ranks that differ in bit k exchange halves of their pieces. At the
// end each rank has one piece.
func (s builder) halvingScatter(acc, tmp runtime.View, number, power, out int) *halves {
	t := s.call.t.size
	each := acc.Len() / t / power * t
	h := &halves{p: cut(acc, power, each)}
	h.p.bounds[power] = acc.Len()
	h.to[0] = power
	for d := 1; d < power; d *= 2 {
		k := h.steps
		mid := (h.from[k] + h.to[k]) / 2
		low, high := h.p.span(h.from[k], mid), h.p.span(mid, h.to[k])
		keep, give := low, high
		h.from[k+1], h.to[k+1] = h.from[k], mid
		if number&d != 0 {
			keep, give = high, low
			h.from[k+1], h.to[k+1] = mid, h.to[k]
		}
		to := s.unfolded(number^d, power, out)
		s.exchange(give, to, tmp.Slice(0, keep.Len()), to)
		s.reduce(keep, tmp.Slice(0, keep.Len()), number&d != 0)
		h.steps++
	}
	return h
}

// sibling returns the part that the partner kept in step k.
func (h *halves) sibling(k int) runtime.View {
	if h.from[k+1] == h.from[k] {
		return h.p.span(h.to[k+1], h.to[k])
	}
	return h.p.span(h.from[k], h.from[k+1])
}

// halvingReduce is Rabenseifner's algorithm: halvingScatter, then the same
// steps in reverse to gather the pieces at the root.
func (s builder) halvingReduce(acc runtime.View, root int) {
	const out = 1 // the odd ranks
	me := s.comm.rank
	tmp := s.temp(acc.Len())
	number, power := s.fold(acc, tmp, out)
	rem := s.comm.Size() - power
	var h *halves
	if number >= 0 {
		h = s.halvingScatter(acc, tmp, number, power, out)
	}
	top := root - rem
	if root < 2*rem {
		if top = root / 2; root%2 == out { // the root replaces rank 0
			top = 0
			first := cut(acc, power, acc.Len()/s.call.t.size/power*s.call.t.size)
			switch me {
			case root:
				number, h = 0, leftmost(acc, power, s.call.t.size)
				s.receive(first.span(0, 1), 0)
				s.fence()
			case 0:
				s.send(first.span(0, 1), root)
				s.fence()
				return
			}
		}
	}
	if number < 0 {
		return
	}
	for k := h.steps - 1; k >= 0; k-- {
		d := 1 << k
		to := s.unfolded(number^d, power, out)
		if number^d == 0 && top == 0 && root < 2*rem {
			to = root
		}
		if number&d != top&d {
			s.send(h.p.span(h.from[k+1], h.to[k+1]), to)
			s.fence()
			return
		}
		s.receive(h.sibling(k), to)
		s.fence()
	}
}

// leftmost returns the halves of number 0.
func leftmost(acc runtime.View, power, t int) *halves {
	h := &halves{p: cut(acc, power, acc.Len()/t/power*t), steps: bits.TrailingZeros(uint(power))}
	h.p.bounds[power] = acc.Len()
	for k := range h.steps + 1 {
		h.to[k] = power >> k
	}
	return h
}

// allreduce chooses among the algorithms. in and recv may be the same.
func (s builder) allreduce(in, recv runtime.View) {
	size, n := s.comm.Size(), in.Len()
	if n == 0 {
		return
	}
	if s.r.world.o.algorithms() == ExaNetMPI {
		work := s.temp(n)
		s.copy(work, in)
		s.doublingAllreduce(work)
		s.copy(recv, work)
		return
	}
	s.copy(recv, in)
	if op := s.call.op; n <= allreduceShort || op.own != nil || n/s.call.t.size < below(size) {
		s.doublingAllreduce(recv)
	} else {
		s.halvingAllreduce(recv)
	}
}

// doublingAllreduce is recursive doubling: in step k, ranks that differ in bit
// k exchange their vectors, and both combine them.
func (s builder) doublingAllreduce(acc runtime.View) {
	if s.comm.Size() == 1 {
		return
	}
	tmp := s.temp(acc.Len())
	number, power := s.fold(acc, tmp, 0)
	for d := 1; number >= 0 && d < power; d *= 2 {
		to := s.unfolded(number^d, power, 0)
		s.exchange(acc, to, tmp, to)
		s.reduce(acc, tmp, number&d != 0)
	}
	s.unfold(acc)
}

// unfold gives the result to the ranks that fold left out, the even ones.
func (s builder) unfold(acc runtime.View) {
	me, size := s.comm.rank, s.comm.Size()
	switch {
	case me >= 2*(size-below(size)):
		return
	case me%2 == 0:
		s.receive(acc, me+1)
	default:
		s.send(acc, me-1)
	}
	s.fence()
}

// halvingAllreduce is Rabenseifner's algorithm: halvingScatter, then the same
// steps in reverse to give the pieces to all.
func (s builder) halvingAllreduce(acc runtime.View) {
	if s.comm.Size() == 1 {
		return
	}
	tmp := s.temp(acc.Len())
	number, power := s.fold(acc, tmp, 0)
	if number >= 0 {
		h := s.halvingScatter(acc, tmp, number, power, 0)
		for k := h.steps - 1; k >= 0; k-- {
			to := s.unfolded(number^1<<k, power, 0)
			s.exchange(h.p.span(h.from[k+1], h.to[k+1]), to, h.sibling(k), to)
		}
	}
	s.unfold(acc)
}

// reduceScatter chooses among the algorithms. p holds the pieces of in, one for
// each rank; recv takes the rank's own piece.
func (s builder) reduceScatter(p parts, recv runtime.View) {
	c, n := s.comm, p.v.Len()
	mine := p.span(c.rank, c.rank+1)
	switch {
	case n == 0:
	case c.Size() == 1:
		s.copy(recv, mine)
	case !s.call.op.commutes:
		work := s.temp(n)
		s.copy(work, p.v)
		s.doublingAllreduce(work)
		s.copy(recv, parts{work, p.bounds}.span(c.rank, c.rank+1))
	case n < reduceScatterLong:
		s.halvingReduceScatter(p, recv)
	default:
		s.pairwiseReduceScatter(p, recv)
	}
}

// halvingReduceScatter is recursive halving. Ranks that differ in the highest
// bit exchange the pieces of the other half; then the same for each lower bit.
func (s builder) halvingReduceScatter(p parts, recv runtime.View) {
	me, size := s.comm.rank, s.comm.Size()
	acc, tmp := s.temp(p.v.Len()), s.temp(p.v.Len())
	s.copy(acc, p.v)
	number, power := s.fold(acc, tmp, 0)
	rem := size - power
	work, theirs := parts{acc, p.bounds}, parts{tmp, p.bounds}
	// the first rank whose piece a number has
	first := func(number int) int { return number + min(number, rem) }
	lo, hi := 0, power
	for d := power / 2; number >= 0 && d > 0; d /= 2 {
		to := s.unfolded(number^d, power, 0)
		mid := lo + d
		keepLo, keepHi, giveLo, giveHi := lo, mid, mid, hi
		if number&d != 0 {
			keepLo, keepHi, giveLo, giveHi = mid, hi, lo, mid
		}
		got := theirs.span(first(keepLo), first(keepHi))
		s.exchange(work.span(first(giveLo), first(giveHi)), to, got, to)
		s.reduce(work.span(first(keepLo), first(keepHi)), got, number&d != 0)
		lo, hi = keepLo, keepHi
	}
	if me < 2*rem {
		if me%2 == 1 {
			s.send(work.span(me-1, me), me-1)
			s.fence()
		} else {
			s.receive(recv, me+1)
			s.fence()
			return
		}
	}
	s.copy(recv, work.span(me, me+1))
}

// pairwiseReduceScatter sends, in step i, to the rank i above the piece of that
// rank.
func (s builder) pairwiseReduceScatter(p parts, recv runtime.View) {
	me, size := s.comm.rank, s.comm.Size()
	mine := p.span(me, me+1)
	acc := recv
	if p.v.Addr() == recv.Addr() { // in place: recv still holds pieces to send
		acc = mine
	}
	s.copy(acc, mine)
	tmp := s.temp(mine.Len())
	for i := 1; i < size; i++ {
		to, from := (me+i)%size, (me-i+size)%size
		s.exchange(p.span(to, to+1), to, tmp, from)
		s.reduce(acc, tmp, from < me)
	}
	s.copy(recv, acc)
}

// scan is recursive doubling. The vectors of lower ranks are combined into
// recv. All vectors a rank gets are combined into the partial result that it
// passes on. An exclusive scan leaves the rank's own vector out of recv.
func (s builder) scan(in, recv runtime.View, exclusive bool) {
	me, size := s.comm.rank, s.comm.Size()
	if in.Len() == 0 {
		return
	}
	passed, tmp := s.temp(in.Len()), s.temp(in.Len())
	s.copy(passed, in)
	if !exclusive {
		s.copy(recv, in)
	}
	empty := exclusive
	for d := 1; d < size; d *= 2 {
		other := me ^ d
		if other >= size {
			continue
		}
		s.exchange(passed, other, tmp, other)
		s.reduce(passed, tmp, other < me)
		switch {
		case other > me:
		case empty:
			s.copy(recv, tmp)
			empty = false
		default:
			s.reduce(recv, tmp, true)
		}
	}
}
