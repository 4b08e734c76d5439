package npf

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers/rnr"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfIMB = &experiment.Experiment{
	Name:  "npf-imb",
	Short: "MPI's sendrecv, bcast, alltoall and allreduce on memory that is copied, pinned or absent, each message somewhere else",
	Long: `MPI processes, one on each node, run programs of the Intel MPI Benchmarks (IMB 3.1) with -off_cache: the messages of each iteration follow those of the previous one in memory, in a region that is used
cyclically. There are several ways to make the memory of messages ready for the interface:
` + npfMPIStrategies + `
The region has --iterations messages and is used twice. --pass first times the first pass, in which all memory is new to the interface; later times the second. A program has written the memory that it sends, and has not touched the memory
that it receives into.`,
	Source:   npfSource + " §6",
	Smoke:    []experiment.Values{{"ranks": 3, "iterations": 2, "size": 20000, "benchmark": imbBcast, "pass": imbFirst, "strategy": "none"}},
	Profiles: []string{"ib-npf"},
	Axes: append(npfMPIAxes(), []experiment.Axis{
		{Name: "benchmark", Column: "program", Kind: report.Text, Of: []string{imbSendrecv, imbBcast, imbAlltoall, imbAllreduce}, Help: "sendrecv: to the next rank and from the previous one; bcast: the root is the next rank each time; alltoall: size is for each rank; allreduce: sums of float32, as many as size has room for"},
		{Name: "pass", Kind: report.Text, Of: []string{imbFirst, imbLater}, Default: imbLater, Help: "pass over the region that is timed"},
		{Name: "iterations", Kind: report.Count, Least: "1", Most: "1000", Default: "4", Help: "messages of the region; IMB has 2 cache sizes of them, at most 1,000 and 40 MiB: here pins and pages are kept up to --bound"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "4MiB", Default: imbSizes, Help: "of a message"},
	}...),
	Points: func(p *experiment.Point) (bool, error) {
		if least := mpi.Float32.Size(); p.Text("benchmark") == imbAllreduce && p.Int("size") < least {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--size: %d B of allreduce, expected at least %d B: a number", p.Int("size"), least)}
		}
		return true, hasNPF(p)
	},
	Run: runNPFIMB,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "of an iteration: the time of the slowest rank for all, divided by their number"},
		{Name: "bandwidth", Unit: "MBps", Kind: report.Number, Help: "of sendrecv, as IMB counts it: bytes that a rank sends and receives in a second, 10^6 B/s; else empty"},
	}, npfMPIColumns()...),
	Relative: []experiment.Relative{
		{
			Column: report.Column{Name: "vs_cache", Kind: report.Ratio, Help: "how many times as fast as with the pin-down cache: latency with it / latency, at the same profile and other values; empty if that was not measured"},
			Of:     experiment.LatencyColumn, Axis: "strategy", Base: pinning.CacheKind,
		},
	},
	Ledger: []experiment.LedgerRow{{
		ID: "npf17-6.2-04", Of: "benchmark=sendrecv,bcast,alltoall strategy=bounce,cache size=" + imbSizes,
		How: "the time with copies / that with pinned memory grows with each size, 4 KiB to 1 MiB, in sendrecv, bcast and alltoall", Holds: imbCopiesLose,
	}},
	Slots:    experiment.Always(rnr.EngineSlot),
	Followed: experiment.LatencyColumn,
	Memory: func(p *experiment.Point) int64 {
		n := p.Int("ranks")
		return p.Footprint(n) + int64(2*n*p.Int("iterations")*imbStride(imbBytes(p))+imbEager(p))
	},
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"strategy"}, X: "bytes", Quiet: []string{"ranks", "bound", "eager", "iterations"},
		Summary: []string{experiment.ProfileColumn, "program", "pass", "bytes", "strategy", experiment.LatencyColumn, "vs_cache", "bandwidth", "faults", "pinned", "copied"},
		Answer:  npfIMBAnswer,
	},
	Presets: []experiment.Preset{{
		Name: "first", Short: "the first use of all memory", Source: "ours", Values: map[string]string{"pass": imbFirst, "benchmark": imbSendrecv},
	}, {
		Name: "bound", Short: "a pin-down cache that has not room for all messages", Source: "ours", Values: map[string]string{"benchmark": imbSendrecv, "bound": "8MiB,1GiB", "size": "256KiB,1MiB"},
		View: &experiment.View{
			Value: experiment.LatencyColumn, Series: []string{"strategy", "bound"}, X: "bytes", Quiet: []string{"ranks", "eager", "iterations"},
			Summary: []string{experiment.ProfileColumn, "bound", "bytes", "strategy", experiment.LatencyColumn, "vs_cache", "faults", "pinned"},
		},
	}},
	Notes: []string{
		"Every message of the last pass was compared with what was sent.",
		"The paper's figure has no numbers in its text: NPF like the pin-down cache, copying loses more the larger messages are, and in allreduce it makes little difference. Ours loses in allreduce, too: the host's model of copies has no cache, so each copy takes the time of memory.",
	},
}

