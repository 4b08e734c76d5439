package experiment

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// seeds is how many seeds every point runs with.
var seeds = flag.Int("faults.seeds", 1, "seeds of TestExperimentsOnFaultyMemory; above 1 TestExperimentsOnMemoryThatIsNotThere tries all it has")

// campaign counts the effects of faulty memory in experiments.
type campaign struct {
	faults, late int
}

// Every experiment in every mode, with memory that is absent or late. The
// device tries again, also for waiting handlers. This costs time and nothing
// else: experiments compare every byte, and none hangs.
func TestExperimentsOnFaultyMemory(t *testing.T) {
	var c campaign
	for _, e := range All() {
		switch e.Name {
		case "matching": // TestApplicationsOnFaultyMemory
		case "exanet": // TestExanetOnFaultyMemory
		case "gsas": // TestGSASOnFaultyMemory
		case "ip": // TestIPOnFaultyMemory
		case "osu", "osu-ranks", "credits": // TestOSUOnFaultyMemory
		case "datatype":
			for _, mode := range e.Axis("mode").Of {
				c.measure(t, e, Values{"mode": mode, "size": 40000, "block": 40})
				if !strings.HasPrefix(mode, "spin-") {
					c.measure(t, e, Values{"mode": mode, "side": "both", "size": 40000, "block": 40})
				}
			}
		case "datatype-apps":
			// the rest is the same as datatype
			c.measure(t, e, Values{"mode": ModeSpin, "app": "LAMMPS_atomic", "input": 3})
		case "txlog":
			for _, mode := range []string{ModeHost, ModeSpin} {
				c.measure(t, e, Values{"mode": mode, "op": "transaction", "ranks": 4, "size": 9000, "count": 5, "items": 6})
			}
		case "graph":
			for _, mode := range e.Axis("mode").Of {
				c.measure(t, e, Values{"mode": mode, "ranks": 3, "scale": 6, "kernel": "sssp"})
			}
		case "raid5":
			for _, mode := range e.Axis("mode").Of {
				c.measure(t, e, Values{"mode": mode, "size": 40000})
			}
			for _, op := range e.Axis("op").Of[1:] {
				c.measure(t, e, Values{"mode": ModeSpin, "op": op, "size": 40000, "unit": 1000})
			}
		case "replicate":
			for _, mode := range e.Axis("mode").Of {
				c.measure(t, e, Values{"mode": mode, "copies": 4, "size": 40000})
			}
			c.measure(t, e, Values{"mode": ModeSpin, "shape": "tree", "copies": 6, "size": 40000})
		case "scaling": // TestScalingElsewhere
		case "scan":
			for _, mode := range e.Axis("mode").Of {
				c.measure(t, e, Values{"mode": mode, "size": 40000, "selectivity": 0.5})
			}
		// its table is always present, because handlers for messages of several
		// clients rely on the order of their accesses
		case "kv":
		case "hpus":
			c.measure(t, e, Values{"hpus": 4, "size": 1024, "handler-time": 200 * sim.Nanosecond})
		case "pingpong", "accumulate", "bcast", "allreduce", "ftbcast":
			c.measureSizes(t, e)
		default:
			c.measureSmoke(t, e)
		}
	}
	require.Greater(t, c.faults, 1000)
	require.Greater(t, c.late, 1000)
}

// measureSizes measures an experiment in all modes with messages of several
// sizes.
func (c *campaign) measureSizes(t *testing.T, e *Experiment) {
	for _, mode := range e.Axis("mode").Of {
		for _, size := range []int{0, 16, 4096, 40000} {
			values := Values{"mode": mode, "size": size}
			if e.Name == "bcast" || e.Name == "allreduce" || e.Name == "ftbcast" {
				values["ranks"] = 8
			}
			var set []string
			if e.Name == "allreduce" {
				values["transport"], values["calls"] = "portals", 2
				set = []string{withUnits}
			}
			if e.Name == "ftbcast" {
				values["failed"] = 0
			}
			if e.Name != "accumulate" && e.Name != "allreduce" || size > 0 {
				c.measure(t, e, values, set...)
			}
		}
	}
}

// measureSmoke measures what an experiment offers to tests. Profiles with an
// SMMU have absent memory anyway.
func (c *campaign) measureSmoke(t *testing.T, e *Experiment) {
	for _, name := range e.DefaultProfiles() {
		device, err := profile.Load(name)
		require.NoError(t, err)
		if device.SMMU.On() {
			continue
		}
		for _, values := range e.Smoke {
			c.measureOn(t, e, device, values)
		}
	}
}

// measure runs a point with all kinds of faults on both devices.
func (c *campaign) measure(t *testing.T, e *Experiment, values Values, set ...string) {
	for _, name := range []string{"spin-dis", "spin-int"} {
		device, err := profile.Load(name, set...)
		require.NoError(t, err)
		c.measureOn(t, e, device, values)
	}
}

func (c *campaign) measureOn(t *testing.T, e *Experiment, device *profile.Profile, values Values) {
	for how, chances := range hosttest.Kinds { //lint:maporder each by itself
		for seed := range *seeds {
			p, err := e.At(device, values)
			require.NoError(t, err)
			p.Seed = uint64(seed + 1)
			f := hosttest.Nodes{Chances: chances}
			p.Translator = f.Make
			_, err = e.Measure(context.Background(), p)
			c.faults, c.late = c.faults+f.Faults, c.late+f.Delayed
			require.NoError(t, err, "%s, %s, seed %d", p, how, seed+1)
		}
	}
}

// Memory that is denied, or absent for ever, is reported in one line: with the
// rank, the message, the address and the cause.
func TestExperimentsReportWhatFails(t *testing.T) {
	failed, ended := 0, 0
	for _, e := range []*Experiment{builtin("pingpong"), builtin("accumulate"), builtin("bcast")} {
		for _, mode := range e.Axis("mode").Of {
			for seed := range 8 * *seeds {
				for _, chances := range []hosttest.Chances{{Deny: 0.05}, {Fault: 0.05, Most: 1000}} {
					device, err := profile.Load("spin-int", "nic.fault_tries=3", "nic.fault_pause=100ns")
					require.NoError(t, err)
					values := Values{"mode": mode, "size": 40000}
					if e.Name == "bcast" {
						values["ranks"] = 8
					}
					p, err := e.At(device, values)
					require.NoError(t, err)
					p.Seed = uint64(seed + 1)
					p.Translator = (&hosttest.Nodes{Chances: chances}).Make
					if _, err = e.Measure(context.Background(), p); err == nil {
						ended++
						continue
					}
					failed++
					require.Regexp(t, `(?m)\d+ (message was lost|messages were lost, the first): rank \d+ at .*: \d+ of \d+ packets \(\d+ of \d+ B\) of a put from rank \d+ were dropped: `+
						`memory at 0x[0-9a-f]+ could not be (read|written): (FAULT, 4 times \(nic.fault_tries, 3\)|DENIED) \(portal table index |handlers? failed(, the first)?: `,
						err.Error())
				}
			}
		}
	}
	require.NotZero(t, failed)
	require.NotZero(t, ended)
}
