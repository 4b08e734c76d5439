package experiment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Simulate runs host programs, one on each node of a cluster of the point's
// device, to their end. It returns the statistics of the nodes. It is an error
// if a program fails or waits for ever, if a message is lost, or if a handler
// fails.
func (p *Point) Simulate(ctx context.Context, programs ...func(*runtime.Proc) error) (runtime.Stats, error) {
	return Simulate(ctx, p.Config(ctx, len(programs)), func(c *runtime.Cluster) error {
		for rank, program := range programs {
			if err := c.Spawn(rank, p.experiment.Name, program); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
}

// Config is the configuration of a cluster of the point's device.
func (p *Point) Config(ctx context.Context, nodes int) runtime.Config {
	cores := 1
	if p.experiment.Independent && nodes >= leastDivided {
		cores = p.Cores
	}
	if p.had == nil { // nobody measures
		p.had, p.divided = &used.Set{}, new(bool)
	}
	cfg := runtime.Config{
		Cores: cores, Profile: p.Profile, Nodes: nodes, Seed: p.Seed, Engine: p.Engine, Tracer: p.Tracer, Limits: p.Limits,
		Translator: p.Translator, Used: p.had.Join, Links: p.Links, Capture: p.Capture, Stop: func() error { return context.Cause(ctx) },
	}
	if len(p.Handlers) > 0 {
		cfg.Slots = make(map[string]runtime.Module, len(p.Handlers))
		for name, l := range p.Handlers { //lint:maporder a map is made of a map
			cfg.Slots[name] = runtime.Module{Name: l.Name, Wasm: l.Wasm}
		}
	}
	*p.divided = *p.divided || cfg.Domains() > 1
	return cfg
}

// leastDivided is how many nodes a simulation on several cores has: with fewer
// the cores wait for each other more than they gain.
var leastDivided = 1024

// Simulate builds a cluster, calls setup, runs it to its end, and calls finish
// while the cluster is still there. A lost message is an error.
func Simulate(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func() error) (runtime.Stats, error) {
	return SimulateLossy(ctx, cfg, setup, func(c *runtime.Cluster) error {
		if _, n := c.Failures(); n > 0 {
			return failed(c, nil)
		}
		return finish()
	})
}

// SimulateTCP is Simulate for programs that recover from lost frames
// themselves.
func SimulateTCP(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func() error) (runtime.Stats, error) {
	return SimulateLossy(ctx, cfg, setup, func(c *runtime.Cluster) error {
		if list, n := c.FailuresOfNodes(); n > 0 {
			return fmt.Errorf("%d failures, the first: %w", n, list[0])
		}
		return finish()
	})
}

// SimulateLossy is Simulate where messages may be lost. finish decides whether
// that is an error.
func SimulateLossy(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func(*runtime.Cluster) error) (stats runtime.Stats, err error) {
	c, err := runtime.NewCluster(cfg)
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := setup(c); err != nil {
		return stats, failed(c, err)
	}
	if err := c.Run(ctx); err != nil {
		return stats, failed(c, err)
	}
	if err := finish(c); err != nil {
		return stats, err
	}
	return c.Stats(), nil
}

// failed joins err with the lost messages and the failed handlers. These come
// first if a program waits for ever: they are the cause.
func failed(c *runtime.Cluster, err error) error {
	if _, ok := errors.AsType[*sim.StuckError](err); ok {
		return errors.Join(c.Broken(), err)
	}
	return errors.Join(err, c.Broken())
}

// Pattern fills b with bytes that depend on the seed and on the position, so
// that a misplaced or missing byte shows.
func Pattern(b []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	for len(b) > 0 {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		var word [8]byte
		binary.BigEndian.PutUint64(word[:], x*0x2545f4914f6cdd1d)
		b = b[copy(b, word[:]):]
	}
}

// SameBytes returns an error that names the first byte that differs. what names
// the bytes in the error.
func SameBytes(what string, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes arrived, %d were sent", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return differs(what, i, got[i], want)
		}
	}
	return nil
}

// SameView is SameBytes for memory of a process. It is cheaper if only devices
// have written there.
func SameView(what string, got runtime.View, want []byte) error {
	if got.Len() != len(want) {
		return fmt.Errorf("%s: %d bytes arrived, %d were sent", what, got.Len(), len(want))
	}
	if i := got.Differs(want); i >= 0 {
		return differs(what, i, got.Slice(i, i+1).Read()[0], want)
	}
	return nil
}

func differs(what string, i int, got byte, want []byte) error {
	return fmt.Errorf("%s: byte %d of %d is %#02x, %#02x was sent", what, i, len(want), got, want[i])
}