// Values of the axes benchmark and pass.
const (
	imbSendrecv  = "sendrecv"
	imbBcast     = "bcast"
	imbAlltoall  = "alltoall"
	imbAllreduce = "allreduce"
	imbFirst     = "first"
	imbLater     = "later"
)

const imbSizes = "4KiB,16KiB,64KiB,256KiB,1MiB"

// imbCopiesLose reports whether copying loses more the larger the messages are.
func imbCopiesLose(m *experiment.Measured) bool {
	all := true
	for _, benchmark := range []string{imbSendrecv, imbBcast, imbAlltoall} {
		last := 0.0
		for size := range strings.SplitSeq(imbSizes, ",") {
			at := func(strategy string) float64 {
				return m.At(experiment.LatencyColumn, fmt.Sprintf("benchmark=%s size=%s strategy=%s", benchmark, size, strategy))
			}
			loses := at(pinning.BounceKind) / at(pinning.CacheKind)
			all, last = all && loses > last, loses
		}
	}
	return all
}

// imbStride is the distance between messages: a cache line is between them (IMB
// 3.1).
func imbStride(bytes int) int {
	const line = 64
	return ((bytes+line-1)/line + 1) * line
}

// imbBytes is how many bytes a rank sends or receives in an iteration.
func imbBytes(p *experiment.Point) int {
	switch p.Text("benchmark") {
	case imbAlltoall:
		return p.Int("size") * p.Int("ranks")
	case imbAllreduce:
		return p.Int("size") / mpi.Float32.Size() * mpi.Float32.Size()
	}
	return p.Int("size")
}

// imbEager is how many bytes of the connections' buffers eager messages use, at
// both ends. Each message uses the next buffer.
func imbEager(p *experiment.Point) int {
	if p.Int("size") > p.Int("eager") {
		return 0
	}
	n, passes := p.Int("ranks"), 2
	connections := n // sendrecv, and about as many at a time in the trees of bcast
	switch p.Text("benchmark") {
	case imbAlltoall:
		connections = n * (n - 1)
	case imbAllreduce:
		connections = n * bits.Len(uint(n))
	}
	return 2 * connections * min(passes*p.Int("iterations"), mpi.DefaultInfiniBandOptions().Buffers) * p.Int("size")
}

// imb is a running measurement.
type imb struct {
	*experiment.Point
	took    []sim.Time // of each rank
	slowest sim.Time   // of them
}

func runNPFIMB(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &imb{Point: p, took: make([]sim.Time, p.Int("ranks"))}
	values, err := npfMPI(ctx, p, w.program)
	if err != nil {
		return nil, err
	}
	each := w.slowest / sim.Time(p.Int("iterations"))
	values[experiment.LatencyColumn], values["bandwidth"] = each, nil
	if p.Text("benchmark") == imbSendrecv {
		values["bandwidth"] = 2 * float64(p.Int("size")) / 1e6 / each.Seconds()
	}
	return values, nil
}

// program is the program of a rank.
func (w *imb) program(r *mpi.Rank) error {
	n, rounds := imbBytes(w.Point), w.Int("iterations")
	stride := imbStride(n)
	send, err := r.Alloc(rounds * stride)
	if err != nil {
		return err
	}
	recv, err := r.Alloc(rounds * stride)
	if err != nil {
		return err
	}
	for i := range rounds {
		w.fill(send.Slice(i*stride, i*stride+n).Write(), r.Rank(), i)
	}
	passes := 1
	if w.Text("pass") == imbLater {
		passes = 2
	}
	for pass := range passes {
		if err := r.World().Barrier(); err != nil {
			return err
		}
		begin := r.Now()
		var list []experiment.Operation
		for i := range rounds {
			from := r.Now()
			if err := w.iterate(r, i, send.Slice(i*stride, i*stride+n), recv.Slice(i*stride, i*stride+n)); err != nil {
				return err
			}
			list = append(list, experiment.Operation{Rank: r.Proc().Rank(), Process: r.Proc().Name(), From: from, To: r.Now()})
		}
		if w.took[r.Rank()] = r.Now() - begin; pass == passes-1 {
			if w.took[r.Rank()] > w.slowest {
				w.slowest = w.took[r.Rank()]
				w.OnlyOperations(list)
			}
			return w.check(r, recv, stride)
		}
	}
	return nil
}

// seed is the seed of a rank's data in an iteration, for alltoall to one rank.
func (w *imb) seed(rank, to, i int) uint64 { return w.Seed + uint64((rank<<8|to)<<16|i) }

