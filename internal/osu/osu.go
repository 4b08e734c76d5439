package osu

import (
	"context"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/sim"
)

// Kind is the number of ranks that a benchmark needs.
type Kind int

// Kinds of benchmarks.
const (
	Pair       Kind = iota // two ranks
	Pairs                  // an even number: the first half with the second
	Collective             // any number from 2 on
)

// Unit is the quantity that a benchmark measures.
type Unit int

// Units.
const (
	Latency   Unit = iota // Row.Latency, of collectives also Min and Max
	Bandwidth             // Row.Bandwidth
	Rate                  // Row.Bandwidth and Row.Rate
)

// Benchmark is one of the OSU micro-benchmarks. It never changes.
type Benchmark struct {
	Name  string // name of OSU's program without osu_
	Title string // in the first line of its output
	Kind  Kind
	Unit  Unit

	Least    int  // smallest size of a message by default, bytes
	Most     int  // largest, bytes; see DefaultMost
	Windowed bool // it has Options.Window messages under way

	touched bool // its calls touch no memory except the buffers
	floats  bool // it reduces vectors of float32: sizes are multiples of 4
	sizes   bool // it has sizes: all except barrier
	program func(t *test) (Row, error)
	memory  func(n, ranks int) int64 // of all ranks together, bytes
}

const (
	mib        = 1 << 20
	floatBytes = 4
)

// all are the benchmarks, in the order of OSU's documentation.
var all = []*Benchmark{
	{Name: "latency", Title: "OSU MPI Latency Test", Most: 4 * mib, sizes: true, program: (*test).latency, memory: each(2, 0)},
	{Name: "bw", Title: "OSU MPI Bandwidth Test", Unit: Bandwidth, Least: 1, Most: 4 * mib, Windowed: true, sizes: true, program: (*test).bw, memory: each(2, 0)},
	{Name: "bibw", Title: "OSU MPI Bi-Directional Bandwidth Test", Unit: Bandwidth, Least: 1, Most: 4 * mib, Windowed: true, sizes: true, program: (*test).bibw, memory: each(2, 0)},
	{Name: "multi_lat", Title: "OSU MPI Multi Latency Test", Kind: Pairs, Most: 4 * mib, sizes: true, program: (*test).multiLatency, memory: each(2, 0)},
	{Name: "mbw_mr", Title: "OSU MPI Multiple Bandwidth / Message Rate Test", Kind: Pairs, Unit: Rate, Least: 1, Most: 4 * mib, Windowed: true, sizes: true, program: (*test).rate, memory: each(2, 0)},
	{Name: "barrier", Title: "OSU MPI Barrier Latency Test", Kind: Collective, program: (*test).barrier, memory: each(0, 0)},
	{Name: "bcast", Title: "OSU MPI Broadcast Latency Test", Kind: Collective, Least: 1, Most: mib, sizes: true, touched: true, program: (*test).bcast, memory: each(1, 0)},
	{Name: "reduce", Title: "OSU MPI Reduce Latency Test", Kind: Collective, Least: floatBytes, Most: mib, sizes: true, floats: true, program: (*test).reduce, memory: each(4, 0)},
	{Name: "allreduce", Title: "OSU MPI Allreduce Latency Test", Kind: Collective, Least: floatBytes, Most: mib, sizes: true, floats: true, program: (*test).allreduce, memory: each(4, 0)},
	{Name: "reduce_scatter", Title: "OSU MPI Reduce_scatter Latency Test", Kind: Collective, Least: floatBytes, Most: mib, sizes: true, floats: true, program: (*test).reduceScatter, memory: each(4, 0)},
	{Name: "scatter", Title: "OSU MPI Scatter Latency Test", Kind: Collective, Least: 1, Most: mib, sizes: true, program: (*test).scatter, memory: tree},
	{Name: "gather", Title: "OSU MPI Gather Latency Test", Kind: Collective, Least: 1, Most: mib, sizes: true, program: (*test).gather, memory: tree},
	{Name: "allgather", Title: "OSU MPI Allgather Latency Test", Kind: Collective, Least: 1, Most: mib, sizes: true, program: (*test).allgather, memory: each(1, 1)},
	{Name: "alltoall", Title: "OSU MPI All-to-All Personalized Exchange Latency Test", Kind: Collective, Least: 1, Most: mib, sizes: true, program: (*test).alltoall, memory: each(0, 3)},
}

