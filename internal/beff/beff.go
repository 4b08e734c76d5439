// Package beff is the effective bandwidth benchmark b_eff as a program of
// package mpi, on any transport and device: Rabenseifner, Koniges, "Effective
// Communication and File-I/O Bandwidth Benchmarks", EuroPVM/MPI 2001, and
// https://fs.hlrs.de/projects/par/mpi/b_eff (version 3.5). No code is theirs.
//
//	b_eff = logavg(logavg over ring patterns(mean over L(b)), logavg over random patterns(mean over L(b)))
//
// with the geometric mean logavg, the arithmetic mean over 21 lengths L
// ([Lengths]), and b the largest, over three methods and some repetitions, of
//
//	L * messages of the pattern * iterations / time of the slowest rank.
//
// In each of the 12 patterns ([Rings]) ranks form rings, in six of them in the
// order of their numbers and in six in a random one; each rank sends a message
// to its left and one to its right neighbour. The methods are MPI_Sendrecv
// twice, MPI_Alltoallv, and MPI_Irecv, MPI_Isend and MPI_Waitall. Messages lie
// cyclically in two buffers of 6 (Lmax + 16) bytes; their first and last bytes
// are checked.
//
// A simulation without noise need not repeat measurements. Therefore this
// program differs from the benchmark in Options.Loop, in Repetitions, in
// Options.Sent and, on a network that is the same for all ranks, in
// Options.Alike.
package beff

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Sizes of the benchmark.
const (
	Patterns   = 12 // six rings, six random
	LengthsOf  = 21
	MostRounds = 300 // iterations of a loop at most
	short      = 13  // lengths up to 4 KiB
	unwarmed   = 3   // the longest lengths have no exchange before the loop
)

// Lengths returns the lengths of messages in bytes: 1, 2, 4 up to 4,096, and
// eight more up to longest, each larger by the same factor. In the definition,
// longest is min(128 MiB, memory of a processor / 128); here it is at least 8
// KiB.
func Lengths(longest int) (list []int) {
	for i := range short {
		list = append(list, 1<<i)
	}
	a := float64(longest) / 4096
	for i := 1; i <= LengthsOf-short; i++ {
		list = append(list, int(math.Round(4096*math.Pow(a, float64(i)/(LengthsOf-short)))))
	}
	return list
}

// Rings returns the sizes of the rings of a pattern, 0 to 5, for at least 2
// ranks. The sizes are 2, 4, 8, max(16, ranks/4), max(32, ranks/2) and all
// ranks, as nearly as the number of ranks allows. If they must differ, they are
// as equal as possible (our choice).
func Rings(ranks, pattern int) (sizes []int) {
	size := min([]int{2, 4, 8, max(16, ranks/4), max(32, ranks/2), ranks}[pattern], ranks)
	n := max(1, (ranks+size/2)/size)
	if ranks/n < 2 {
		n = ranks / 2
	}
	for i := range n {
		sizes = append(sizes, ranks*(i+1)/n-ranks*i/n)
	}
	return sizes
}

// Options are the parameters of a run.
type Options struct {
	// Longest is Lmax, bytes, 8 KiB to 128 MiB.
	Longest int
	// Sent is the longest message to send, bytes, at least 4 KiB. Longer
	// lengths get its bandwidth. If it equals Longest, all are sent.
	Sent int
	// Repetitions of each measurement, 1 to 3; 3 in the definition.
	Repetitions int
	// Loop is the intended time of a loop: 2.5 to 5 ms in the definition. A
	// loop has 1 to MostRounds iterations.
	Loop sim.Time
	// Alike means that ranks differ in their numbers only. Then the run
	// measures one of the patterns with rings of the same sizes.
	Alike bool
	// Seed is the seed of the random patterns.
	Seed uint64
}

// Validate returns every violation.
func (o *Options) Validate() error {
	var wrong []error
	need := func(field string, n, least, most int) {
		if n < least || n > most {
			wrong = append(wrong, fmt.Errorf("beff: %s is %d, expected %d to %d", field, n, least, most))
		}
	}
	need("longest", o.Longest, 8<<10, 128<<20)
	need("sent", o.Sent, 4<<10, o.Longest)
	need("repetitions", o.Repetitions, 1, 3)
	if o.Loop < 0 {
		wrong = append(wrong, fmt.Errorf("beff: loop is %v, expected at least 0", o.Loop))
	}
	return errors.Join(wrong...)
}

// Result is the measurements of a run, in bytes per second of all ranks
// together.
type Result struct {
	// by pattern, rings first, and length: the best method and repetition
	Bandwidth [Patterns][LengthsOf]float64
	Best      [Patterns][LengthsOf]Method // the method with this bandwidth
}

// mean returns the arithmetic mean over lengths.
func (r *Result) mean(pattern int) (sum float64) {
	for _, b := range r.Bandwidth[pattern] {
		sum += b
	}
	return sum / LengthsOf
}

// logavg returns the geometric mean of the means of patterns.
func (r *Result) logavg(from, to int) float64 {
	sum := 0.0
	for p := from; p < to; p++ {
		sum += math.Log(r.mean(p))
	}
	return math.Exp(sum / float64(to-from))
}

// Rings returns the geometric mean over ring patterns.
func (r *Result) Rings() float64 { return r.logavg(0, Patterns/2) }

