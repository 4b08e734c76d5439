package mpi

import "github.com/spinsim/spinsim/runtime"

// subtree returns the number of ranks in a rank's subtree of a binomial tree,
// and the distance to its parent. Ranks are counted from the root.
func subtree(rel, size int) (ranks, parent int) {
	if rel == 0 {
		return size, 0
	}
	parent = rel & -rel
	return min(parent, size-rel), parent
}

// scatter sends blocks down a binomial tree: each rank gets the blocks of its
// subtree. A root other than rank 0 first puts them into the tree's order, in
// temporary memory.
func (s builder) scatter(send, recv runtime.View, n, root int) {
	me, size := s.comm.rank, s.comm.Size()
	if n == 0 {
		return
	}
	rel := (me - root + size) % size
	ranks, parent := subtree(rel, size)
	var work runtime.View
	switch {
	case me == root && root == 0:
		work = send
	case me == root:
		work = s.temp(size * n)
		s.copy(blocks(work, 0, size-me, n), blocks(send, me, size, n))
		s.copy(blocks(work, size-me, size, n), blocks(send, 0, me, n))
	case ranks == 1:
		s.receive(recv, (me-parent+size)%size)
		s.fence()
		return
	default:
		work = s.temp(ranks * n)
		s.receive(work, (me-parent+size)%size)
		s.fence()
	}
	for d := below(max(1, size-1)); d > 0; d /= 2 {
		if (rel == 0 || d < parent) && rel+d < size {
			s.send(blocks(work, d, min(2*d, ranks), n), (me+d)%size)
			s.fence()
		}
	}
	if recv.Proc() != nil {
		s.copy(recv, block(work, 0, n))
	}
}

// gather collects blocks up a binomial tree. At the root send is InPlace if its
// block is in place already.
func (s builder) gather(send, recv runtime.View, n, root int) {
	me, size := s.comm.rank, s.comm.Size()
	if n == 0 {
		return
	}
	rel := (me - root + size) % size
	ranks, parent := subtree(rel, size)
	if rel == 0 {
		if send.Proc() != nil {
			s.copy(block(recv, me, n), send)
		}
		for d := 1; d < size; d *= 2 {
			s.gatherAtRoot(recv, n, d)
		}
		return
	}
	work := send
	if ranks > 1 {
		work = s.temp(ranks * n)
		s.copy(block(work, 0, n), send)
	}
	for d := 1; d < parent && rel+d < size; d *= 2 {
		s.receive(blocks(work, d, min(2*d, ranks), n), (me+d)%size)
		s.fence()
	}
	s.send(work, (me-parent+size)%size)
	s.fence()
}

// gatherAtRoot receives the blocks of the subtree at distance d. They may wrap
// around to the beginning of recv.
func (s builder) gatherAtRoot(recv runtime.View, n, d int) {
	me, size := s.comm.rank, s.comm.Size()
	count := min(d, size-d)
	first := (me + d) % size
	if first+count <= size {
		s.receive(blocks(recv, first, first+count, n), first)
		s.fence()
		return
	}
	tmp := s.temp(count * n)
	s.receive(tmp, first)
	s.fence()
	s.copy(blocks(recv, first, size, n), blocks(tmp, 0, size-first, n))
	s.copy(blocks(recv, 0, first+count-size, n), blocks(tmp, size-first, count, n))
}

// allgather also copies the rank's own block, unless it is in place.
func (s builder) allgather(send, recv runtime.View, n int) {
	me, size := s.comm.rank, s.comm.Size()
	switch {
	case n == 0:
	case size*n < allgatherLong && powerOfTwo(size):
		s.placed(block(recv, me, n), send)
		s.doublingAllgather(cut(recv, size, n), 0)
	case size*n < allgatherShort:
		s.bruckAllgather(send, recv, cut(recv, size, n).bounds)
	default:
		s.placed(block(recv, me, n), send)
		s.ringAllgather(cut(recv, size, n), 0)
	}
}

// placed copies a rank's own block, unless it is in place.
func (s builder) placed(to, send runtime.View) {
	if send.Proc() != nil {
		s.copy(to, send)
	}
}

