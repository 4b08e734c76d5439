package spin17

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var conditionalRead = &experiment.Experiment{
	Name:  "scan",
	Short: "rows of a remote table for which a predicate holds",
	Long: `Node 0 has a table in memory. A client on node 1 selects its rows with key < n. The keys are the numbers of the rows in random order, and n is the fraction
given by the selectivity. The latency is the time from the client's call until it has the matching rows.
  spin  handlers of the table's network interface read the rows, and send those that match (sPIN'17 §5.4)
  host  a core of the table's host reads the rows, writes those that match into a buffer, and sends the buffer in pieces of 64 KiB while it continues
  rdma  the client reads the whole table in pieces of 64 KiB, and its core filters one while the next ones arrive
Cores are not charged for the computation on a row, only for the memory that they read and write.`,
	Source: "sPIN'17 §5.4",
	Smoke:  []experiment.Values{{}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeSpin, experiment.ModeHost, experiment.ModeRDMA}, Help: "who evaluates the predicate; the command's help describes each"},
		{Name: "terms", Kind: report.Count, Least: "1", Most: "16", Default: "1", Help: "comparisons of the predicate; each row takes all"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "8", Most: "256MiB", Default: "4MiB", Help: "size of the table; only whole rows are used"},
		{Name: "row", Kind: report.Size, Least: "8", Most: "2048", Default: "256", Help: "size of a row"},
		{Name: "selectivity", Kind: report.Share, Least: "0", Most: "1", Default: "0.1%,1%,10%,50%,100%", Help: "share of the rows that match"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if p.Int("size") < p.Int("row") {
			return false, fmt.Errorf("--size %d B with --row %d B, expected at least one row", p.Int("size"), p.Int("row"))
		}
		return true, experiment.LongPackets(p, scan.HeadSize+scan.MaxRow)
	},
	Run: runScan,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "from the call of the client until it has all rows that match"},
		{Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "size of the table by latency"},
		{Name: "matched", Kind: report.Count, Help: "rows that match"},
		{Name: "server_cpu", Unit: "us", Kind: report.Duration, Help: "time that cores of the table's node were busy"},
		{Name: "client_cpu", Unit: "us", Kind: report.Duration, Help: "time that cores of the client's node were busy"},
		{Name: "server_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the memory of the table's node"},
		{Name: "client_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the memory of the client's node"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Relative: experiment.AgainstHost(),
	Slots:    experiment.SlotIn(scan.TableSlot, experiment.ModeSpin),
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: experiment.ModeHost, X: "selectivity",
		Summary: []string{experiment.ProfileColumn, "selectivity", "mode", experiment.LatencyColumn, "throughput", "server_cpu", "client_cpu", "server_memory", "client_memory", "hpus_needed", "littles_law_share"},
		Quiet:   []string{"terms", "size", "row"},
	},
	Presets: []experiment.Preset{
		{
			Name: "rows", Short: "a conditional read: throughput against the size of rows", Source: "ours",
			Values: map[string]string{"selectivity": "1%", "row": "64,128,..,2048"},
			View: &experiment.View{
				Value: "throughput", Series: []string{"mode"}, X: "row", Quiet: []string{"terms", "size", "selectivity"},
			},
		},
		{
			Name: "terms", Short: "a conditional read by handlers: throughput against the size of rows and the length of the predicate", Source: "ours",
			Values: map[string]string{"mode": "spin", "selectivity": "1%", "row": "64,256,1024", "terms": "1,4,16"},
			View: &experiment.View{
				Value: "throughput", Series: []string{"terms"}, X: "row", Quiet: []string{"mode", "size", "selectivity"},
			},
		},
	},
	Caveats: experiment.KeepingUp,
	Notes: []string{
		"The rows that came were compared with those that match. Nothing was published of a conditional read's speed; all figures are predicted.",
	},
}

var scanModes = map[string]scan.Mode{experiment.ModeSpin: scan.Handlers, experiment.ModeHost: scan.Host, experiment.ModeRDMA: scan.All}

// scanRun is a running measurement.
type scanRun struct {
	*experiment.Point
	c         *runtime.Cluster
	o         scan.Options
	schema    *scan.Schema
	columns   []string
	rows      []byte
	predicate string
	want      []byte // the matching rows
	values    experiment.Values
}

func runScan(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &scanRun{Point: p, o: scan.Options{Mode: scanModes[p.Text("mode")]}, values: experiment.Values{}}
	if err := w.table(); err != nil {
		return nil, err
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 2), w.spawn, func() error {
		for i, of := range []string{"server", "client"} {
			s := w.c.Node(i).Stats()
			w.values[of+"_cpu"], w.values[of+"_memory"] = s.CPUBusy, s.HostMemoryBytes
		}
		// At line rate a client would read all rows over its link.
		w.AtLineRate(w.c, w.values, func(int) sim.Time { return w.Profile.Fabric.Rate.Time(int64(len(w.rows))) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(w.values, experiment.ClusterValues(&stats))
	return w.values, nil
}

// table makes rows whose keys are their numbers in random order, and the
// predicate.
func (w *scanRun) table() (err error) {
	size := w.Int("row")
	n := w.Int("size") / size
	fields := []scan.Field{{Name: "key", Kind: scan.U64}}
	if size > 8 {
		fields = append(fields, scan.Field{Name: "rest", Kind: scan.Bytes, Length: size - 8})
	}
	w.columns = []string{"key", "rest"}[:len(fields)]
	if w.schema, err = scan.NewSchema(fields...); err != nil {
		return err
	}
	w.rows = memory.Make[byte](n * size)
	experiment.Pattern(w.rows, w.Seed)
	for i, k := range rand.New(rand.NewPCG(w.Seed, 1)).Perm(n) {
		binary.LittleEndian.PutUint64(w.rows[i*size:], uint64(k))
	}
	limit := uint64(w.Float("selectivity")*float64(n) + 0.5)
	w.predicate = fmt.Sprintf("key < %d", limit) + strings.Repeat(fmt.Sprintf(" && key != %d", n), w.Int("terms")-1)
	for row := range slices.Chunk(w.rows, size) {
		if binary.LittleEndian.Uint64(row) < limit {
			w.want = append(w.want, row...)
		}
	}
	return nil
}

func (w *scanRun) spawn(c *runtime.Cluster) error {
	w.c = c
	if err := c.SpawnService(0, "table", func(p *runtime.Proc) error {
		t, err := scan.Open(p, w.schema, w.rows, w.o)
		if err != nil {
			return err
		}
		return t.Serve()
	}); err != nil {
		return err
	}
	return c.Spawn(1, "client", w.client)
}

func (w *scanRun) client(p *runtime.Proc) error {
	n := len(w.rows) / w.schema.Size()
	client, err := scan.Dial(p, scan.Address{}, w.schema, n, w.o)
	if err != nil {
		return err
	}
	begin := p.Now()
	r, err := client.Select(w.predicate, w.columns, n)
	if err != nil {
		return err
	}
	latency := p.Now() - begin
	w.Operation(p, begin)
	w.values[experiment.LatencyColumn], w.values["matched"] = latency, r.Matched
	w.values["throughput"] = float64(len(w.rows)) / (1 << 30) * float64(sim.Second) / float64(latency)
	return experiment.SameBytes("rows", r.Rows, w.want)
}