// fill writes the data that a rank sends in an iteration.
func (w *imb) fill(b []byte, rank, i int) {
	if w.Text("benchmark") == imbAllreduce {
		imbFloats(b, func(at int) int { return rank*(at%7) + i })
		return
	}
	for to, b := range slices.Collect(slices.Chunk(b, w.Int("size"))) {
		experiment.Pattern(b, w.seed(rank, to, i))
	}
}

// imbFloats writes small whole numbers as float32. Their sums are exact in any
// order.
func imbFloats(b []byte, number func(at int) int) {
	for at := range len(b) / mpi.Float32.Size() {
		binary.LittleEndian.PutUint32(b[at*mpi.Float32.Size():], math.Float32bits(float32(number(at))))
	}
}

// checkSums compares a rank's results of allreduce with the sum of fill over
// all ranks.
func (w *imb) checkSums(r *mpi.Rank, recv runtime.View, stride int) error {
	n, want := r.Size(), make([]byte, imbBytes(w.Point))
	for i := range w.Int("iterations") {
		imbFloats(want, func(at int) int { return n*(n-1)/2*(at%7) + n*i })
		if err := experiment.SameBytes(fmt.Sprintf("sum %d at rank %d", i, r.Rank()), recv.Slice(i*stride, i*stride+len(want)).Snapshot(), want); err != nil {
			return err
		}
	}
	return nil
}

// iterate runs an iteration.
func (w *imb) iterate(r *mpi.Rank, i int, send, recv runtime.View) error {
	c, n := r.World(), r.Size()
	switch w.Text("benchmark") {
	case imbSendrecv:
		_, err := c.Sendrecv(send, (r.Rank()+1)%n, 1, recv, (r.Rank()+n-1)%n, mpi.AnyTag)
		return err
	case imbAlltoall:
		return c.Alltoall(send, recv)
	case imbAllreduce:
		return c.Allreduce(send, recv, mpi.Float32, mpi.Sum)
	}
	if r.Rank() == i%n {
		return c.Bcast(send, i%n)
	}
	return c.Bcast(recv, i%n)
}

// check compares a rank's received data.
func (w *imb) check(r *mpi.Rank, recv runtime.View, stride int) error {
	if w.Text("benchmark") == imbAllreduce {
		return w.checkSums(r, recv, stride)
	}
	size, n := w.Int("size"), r.Size()
	want := make([]byte, size)
	for i := range w.Int("iterations") {
		for at := range imbBytes(w.Point) / size {
			from, to := (r.Rank()+n-1)%n, 0
			switch w.Text("benchmark") {
			case imbBcast:
				from = i % n
			case imbAlltoall:
				from, to = at, r.Rank()
			}
			if w.Text("benchmark") == imbBcast && from == r.Rank() {
				continue
			}
			experiment.Pattern(want, w.seed(from, to, i))
			if err := experiment.SameBytes(fmt.Sprintf("message %d of rank %d at rank %d", i, from, r.Rank()), recv.Slice(i*stride+at*size, i*stride+(at+1)*size).Snapshot(), want); err != nil {
				return err
			}
		}
	}
	return nil
}

// npfIMBAnswer writes how fast the largest messages are with copies and with
// page faults, compared with pinned memory.
func npfIMBAnswer(results []*experiment.Result) (answer []string) {
	for _, r := range results {
		if r.Point.Text("strategy") != pinning.CacheKind || r.Point.Text("pass") != imbLater {
			continue
		}
		line := ""
		for _, o := range results {
			if kind := o.Point.Text("strategy"); (kind == pinning.BounceKind || kind == pinning.NoneKind) && experiment.Beside(results, r, "strategy", kind) == o {
				line += fmt.Sprintf(", %.2f times as fast with %s", float64(r.Time(experiment.LatencyColumn))/float64(o.Time(experiment.LatencyColumn)), map[string]string{pinning.BounceKind: "copies", pinning.NoneKind: "page faults"}[kind])
			}
		}
		if line != "" && r.Point.Int("size") == largestSize(results) {
			ranks := ""
			if slices.ContainsFunc(results, func(o *experiment.Result) bool { return o.Point.Int("ranks") != r.Point.Int("ranks") }) {
				ranks = fmt.Sprintf(", %d ranks", r.Point.Int("ranks"))
			}
			answer = append(answer, fmt.Sprintf("%s of %v%s: %s with a pin-down cache%s.", r.Point.Text("benchmark"), sim.Size(r.Point.Int("size")).Rounded(), ranks, experiment.ShortTime(r.Time(experiment.LatencyColumn)), line))
		}
	}
	return answer
}

func largestSize(results []*experiment.Result) (n int) {
	for _, r := range results {
		n = max(n, r.Point.Int("size"))
	}
	return n
}
