package exanest

import (
	"context"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/gemm"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// When blocks go to neighbours, and what becomes of the numbers.
const (
	overlapNone     = "none"
	overlapHalo     = "halo"
	numbersCompared = "compared"
	numbersNone     = "none"
)

// rateColumn has floating-point operations per time.
const rateColumn = "rate"

var multiply = &experiment.Experiment{
	Name:  "gemm",
	Short: "matrix multiplication by the accelerators of MPSoCs",
	Long: `C += A B of float32, n x n each, by the accelerator of TR-488 §7 (handlers/gemm): tiles of 128 x 128 whose elements come through three ports while the tile before is
multiplied. Several MPSoCs multiply by Cannon's algorithm: in a grid of q x q each has a block of A, B and C, whose sides are n / q; q times it multiplies, and then blocks of A
go one place to the left and blocks of B one place up, by RDMA of ExaNet-MPI. Blocks begin where that algorithm has them. A board has four adjacent places.
  none  blocks go when the multiplication is over
  halo  blocks go during the multiplication, into other memory
Memory has matrices as tiles, one after the other. The time is from the first call of the accelerator until the last MPSoC has its block of C.`,
	Source: "TR-488 §7", Profiles: []string{"exanest-gemm"},
	Smoke: []experiment.Values{{"mpsocs": 4, "n": 200, "overlap": overlapHalo}},
	Axes: []experiment.Axis{
		{Name: "overlap", Kind: report.Text, Of: []string{overlapNone, overlapHalo}, Help: "when blocks go: none, halo"},
		{Name: "numbers", Kind: report.Text, Of: []string{numbersCompared, numbersNone}, Default: numbersCompared, Help: "compared: multiply, and compare with three loops; none: take the time alone, for n that would take long"},
		{Name: "mpsocs", Kind: report.Count, Least: "1", Most: "65536", Default: "1,4,16", Each: "ranks", Help: "1, or whole boards in a square: 4, 16, 36, 64 and so on"},
		{Name: "n", Kind: report.Count, Least: "1", Most: "131072", Default: "512,1024", Help: "rows and columns of each matrix; a multiple of the side of the square"},
	},
	Points:      canMultiply,
	Independent: true,
	Run:         runMultiply,
	Memory: func(p *experiment.Point) int64 {
		q := gridOf(p.Int("mpsocs"))
		blocks := int64(q*q) * int64(gemm.Bytes((p.Int("n")+q-1)/q, (p.Int("n")+q-1)/q))
		return p.Footprint(p.Int("mpsocs")) + 7*blocks // five of an MPSoC, and two to compare with
	},
	Columns: append([]report.Column{
		{Name: "time", Unit: "us", Kind: report.Duration, Help: "of the multiplication"},
		{Name: rateColumn, Unit: "GFLOPS", Kind: report.Number, Help: "2 n^3 operations / time"},
		{Name: "kernel", Kind: report.Share, Help: "share of the time in which kernels multiply, mean over MPSoCs"},
		{Name: "link_bytes", Unit: "bytes", Kind: report.Size, Help: "bytes that all links have carried, headers included"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup_vs_none", Kind: report.Ratio, Help: "time of overlap none divided by time"},
		Of:     "time", Axis: "overlap", Base: overlapNone,
	}},
	Ledger:   ledgerGemm(),
	Followed: "time",
	Slots: func(*experiment.Point) []*handlers.Slot {
		return []*handlers.Slot{gemm.AcceleratorSlot, mailbox.EngineSlot, rdma.EngineSlot}
	},
	View: experiment.View{
		Value: rateColumn, Series: []string{"mpsocs", "overlap"}, X: "n", Quiet: []string{"numbers"},
		Summary: []string{experiment.ProfileColumn, "mpsocs", "n", "overlap", "numbers", "time_us", "rate_GFLOPS", "kernel", "speedup_vs_none", "link_bytes", "host_memory_bytes"},
	},
	Presets: []experiment.Preset{{
		Name: "large", Short: "larger matrices, without their numbers", Source: "ours",
		Values: map[string]string{"numbers": numbersNone, "n": "1024,2048,4096"},
	}},
	Notes: []string{"Every element was compared with three loops, in the order of its sums, unless numbers is none."},
}

// gridOf returns the side of a square of MPSoCs; 0: they make none.
func gridOf(mpsocs int) int {
	q := 1
	for q*q < mpsocs {
		q++
	}
	if q*q != mpsocs || q > 1 && q%2 != 0 {
		return 0
	}
	return q
}

// canMultiply reports which points exist.
func canMultiply(p *experiment.Point) (bool, error) {
	q, name := gridOf(p.Int("mpsocs")), p.Profile.Origin.Name
	pool := p.Profile.Serve.Pool("gemm", "payload")
	switch {
	case pool == nic.HPUs:
		return false, &experiment.NoPoint{Why: fmt.Errorf("profile %s: serve.gemm names no accelerator, as that of exanest-gemm does", name)}
	case p.Profile.HPU.DMAWrite != nic.Landed:
		return false, &experiment.NoPoint{Why: fmt.Errorf("profile %s: hpu.dma_write: %s, ExaNet-MPI needs %s", name, p.Profile.HPU.DMAWrite, nic.Landed)}
	case q == 0:
		return false, fmt.Errorf("--mpsocs: %d, expected 1 or whole boards in a square: the square of an even number", p.Int("mpsocs"))
	case p.Int("n")%q != 0:
		return false, &experiment.NoPoint{Why: fmt.Errorf("--n: %d, expected a multiple of %d for %d MPSoCs", p.Int("n"), q, q*q)}
	case q == 1 && p.Text("overlap") == overlapHalo:
		return false, &experiment.NoPoint{Why: fmt.Errorf("one MPSoC has no neighbours: it has overlap %s alone", overlapNone)}
	}
	return true, nil
}

func runMultiply(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	m := &multiplying{Point: p, q: gridOf(p.Int("mpsocs"))}
	m.side = p.Int("n") / m.q
	o := mpi.DefaultExaNetOptions()
	o.Ranks = m.q * m.q
	values, err := m.run(ctx, o)
	if err != nil {
		return nil, err
	}
	took := m.ended - m.begun
	n := float64(p.Int("n"))
	values["time"] = took
	values[rateColumn] = 2 * n * n * n / took.Seconds() / 1e9
	products := m.products / uint64(o.Ranks)
	values["kernel"] = (sim.Time(products) * m.kernel()).Seconds() / took.Seconds()
	return values, nil
}

// kernel is the time of a product.
func (m *multiplying) kernel() sim.Time {
	pool := m.Profile.Pools[m.Profile.Serve.Pool("gemm", "payload")]
	return pool.Latency + pool.Invocation
}
