package experiment

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// faultChoices are the reactions of an SMMU and a NIC to an absent page.
var faultChoices = [][]string{
	nil,
	{"smmu.hit_under_fault=false"},
	{"smmu.on_fault=stall"},
	{"smmu.on_fault=stall", "smmu.hit_under_fault=false"},
	{"smmu.l1_entries=1", "smmu.l2_entries=1", "smmu.l2_ways=1", "nic.fault_pause=100ns", "nic.fault_tries=100000"},
}

// The operating system provides a page when a core or the NIC first touches it.
// Then every experiment gives the same bytes in every mode, and no translation
// is stale, with every reaction of the SMMU to a fault. With more than one seed
// each mode meets all reactions, else two of five in turn.
func TestExperimentsOnMemoryThatIsNotThere(t *testing.T) {
	turn := 0
	for _, e := range All() {
		values, axis, modes := Values{"size": 40000}, "mode", []string{ModeSpinStream}
		switch e.Name {
		case "pagefault":
			axis, modes = "policy", e.Axis("policy").Of
		case "matching", "datatype-apps", "kv", "scan", "osu", "osu-ranks", "scaling", "credits":
			// their worlds are in packages internal/goal/nodes and mpi; the
			// tables of kv and scan are always present
			continue
		case "hpus":
			values = Values{"hpus": 4, "size": 256}
		case "ip":
			axis, modes = "over", e.Axis("over").Of
			values = Values{"traffic": "tcp", "path": "intra-qfdb", "mtu": 1500, "size": 40000}
		case "gsas":
			axis, modes = "op", []string{"read", "write"}
		case "datatype":
			values["block"], modes = 40, e.Axis("mode").Of
		case "exanet":
			modes = e.Axis("mode").Of[1:] // the queue of a mailbox is always present
		case "txlog":
			values, modes = Values{"op": "transaction", "ranks": 4, "size": 9000, "count": 5, "items": 6}, []string{ModeHost, ModeSpin}
		case "graph":
			values, modes = Values{"ranks": 3, "scale": 6, "kernel": "sssp"}, e.Axis("mode").Of
		case "ftbcast":
			values["timeout"] = 10 * sim.Millisecond // a message is acknowledged when it is in memory
			fallthrough
		case "bcast", "allreduce":
			values["ranks"] = 8
			fallthrough
		case "pingpong", "accumulate", "raid5", "replicate":
			modes = e.Axis("mode").Of
		case "traffic", "collectives":
			measureAbsent(t, e, e.Smoke[0], needed[e.Name])
			continue
		default:
			for _, values := range e.Smoke {
				if !behindSMMU(t, e) { // else it has absent memory anyway
					measureAbsent(t, e, values)
				}
			}
			continue
		}
		for _, mode := range modes {
			values[axis] = mode
			for i, overrides := range faultChoices {
				if *seeds == 1 && (i+turn)%len(faultChoices) > 1 {
					continue
				}
				if axis == "policy" { // a policy may determine them
					values["hupcf"], values["by"] = !slices.Contains(overrides, "smmu.hit_under_fault=false"), cmp.Or(map[string]string{"touch-a-page": "touch", "touch-ahead": "get_user_pages"}[mode], "get_user_pages")
				}
				measureAbsent(t, e, values, append(slices.Clone(overrides), cmp.Or(needed[mode], poisoned))...)
			}
			turn++
		}
	}
}

// withUnits has switches that compute, of mode switch.
const withUnits = "fabric.units={at: all, rate: 1ps/B, wire: 1ns}"

const poisoned = "smmu.stale=poison" // what the SMMU has forgotten is other bytes

// needed is what experiments and modes need of a profile.
var needed = map[string]string{
	"traffic":     "transport.kind=reliable", // its laws need acknowledgements
	"collectives": withUnits, "switch": withUnits,
}

// measureAbsent measures a point on memory of which no page is there.
func measureAbsent(t *testing.T, e *Experiment, values Values, overrides ...string) {
	device, err := profile.Load("exanest-qfdb", append(overrides, poisoned)...)
	require.NoError(t, err)
	p, err := e.At(device, values)
	require.NoError(t, err)
	_, err = e.Measure(context.Background(), p)
	require.NoError(t, err, "%s %s", p, overrides)
}

// behindSMMU reports whether a device of an experiment has an SMMU by default.
func behindSMMU(t *testing.T, e *Experiment) bool {
	return slices.ContainsFunc(e.DefaultProfiles(), func(name string) bool {
		device, err := profile.Load(name)
		require.NoError(t, err)
		return device.SMMU.On()
	})
}

// Behind an SMMU every experiment gives the same bytes in every mode, at the
// same time or later, with any size of the TLBs. No translation is stale.
func TestExperimentsBehindAnSMMU(t *testing.T) {
	small := []string{"smmu.l1_entries=1", "smmu.l2_entries=1", "smmu.l2_ways=1", "smmu.walk_cache=0", "smmu.walks=1", "smmu.outstanding=2", "smmu.channels=1"}
	measure := func(e *Experiment, values Values, column, name string, overrides ...string) sim.Time {
		device, err := profile.Load(name, overrides...)
		require.NoError(t, err)
		p, err := e.At(device, values)
		require.NoError(t, err)
		m, err := e.Measure(context.Background(), p)
		require.NoError(t, err, "%s %s", p, overrides)
		return m.Time(column)
	}
	const behind = "../docs/profiles/spin-int-smmu.yaml"
	for _, e := range All() {
		if slices.Contains([]string{"matching", "datatype-apps", "exanet", "gsas", "ip", "osu", "osu-ranks", "scaling", "allreduce", "credits", "traffic"}, e.Name) || behindSMMU(t, e) {
			// its world is in package internal/goal/nodes; it is datatype with
			// other types; the first TLB has the queue of a mailbox; a call uses
			// the same pages as the calls before; a rate law needs acknowledgements,
			// which that device has not; the others have an SMMU
			continue
		}
		values, modes, column := Values{"size": 40000}, []string{ModeSpinStream}, "latency"
		if mode := e.Axis("mode"); mode != nil {
			modes = mode.Of
		}
		switch e.Name {
		case "hpus":
			values = Values{"hpus": 4, "size": 4096}
		case "txlog":
			values, modes = Values{"op": "transaction", "ranks": 2, "size": 9000, "count": 5, "items": 6}, []string{ModeSpin}
		case "bcast", "ftbcast":
			values["ranks"] = 8
		case "datatype":
			values["block"] = 40
		case "scan":
			values["selectivity"] = 0.5
		case "graph":
			values, column = Values{"ranks": 2, "scale": 6, "kernel": "bfs"}, "time"
		case "kv":
			values["clients"], values["ops"], values["records"] = 1, 20, 100
		case "pingpong", "accumulate", "raid5", "replicate":
		default: // whether it is slower depends on the experiment
			for _, values := range e.Smoke {
				if e.Followed != "" {
					require.LessOrEqual(t, measure(e, values, e.Followed, "spin-int"), measure(e, values, e.Followed, behind, append(small, "smmu.stale=poison")...), e.Name)
				}
			}
			continue
		}
		for _, mode := range modes {
			values["mode"] = mode
			without, large := measure(e, values, column, "spin-int"), measure(e, values, column, behind, "smmu.stale=poison")
			least := measure(e, values, column, behind, append(small, "smmu.stale=poison")...)
			require.Less(t, without, large, "%s %s", e.Name, mode)
			require.Less(t, large, least, "%s %s", e.Name, mode)
		}
	}
}