// bruckAllgather collects the blocks in temporary memory, the rank's own block
// first, from the ranks 1, 2, 4, ... above. Then the core puts them into order.
// bounds are the bounds of the blocks, in the order of ranks.
func (s builder) bruckAllgather(send, recv runtime.View, bounds []int) {
	me, size := s.comm.rank, s.comm.Size()
	total := bounds[size]
	at := func(i int) int { // the place of rank me+i's block
		if me+i < size {
			return bounds[me+i] - bounds[me]
		}
		return total - bounds[me] + bounds[me+i-size]
	}
	tmp := s.temp(total)
	if send.Proc() == nil {
		send = recv.Slice(bounds[me], bounds[me+1])
	}
	s.copy(tmp.Slice(0, at(1)), send)
	for d := 1; d < size; d *= 2 {
		count := min(d, size-d)
		to, from := (me-d+size)%size, (me+d)%size
		s.exchange(tmp.Slice(0, at(count)), to, tmp.Slice(at(d), at(d+count)), from)
	}
	s.copy(recv.Slice(bounds[me], total), tmp.Slice(0, total-bounds[me]))
	s.copy(recv.Slice(0, bounds[me]), tmp.Slice(total-bounds[me], total))
}

// allgatherv is allgather with a length and a place for each block.
func (s builder) allgatherv(send, recv runtime.View, counts, places []int) {
	me, size := s.comm.rank, s.comm.Size()
	bounds := make([]int, size+1)
	for i, n := range counts {
		bounds[i+1] = bounds[i] + n
	}
	total := bounds[size]
	own := recv.Slice(places[me], places[me]+counts[me])
	if total == 0 {
		return
	}
	if !powerOfTwo(size) && total >= allgatherShort || total >= allgatherLong {
		s.placed(own, send)
		s.pipelinedRing(recv, counts, places, total)
		return
	}
	if send.Proc() == nil {
		send = own
	}
	work := s.temp(total)
	if powerOfTwo(size) {
		s.copy(work.Slice(bounds[me], bounds[me+1]), send)
		s.doublingAllgather(parts{work, bounds}, 0)
	} else {
		s.bruckAllgather(send, work, bounds)
	}
	for i, n := range counts {
		if i != me || send.Addr() != own.Addr() {
			s.copy(recv.Slice(places[i], places[i]+n), work.Slice(bounds[i], bounds[i+1]))
		}
	}
}

// pipelinedRing is a ring that passes long blocks on in pieces.
func (s builder) pipelinedRing(recv runtime.View, counts, places []int, total int) {
	me, size := s.comm.rank, s.comm.Size()
	left, right := (me-1+size)%size, (me+1)%size
	piece := counts[0]
	for _, n := range counts {
		piece = min(piece, n)
	}
	piece = max(piece, allgathervPiece)
	toSend, toReceive := total-counts[right], total-counts[me]
	out, in := me, left
	var sent, received int
	for toSend > 0 || toReceive > 0 {
		a, b := min(piece, counts[out]-sent, toSend), min(piece, counts[in]-received, toReceive)
		if b > 0 {
			s.receive(recv.Slice(places[in]+received, places[in]+received+b), left)
		}
		if a > 0 {
			s.send(recv.Slice(places[out]+sent, places[out]+sent+a), right)
		}
		s.fence()
		sent, received, toSend, toReceive = sent+a, received+b, toSend-a, toReceive-b
		if sent == counts[out] {
			sent, out = 0, (out-1+size)%size
		}
		if received == counts[in] {
			received, in = 0, (in-1+size)%size
		}
	}
}

// vector holds a rank's blocks, one for each rank, of their own lengths.
type vector struct {
	v              runtime.View
	counts, places []int
	each           []runtime.View // the blocks, if they are not parts of v
}

func (b vector) block(i int) runtime.View {
	if b.each != nil {
		return b.each[i]
	}
	return b.v.Slice(b.places[i], b.places[i]+b.counts[i])
}

func uniform(v runtime.View, size, n int) vector {
	b := vector{v: v, counts: make([]int, size), places: make([]int, size)}
	for i := range size {
		b.counts[i], b.places[i] = n, i*n
	}
	return b
}

func (s builder) alltoall(send, recv runtime.View, n int) {
	size := s.comm.Size()
	switch {
	case n == 0:
	case send.Proc() == nil:
		s.replacingAlltoall(uniform(recv, size, n))
	case n <= alltoallShort && size >= alltoallRanks:
		s.bruckAlltoall(send, recv, n)
	case n <= alltoallMedium:
		s.scatteredAlltoall(uniform(send, size, n), uniform(recv, size, n))
	default:
		s.pairwiseAlltoall(send, recv, n)
	}
}

