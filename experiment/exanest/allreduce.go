package exanest

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
)

var allreduce = &experiment.Experiment{
	Name:  "allreduce",
	Short: "MPI_Allreduce by processes, accelerator and handlers",
	Long: `Ranks call MPI_Allreduce several times, with a barrier before each call. The latency is the time of a call, as the mean over ranks and calls, like in osu_allreduce.
  host              processes, by messages: recursive doubling (TR-488 §5.2.1)
  accelerator       ExaNeSt's hardware (TR-488 §4.7): runs of 256 B, one after the other; processes compute what it does not support, and column fallback has the reason
  offload-boards    the accelerator's algorithm as handlers: any multiple of 4 ranks, several runs in flight
  offload-doubling  recursive doubling by handlers
  offload-ring      a ring by handlers
  offload-tree      a tree of aggregators in the NICs, each with two below it (handlers/reduction)
  switch            a tree of aggregators in units of switches, which --set 'fabric.units={at: all, rate: 1ps/B, wire: 1ns}' adds
--pool selects the processors for the modules of the NIC: those of the profile (profile), the R5 of ExaNeSt, or HPUs: hpu with the profile's clock, or 150MHz, 1GHz, 2.5GHz.
--transport exanet is ExaNet-MPI. portals is MPI over Portals with matching by the process, which works on any device.`,
	Source:   "TR-488 §4.7, §6",
	Smoke:    []experiment.Values{{"ranks": 16, "calls": 2, "size": 256}},
	Profiles: []string{"exanest"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: allreduceModes(), Default: "host,accelerator", Help: "who computes; the command's help describes each"},
		{Name: "pool", Kind: report.Text, Of: []string{poolOfProfile, "r5", "hpu", "150MHz", "1GHz", "2.5GHz"}, Default: poolOfProfile, Help: "processors that run the modules; the command's help lists them"},
		{Name: "transport", Kind: report.Text, Of: []string{string(mpi.ExaNet), string(mpi.Portals)}, Default: string(mpi.ExaNet), Help: "what carries the messages of processes"},
		{Name: "op", Kind: report.Text, Of: []string{"sum", "min", "max"}, Default: "sum", Help: "operation"},
		{Name: "type", Kind: report.Text, Of: []string{"float32", "float64", "int32", "int64"}, Default: "float32", Help: "type of the elements"},
		{Name: "calls", Kind: report.Count, Least: "1", Most: "10000", Default: "5", Help: "number that is measured, after two that are not"},
		{Name: "window", Kind: report.Count, Most: "4096", Default: "0", Help: "runs of a vector that handlers have in flight; 0: 8, for a ring as many as ranks, from 8 to 128"},
		{Name: "ranks-per-node", Kind: report.Count, Least: "1", Most: "64", Default: "1", Help: "ranks on a node; the accelerator allows one"},
		{Name: "ranks", Kind: report.Count, Least: "1", Most: "65536", Default: "16,32,64,128", Each: "ranks", Help: "processes; at most the nodes of the network, 128 by default for exanest (--topology), times --ranks-per-node"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4", Most: "64MiB", Default: "4,16,64,256,1KiB,4KiB", Help: "size of the vector"},
	},
	Points:      canAllreduce,
	Independent: true,
	Run:         runAllreduce,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "mean time of a call, over ranks and calls"},
		{Name: "last_rank", Unit: "us", Kind: report.Duration, Help: "from the first rank's call until the last rank has the result, mean over calls"},
		{Name: "offloaded", Kind: report.Share, Help: "share of the calls that modules of the NIC computed"},
		{Name: "fallback", Kind: report.Text, Help: "why processes computed what modules were to; several reasons with ;"},
	}, experiment.ClusterColumns()...),
	Relative: experiment.AgainstHost(),
	Ledger:   ledgerAllreduce(),
	Slots:    allreduceSlots,
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: string(mpi.ModeHost), X: "bytes",
		Quiet: []string{"pool", "transport", "op", "type", "calls", "window", "ranks-per-node"},
	},
	Presets: allreducePresets(),
	Caveats: allreduceFallbacks,
	Notes:   []string{"Every byte of every rank's result was compared with what it must be."},
}

