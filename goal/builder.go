package goal

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/spinsim/spinsim/internal/memory"
)

// Builder builds a schedule, rank by rank:
//
//	b := goal.NewBuilder()
//	b.Rank(0)
//	work := b.Calc(500)
//	b.Requires(b.Send(8, 1, 7), work)
//	b.Rank(1)
//	b.Recv(8, 0, 7)
//	s, err := b.Schedule()
//
// Schedule returns the first error of all calls.
type Builder struct {
	s      Schedule
	order  []uint32        // rank of each span of s.ranks; nil while ranks come in order
	seen   map[uint32]bool // the ranks in order, if order is not nil
	open   bool
	edges  []edge
	counts []uint32
	err    error
	count  *counter // not nil: only count operations
}

// counter counts operations instead of storing them.
type counter struct {
	ops, first, most int // so far, before the current rank, at most
}

// edge is a dependency: from releases to, when it starts or when it is done.
type edge struct {
	from, to uint32
	start    bool
}

// NewBuilder returns a builder without ranks.
func NewBuilder() *Builder { return &Builder{} }

// Rank starts the operations of rank r. Start each rank from 0 to the largest
// exactly once, in any order. Ascending order is cheapest.
func (b *Builder) Rank(r int) {
	if b.count != nil {
		b.count.first = b.count.ops
		return
	}
	b.endRank()
	if r < 0 || r > math.MaxInt32 {
		b.fail("rank %d is out of range", r)
		return
	}
	if b.has(r) {
		b.fail("rank %d is defined twice", r)
		return
	}
	if b.order == nil && r != len(b.s.ranks) {
		b.order = make([]uint32, len(b.s.ranks))
		b.seen = make(map[uint32]bool)
		for i := range b.order {
			b.order[i] = uint32(i)
			b.seen[uint32(i)] = true
		}
	}
	if b.order != nil {
		b.order = append(b.order, uint32(r))
		b.seen[uint32(r)] = true
	}
	b.s.ranks = append(b.s.ranks, span{first: uint32(len(b.s.ops))})
	b.open = true
}

// has reports whether rank r has been started.
func (b *Builder) has(r int) bool {
	if b.order == nil {
		return r < len(b.s.ranks)
	}
	return b.seen[uint32(r)]
}

// Add appends an operation to the current rank and returns its number in the
// rank, from 0.
func (b *Builder) Add(op Op) int {
	if c := b.count; c != nil {
		if c.ops++; c.ops > c.most {
			b.fail("more than %d operations", c.most)
		}
		return c.ops - c.first - 1
	}
	if !b.open {
		b.fail("operation before the first rank")
		return 0
	}
	if len(b.s.ops) >= MaxOps {
		b.fail("more than %d operations", MaxOps)
		return 0
	}
	if op.Kind == Calc {
		op.Peer, op.Tag, op.NIC = 0, 0, 0
	}
	i := len(b.s.ops) - int(b.s.ranks[len(b.s.ranks)-1].first)
	b.s.ops = append(double(b.s.ops, 1), packed{
		size: op.Size, peer: op.Peer, tag: op.Tag, kind: op.Kind, cpu: op.CPU, nic: op.NIC,
	})
	b.s.maxCPU = max(b.s.maxCPU, op.CPU)
	b.s.maxNIC = max(b.s.maxNIC, op.NIC)
	return i
}

// Send appends a send of size bytes to rank to, on processor and network interface 0.
func (b *Builder) Send(size uint64, to int, tag uint32) int {
	return b.Add(Op{Kind: Send, Size: size, Peer: b.peer(to), Tag: tag})
}

// Recv appends a receive of size bytes from rank from, on processor and network
// interface 0; from is -1 for any rank.
func (b *Builder) Recv(size uint64, from int, tag uint32) int {
	return b.Add(Op{Kind: Recv, Size: size, Peer: b.peer(from), Tag: tag})
}

func (b *Builder) peer(r int) uint32 {
	if r < -1 || r > math.MaxInt32 {
		b.fail("peer %d is out of range", r)
	}
	return uint32(r)
}

// Calc appends a computation of ns nanoseconds on processor 0.
func (b *Builder) Calc(ns uint64) int { return b.Add(Op{Kind: Calc, Size: ns}) }

// Requires makes operation x of the current rank wait until operation y is done.
func (b *Builder) Requires(x, y int) { b.depend(x, y, false) }

