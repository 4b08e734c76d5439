package inswitch

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
)

// The modes: who combines the vectors.
const (
	byHost     = string(mpi.ModeHost)
	byHostRing = "host-ring"
	byNIC      = "nic"
	byNICTree  = "nic-tree"
	bySwitch   = "switch"
)

var inSwitch = &experiment.Experiment{
	Name:  "inswitch",
	Short: "allreduce by hosts, NICs and switches",
	Long: `All ranks begin an allreduce of float32 at the same time. The latency is the time until the last of them has the result.
  host       processes: recursive doubling of MPI over Portals
  host-ring  processes: a ring that reduces pieces, and a ring that gathers them
  nic        recursive doubling by handlers of the NICs (handlers/allreduce)
  nic-tree   aggregators in the NICs: each has two others below it (handlers/reduction)
  switch     the same module in units of switches (fabric.units), in a tree along the packets' ways
Profile inc has aggregators that combine at line rate, in NICs as well. With --set serve.reduction.payload=hpu HPUs combine, as many as hpu.cores.
On another profile switches need units, for example --set 'fabric.units={at: all, rate: 25600Gb/s, wire: 1ns}'.`,
	Source: "atlahs-inc", Profiles: []string{"inc"},
	Smoke: []experiment.Values{{"ranks": 5, "size": 9000}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{byHost, byHostRing, byNIC, byNICTree, bySwitch}, Default: byHost + "," + byHostRing + "," + byNIC + "," + byNICTree + "," + bySwitch, Help: "who combines; the command's help describes each"},
		{Name: "window", Kind: report.Count, Most: "1024", Default: "0", Help: "blocks that a rank has under way in a tree; 0: as many as its aggregators have room for, at most 256"},
		experiment.RanksAxis("1024", "2,16,64"),
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4", Most: "64MiB", Default: "4KiB,64KiB,1MiB", Help: "size of the vector"},
	},
	Points:      can,
	Independent: true,
	Run:         run,
	Memory:      room,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call until the last rank has the result"},
		{Name: "rank_bytes", Unit: "bytes", Kind: report.Size, Help: "bytes that a rank has sent into the network, headers included, mean"},
		{Name: "aggregators", Kind: report.Count, Help: "aggregators of the tree"},
		{Name: "height", Kind: report.Count, Help: "aggregators that a vector passes at most"},
	}, experiment.ClusterColumns()...),
	Relative: experiment.AgainstHost(),
	Ledger:   rows(),
	Slots:    slots,
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: byHost, X: "bytes", Quiet: []string{"window"},
	},
	Notes: []string{"Every byte of every rank's result was compared with what it must be."},
}

const element = 4 // bytes

// can reports which points exist.
func can(p *experiment.Point) (bool, error) {
	if p.Int("size")%element != 0 {
		return false, &experiment.NoPoint{Why: fmt.Errorf("vectors of float32 take multiples of %d B", element)}
	}
	if tree := inTree(p); !tree && p.Int("window") != 0 {
		return false, &experiment.NoPoint{Why: errors.New("only trees have a window")}
	}
	if inTree(p) {
		if err := hasTree(p, p.Text("mode")); err != nil {
			return false, err
		}
	}
	return true, nil
}

// hasTree refuses devices that cannot have aggregators somewhere.
func hasTree(p *experiment.Point, where string) error {
	name, network := p.Profile.Origin.Name, &p.Profile.Fabric
	switch {
	case where == bySwitch && network.Units.At == "":
		return &experiment.NoPoint{Why: fmt.Errorf("profile %s: no switch has a unit (fabric.units)", name)}
	case network.MTU%sparse.PairBytes != 0:
		return &experiment.NoPoint{Why: fmt.Errorf("profile %s: fabric.mtu: %d, expected a multiple of %d", name, network.MTU, sparse.PairBytes)}
	}
	return nil
}

func inTree(p *experiment.Point) bool {
	return p.Text("mode") == bySwitch || p.Text("mode") == byNICTree
}

// room adds the vectors, and what aggregators keep of those that come early.
func room(p *experiment.Point) int64 {
	ranks, size := int64(p.Int("ranks")), int64(p.Int("size"))
	need := p.Footprint(2*p.Int("ranks")) + (3*ranks+4)*size
	if inTree(p) {
		need += 2 * ranks * min(size, reduction.DefaultWindow*int64(p.Profile.Fabric.MTU))
	}
	return need
}

func slots(p *experiment.Point) []*handlers.Slot {
	switch {
	case inTree(p):
		return []*handlers.Slot{reduction.AggregatorSlot}
	case p.Text("mode") == byNIC:
		return []*handlers.Slot{allreduce.AcceleratorSlot}
	}
	return nil
}

// rows are the rows of the ledger. The three tables have networks of their own.
func rows() (list []experiment.LedgerRow) {
	add := func(id, network string, ranks []int, sizes ...string) {
		n := 0
		for _, r := range ranks {
			for _, size := range sizes {
				n++
				list = append(list, experiment.LedgerRow{
					ID: fmt.Sprintf("inc-%s-%02d", id, n), Of: fmt.Sprintf("mode=%s ranks=%d size=%s%s", bySwitch, r, size, network), Column: experiment.LatencyColumn,
				})
			}
		}
	}
	add("n", "", []int{2, 4, 8, 16, 32, 64}, "64KiB", "1MiB")
	add("tree", " window=512 fabric.kind=leaf-spine fabric.leaf_nodes=4 fabric.spines=1 fabric.wire=500ns", []int{2, 4, 8, 16}, "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB")
	add("scaleup", " fabric.wire=150ns", []int{64}, "4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB")
	return list
}
