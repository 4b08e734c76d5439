package experiment_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

var (
	scenarios     = flag.Int("domains.scenarios", 4, "scenarios of TestDrawnScenariosInDomains")
	scenariosFrom = flag.Int("domains.from", 0, "the first of them: a campaign that has ended goes on there")
	scenariosSeed = flag.Uint64("domains.seed", 1, "what they are drawn from; 0: something new")
)

// Drawn scenarios, with losses, damage, small buffers and other networks, have
// the same values and errors with 1, 2, 3 and 8 domains. Each is drawn from the
// seed and its number only.
func TestDrawnScenariosInDomains(t *testing.T) {
	defer func(least, many int, shared bool) {
		*experiment.LeastDivided, lazy.Many, lazy.Shared = least, many, shared
	}(*experiment.LeastDivided, lazy.Many, lazy.Shared)
	*experiment.LeastDivided = 0
	if *scenariosSeed == 0 {
		*scenariosSeed = rand.Uint64()
	}
	runs, failed := 0, 0
	kinds := map[string]int{}
	for i := *scenariosFrom; i < *scenariosFrom+*scenarios; i++ {
		s := drawScenario(t, rand.New(rand.NewPCG(*scenariosSeed, uint64(i))))
		again := fmt.Sprintf("go test ./experiment -run TestDrawnScenariosInDomains -domains.seed=%d -domains.from=%d -domains.scenarios=1: %s", *scenariosSeed, i, s)
		t.Log(again)
		lazy.Shared, lazy.Many = false, math.MaxInt
		want, _, _ := s.measure(t, 1)
		for _, cores := range []int{2, 3, 8} {
			lazy.Shared, lazy.Many = true, 1
			got, divided, attempts := s.measure(t, cores)
			require.Equal(t, want, got, "%d cores, %s", cores, again)
			if want.err == "" { // otherwise it is measured again in one domain
				require.Equal(t, 1, attempts, "a failure with %d cores only, %s", cores, again)
			}
			if divided {
				runs++
			}
		}
		kinds[s.experiment.Name]++
		if want.err != "" {
			failed++
		}
	}
	t.Logf("seed %d, scenarios %d to %d: equal; %d ended with an error; %d of %d runs were divided; %v", *scenariosSeed, *scenariosFrom, *scenariosFrom+*scenarios-1, failed, runs, 3**scenarios, kinds)
	require.Greater(t, runs, *scenarios)
}

// scenario is a point of an experiment on a device.
type scenario struct {
	experiment *experiment.Experiment
	profile    string
	set        []string
	values     experiment.Values
	seed       uint64
	until      sim.Time
}

// String names all that was drawn.
func (s *scenario) String() string {
	return fmt.Sprintf("%s --profile %s --set %s %v, seed %d", s.experiment.Name, s.profile, strings.Join(s.set, " --set "), s.values, s.seed)
}

// outcome is what must not depend on the domains.
type outcome struct {
	values     experiment.Values
	operations []experiment.Operation
	err        string
}

// measure runs the scenario. It returns whether it was divided, and how many
// attempts it took.
func (s *scenario) measure(t *testing.T, cores int) (o outcome, divided bool, attempts int) {
	device, err := profile.Load(s.profile, s.set...)
	require.NoError(t, err)
	one := *s.experiment
	one.Run = func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		attempts++
		values, err := s.experiment.Run(ctx, p)
		divided = divided || p.Divided()
		return values, err
	}
	p, err := one.At(device, s.values)
	require.NoError(t, err)
	p.Cores, p.Seed, p.Limits.Until = cores, s.seed, s.until
	r, err := one.Measure(t.Context(), p)
	if err != nil {
		o.err = err.Error()
	}
	if r != nil {
		o.values, o.operations = r.Values, p.Operations()
	}
	return o, divided, attempts
}

// drawScenario draws until an experiment has the point.
func drawScenario(t *testing.T, rng *rand.Rand) *scenario {
	for {
		s := &scenario{seed: rng.Uint64(), until: 3 * sim.Millisecond, experiment: drawExperiment(t, rng)}
		s.drawDevice(rng)
		s.drawValues(rng)
		device, err := profile.Load(s.profile, s.set...)
		if err != nil {
			continue
		}
		if _, err := s.experiment.At(device, s.values); err == nil {
			return s
		}
	}
}

