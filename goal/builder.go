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
	s       Schedule
	claimed int             // ranks started
	order   []uint32        // the ranks in order of their start; nil while that is their own
	seen    map[uint32]bool // the ranks in order, if order is not nil
	open    bool
	rank    uint32 // the current one
	line    uint32 // of the last operation with a line
	edges   []edge
	counts  []uint32
	sorted  []uint32
	naming  naming
	maxPeer uint32
	err     error
	count   *counter // not nil: only count operations
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
	if r < 0 || r > math.MaxInt32 {
		b.endRank()
		b.fail("rank %d is out of range", r)
		return
	}
	if !b.claim(uint32(r)) {
		b.endRank()
		b.fail("rank %d is defined twice", r)
		return
	}
	b.start(uint32(r))
}

// claim notes that a rank is next; false: it has been before.
func (b *Builder) claim(r uint32) bool {
	if b.order == nil {
		if int(r) == b.claimed {
			b.claimed++
			return true
		}
		if int(r) < b.claimed {
			return false
		}
		b.order = make([]uint32, b.claimed)
		b.seen = make(map[uint32]bool)
		for i := range b.order {
			b.order[i] = uint32(i)
			b.seen[uint32(i)] = true
		}
	}
	if b.seen[r] {
		return false
	}
	b.order = append(b.order, r)
	b.seen[r] = true
	b.claimed++
	return true
}

// start begins the operations of a rank.
func (b *Builder) start(r uint32) {
	b.endRank()
	b.s.ranks = append(double(b.s.ranks, 1), span{first: uint32(b.s.ids())})
	b.rank, b.open = r, true
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
	if op.Kind == Calc {
		op.Peer, op.Tag, op.NIC = 0, 0, 0
	}
	return int(b.add(&op))
}

// add is Add for a rank that was started and an operation as it is.
func (b *Builder) add(op *Op) uint32 {
	if b.s.ids() >= MaxOps {
		b.fail("more than %d operations", MaxOps)
		return 0
	}
	at := &b.s.ranks[len(b.s.ranks)-1]
	i := at.n
	if op.Kind < Send || op.Kind > Calc {
		b.fail("rank %d operation %d: unknown kind %d, expected 1 (send), 2 (recv) or 3 (calc)", b.rank, i, op.Kind)
	}
	id := b.s.add(b.rank, op)
	if i == 0 {
		at.first = id
	}
	at.n++
	b.s.ops++
	if op.Kind == Send || op.Kind == Recv && op.Peer != Any {
		b.maxPeer = max(b.maxPeer, op.Peer)
	}
	b.s.maxCPU = max(b.s.maxCPU, op.CPU)
	b.s.maxNIC = max(b.s.maxNIC, op.NIC)
	return i
}

// Send appends a send of size bytes to rank to, on processor and network interface 0.
func (b *Builder) Send(size uint64, to int, tag uint32) int {
	return b.Add(Op{Kind: Send, Size: size, Peer: b.peer(to), Tag: anyTag(tag)})
}

// Recv appends a receive of size bytes from rank from, on processor and network
// interface 0; from is -1 for any rank.
func (b *Builder) Recv(size uint64, from int, tag uint32) int {
	return b.Add(Op{Kind: Recv, Size: size, Peer: b.peer(from), Tag: anyTag(tag)})
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
		n = int(b.s.ranks[len(b.s.ranks)-1].n)
	}
	if x < 0 || y < 0 || x >= n || y >= n {
		b.fail("dependency of operation %d on %d in a rank of %d operations", x, y, n)
		return
	}
	b.edges = append(double(b.edges, 1), edge{from: uint32(y), to: uint32(x), start: start})
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
	b.s.coll = 0
	if len(b.edges) == 0 {
		return
	}
	at := b.s.ranks[len(b.s.ranks)-1]
	// counts[2i] and counts[2i+1] are first the lengths of the two lists of
	// operation i, then the places to fill next, and so at last their ends.
	b.counts = zeros(b.counts, 3*int(at.n))
	deps := b.counts[2*at.n:]
	for _, e := range b.edges {
		b.counts[e.list()]++
		deps[e.to]++
	}
	sum := uint32(0)
	for i, n := range b.counts[:2*at.n] {
		b.counts[i] = sum
		sum += n
	}
	b.sorted = zeros(b.sorted, len(b.edges))
	for _, e := range b.edges {
		next := &b.counts[e.list()]
		b.sorted[*next] = e.to
		*next++
	}
	b.edges = b.edges[:0]
	b.link(at, b.counts, deps, b.sorted)
}

// link stores the dependencies of a rank. The lists of its operations are one
// after the other, for each first the operations that it releases when it is
// done, then those when it starts. ends has their ends, deps the numbers of
// releases.
func (b *Builder) link(at span, ends, deps, lists []uint32) {
	from := uint32(0)
	for i := range at.n {
		done, start := ends[2*i], ends[2*i+1]
		if !b.s.link(at.first+i, i, lists[from:done], lists[done:start]) {
			b.fail("more than %d bytes for dependencies", uint32(math.MaxUint32))
			return
		}
		b.s.setDeps(at.first+i, deps[i])
		from = start
	}
}

// take appends the ranks of another builder, which is then empty. lines are
// added to their lines.
func (b *Builder) take(from *Builder, lines int) {
	from.endRank()
	to := make([]uint32, len(from.s.colls))
	for i := range from.s.colls {
		to[i], _ = b.declare(&from.s.colls[i], from.naming.from[i])
	}
	from.s.renumber(to)
	first := b.s.take(&from.s.store, uint32(lines))
	for _, at := range from.s.ranks {
		b.s.ranks = append(double(b.s.ranks, 1), span{first + at.first, at.n})
	}
	b.s.ops += from.s.ops
	b.s.maxCPU, b.s.maxNIC = max(b.s.maxCPU, from.s.maxCPU), max(b.s.maxNIC, from.s.maxNIC)
	b.maxPeer = max(b.maxPeer, from.maxPeer)
	switch {
	case from.err != nil:
		b.err = from.err
	case len(b.s.segments) > maxSegments:
		b.fail("more than %d operations", MaxOps)
	}
	*from = Builder{edges: from.edges, counts: from.counts, sorted: from.sorted}
}

// zeros returns n zeros, in the memory of a slice if they fit.
func zeros(in []uint32, n int) []uint32 {
	in = double(in[:0], n)[:n]
	clear(in)
	return in
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
	b.s.sortCollectives()
	if n := uint32(len(b.s.ranks)); b.maxPeer >= n {
		for r, v := range b.s.All() {
			for i := range v.Len() {
				if op := v.Op(i); !op.fits(n) {
					return nil, fmt.Errorf("goal: rank %d operation %d: peer %d of %d ranks", r, i, int32(op.Peer), n)
				}
			}
		}
	}
	return &b.s, b.s.checkRoots()
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

// fits reports whether the peer fits a schedule of n ranks.
func (o *Op) fits(n uint32) bool {
	return o.Kind == Calc || o.Peer < n || o.Kind == Recv && o.Peer == Any
}