// each returns the memory of a benchmark whose ranks each have this many
// messages, and perRank more for each rank.
func each(messages, perRank int64) func(n, ranks int) int64 {
	return func(n, ranks int) int64 { return int64(ranks) * int64(n) * (messages + perRank*int64(ranks)) }
}

// tree returns the memory of scatter and gather. Each rank has the messages of
// its part of a binomial tree: half of the ranks have one message, a quarter
// two, …
func tree(n, ranks int) int64 {
	depth := int64(2)
	for k := 1; k < ranks; k *= 2 {
		depth++
	}
	return int64(ranks) * int64(n) * depth
}

// All lists the benchmarks.
func All() []*Benchmark { return append([]*Benchmark(nil), all...) }

// Names lists the names of benchmarks of some kinds.
func Names(kinds ...Kind) (names []string) {
	for _, b := range all {
		for _, k := range kinds {
			if b.Kind == k {
				names = append(names, b.Name)
			}
		}
	}
	return names
}

// Find returns the benchmark with a name, with or without osu_ before it.
func Find(name string) (*Benchmark, error) {
	for _, b := range all {
		if b.Name == strings.TrimPrefix(name, "osu_") {
			return b, nil
		}
	}
	return nil, fmt.Errorf("osu: no benchmark %q, expected one of %s%s", name, strings.Join(Names(Pair, Pairs, Collective), ", "), fields.DidYouMean(name, Names(Pair, Pairs, Collective)))
}

// Sized reports whether the benchmark has messages with a size: all except
// barrier.
func (b *Benchmark) Sized() bool { return b.sizes }

// Memory returns about how much memory the messages of all ranks take, bytes.
func (b *Benchmark) Memory(n, ranks int) int64 { return b.memory(n, ranks) }

// most is the bound for the messages of all ranks in DefaultMost, bytes.
const most = 1 << 30

// DefaultMost returns the largest size by default, bytes: OSU's or, with many
// ranks, the largest for which messages take at most 1 GiB.
func (b *Benchmark) DefaultMost(ranks int) int {
	n := b.Most
	for n > 1 && b.memory(n, ranks) > most {
		n /= 2
	}
	return n
}

// Sizes lists the benchmark's sizes from least to most. Each is twice the one
// before; 1 follows 0. A benchmark without sizes has 0.
func (b *Benchmark) Sizes(least, most int) (list []int) {
	if !b.sizes {
		return []int{0}
	}
	n := max(least, 0)
	if b.Least > 0 {
		n = max(n, 1)
	}
	if b.floats {
		n = max(n/floatBytes, 1) * floatBytes
	}
	for ; n <= most; n = max(1, 2*n) {
		list = append(list, n)
	}
	return list
}

// Check returns why the benchmark has no messages of n bytes on this many
// ranks.
func (b *Benchmark) Check(n, ranks int) error {
	switch {
	case b.Kind == Pair && ranks != 2:
		return fmt.Errorf("osu_%s: %d ranks, expected 2", b.Name, ranks)
	case b.Kind == Pairs && (ranks < 2 || ranks%2 != 0):
		return fmt.Errorf("osu_%s: %d ranks, expected an even number: the first half sends to the second", b.Name, ranks)
	case ranks < 2:
		return fmt.Errorf("osu_%s: %d ranks, expected at least 2", b.Name, ranks)
	case b.floats && n%floatBytes != 0 || b.floats && n == 0:
		return fmt.Errorf("osu_%s: %d B, expected a multiple of %d: it reduces float32", b.Name, n, floatBytes)
	case !b.sizes && n != 0:
		return fmt.Errorf("osu_%s: %d B, expected 0: it has no data", b.Name, n)
	case n < 0 || b.Least > 0 && n == 0 && b.sizes:
		return fmt.Errorf("osu_%s: %d B, expected at least 1", b.Name, n)
	}
	return nil
}

// Options are the parameters of a run.
type Options struct {
	Bytes      int    // size of the messages; see Benchmark.Check
	Iterations int    // timed ones; 0: DefaultIterations
	Warmup     int    // untimed ones before them; AutoWarmup: Benchmark.DefaultWarmup
	Window     int    // messages under way at a time, where the benchmark has a window; 0: 64, OSU's
	Seed       uint64 // of the messages' content
	NoBarrier  bool   // collectives: call after call, without OSU's barrier between them

	// Timed, if not nil, is called at the end of each timed iteration of a
	// rank. from is when it began.
	Timed func(r *mpi.Rank, from sim.Time)
}

