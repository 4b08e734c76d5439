package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/mpi/beff"
	"github.com/spinsim/spinsim/pinning"
	"github.com/spinsim/spinsim/report"
)

var npfBeff = &Experiment{
	Name:  "npf-beff",
	Short: "effective bandwidth (b_eff) of MPI processes whose memory is copied, pinned or absent",
	Long: `Processes of MPI on nodes of their own run b_eff (Rabenseifner, Koniges; package mpi/beff has the definition): 21 lengths of messages to both neighbours in rings, three methods, 12 patterns. Memory
of messages becomes ready for the interface in several ways:
` + npfMPIStrategies + `
On a network that is the same for all nodes patterns with rings of the same sizes are measured once. Messages longer than --sent are not sent: their bandwidth is that of the longest that is.`,
	Source:   npfSource + " §6",
	Profiles: []string{"ib-npf"},
	Axes: append(npfMPIAxes(), []Axis{
		{Name: "longest", Kind: report.Size, Least: "8KiB", Most: "128MiB", Default: "128MiB", Help: "Lmax: 128 MiB, or a 128th of a processor's memory if that is less"},
		{Name: "sent", Kind: report.Size, Least: "4KiB", Most: "128MiB", Default: "1MiB", Help: "the longest message that is sent"},
		{Name: "repetitions", Kind: report.Count, Least: "1", Most: "3", Default: "3", Help: "of everything, of which the best counts: 3 in the definition. The first finds memory that nobody has used"},
		{Name: "loop", Kind: report.Duration, Unit: "us", Most: "5ms", Default: "50us", Help: "how long a loop takes at least: 2.5 to 5 ms in the definition, whose clocks have noise"},
	}...),
	Points: func(p *Point) (bool, error) {
		if err := hasNPF(p); err != nil {
			return false, err
		}
		if p.Int("sent") > p.Int("longest") {
			return false, &NoPoint{fmt.Errorf("--sent: messages of %d B, where the longest has %d B", p.Int("sent"), p.Int("longest"))}
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
	Relative: []Relative{{
		Column: report.Column{Name: "vs_cache", Kind: report.Change, Help: "b_eff / b_eff with the pin-down cache - 1, at the same profile and other values; empty if that was not measured"},
		Of:     "b_eff", Axis: "strategy", Base: pinning.CacheKind,
	}},
	Published: []report.Published{
		publishedBeff(pinning.BounceKind, 8020, "± 20"), publishedBeff(pinning.CacheKind, 16410, "± 45"), publishedBeff(pinning.NoneKind, 16440, "± 10"),
	},
	Modules: Always(handlers.Must("rnr")),
	Memory: func(p *Point) int64 {
		o := beff.Options{Sent: p.Int("sent")}
		n := p.Int("ranks")
		return p.Footprint(n, n*(n-1)) + int64(n*o.Memory())
	},
	View: View{
		Value: "b_eff", Series: []string{"strategy"}, X: "ranks", Quiet: []string{"bound", "eager", "longest", "sent", "repetitions", "loop"},
		Summary: []string{profileColumn, "ranks", "strategy", "b_eff", "vs_cache", "rings", "random", "at_4KiB", "at_longest", "faults", "pinned", "copied"},
	},
	Notes: []string{
		"The first and the last byte of every message were compared.",
		"Nothing was set by these figures. The paper names neither versions nor parameters of Open MPI and b_eff; ours are those of the definition, but for what a simulation without noise need not repeat.",
	},
}

func publishedBeff(strategy string, v float64, note string) report.Published {
	return report.Published{
		At: []report.Is{{Column: "strategy", Value: strategy}}, With: []report.Is{{Column: "ranks", Value: 8}, {Column: "longest", Value: 128 << 20}},
		Column: "b_eff", Value: v, Note: note + "; checks",
	}
}

func runNPFBeff(ctx context.Context, p *Point) (Values, error) {
	b, err := beff.New(beff.Options{
		Longest: p.Int("longest"), Sent: p.Int("sent"), Repetitions: p.Int("repetitions"), Loop: p.Time("loop"), Seed: p.Seed,
		Alike: p.Profile.Fabric.Kind == fabric.Crossbar,
	}, p.Int("ranks"))
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