const poolOfProfile = "profile"

// allreduceFallbacks explains where processes computed instead of modules.
func allreduceFallbacks(results []*experiment.Result) (lines []string) {
	for _, r := range results {
		if why, fell := r.Values["fallback"].(string); fell {
			lines = append(lines, fmt.Sprintf("%s of %d B on %d ranks was computed by processes, all of it or in part: %s.", r.Point.Text("mode"), r.Point.Int("size"), r.Point.Int("ranks"), why))
		}
	}
	return lines
}

func allreduceModes() (list []string) {
	for _, by := range mpi.AllreduceChoices() {
		list = append(list, string(by))
	}
	return list
}

func allreducePresets() []experiment.Preset {
	quiet := []string{"transport", "op", "type", "calls", "window", "ranks-per-node"}
	return []experiment.Preset{
		{
			Name: "pools", Short: "the accelerator's modules on its hardware, on R5 firmware and on HPUs", Source: "ours",
			Values: map[string]string{"mode": "accelerator", "pool": "profile,r5,150MHz,1GHz,2.5GHz", "ranks": "16,128"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"pool"}, Base: poolOfProfile, X: "bytes", Quiet: append([]string{"mode"}, quiet...),
			},
		},
		{
			Name: "offload", Short: "MPI_Allreduce by processes and by handlers", Source: "ours",
			Values: map[string]string{"mode": "host,offload-boards,offload-doubling,offload-ring", "transport": "portals", "ranks": "16,64", "size": "8,256,4KiB,64KiB,256KiB"},
		},
		{
			Name: "scale", Short: "more ranks than the hardware has: modules on a torus of any size", Source: "ours",
			Values: map[string]string{"mode": "offload-boards,offload-doubling", "pool": "profile", "ranks": "4,16,64,256,1024", "size": "256", "calls": "1"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"mode"}, X: "ranks", Quiet: append([]string{"pool"}, quiet...),
			},
		},
	}
}

// canAllreduce reports which points exist. Vectors have whole elements.
// ExaNet-MPI needs a device that acknowledges landed data.
func canAllreduce(p *experiment.Point) (bool, error) {
	if p.Text("transport") == string(mpi.ExaNet) && p.Profile.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, ExaNet-MPI needs %s; --transport %s goes everywhere", p.Profile.Origin.Name, p.Profile.HPU.DMAWrite, nic.Landed, mpi.Portals)
	}
	if err := mpi.Mode(p.Text("mode")).Check(&p.Profile.Fabric); err != nil {
		return false, &experiment.NoPoint{Why: fmt.Errorf("profile %s: %w", p.Profile.Origin.Name, err)}
	}
	if pool := p.Text("pool"); pool == "r5" && p.Profile.Pools["r5"].Kind == "" {
		return false, fmt.Errorf("profile %s has no pool r5", p.Profile.Origin.Name)
	}
	if p.Text("mode") == string(mpi.ModeHost) && p.Text("pool") != poolOfProfile {
		return false, &experiment.NoPoint{Why: errors.New("no module runs with mode host: it has pool profile alone")}
	}
	if bytes := allreduceType(p).Size(); p.Int("size")%bytes != 0 {
		return false, &experiment.NoPoint{Why: fmt.Errorf("vectors of %s take multiples of %d B", p.Text("type"), bytes)}
	}
	return true, nil
}

// allreduceSlots are the slots of the transport and of the mode.
func allreduceSlots(p *experiment.Point) (list []*handlers.Slot) {
	list = mpi.Mode(p.Text("mode")).Slots()
	if p.Text("transport") == string(mpi.ExaNet) {
		list = append(list, mailbox.EngineSlot, rdma.EngineSlot)
	}
	return list
}
