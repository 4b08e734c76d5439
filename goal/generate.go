package goal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unsafe"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/memory"
)

// GenParams are the parameters of a generator. A pattern uses the ones that its
// description names.
type GenParams struct {
	// Ranks is the number of ranks, at least 1.
	Ranks int
	// Size is the size of the pattern's message in bytes. If the pattern splits
	// a vector, Size is the length of the whole vector.
	Size uint64
	// Root is the rank at which broadcasts, gathers and the like begin or end.
	Root int
	// Ways is the number of messages per round of the dissemination pattern; 0
	// stands for 1.
	Ways int
	// Segment is the largest message of a pipelined pattern in bytes; 0 stands
	// for Size.
	Segment uint64
	// Iterations is the number of repetitions of an exchange; 0 stands for 1.
	Iterations int
	// CalcNS is the time of a computation in ns; 0: no computations. There is
	// one after each message that a reduction receives, and after each
	// iteration of an exchange.
	CalcNS uint64
	// Seed selects a random pattern.
	Seed uint64
}

// Param names a parameter of GenParams that only some patterns have.
type Param string

// The parameters that only some patterns have.
const (
	ParamRoot       Param = "Root"
	ParamWays       Param = "Ways"
	ParamSegment    Param = "Segment"
	ParamIterations Param = "Iterations"
	ParamCalcNS     Param = "CalcNS"
	ParamSeed       Param = "Seed"
)

// MaxGenerated is the largest number of operations that a generator makes.
const MaxGenerated = 1 << 28

// ErrTooLarge is wrapped by errors about schedules with more than MaxGenerated
// operations.
var ErrTooLarge = fmt.Errorf("the schedule would have more than %d operations, the most that is generated", MaxGenerated)

// Pattern describes a generator.
type Pattern struct {
	// Name is the name for Generate.
	Name string
	// Doc describes the schedule in one line.
	Doc string
	// Uses are the parameters besides Ranks and Size.
	Uses []Param

	setup func(p *GenParams) emitter
}

// emitter adds the operations of rank r to the builder.
type emitter func(b *Builder, r int)

var patterns = []Pattern{
	{"allreduce-recdoub", "allreduce by recursive doubling; surplus ranks fold into a power of two", []Param{ParamCalcNS}, recursiveDoubling},
	{"allreduce-ring", "allreduce as reduce-scatter and allgather around a ring", []Param{ParamCalcNS}, ringAllreduce},
	{"alltoall-linear", "every rank sends to every other, all at once", nil, linearAlltoall},
	{"alltoall-pairwise", "every rank sends to every other, one exchange after the other", nil, pairwiseAlltoall},
	{"barrier-dissemination", "barrier in rounds of doubling distance", nil, disseminationBarrier},
	{"barrier-linear", "every rank reports to the root, which then releases each", []Param{ParamRoot}, linearBarrier},
	{"bcast-binary", "broadcast along a complete binary tree", []Param{ParamRoot}, binaryBroadcast},
	{"bcast-binomial", "broadcast along a binomial tree", []Param{ParamRoot}, binomialBroadcast},
	{"dissemination", "n-way dissemination: in round k, n messages at distances j*(n+1)^k", []Param{ParamWays, ParamCalcNS}, dissemination},
	{"gather", "every rank sends to the root", []Param{ParamRoot}, gather},
	{"halo2d", "exchange with the neighbours in a 2D grid, then computation", []Param{ParamIterations, ParamCalcNS}, halo(2)},
	{"halo3d", "exchange with the neighbours in a 3D grid, then computation", []Param{ParamIterations, ParamCalcNS}, halo(3)},
	{"permutation", "every rank sends to the one that a random permutation gives it", []Param{ParamIterations, ParamCalcNS, ParamSeed}, permutation},
	{"reduce-binomial", "reduction along a binomial tree", []Param{ParamRoot, ParamCalcNS}, binomialReduce},
	{"ring-double", "the message travels around the ring in both directions", []Param{ParamRoot}, doubleRing},
	{"ring-pipelined", "the message travels along the ring in segments", []Param{ParamRoot, ParamSegment}, pipelinedRing},
	{"scatter", "the root sends to every rank", []Param{ParamRoot}, scatter},
}

// Patterns returns all generators, sorted by name.
func Patterns() []Pattern { return slices.Clone(patterns) }

// quadratic are the patterns in which every rank sends and receives once, or
// more often, for each other rank.
var quadratic = []string{"allreduce-ring", "alltoall-linear", "alltoall-pairwise"}

// OperationFootprint is the approximate memory of an operation, in bytes, while
// a schedule is made or run. It is measured (TestMemoryNeeded of cmd/spinsim).
const OperationFootprint = 40

