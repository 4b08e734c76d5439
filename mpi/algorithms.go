package mpi

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
)

// Algorithms selects the algorithms of the collective operations.
type Algorithms string

// The choices. Both follow MPICH 3.2.1; they differ in Bcast and Allreduce.
const (
	// ExaNetMPI does what ExaNet-MPI does (TR-488 §5.2.1, §6.3). Every
	// broadcast is a binomial tree. Every allreduce is a recursive doubling in
	// temporary memory, with a copy before and a copy after.
	ExaNetMPI Algorithms = "exanet"
	// MPICH chooses by size and by number of ranks, like MPICH 3.2.1.
	MPICH Algorithms = "mpich"
)

// AlgorithmChoices lists the choices; the first is the default.
func AlgorithmChoices() []Algorithms { return []Algorithms{ExaNetMPI, MPICH} }

// Sizes in bytes and numbers of ranks at which MPICH 3.2.1 changes its
// algorithm: the defaults of its control variables MPIR_CVAR_*.
const (
	bcastShort        = 12288  // BCAST_SHORT_MSG_SIZE
	bcastLong         = 524288 // BCAST_LONG_MSG_SIZE
	bcastRanks        = 8      // BCAST_MIN_PROCS
	reduceShort       = 2048   // REDUCE_SHORT_MSG_SIZE
	allreduceShort    = 2048   // ALLREDUCE_SHORT_MSG_SIZE
	allgatherShort    = 81920  // ALLGATHER_SHORT_MSG_SIZE, all ranks together
	allgatherLong     = 524288 // ALLGATHER_LONG_MSG_SIZE
	allgathervPiece   = 32768  // ALLGATHERV_PIPELINE_MSG_SIZE
	alltoallShort     = 256    // ALLTOALL_SHORT_MSG_SIZE, a block
	alltoallMedium    = 32768  // ALLTOALL_MEDIUM_MSG_SIZE
	alltoallThrottle  = 32     // ALLTOALL_THROTTLE, requests at once
	alltoallRanks     = 8      // the fewest ranks for Bruck's algorithm
	reduceScatterLong = 524288 // REDSCAT_COMMUTATIVE_LONG_MSG_SIZE
	gathervSsend      = 32     // GATHERV_INTER_SSEND_MIN_PROCS
)

// parts is a vector in pieces: piece i lies from bounds[i] to bounds[i+1].
type parts struct {
	v      runtime.View
	bounds []int
}

// span returns the pieces from up to, but not including, to.
func (p parts) span(from, to int) runtime.View { return p.v.Slice(p.bounds[from], p.bounds[to]) }

// cut divides v into n pieces of size bytes. The last pieces may be shorter, or
// empty.
func cut(v runtime.View, n, size int) parts {
	p := parts{v, make([]int, n+1)}
	for i := range p.bounds {
		p.bounds[i] = min(i*size, v.Len())
	}
	return p
}

// block returns block i of blocks of n bytes; blocks returns blocks i to j-1.
func block(v runtime.View, i, n int) runtime.View { return v.Slice(i*n, (i+1)*n) }

func blocks(v runtime.View, i, j, n int) runtime.View { return v.Slice(i*n, j*n) }

func powerOfTwo(n int) bool { return n&(n-1) == 0 }

// below returns the largest power of two that is at most n.
func below(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// barrier is a dissemination barrier: in round k every rank sends an empty
// message to the rank 2^k above it, modulo the size.
func (s builder) barrier() {
	me, size := s.comm.rank, s.comm.Size()
	nothing := s.temp(0)
	for d := 1; d < size; d *= 2 {
		s.exchange(nothing, (me+d)%size, nothing, (me-d+size)%size)
	}
}

func (s builder) bcast(v runtime.View, root int) {
	size, n := s.comm.Size(), v.Len()
	switch {
	case n == 0 || size == 1:
	case s.r.world.o.algorithms() == ExaNetMPI || n < bcastShort || size < bcastRanks:
		s.binomialBcast(v, root)
	default:
		pieces := cut(v, size, (n+size-1)/size)
		s.binomialScatter(pieces, root)
		if n < bcastLong && powerOfTwo(size) {
			s.doublingAllgather(pieces, root)
		} else {
			s.ringAllgather(pieces, root)
		}
	}
}

// binomialBcast is a broadcast along a binomial tree. Ranks are counted from
// the root. A rank receives from the rank whose number lacks its lowest bit. It
// then sends to the ranks with one more low bit: the farthest first, one after
// the other, or with host.library.fanout: together all at once.
func (s builder) binomialBcast(v runtime.View, root int) {
	me, size := s.comm.rank, s.comm.Size()
	rel := (me - root + size) % size
	d := 1
	for ; d < size && rel&d == 0; d *= 2 {
	}
	if d < size {
		s.receive(v, (me-d+size)%size)
		s.fence()
	}
	together := s.own(used.Fanout).Fanout == host.FanoutTogether
	for d /= 2; d > 0; d /= 2 {
		if rel+d < size {
			s.send(v, (me+d)%size)
			if !together {
				s.fence()
			}
		}
	}
	s.fence()
}

// binomialScatter gives each rank its own piece and the pieces of its subtree.
// Ranks are counted from the root.
func (s builder) binomialScatter(p parts, root int) {
	me, size := s.comm.rank, s.comm.Size()
	rel := (me - root + size) % size
	d := 1
	for ; d < size && rel&d == 0; d *= 2 {
	}
	if d < size {
		if v := p.span(rel, min(rel+d, size)); v.Len() > 0 {
			s.receive(v, (me-d+size)%size)
			s.fence()
		}
	}
	for d /= 2; d > 0; d /= 2 {
		if rel+d >= size {
			continue
		}
		if v := p.span(rel+d, min(rel+2*d, size)); v.Len() > 0 {
			s.send(v, (me+d)%size)
			s.fence()
		}
	}
}

// doublingAllgather is recursive doubling; the number of ranks is a power of
// two. Ranks are counted from the root. Groups of 1, 2, 4, ... ranks exchange
// all their pieces.
func (s builder) doublingAllgather(p parts, root int) {
	me, size := s.comm.rank, s.comm.Size()
	rel := (me - root + size) % size
	for d := 1; d < size; d *= 2 {
		other := rel ^ d
		mine, theirs := rel/d*d, other/d*d
		to := (other + root) % size
		s.exchange(p.span(mine, mine+d), to, p.span(theirs, theirs+d), to)
	}
}

// ringAllgather takes size-1 rounds. In each, a rank passes the piece it got
// last to its right neighbour. Pieces are counted from the root.
func (s builder) ringAllgather(p parts, root int) {
	me, size := s.comm.rank, s.comm.Size()
	left, right := (me-1+size)%size, (me+1)%size
	have := (me - root + size) % size
	for range size - 1 {
		next := (have - 1 + size) % size
		s.exchange(p.span(have, have+1), right, p.span(next, next+1), left)
		have = next
	}
}
