package part

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

var isend = &experiment.Experiment{
	Name:  "isend",
	Short: "MPI_Isend until it returns, with and without touching the buffer",
	Long: `Rank 0 sends a buffer to rank 1 by MPI_Isend. The latency is from the call to its return; it does not include the transfer. Sizes are
drawn uniformly from 100 B to 512 MB; the sample selects one. A message longer than --eager is announced.
  touch  the pages were touched before, and the program touches them again in the measurement, like an MPI that must be sure of them
  never  nobody touches them: the NIC's faults are handled`,
	Source:   "PART'22 §6",
	Smoke:    []experiment.Values{{"sample": 1, "mode": isendNever}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{isendTouch, isendNever}, Help: "touch (pages are touched before and in the measurement) or never"},
		{Name: "eager", Kind: report.Size, Most: "512MiB", Default: "16KiB", Help: "largest message that does not wait for its receive"},
		{Name: "sample", Kind: report.Count, Least: "1", Most: strconv.Itoa(experiment.MaxList), Default: "1,2,3,..,16", Help: "number of a size drawn from the seed"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if !p.Profile.OS.On() {
			return false, fmt.Errorf("profile %s: no pages that could be absent (os.kind)", p.Profile.Origin.Name)
		}
		return true, isendOptions(p).Validate()
	},
	Run: runIsend,
	Columns: []report.Column{
		{Name: "bytes", Kind: report.Size, Help: "size of the message"},
		{Name: "pages", Kind: report.Count, Help: "pages that the message has a part of"},
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call until it returns, touching included"},
		{Name: "touching", Kind: report.Share, Help: "share of touching"},
	},
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "latency of touch divided by latency, of the same size"},
		Of:     experiment.LatencyColumn, Axis: "mode", Base: isendTouch,
	}},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: experiment.LatencyColumn, Series: []string{"mode", "sample"}, X: "bytes", Quiet: []string{"eager"}, Summary: []string{experiment.ProfileColumn, "sample", "bytes", "mode", experiment.LatencyColumn, "speedup"}},
	Ledger:   ledgerIsend(),
	Notes:    []string{"Sizes are drawn: with another --seed they are others."},
}

// Values of the axis mode of isend.
const (
	isendTouch = "touch"
	isendNever = "never"
)

// ledgerIsend are the rows of PART'22 that isend answers.
func ledgerIsend() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "part22-6.2.1-03", Of: "mode=touch,never sample=1,2,3,..,16", How: "of two of 16 sizes, the latency with touching less that without is larger for the larger size",
		Holds: func(m *experiment.Measured) bool {
			added := map[float64]float64{}
			for _, is := range eachOf(m, "sample") {
				added[m.At("bytes", "mode=touch "+is)] = latency(m, "mode=touch %s", is) - latency(m, "mode=never %s", is)
			}
			last := 0.0
			for _, size := range slices.Sorted(maps.Keys(added)) {
				if added[size] <= last {
					return false
				}
				last = added[size]
			}
			return true
		},
	}}
}

// Sizes in PART'22, in bytes.
const (
	isendLeast = 100
	isendMost  = 512_000_000
)

func isendOptions(p *experiment.Point) mpi.Options {
	o := mpi.DefaultOptions(mpi.Host)
	o.Eager = p.Int("eager")
	o.BufferBytes = max(o.BufferBytes, 2*o.Eager)
	return o
}

// errMeasured ends a run after the measurement.
var errMeasured = errors.New("the measurement is over")

// runIsend measures a point.
func runIsend(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	c, err := runtime.NewCluster(p.Config(ctx, 2))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, isendOptions(p))
	if err != nil {
		return nil, err
	}
	n := isendLeast + rand.New(rand.NewPCG(p.Seed, uint64(p.Int("sample")))).IntN(isendMost-isendLeast+1)
	err = errors.Join(w.Spawn(1, func(*mpi.Rank) error { return nil }), w.Spawn(0, func(r *mpi.Rank) error {
		before, err := r.Alloc(p.Int("eager") + 1)
		if err != nil {
			return err
		}
		buffer, err := r.Alloc(n)
		if err != nil {
			return err
		}
		if p.Text("mode") == isendTouch {
			buffer.Raw()
		}
		if _, err := r.Isend(before, 1, 0); err != nil { // the library then has its own memory
			return err
		}
		begun := r.Now()
		if p.Text("mode") == isendTouch {
			touchPages(buffer.Proc(), buffer)
		}
		touched := r.Now()
		if _, err := r.Isend(buffer, 1, 0); err != nil {
			return err
		}
		took := r.Now() - begun
		p.Operation(r.Proc(), begun)
		values = experiment.Values{
			"bytes": n, "pages": (n + pageBytes - 1) / pageBytes, experiment.LatencyColumn: took, "touching": float64(touched-begun) / float64(took),
		}
		return errMeasured
	}))
	if err == nil {
		err = c.Run(ctx)
	}
	if errors.Is(err, errMeasured) {
		err = nil
	}
	return values, err
}