// Generate makes the schedule of a pattern. A send waits for the receives, or
// the computation, whose data it passes on. Receives are posted at the start.
// In dissemination, recursive doubling, pairwise and halo exchange they are
// posted when the previous round is over. A schedule of more than MaxGenerated
// operations is an error, found before it is made.
func Generate(pattern string, p GenParams) (*Schedule, error) {
	_, emit, err := p.plan(pattern)
	if err != nil {
		return nil, err
	}
	b := NewBuilder()
	p.emit(b, emit)
	return b.Schedule()
}

// Operations returns the number of operations in the schedule of a pattern,
// without making it, or the error that Generate would return.
func Operations(pattern string, p GenParams) (int, error) {
	n, _, err := p.plan(pattern)
	return n, err
}

// plan checks the parameters, completes them, and counts the operations.
func (p *GenParams) plan(pattern string) (operations int, emit emitter, err error) {
	i := slices.IndexFunc(patterns, func(q Pattern) bool { return q.Name == pattern })
	if i < 0 {
		var names []string
		for _, q := range patterns {
			names = append(names, q.Name)
		}
		return 0, nil, fmt.Errorf("goal: unknown pattern %q, expected one of %s%s", pattern, strings.Join(names, ", "), fields.DidYouMean(pattern, names))
	}
	if err := p.check(); err != nil {
		return 0, nil, err
	}
	p.Ways = min(max(p.Ways, 1), p.Ranks) // more would reach no other rank
	p.Iterations = max(p.Iterations, 1)
	if p.Segment == 0 {
		p.Segment = max(p.Size, 1)
	}
	if rounds := max(uint64(p.Iterations), (max(p.Size, 1)-1)/p.Segment+1); rounds > MaxGenerated/uint64(p.Ranks) && patterns[i].repeats() {
		return 0, nil, fmt.Errorf("goal: %s on %d ranks in %d rounds: %w", pattern, p.Ranks, rounds, ErrTooLarge)
	}
	// most patterns are counted below; these would take seconds
	if uint64(p.Ranks)*uint64(p.Ranks-1) > MaxGenerated/2 && slices.Contains(quadratic, pattern) {
		return 0, nil, fmt.Errorf("goal: %s on %d ranks: %w", pattern, p.Ranks, ErrTooLarge)
	}
	emit = patterns[i].setup(p)
	b := &Builder{count: &counter{most: MaxGenerated}}
	p.emit(b, emit)
	if b.err != nil {
		return 0, nil, fmt.Errorf("goal: %s on %d ranks: %w", pattern, p.Ranks, ErrTooLarge)
	}
	return b.count.ops, emit, nil
}

func (p *GenParams) check() error {
	switch {
	case p.Ranks < 1 || p.Ranks > MaxGenerated:
		return outOf("ranks", "%d, expected 1 to %d", p.Ranks, MaxGenerated)
	case p.Root < 0 || p.Root >= p.Ranks:
		return outOf("root", "%d, expected 0 to %d, a rank", p.Root, p.Ranks-1)
	case p.Ways < 0:
		return outOf("ways", "%d, expected no negative number", p.Ways)
	case p.Iterations < 0:
		return outOf("iterations", "%d, expected no negative number", p.Iterations)
	}
	return nil
}

// outOf returns the error for a parameter out of its range.
func outOf(parameter, format string, args ...any) error {
	return &fields.Wrong{Package: "goal", Option: parameter, Err: fmt.Errorf(format, args...)}
}

func (p *GenParams) emit(b *Builder, emit emitter) {
	for r := 0; r < p.Ranks && b.err == nil; r++ {
		b.Rank(r)
		emit(b, r)
	}
}

// repeats reports whether the pattern has rounds in which every rank has an
// operation.
func (q *Pattern) repeats() bool {
	return slices.Contains(q.Uses, ParamIterations) || slices.Contains(q.Uses, ParamSegment)
}

// calc adds a computation that requires the given operation. It returns the
// operation that later ones must require: the computation, or the given
// operation if there is none.
func (p *GenParams) calc(b *Builder, after int) int {
	if p.CalcNS == 0 {
		return after
	}
	c := b.Calc(p.CalcNS)
	b.Requires(c, after)
	return c
}

// at returns the rank at distance d from r around the ring of all ranks.
func (p *GenParams) at(r, d int) int { return ((r+d)%p.Ranks + p.Ranks) % p.Ranks }

// part returns the size of part i of the message, split among all ranks.
func (p *GenParams) part(i int) uint64 {
	n := uint64(p.Ranks)
	size := p.Size / n
	if uint64(i) < p.Size%n {
		size++
	}
	return size
}

