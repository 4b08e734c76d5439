package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The ways a benchmark can be carried out.
const (
	ModeRDMA       = "rdma"        // host programs drive every step
	ModeP4         = "p4"          // pre-posted Portals 4 triggered operations
	ModeSpinStore  = "spin-store"  // handlers act when a message is complete
	ModeSpinStream = "spin-stream" // handlers act on every packet as it arrives
)

// Point is one measurement to make.
type Point struct {
	Profile *profile.Profile
	Mode    string
	Ranks   int
	Bytes   int // of the message
	Seed    uint64
	Engine  string     // wasm engine; empty: the default
	Handler *Handler   // the user's module in place of the built-in one; nil: built-in
	Tracer  sim.Tracer // nil: none
	Limits  sim.Limits // of the run

	Work *WorkPoint // benchmark hpus only
}

// bothProfiles are the two devices of sPIN'17.
var bothProfiles = []string{"spin-dis", "spin-int"}

// Handler is a module given by the user.
type Handler struct {
	Name string // for messages
	Path string // of the file
	Wasm []byte
}

// builtin is a module of a benchmark's own.
type builtin struct {
	name string
	wasm []byte
}

// Result is what a measurement gave.
type Result struct {
	Benchmark string
	Point     *Point
	Latency   sim.Time
	Stats     runtime.Stats // sums over all ranks
	Messages  []string      // handler errors and other notes for the user

	Work *WorkResult // benchmark hpus only
}

// Benchmark is a published microbenchmark.
type Benchmark struct {
	Name       string
	Short      string   // one line
	Long       string   // what is measured and how
	Modes      []string // in the order of a table; the first is the baseline of speed-ups
	Profiles   []string // by default
	Sizes      []int    // bytes, by default
	Ranks      []int    // by default
	FixedRanks bool     // the number of ranks cannot be chosen
	// Published are numbers of the publication that the benchmark predicts: values of columns of its table.
	Published []report.Published
	unit      int // sizes are multiples of it; 0: any size
	run       func(*bench) error
	watched   bool    // what payload handlers are given is compared with what was sent
	module    builtin // whose handlers run unless the user gives others
}

// Benchmarks lists all, in the order of the publication.
func Benchmarks() []*Benchmark { return []*Benchmark{pingpong, accumulate, bcastBenchmark, hpus} }

// Find returns the benchmark of that name.
func Find(name string) (*Benchmark, error) {
	var names []string
	for _, b := range Benchmarks() {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return nil, fmt.Errorf("no benchmark %q, expected one of %s", name, strings.Join(names, ", "))
}

// Run makes one measurement of a point of Sweep.Points. A byte that differs from what was sent, a program that waits for ever, and a
// handler error are errors.
func (b *Benchmark) Run(ctx context.Context, p *Point) (result *Result, err error) {
	w := &bench{Point: p, benchmark: b, result: &Result{Benchmark: b.Name, Point: p}}
	cfg := runtime.Config{
		Profile: p.Profile, Nodes: p.Ranks, Seed: p.Seed, Engine: p.Engine, Tracer: p.Tracer, Limits: p.Limits,
		Stop: func() error { return context.Cause(ctx) },
	}
	if b.watched {
		cfg.Watch = w.packets.watch
	}
	c, err := runtime.NewCluster(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w.c = c
	if err := b.run(w); err != nil {
		return nil, w.fail(b, err)
	}
	if err := c.Run(ctx); err != nil {
		return nil, w.fail(b, err)
	}
	if _, n := c.Failures(); n > 0 {
		return nil, w.fail(b, nil)
	}
	if w.finish != nil {
		if err := w.finish(); err != nil {
			return nil, w.fail(b, err)
		}
	}
	w.result.Stats = c.Stats()
	return w.result, nil
}

// bench is a measurement under way.
type bench struct {
	*Point
	benchmark *Benchmark
	c         *runtime.Cluster
	module    *hpu.Module
	result    *Result
	finish    func() error // after the run: what is known only then
	packets   packetCheck  // benchmark hpus only
}

// fail says what a measurement failed of: err, if it is not nil, then the messages that were lost and the handlers that failed.
func (w *bench) fail(b *Benchmark, err error) error {
	if lost, n := w.c.LostMessages(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages were lost, the first: %w", n, lost[0]))
	}
	if failed, n := w.c.HandlerErrors(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d handlers failed, the first: %w", n, failed[0]))
	}
	return fmt.Errorf("%s %s, profile %s, %d ranks, %d B: %w", b.Name, w.Mode, w.Profile.Name, w.Ranks, w.Bytes, err)
}

// load makes the handler module ready: the user's if there is one, else the built-in one.
func (w *bench) load() error {
	name, wasm := w.benchmark.module.name, w.benchmark.module.wasm
	if w.Handler != nil {
		name, wasm = w.Handler.Name, w.Handler.Wasm
	}
	m, err := w.c.LoadModule(name, wasm)
	w.module = m
	return err
}

func (w *bench) spawn(rank int, name string, f func(*runtime.Proc) error) error {
	return w.c.Spawn(rank, name, f)
}

// pattern fills b with bytes that depend on the seed and on every position, so that a misplaced or missing byte shows.
func pattern(b []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	for i := range b {
		if i%8 == 0 {
			x ^= x >> 12
			x ^= x << 25
			x ^= x >> 27
		}
		b[i] = byte(x * 0x2545f4914f6cdd1d >> (56 - 8*(i%8)))
	}
}

// same compares what arrived with what was sent.
func same(what string, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes arrived, %d were sent", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#02x, %#02x was sent", what, i, len(want), got[i], want[i])
		}
	}
	return nil
}
