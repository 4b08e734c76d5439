package spin17

import (
	"fmt"
	"strconv"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/ddtbench"
	"github.com/spinsim/spinsim/report"
)

var datatypeApps = &experiment.Experiment{
	Name:  "datatype-apps",
	Short: "what applications send that is not in one piece: by a core, by lists of vectors, by handlers",
	Long: `Rank 0 sends to rank 1, once, the message that an application of DDTBench sends to a neighbour. At the target, the source or both, it is as non-contiguous as in the application.
Modes and latency are as in compare datatype. The lines above the table name the strategy that the loader has chosen, and the reason. A core goes through the elements in the
order of the type, and reads and writes each cache line as a whole.
--input selects one of the suite's sizes, 1 the largest; package internal/ddtbench has all dimensions.`,
	Source: "DDTBench, EuroMPI'12; SC'19",
	Smoke:  []experiment.Values{{}, {"mode": experiment.ModeSpin, "side": typeSource}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: datatypeModes(), Default: "rdma,iovec,spin", Help: "who unpacks: see compare datatype"},
		{Name: "side", Kind: report.Text, Of: []string{typeDestination, typeSource, typeBoth}, Default: typeDestination, Help: "where the elements lie apart"},
		experiment.TwoRanks(),
		{Name: "input", Kind: report.Count, Least: "1", Most: strconv.Itoa(ddtbench.MostInputs), Default: "1", Help: "size of the suite, 1 the largest; applications have 3 to 7"},
		{Name: "app", Kind: report.Text, Of: ddtbench.Names(), Help: "communication of the suite"},
	},
	Points: hasApplication,
	Run:    experiment.BenchmarkSized(runApplicationType),
	Columns: append([]report.Column{
		{Name: "bytes", Kind: report.Size, Help: "size of the message"},
		{Name: "blocks", Kind: report.Count, Help: "runs of bytes in sequence"},
		{Name: "block_mean", Kind: report.Number, Help: "bytes / blocks"},
	}, experiment.BenchColumns(datatypeColumns()...)...),
	Relative: experiment.AgainstModes(experiment.ModeRDMA),
	Slots:    datatypeSlots,
	Ledger:   ledgerUnpacking(),
	Memory: func(p *experiment.Point) int64 {
		t, err := applicationType(p)
		if err != nil {
			return 0 // Points refuses it
		}
		return p.Footprint(2) + 8*reach(t)
	},
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: "throughput", Series: []string{"mode"}, X: "input",
		Summary: []string{experiment.ProfileColumn, "side", "input", "app", "mode", "bytes", "blocks", "block_mean", "strategy", "hpus_needed", "littles_law_share", "throughput", "line_share", "speedup", "host_cpu", "host_memory"},
		Quiet:   []string{"side", "ranks", "input"},
		Answer:  applicationAnswer,
	},
	Caveats: behindLineRate,
	Notes: []string{
		experiment.Compared, "iovec is measured where the entry has no more elements than limits.max_iovecs.",
	},
}

// hasApplication leaves out inputs that an application does not have, entries
// that are too long, and strategies where no data is unpacked.
func hasApplication(p *experiment.Point) (bool, error) {
	a, err := ddtbench.Find(p.Text("app"))
	if err != nil || p.Int("input") > len(a.Inputs) {
		return false, err
	}
	if _, chosen := strategies[p.Text("mode")]; chosen && p.Text("side") == typeSource {
		return false, nil
	}
	t, err := applicationType(p)
	if err != nil {
		return false, err
	}
	if p.Text("mode") != modeIOVec {
		return true, fitsHPUs(p, t)
	}
	blocks, err := t.Blocks(1)
	return blocks <= int64(p.Profile.Limits.MaxIOVecs), err
}

// applicationType is the type of a point. The seed shuffles its lists.
func applicationType(p *experiment.Point) (*mpi.Type, error) {
	a, err := ddtbench.Find(p.Text("app"))
	if err != nil {
		return nil, err
	}
	return a.Inputs[p.Int("input")-1].Type(p.Seed)
}

// reach is how many bytes of memory an element needs from displacement 0 on.
func reach(t *mpi.Type) int64 {
	first, n := t.TrueExtent()
	return first + n
}

func runApplicationType(w *experiment.Bench) error {
	w.Reads("limits.max_iovecs") // the points depend on it
	t, err := applicationType(w.Point)
	if err != nil {
		return err
	}
	w.Bytes = int(t.Size())
	lines, err := t.Lines(1, w.Profile.Host.LineBytes)
	if err != nil {
		return err
	}
	blocks, err := t.Blocks(1)
	if err != nil {
		return err
	}
	w.More["bytes"], w.More["blocks"], w.More["block_mean"] = t.Size(), blocks, float64(t.Size())/float64(blocks)
	return (&vectors{Bench: w, of: t, lines: lines * int64(w.Profile.Host.LineBytes)}).run()
}

// publishedSpeedup is from the abstract of SC'19: up to 10 times the throughput
// of unpacking on the host.
const publishedSpeedup = 10.0

// applicationOf names the data of a point, for people.
func applicationOf(r *experiment.Result) string {
	name := r.Point.Text("app")
	if input := r.Point.Int("input"); input > 1 {
		name = fmt.Sprintf("%s %d", name, input)
	}
	return name
}

// applicationAnswer describes the choice of the loader, and compares the
// largest speedup with the published one.
func applicationAnswer(results []*experiment.Result) (lines []string) {
	type where struct {
		profile, side, app string
		input              int
	}
	at := func(r *experiment.Result) where {
		return where{r.Point.Profile.Name, r.Point.Text("side"), r.Point.Text("app"), r.Point.Int("input")}
	}
	host := map[where]*experiment.Result{}
	for _, r := range results {
		if r.Point.Text("mode") == experiment.ModeRDMA {
			host[at(r)] = r
		}
	}
	var most float64
	var of *experiment.Result
	for _, r := range results {
		if r.Point.Text("mode") != experiment.ModeSpin {
			continue
		}
		if why, chosen := r.Values["why"].(string); chosen {
			lines = append(lines, fmt.Sprintf("%s, %s: %s.", r.Point.Profile.Name, applicationOf(r), why))
		}
		if base := host[at(r)]; base != nil && r.Float("throughput") > most*base.Float("throughput") {
			most, of = r.Float("throughput")/base.Float("throughput"), r
		}
	}
	if of != nil && len(results) > 2 {
		lines = append(lines, fmt.Sprintf("The largest speedup is %.2fx, that of %s on %s. SC'19 says up to %.0fx of its applications (deviation %+.0f%%; predicted).",
			most, applicationOf(of), of.Point.Profile.Name, publishedSpeedup, 100*(most/publishedSpeedup-1)))
	}
	return lines
}
