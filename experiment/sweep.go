package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	device "github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Sweep is a benchmark at all combinations of its parameters.
type Sweep struct {
	Benchmark *Benchmark
	Profiles  []string // names or files
	Overrides []string // of every profile, "path=value"
	Modes     []string
	Sizes     []int // bytes
	Ranks     []int
	HPUs      []int      // benchmark hpus: HPUs of the device
	Times     []sim.Time // benchmark hpus: handler times
	Seed      uint64
	Engine    string
	Handler   *Handler
	Traced    bool       // a timeline is wanted: exactly one point
	Tracer    sim.Tracer // that records it, set before Run
	Limits    sim.Limits // of each measurement

	Build    provenance.Build     // whose results these are
	Recorded []provenance.Profile // in place of what Profiles and Overrides would load; nil: load
	record   *provenance.Record   // what the results are made from; Points sets it
	more     []string             // overrides that are a step of a waterfall
	Falls    bool                 // the two profiles are the ends of a waterfall
}

// Points lists the measurements in the order of the table, or says everything that is wrong with the parameters.
func (s *Sweep) Points() ([]*Point, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var points []*Point
	var profiles []*profile.Profile
	for _, name := range s.Profiles {
		p, err := s.profile(name)
		if err != nil {
			return nil, err
		}
		if u := s.Benchmark.unit; u > 1 && int(p.Fabric.MTU)%u != 0 {
			return nil, fmt.Errorf("profile %s: fabric.mtu: %d, %s needs a multiple of %d bytes", name, p.Fabric.MTU, s.Benchmark.Name, u)
		}
		profiles = append(profiles, p)
		if s.Benchmark == hpus && p.HPU.Charge == nic.ChargeNothing {
			return nil, fmt.Errorf("profile %s: hpu.charge: %s, hpus measures handlers that take time; --set hpu.charge=%s", name, p.HPU.Charge, nic.ChargeCycles)
		}
		for _, size := range s.Sizes {
			for _, ranks := range s.Ranks {
				base := Point{Profile: p, Ranks: ranks, Bytes: size, Seed: s.Seed, Engine: s.Engine, Handler: s.Handler, Tracer: s.Tracer, Limits: s.Limits}
				more, err := s.variants(name, base)
				if err != nil {
					return nil, err
				}
				points = append(points, more...)
			}
		}
	}
	if s.Traced && len(points) > 1 {
		return nil, fmt.Errorf("a trace follows one run, but this sweep has %d: choose one profile, mode, size and number of ranks", len(points))
	}
	if s.Handler != nil {
		if err := s.checkHandler(points); err != nil {
			return nil, err
		}
	}
	return points, s.remember(profiles)
}

// variants are the points that differ in mode, or in what benchmark hpus varies.
func (s *Sweep) variants(name string, base Point) (points []*Point, err error) {
	if s.Benchmark != hpus {
		for _, mode := range s.Modes {
			p := base
			p.Mode = mode
			points = append(points, &p)
		}
		return points, nil
	}
	for _, cores := range s.HPUs {
		p := base
		if p.Profile, err = s.withHPUs(name, cores, base.Bytes); err != nil {
			return nil, err
		}
		for _, t := range s.Times {
			p := p
			p.Mode, p.Work = ModeSpinStream, &WorkPoint{HPUs: cores, Handler: t}
			points = append(points, &p)
		}
	}
	return points, nil
}

const (
	maxRanks = 1 << 17 // some 70 KB each with handlers
	maxBytes = 1 << 30

	maxHandlerTime = sim.Second // a thousand times what handlers may take
)

func (s *Sweep) check() error {
	var errs []error
	for _, mode := range s.Modes {
		if !s.Benchmark.has(mode) {
			errs = append(errs, fmt.Errorf("%s has no mode %q, expected one of %s", s.Benchmark.Name, mode, strings.Join(s.Benchmark.Modes, ", ")))
		}
	}
	for _, list := range []struct {
		what string
		more int // values that stand there before
	}{
		{"profile", len(s.Profiles) - distinct(s.Profiles)},
		{"mode", len(s.Modes) - distinct(s.Modes)},
		{"size", len(s.Sizes) - distinct(s.Sizes)},
		{"number of ranks", len(s.Ranks) - distinct(s.Ranks)},
	} {
		if list.more > 0 {
			errs = append(errs, fmt.Errorf("a %s is given twice", list.what))
		}
	}
	for _, o := range s.Overrides {
		field, _, _ := strings.Cut(o, "=")
		if field = strings.TrimSpace(field); s.Benchmark == hpus && (field == "hpu.cores" || field == "fabric.mtu") {
			errs = append(errs, fmt.Errorf("%s: hpus measures at several, choose them with --hpus and --size", field))
		}
	}
	if len(s.Profiles) == 0 {
		errs = append(errs, errors.New("no profile given"))
	}
	for _, n := range s.Ranks {
		if s.Benchmark.FixedRanks && n != s.Benchmark.Ranks[0] {
			errs = append(errs, fmt.Errorf("%s runs on %d ranks, got %d", s.Benchmark.Name, s.Benchmark.Ranks[0], n))
		} else if n < 2 || n > maxRanks {
			errs = append(errs, fmt.Errorf("%d ranks, expected 2 to %d", n, maxRanks))
		}
	}
	for _, n := range s.Sizes {
		if n < 0 || n > maxBytes {
			errs = append(errs, fmt.Errorf("size %d, expected 0 to %d bytes", n, maxBytes))
		} else if s.Benchmark.unit > 0 && (n == 0 || n%s.Benchmark.unit != 0) {
			errs = append(errs, fmt.Errorf("size %d, %s needs a positive multiple of %d bytes", n, s.Benchmark.Name, s.Benchmark.unit))
		}
	}
	for _, t := range s.Times {
		if t < 0 || t > maxHandlerTime {
			errs = append(errs, fmt.Errorf("handler time %v, expected 0 s to %v", t, maxHandlerTime))
		}
	}
	for _, n := range s.HPUs {
		if n < 1 {
			errs = append(errs, fmt.Errorf("%d HPUs, expected at least 1", n))
		}
	}
	return errors.Join(append(errs, device.CheckEngine(s.Engine))...)
}

// checkHandler loads the user's module for every profile before anything runs.
func (s *Sweep) checkHandler(points []*Point) error {
	for _, p := range points {
		if err := p.Profile.CheckModule(s.Handler.Name, s.Handler.Wasm); err != nil {
			return err
		}
	}
	return nil
}

func distinct[T comparable](list []T) int {
	seen := map[T]bool{}
	for _, v := range list {
		seen[v] = true
	}
	return len(seen)
}

func (b *Benchmark) has(mode string) bool {
	for _, m := range b.Modes {
		if m == mode {
			return true
		}
	}
	return false
}

// Run makes the measurements, several at a time, and returns their results in the order of Points. done, if not nil, is called after
// each, from any goroutine.
func (s *Sweep) Run(ctx context.Context, points []*Point, done func()) ([]*Result, error) {
	results := make([]*Result, len(points))
	failures := make([]error, len(points))
	var next atomic.Int64
	var failed atomic.Bool
	var wg sync.WaitGroup
	for range min(len(points), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for ctx.Err() == nil && !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(points) {
					return
				}
				results[i], failures[i] = s.Benchmark.Run(ctx, points[i])
				if failures[i] != nil {
					failed.Store(true)
				}
				if done != nil {
					done()
				}
			}
		})
	}
	wg.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}