// dissemination makes the operations of a round require the receives of the
// previous round.
func dissemination(p *GenParams) emitter {
	return func(b *Builder, r int) {
		var before, now []int
		for step := 1; step < p.Ranks; step *= p.Ways + 1 {
			now = now[:0]
			for j := 1; j <= p.Ways && j*step < p.Ranks; j++ {
				send := b.Send(p.Size, p.at(r, j*step), 0)
				recv := b.Recv(p.Size, p.at(r, -j*step), 0)
				for _, y := range before {
					b.Requires(send, y)
					b.Requires(recv, y)
				}
				now = append(now, recv)
			}
			for i, y := range now {
				now[i] = p.calc(b, y)
			}
			before, now = now, before
		}
	}
}

func disseminationBarrier(p *GenParams) emitter {
	p.Ways, p.CalcNS = 1, 0
	return dissemination(p)
}

// recursiveDoubling has the usual form for any number of ranks. Let 2^k be the
// largest power of two up to this number. Each even rank of the first
// 2*(ranks-2^k) hands its data to the next, odd rank, and gets the result from
// it.
func recursiveDoubling(p *GenParams) emitter {
	pow := 1
	for pow*2 <= p.Ranks {
		pow *= 2
	}
	folded := 2 * (p.Ranks - pow)
	return func(b *Builder, r int) {
		if r < folded && r%2 == 0 {
			b.Send(p.Size, r+1, 0)
			b.Recv(p.Size, r+1, 0)
			return
		}
		me, before := r-folded/2, -1
		if r < folded {
			me = r / 2
			before = p.calc(b, b.Recv(p.Size, r-1, 0))
		}
		for bit := 1; bit < pow; bit *= 2 {
			partner := me ^ bit
			if 2*partner < folded {
				partner = 2*partner + 1
			} else {
				partner += folded / 2
			}
			send, recv := b.Send(p.Size, partner, 0), b.Recv(p.Size, partner, 0)
			if before >= 0 {
				b.Requires(send, before)
				b.Requires(recv, before)
			}
			before = p.calc(b, recv)
		}
		if r < folded {
			b.Requires(b.Send(p.Size, r-1, 0), before)
		}
	}
}

// ringAllreduce sends, in step s, the part that it got in step s-1. The first
// ranks-1 steps reduce.
func ringAllreduce(p *GenParams) emitter {
	return func(b *Builder, r int) {
		before := -1
		for s := range 2 * (p.Ranks - 1) {
			send := b.Send(p.part(p.at(r, -s)), p.at(r, 1), uint32(s))
			if before >= 0 {
				b.Requires(send, before)
			}
			before = b.Recv(p.part(p.at(r, -s-1)), p.at(r, -1), uint32(s))
			if s < p.Ranks-1 {
				before = p.calc(b, before)
			}
		}
	}
}

func linearAlltoall(p *GenParams) emitter {
	return func(b *Builder, r int) {
		for d := 1; d < p.Ranks; d++ {
			b.Send(p.Size, p.at(r, d), 0)
			b.Recv(p.Size, p.at(r, -d), 0)
		}
	}
}

// pairwiseAlltoall is a sequence of blocking exchanges: both operations of an
// exchange wait for both of the previous one.
func pairwiseAlltoall(p *GenParams) emitter {
	return func(b *Builder, r int) {
		for d := 1; d < p.Ranks; d++ {
			send := b.Send(p.Size, p.at(r, d), 0)
			recv := b.Recv(p.Size, p.at(r, -d), 0)
			if d > 1 {
				for _, x := range []int{send, recv} {
					b.Requires(x, send-2)
					b.Requires(x, recv-2)
				}
			}
		}
	}
}

// permutation makes one permutation per iteration. A rank mapped to itself
// pauses.
func permutation(p *GenParams) emitter {
	rng := rand.New(rand.NewPCG(p.Seed, 0))
	targets, sources := make([][]int, p.Iterations), make([][]int, p.Iterations)
	memory.Ask(int64(p.Iterations) * int64(p.Ranks) * 2 * int64(unsafe.Sizeof(0)))
	for k := range targets {
		targets[k], sources[k] = rng.Perm(p.Ranks), make([]int, p.Ranks)
		for from, to := range targets[k] {
			sources[k][to] = from
		}
	}
	return func(b *Builder, r int) {
		before := -1
		for k := range targets {
			if targets[k][r] == r {
				continue
			}
			send := b.Send(p.Size, targets[k][r], uint32(k))
			if before >= 0 {
				b.Requires(send, before)
			}
			before = p.calc(b, b.Recv(p.Size, sources[k][r], uint32(k)))
		}
	}
}