// Defaults of commands. The window is OSU's. A simulation has only page tables
// and address caches to warm up.
const (
	DefaultWindow = 64
	DefaultWarmup = 1
)

// AutoWarmup is the value of Options.Warmup that stands for Benchmark.DefaultWarmup.
const AutoWarmup = -1

// A simulation has no noise, so iterations repeat each other once the ranks
// have reached their final distance in time. OSU takes 20 to 10,000 iterations,
// TR-488 30 for collectives.
const (
	smallBytes     = 8192     // OSU's "large" messages are above
	briefBytes     = 32 << 10 // a larger broadcast is long compared with the distance of ranks in time
	mostIterations = 30
	rankIterations = 1024 // iterations times ranks
	// with more an operation is thousands of messages: on 512 ranks one
	// iteration of bcast or allreduce is within 2.3% of the mean of four
	manyRanks = 256
)

// DefaultIterations returns the number of timed iterations. Up to 8 KiB there
// are 30 on up to 34 ranks, and 1,024 / ranks on more; above 8 KiB or 256 ranks
// there is 1.
func DefaultIterations(bytes, ranks int) int {
	if bytes > smallBytes || ranks > manyRanks {
		return 1
	}
	return min(mostIterations, rankIterations/max(1, ranks))
}

// DefaultWarmup returns how many iterations come before the timed ones: 1, and
// none for bcast above 32 KiB on more than 256 ranks. That broadcast works only
// in its buffers, which are touched before. So its first call differs from the
// second only in the distance of the ranks in time, by 1 to 3.5 us of some
// hundreds or thousands: on 260 to 512 ranks 0.2% to 0.6% at 64 KiB, 0.002% at
// 1 MiB. Other benchmarks have temporary buffers, and the first call brings
// their pages.
func (b *Benchmark) DefaultWarmup(bytes, ranks int) int {
	if b.touched && bytes > briefBytes && ranks > manyRanks {
		return 0
	}
	return DefaultWarmup
}

// filled returns the options with defaults in place of zeros.
func (o Options) filled(ranks int) Options {
	if o.Iterations == 0 {
		o.Iterations = DefaultIterations(o.Bytes, ranks)
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	return o
}

// Row is a line of a benchmark's output.
type Row struct {
	Bytes      int
	Iterations int
	Latency    sim.Time // of an operation: the mean over iterations and, except for a pair, over ranks
	// collectives: means over iterations, of the fastest and the slowest rank
	Least, Most sim.Time
	Bandwidth   float64 // MB/s: 10^6 bytes of data in a second, of all ranks that send
	MessageRate float64 // messages/s
}

// Program runs the benchmark at a rank. All ranks of c must call it; a pair is
// ranks 0 and 1. Rank 0 returns the row; others return an empty one.
func (b *Benchmark) Program(c *mpi.Comm, o Options) (Row, error) {
	if err := b.Check(o.Bytes, c.Size()); err != nil {
		return Row{}, err
	}
	if o.Warmup == AutoWarmup {
		o.Warmup = b.DefaultWarmup(o.Bytes, c.Size())
	}
	if o.Iterations < 0 || o.Warmup < 0 || o.Window < 0 {
		return Row{}, fmt.Errorf("osu_%s: %d iterations behind %d, window %d: expected none below 0", b.Name, o.Iterations, o.Warmup, o.Window)
	}
	o = o.filled(c.Size())
	row, err := b.program(&test{Options: o, c: c, r: c.Owner()})
	if c.Rank() != 0 {
		return Row{}, err
	}
	row.Bytes, row.Iterations = o.Bytes, o.Iterations
	return row, err
}

// Run runs the benchmark at all ranks of a world, which has none yet, and returns its row.
func Run(ctx context.Context, w *mpi.World, b *Benchmark, o Options) (Row, error) {
	var row Row
	for rank := range w.Size() {
		err := w.Spawn(rank, func(r *mpi.Rank) error {
			one, err := b.Program(r.World(), o)
			if rank == 0 {
				row = one
			}
			return err
		})
		if err != nil {
			return Row{}, err
		}
	}
	return row, w.Run(ctx)
}
