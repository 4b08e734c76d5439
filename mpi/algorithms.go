package mpi

import "github.com/spinsim/spinsim/runtime"

// Algorithms says which algorithms collective operations take where there is a choice.
type Algorithms string

// The choices. Both are algorithms of MPICH 3.2.1; they differ in Bcast and Allreduce.
const (
	// ExaNetMPI is what ExaNet-MPI does (TR-488 §5.2.1, §6.3): a binomial tree
	// for every broadcast, and recursive doubling for every allreduce, in
	// temporary memory, with a copy before and one after.
	ExaNetMPI Algorithms = "exanet"
	// MPICH switches by size and by number of ranks, as MPICH 3.2.1 does.
	MPICH Algorithms = "mpich"
)

// AlgorithmChoices lists the choices; the first is that of options that name none.
func AlgorithmChoices() []Algorithms { return []Algorithms{ExaNetMPI, MPICH} }

// Where MPICH 3.2.1 switches (its control variables MPIR_CVAR_*, by default). Sizes are in bytes.
const (
	bcastShort        = 12288  // BCAST_SHORT_MSG_SIZE
	bcastLong         = 524288 // BCAST_LONG_MSG_SIZE
	bcastRanks        = 8      // BCAST_MIN_PROCS
	reduceShort       = 2048   // REDUCE_SHORT_MSG_SIZE
	allreduceShort    = 2048   // ALLREDUCE_SHORT_MSG_SIZE
	allgatherShort    = 81920  // ALLGATHER_SHORT_MSG_SIZE, of all ranks together
	allgatherLong     = 524288 // ALLGATHER_LONG_MSG_SIZE
	allgathervPiece   = 32768  // ALLGATHERV_PIPELINE_MSG_SIZE
	alltoallShort     = 256    // ALLTOALL_SHORT_MSG_SIZE, a block
	alltoallMedium    = 32768  // ALLTOALL_MEDIUM_MSG_SIZE
	alltoallThrottle  = 32     // ALLTOALL_THROTTLE, requests at once
	alltoallRanks     = 8      // least ranks of Bruck's algorithm
	reduceScatterLong = 524288 // REDSCAT_COMMUTATIVE_LONG_MSG_SIZE
	gathervSsend      = 32     // GATHERV_INTER_SSEND_MIN_PROCS
)

// parts are the pieces that a vector is cut into: piece i lies from bounds[i] to bounds[i+1].
type parts struct {
	v      runtime.View
	bounds []int
}

// span returns pieces from up to to.
func (p parts) span(from, to int) runtime.View { return p.v.Slice(p.bounds[from], p.bounds[to]) }

// cut makes n pieces of v of size bytes; the last may be shorter, or empty.
func cut(v runtime.View, n, size int) parts {
	p := parts{v, make([]int, n+1)}
	for i := range p.bounds {
		p.bounds[i] = min(i*size, v.Len())
	}
	return p
}

// block is the i-th of blocks of n bytes, and blocks those from i up to j.
func block(v runtime.View, i, n int) runtime.View { return v.Slice(i*n, (i+1)*n) }

func blocks(v runtime.View, i, j, n int) runtime.View { return v.Slice(i*n, j*n) }

func powerOfTwo(n int) bool { return n&(n-1) == 0 }

// below is the largest power of two that is not above n.
func below(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// barrier is a dissemination barrier: in round k every rank tells the one 2^k further.
func (s *schedule) barrier() {
	me, size := s.comm.rank, s.comm.Size()
	nothing := s.temp(0)
	for d := 1; d < size; d *= 2 {
		s.exchange(nothing, (me+d)%size, nothing, (me-d+size)%size)
	}
}

// bcast chooses among the algorithms.
func (s *schedule) bcast(v runtime.View, root int) {
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

// binomialBcast: a rank, counted from the root, receives from the one without
// its lowest bit, then sends to those with one more, the farthest first and one
// after the other.
func (s *schedule) binomialBcast(v runtime.View, root int) {
	me, size := s.comm.rank, s.comm.Size()
	rel := (me - root + size) % size
	d := 1
	for ; d < size && rel&d == 0; d *= 2 {
	}
	if d < size {
		s.receive(v, (me-d+size)%size)
		s.fence()
	}
	for d /= 2; d > 0; d /= 2 {
		if rel+d < size {
			s.send(v, (me+d)%size)
			s.fence()
		}
	}
}

// binomialScatter gives each rank, counted from the root, its piece and those of its subtree.
func (s *schedule) binomialScatter(p parts, root int) {
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

// doublingAllgather is recursive doubling among a power of two of ranks,
// counted from the root: groups of 1, 2, 4, ... swap what they have.
func (s *schedule) doublingAllgather(p parts, root int) {
	me, size := s.comm.rank, s.comm.Size()
	rel := (me - root + size) % size
	for d := 1; d < size; d *= 2 {
		other := rel ^ d
		mine, theirs := rel/d*d, other/d*d
		to := (other + root) % size
		s.exchange(p.span(mine, mine+d), to, p.span(theirs, theirs+d), to)
	}
}

// ringAllgather: size-1 times each rank passes the piece that it got last to
// the right. Pieces are counted from the root.
func (s *schedule) ringAllgather(p parts, root int) {
	me, size := s.comm.rank, s.comm.Size()
	left, right := (me-1+size)%size, (me+1)%size
	have := (me - root + size) % size
	for range size - 1 {
		next := (have - 1 + size) % size
		s.exchange(p.span(have, have+1), right, p.span(next, next+1), left)
		have = next
	}
}
