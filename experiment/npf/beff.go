package npf

import (
	"context"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/sim"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/beff"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
)

var npfBeff = &experiment.Experiment{
	Name:  "npf-beff",
	Short: "effective bandwidth (b_eff) of MPI processes whose memory is copied, pinned or absent",
	Long: `MPI processes, one on each node, run b_eff (Rabenseifner, Koniges; package internal/beff has the definition): 21 message lengths to both neighbours in rings, three methods, 12 patterns. There are several ways
to make the memory of messages ready for the interface:
` + npfMPIStrategies + `
On a network that is equal for all nodes, patterns with rings of the same sizes are measured once. Messages longer than --sent are not sent: they count with the bandwidth of the longest one sent.`,
	Source:   npfSource + " §6",
	Profiles: []string{"ib-npf"},
	Smoke:    []experiment.Values{{"ranks": 2, "longest": 8 << 10, "sent": 4 << 10, "repetitions": 1, "loop": sim.Time(0)}},
	Axes: append(npfMPIAxes(), []experiment.Axis{
		{Name: "longest", Kind: report.Size, Least: "8KiB", Most: "128MiB", Default: "128MiB", Help: "Lmax: 128 MiB, or a 128th of a processor's memory if that is less"},
		{Name: "sent", Kind: report.Size, Least: "4KiB", Most: "128MiB", Default: "1MiB", Help: "the longest message that is sent"},
		{Name: "repetitions", Kind: report.Count, Least: "1", Most: "3", Default: "3", Help: "how often each measurement is repeated; the best counts. The definition has 3. The first one uses new memory"},
		{Name: "loop", Kind: report.Duration, Unit: "us", Most: "5ms", Default: "50us", Help: "shortest time of a loop: 2.5 to 5 ms in the definition, because clocks have noise"},
	}...),
	Points: func(p *experiment.Point) (bool, error) {
		if err := hasNPF(p); err != nil {
			return false, err
		}
		if p.Int("sent") > p.Int("longest") {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--sent: messages of %d B, where the longest has %d B", p.Int("sent"), p.Int("longest"))}
		}
		return true, nil
	},
	Run: runNPFBeff,
	Columns: append([]report.Column{
		{Name: "b_eff", Unit: "MBps", Kind: report.Number, Help: "effective bandwidth of all processes together, 10^6 B/s"},
		{Name: "rings", Unit: "MBps", Kind: report.Number, Help: "mean of ring patterns"},
		{Name: "random", Unit: "MBps", Kind: report.Number, Help: "mean of random patterns"},
		{Name: "at_4KiB", Unit: "MBps", Kind: report.Number, Help: "mean of all patterns with messages of 4 KiB"},
		{Name: "at_longest", Unit: "MBps", Kind: report.Number, Help: "likewise with the longest that were sent"},
	}, npfMPIColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "vs_cache", Kind: report.Ratio, Help: "how many times as fast as with the pin-down cache: b_eff / b_eff with it, at the same profile and other values; empty if that was not measured"},
		Of:     "b_eff", Axis: "strategy", Base: pinning.CacheKind, Rate: true,
	}},
	Ledger:    ledgerBeff(),
	Slots:     experiment.Always(rnr.EngineSlot),
	Undivided: "b_eff is a mean of bandwidths of 21 lengths, 12 patterns and three methods, and the time of nothing; npf-imb divides messages of one length",
	Memory:    beffMemory,
	View: experiment.View{
		Value: "b_eff", Series: []string{"strategy"}, X: "ranks", Quiet: []string{"bound", "eager", "longest", "sent", "repetitions", "loop"},
		Summary: []string{experiment.ProfileColumn, "ranks", "strategy", "b_eff", "vs_cache", "rings", "random", "at_4KiB", "at_longest", "faults", "pinned", "copied"},
	},
	Notes: []string{
		"The first and the last byte of every message were compared.",
		"Nothing was set by these figures. The paper names neither versions nor parameters of Open MPI and b_eff; ours come from the definition, except for repetitions that a simulation without noise does not need: a loop of 50 us is shorter, and page faults of first uses weigh more in it.",
	},
}

// ledgerBeff are the rows of NPF'17 §6.2 that npf-beff answers. Loops are as long
// as the benchmark's definition has them: in shorter ones the first uses of
// memory weigh, which is 8% of b_eff with page faults and 50 us.
func ledgerBeff() (list []experiment.LedgerRow) {
	for _, r := range [][2]string{{"npf17-6.2-08", pinning.CacheKind}, {"npf17-6.2-10", pinning.NoneKind}, {"npf17-6.2-12", pinning.BounceKind}} {
		list = append(list, experiment.LedgerRow{
			ID: r[0], Of: "loop=2500us strategy=" + r[1], Also: []string{"loop=50us", "sent=128MiB"}, Column: "b_eff",
			How: "messages of more than 1 MiB count with the bandwidth of 1 MiB",
		})
	}
	return list
}

func newBeff(p *experiment.Point) (*beff.Benchmark, error) {
	return beff.New(beff.Options{
		Longest: p.Int("longest"), Sent: p.Int("sent"), Repetitions: p.Int("repetitions"), Loop: p.Time("loop"), Seed: p.Seed,
		Alike: p.Profile.Fabric.Kind == fabric.Crossbar,
	}, p.Int("ranks"))
}

// beffMemory estimates the memory of a point in bytes: the buffers of messages,
// and the buffers of connections for copies of eager messages, at both ends.
// Each message uses the next buffer.
func beffMemory(p *experiment.Point) int64 {
	n := p.Int("ranks")
	b, err := newBeff(p)
	if err != nil {
		return 0 // the run returns the error
	}
	eager := int64(2*b.Pairs()*mpi.DefaultInfiniBandOptions().Buffers) * int64(min(p.Int("eager"), p.Int("sent")))
	return p.Footprint(n) + int64(n*b.Memory()) + eager
}

func runNPFBeff(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	b, err := newBeff(p)
	if err != nil {
		return nil, err
	}
	values, err := npfMPI(ctx, p, b.Program)
	if err != nil {
		return nil, err
	}
	const mega = 1e6
	r := &b.Result
	values["b_eff"], values["rings"], values["random"] = r.Effective()/mega, r.Rings()/mega, r.Random()/mega
	values["at_4KiB"], values["at_longest"] = r.At(int(math.Log2(4096)))/mega, r.At(beff.LengthsOf-1)/mega
	return values, nil
}