// IRequires makes operation x of the current rank wait until operation y has started.
func (b *Builder) IRequires(x, y int) { b.depend(x, y, true) }

func (b *Builder) depend(x, y int, start bool) {
	if b.err != nil || b.count != nil {
		return
	}
	n := 0
	if b.open {
		n = len(b.s.ops) - int(b.s.ranks[len(b.s.ranks)-1].first)
	}
	if x < 0 || y < 0 || x >= n || y >= n {
		b.fail("dependency of operation %d on %d in a rank of %d operations", x, y, n)
		return
	}
	b.edges = append(b.edges, edge{from: uint32(y), to: uint32(x), start: start})
}

// double makes room for n more elements by doubling. Otherwise large slices
// grow by a quarter, and the copies take longer than filling the slice.
func double[T any](s []T, n int) []T {
	if len(s)+n > cap(s) {
		n = max(n, len(s))
		memory.Ask(int64(len(s)+n) * int64(unsafe.Sizeof(*new(T))))
		return slices.Grow(s, n)
	}
	return s
}

func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("goal: "+format, args...)
	}
}

// endRank sorts the dependencies of the current rank into the successor lists.
// The lists keep the order of the calls, as the binary format requires.
func (b *Builder) endRank() {
	if !b.open {
		return
	}
	b.open = false
	at := &b.s.ranks[len(b.s.ranks)-1]
	ops := b.s.ops[at.first:]
	at.n = uint32(len(ops))
	base := len(b.s.succ)
	if uint64(base)+uint64(len(b.edges)) > math.MaxUint32 {
		b.fail("more than %d dependencies", uint32(math.MaxUint32))
		b.edges = b.edges[:0]
	}
	// counts[2i] and counts[2i+1] are first the lengths of the two lists of
	// operation i, and then the places to fill next.
	b.counts = append(b.counts[:0], make([]uint32, 2*len(ops))...)
	for _, e := range b.edges {
		b.counts[e.list()]++
		ops[e.to].deps++
	}
	next := uint32(base)
	for i := range ops {
		done, start := b.counts[2*i], b.counts[2*i+1]
		ops[i].done, ops[i].start = next, next+done
		b.counts[2*i], b.counts[2*i+1] = next, next+done
		next += done + start
	}
	b.s.succ = append(double(b.s.succ, len(b.edges)), make([]uint32, len(b.edges))...)
	for _, e := range b.edges {
		at := &b.counts[e.list()]
		b.s.succ[*at] = e.to
		*at++
	}
	b.edges = b.edges[:0]
}

func (e edge) list() uint32 {
	if e.start {
		return 2*e.from + 1
	}
	return 2 * e.from
}

// Schedule checks and returns the schedule. The builder must not be used afterwards.
func (b *Builder) Schedule() (*Schedule, error) {
	b.endRank()
	if len(b.s.ranks) == 0 {
		b.fail("a schedule needs at least 1 rank")
	}
	if b.err != nil {
		return nil, b.err
	}
	if err := b.sortRanks(); err != nil {
		return nil, err
	}
	for r := range b.s.ranks {
		for i, p := range b.s.ops[b.s.ranks[r].first:][:b.s.ranks[r].n] {
			if err := b.s.checkOp(p); err != nil {
				return nil, fmt.Errorf("goal: rank %d operation %d: %w", r, i, err)
			}
		}
	}
	return &b.s, nil
}

func (b *Builder) sortRanks() error {
	if b.order == nil {
		return nil
	}
	sorted := make([]span, len(b.s.ranks))
	for i, r := range b.order {
		if int(r) >= len(sorted) {
			return fmt.Errorf("goal: rank %d of %d ranks", r, len(sorted))
		}
		sorted[r] = b.s.ranks[i]
	}
	b.s.ranks = sorted
	return nil
}

// checkOp returns an error if an operation does not fit its schedule.
func (s *Schedule) checkOp(p packed) error {
	n := uint32(len(s.ranks))
	if p.kind < Send || p.kind > Calc {
		return fmt.Errorf("unknown kind %d, expected 1 (send), 2 (recv) or 3 (calc)", p.kind)
	}
	if !p.peerOK(n) {
		return fmt.Errorf("peer %d of %d ranks", int32(p.peer), n)
	}
	return nil
}

// peerOK reports whether the peer of the operation fits a schedule of n ranks.
func (p *packed) peerOK(n uint32) bool {
	return p.kind == Calc || p.peer < n || p.kind == Recv && p.peer == Any
}