// Random returns the geometric mean over random patterns.
func (r *Result) Random() float64 { return r.logavg(Patterns/2, Patterns) }

// Effective returns b_eff.
func (r *Result) Effective() float64 { return math.Sqrt(r.Rings() * r.Random()) }

// At returns the geometric mean over all patterns of the bandwidth at the
// length with this index.
func (r *Result) At(length int) float64 {
	sum := 0.0
	for p := range r.Bandwidth {
		sum += math.Log(r.Bandwidth[p][length])
	}
	return math.Exp(sum / Patterns)
}

// Benchmark is a run.
type Benchmark struct {
	Options
	Result  Result // when the run is over
	lengths []int
	ranks   int
	order   [Patterns][]int // ranks, ring by ring
	rings   [Patterns][]int // sizes
}

// New makes a run on at least 2 ranks.
func New(o Options, ranks int) (*Benchmark, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if ranks < 2 {
		return nil, fmt.Errorf("beff: %d ranks, expected at least 2", ranks)
	}
	b := &Benchmark{Options: o, lengths: Lengths(o.Longest), ranks: ranks}
	rng := rand.New(rand.NewPCG(o.Seed, 0xbeff))
	for p := range Patterns {
		b.rings[p] = Rings(ranks, p%(Patterns/2))
		b.order[p] = make([]int, ranks)
		for i := range ranks {
			b.order[p][i] = i
		}
		if p >= Patterns/2 {
			rng.Shuffle(ranks, func(i, j int) { b.order[p][i], b.order[p][j] = b.order[p][j], b.order[p][i] })
		}
	}
	return b, nil
}

// neighbours returns the neighbours of a rank in a pattern.
func (b *Benchmark) neighbours(pattern, rank int) (left, right int) {
	at := slices.Index(b.order[pattern], rank)
	first := 0
	for _, n := range b.rings[pattern] {
		if at < first+n {
			return b.order[pattern][first+(at-first+n-1)%n], b.order[pattern][first+(at-first+1)%n]
		}
		first += n
	}
	panic("a rank without a ring") //lint:panic rings have all ranks
}

// same returns the earliest pattern that stands for this one.
func (b *Benchmark) same(pattern int) int {
	if !b.Alike {
		return pattern
	}
	return slices.IndexFunc(b.rings[:], func(rings []int) bool { return slices.Equal(rings, b.rings[pattern]) })
}

// Program is the program of each rank of a world.
func (b *Benchmark) Program(r *mpi.Rank) error {
	x := &end{b: b, r: r, c: r.World()}
	if err := x.open(); err != nil {
		return err
	}
	for range b.Repetitions {
		for i, n := range b.lengths {
			if n > b.Sent {
				break
			}
			if err := x.patterns(i, n); err != nil {
				return err
			}
		}
	}
	if r.Rank() == 0 {
		b.fill()
	}
	return nil
}

// fill copies measurements to the patterns and lengths for which they stand.
func (b *Benchmark) fill() {
	for p := range Patterns {
		of := b.same(p)
		for i, n := range b.lengths {
			if b.Result.Bandwidth[p][i], b.Result.Best[p][i] = b.Result.Bandwidth[of][i], b.Result.Best[of][i]; n > b.Sent {
				b.Result.Bandwidth[p][i], b.Result.Best[p][i] = b.Result.Bandwidth[p][i-1], b.Result.Best[p][i-1]
			}
		}
	}
}

// patterns measures all patterns and methods with a length.
func (x *end) patterns(i, n int) error {
	b := x.b
	for p := range Patterns {
		if b.same(p) != p {
			continue
		}
		x.left, x.right = b.neighbours(p, x.r.Rank())
		for m := range methods {
			took, rounds, err := x.measure(Method(m), n, i >= LengthsOf-unwarmed)
			if err != nil {
				return fmt.Errorf("pattern %d, %d B, %v: %w", p, n, Method(m), err)
			}
			rate := float64(n) * float64(2*b.ranks*rounds) / took.Seconds()
			if x.r.Rank() == 0 && rate > b.Result.Bandwidth[p][i] {
				b.Result.Bandwidth[p][i], b.Result.Best[p][i] = rate, Method(m)
			}
		}
	}
	return nil
}

// Memory returns how much of a rank's memory a run needs, bytes.
func (o *Options) Memory() int { return 2 * buffers * (o.Sent + 16) }

// Pairs returns the number of pairs of ranks that exchange messages in the
// measured patterns.
func (b *Benchmark) Pairs() int {
	pairs := map[[2]int]bool{}
	for p := range Patterns {
		for rank := range b.ranks {
			if left, right := b.neighbours(p, rank); b.same(p) == p {
				pairs[[2]int{rank, left}], pairs[[2]int{rank, right}] = true, true
			}
		}
	}
	return len(pairs)
}

// buffers is how many messages a buffer holds.
const buffers = 6

// open allocates the buffers.
func (x *end) open() (err error) {
	for _, v := range []*runtime.View{&x.send.memory, &x.recv.memory} {
		if *v, err = x.r.Alloc(x.b.Memory() / 2); err != nil {
			return err
		}
	}
	if x.word, err = x.r.Alloc(16); err != nil {
		return err
	}
	x.counts, x.places, x.origins = make([]int, x.b.ranks), make([]int, x.b.ranks), make([]int, x.b.ranks)
	return nil
}