// bruckAlltoall passes on, in step k, all blocks whose distance has bit k. The
// core packs them first.
func (s builder) bruckAlltoall(send, recv runtime.View, n int) {
	me, size := s.comm.rank, s.comm.Size()
	s.copy(blocks(recv, 0, size-me, n), blocks(send, me, size, n))
	s.copy(blocks(recv, size-me, size, n), blocks(send, 0, me, n))
	out, in := s.temp(size*n), s.temp(size*n)
	for d := 1; d < size; d *= 2 {
		count := 0
		for i := range size {
			count += i & d / d
		}
		s.steps = append(s.steps, step{kind: stepPack, to: out, from: recv, peer: int32(d)})
		s.exchange(out.Slice(0, count*n), (me+d)%size, in.Slice(0, count*n), (me-d+size)%size)
		s.steps = append(s.steps, step{kind: stepUnpack, to: recv, from: in, peer: int32(d)})
	}
	s.copy(blocks(out, 0, size-me-1, n), blocks(recv, me+1, size, n))
	s.copy(blocks(out, size-me-1, size, n), blocks(recv, 0, me+1, n))
	s.steps = append(s.steps, step{kind: stepReverse, to: recv, from: out})
}

// scatteredAlltoall receives from the ranks above and sends to the ranks below,
// the nearest first, alltoallThrottle at a time.
func (s builder) scatteredAlltoall(send, recv vector) {
	me, size := s.comm.rank, s.comm.Size()
	s.copy(recv.block(me), send.block(me))
	for first := 0; first < size; first += alltoallThrottle {
		last := min(first+alltoallThrottle, size)
		for i := first; i < last; i++ {
			if from := (me + i) % size; from != me && recv.counts[from] > 0 {
				s.receive(recv.block(from), from)
			}
		}
		for i := first; i < last; i++ {
			if to := (me - i + size) % size; to != me && send.counts[to] > 0 {
				s.send(send.block(to), to)
			}
		}
		s.fence()
	}
}

// pairwiseAlltoall exchanges blocks with one pair of ranks after the other.
func (s builder) pairwiseAlltoall(send, recv runtime.View, n int) {
	me, size := s.comm.rank, s.comm.Size()
	s.copy(block(recv, me, n), block(send, me, n))
	for i := 1; i < size; i++ {
		to, from := (me+i)%size, (me-i+size)%size
		if powerOfTwo(size) {
			to, from = me^i, me^i
		}
		s.exchange(block(send, to, n), to, block(recv, from, n), from)
	}
}

// replacingAlltoall exchanges blocks in place. All ranks take the pairs (i, j)
// with i < j in one order: by i, then by j.
func (s builder) replacingAlltoall(b vector) {
	me, size := s.comm.rank, s.comm.Size()
	most := 0
	for _, n := range b.counts {
		most = max(most, n)
	}
	tmp := s.temp(most)
	for other := range size { // for this rank, the order of pairs is the order of the others
		if other == me || b.counts[other] == 0 {
			continue
		}
		v := b.block(other)
		kept := tmp.Slice(0, v.Len())
		s.copy(kept, v)
		s.exchange(kept, other, v, other)
	}
}

// scatterv makes the root send each rank its block. blocks counts only at the
// root.
func (s builder) scatterv(blocks vector, recv runtime.View, root int) {
	me := s.comm.rank
	if me != root {
		if recv.Len() > 0 {
			s.receive(recv, root)
		}
		return
	}
	for i, n := range blocks.counts {
		if i != root && n > 0 {
			s.send(blocks.block(i), i)
		}
	}
	if recv.Proc() != nil {
		s.copy(recv, blocks.block(root))
	}
}

// gatherv makes every rank send to the root, synchronously if there are many
// ranks. blocks counts only at the root.
func (s builder) gatherv(send runtime.View, blocks vector, root int) {
	c := s.comm
	if c.rank != root {
		if send.Len() > 0 {
			s.send(send, root)
			s.steps[len(s.steps)-1].sync = c.Size() >= gathervSsend
		}
		return
	}
	for i, n := range blocks.counts {
		if i != root && n > 0 {
			s.receive(blocks.block(i), i)
		}
	}
	if send.Proc() != nil {
		s.copy(blocks.block(root), send)
	}
}