// drawExperiment returns one that can be divided, often a schedule.
func drawExperiment(t *testing.T, rng *rand.Rand) *experiment.Experiment {
	list := slices.DeleteFunc(experiment.All(), func(e *experiment.Experiment) bool { return !e.Independent })
	if i := rng.IntN(len(list) + 1); i < len(list) {
		return list[i]
	}
	pattern := drawn(rng, goal.Patterns()...)
	p := goal.GenParams{Ranks: 2 + rng.IntN(40), Size: uint64(drawn(rng, drawnSizes...)), CalcNS: rng.Uint64N(3000), Seed: rng.Uint64(), Iterations: 1 + rng.IntN(3), Segment: 4096, Ways: 1 + rng.IntN(3)}
	s, err := goal.Generate(pattern.Name, p)
	require.NoError(t, err)
	return spin17.Schedule(fmt.Sprintf("%s %+v", pattern.Name, p), s)
}

// drawnSizes are sizes of messages, bytes.
var drawnSizes = []int{1, 8, 64, 1000, 3000, 4096, 10_000, 16 << 10, 50_000}

// drawDevice chooses a device, its network, and what goes wrong there.
func (s *scenario) drawDevice(rng *rand.Rand) {
	s.profile = drawn(rng, append([]string{"spin-int", "spin-dis", "exanest", "ib-npf"}, s.experiment.DefaultProfiles()...)...)
	maybe := func(share float64, overrides ...string) {
		if rng.Float64() < share {
			s.set = append(s.set, overrides...)
		}
	}
	if s.profile == "exanest" {
		maybe(0.5, fmt.Sprintf("fabric.dims=[%d, %d, %d]", 1+rng.IntN(4), 1+rng.IntN(3), 1+rng.IntN(2)))
	} else {
		maybe(0.3, "fabric.kind=torus", fmt.Sprintf("fabric.dims=[%d, %d]", 2+rng.IntN(6), 2+rng.IntN(6)), "fabric.radix=0")
		if len(s.set) == 0 {
			s.set = append(s.set, fmt.Sprintf("fabric.radix=%d", drawn(rng, 4, 6, 8)))
		}
		mtu := drawn(rng, 256, 1024, 2048, 4096)
		maybe(0.5, fmt.Sprintf("fabric.mtu=%d", mtu))
		maybe(0.3, fmt.Sprintf("fabric.buffer=%d", 4200*(1+rng.IntN(4))))
		maybe(0.2, fmt.Sprintf("fabric.inject_buffer=%d", 4200*(1+rng.IntN(4))))
	}
	maybe(0.2, "fabric.store_and_forward=true")
	maybe(0.1, "fabric.no_contention=true")
	maybe(0.2, fmt.Sprintf("fabric.wire=%dns", 1+rng.IntN(200)))
	maybe(0.2, fmt.Sprintf("fabric.switch=%dns", rng.IntN(200)))
	maybe(0.5, "transport.kind=reliable", fmt.Sprintf("transport.timeout=%dus", 5+rng.IntN(100)), fmt.Sprintf("transport.window=%d", 1+rng.IntN(64)), fmt.Sprintf("transport.retries=%d", rng.IntN(12)), "transport.ack_bytes=8")
	for _, fault := range []string{"loss", "corrupt", "duplicate", "delay"} {
		maybe(0.2, fmt.Sprintf("fabric.faults.%s=%g", fault, drawn(rng, 0.001, 0.01, 0.1)), "fabric.faults.max_delay=3us")
	}
	// some handlers take too long
	maybe(0.1, fmt.Sprintf("hpu.max_cycles=%d", 200+rng.IntN(800)), "hpu.max_cycles_per_byte=0")
	maybe(0.1, fmt.Sprintf("hpu.cores=%d", 1+rng.IntN(4)))
}

// drawValues chooses values of the axes.
func (s *scenario) drawValues(rng *rand.Rand) {
	s.values = experiment.Values{}
	if len(s.experiment.Smoke) > 0 {
		for name, v := range drawn(rng, s.experiment.Smoke...) { //lint:maporder they come into a map
			s.values[name] = v
		}
	}
	for i := range s.experiment.Axes {
		switch a := &s.experiment.Axes[i]; {
		case a.Name == "iterations" || a.Name == "warmup":
			s.values[a.Name] = 1
		case a.Fixed() || rng.IntN(4) == 0:
		case a.Name == "ranks":
			s.values[a.Name] = 2 + rng.IntN(drawn(rng, 8, 62, 62))
		case a.Name == "ranks-per-node":
			s.values[a.Name] = drawn(rng, 1, 1, 2, 4)
		case len(a.Of) > 0:
			s.values[a.Name] = drawn(rng, a.Of...)
		case a.Name == "size" || a.Name == "eager":
			s.values[a.Name] = drawn(rng, drawnSizes...)
		case a.Kind == report.Count:
			s.values[a.Name] = rng.IntN(4)
		case a.Kind == report.Duration:
			s.values[a.Name] = sim.Time(1+rng.Int64N(300)) * sim.Microsecond
		}
	}
}

func drawn[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }
