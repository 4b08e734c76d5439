package spin17

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/report"
)

var loads = storageLoads()

// loadAxis is the axis of a synthetic load.
const loadAxis = "load"

// storageLoads plays synthetic traces of a bank and of a search engine. The
// traces of sPIN'17 §5.3 are not at hand.
func storageLoads() *experiment.Experiment {
	e := Storage("", nil)
	s := &traceRun{}
	var names []string
	for _, m := range spc.Models {
		names = append(names, m.Name)
	}
	e.Name, e.Short = "loads", "synthetic loads of block storage, a bank's and a search engine's, played on servers with parity"
	e.Long = "A load is a synthetic trace (spinsim storage generate LOAD), of which every seed makes another.\n" + storageHelp
	e.Axes[0] = experiment.Axis{Name: loadAxis, Kind: report.Text, Of: names, Help: "synthetic trace: oltp (transactions) or websearch (a search engine)"}
	requests := e.Axis("requests")
	requests.Least, requests.Most, requests.Default, requests.Help = "1", "100000", "300", "requests of the trace"
	e.Undivided = "a load has many requests, of several kinds; raid5 has one"
	e.Points, e.Run, e.Memory = s.has, s.run, s.memory
	e.Smoke = []experiment.Values{{"requests": 10}}
	e.View.X = "load"
	e.View.Summary = slices.Insert(slices.Clone(e.View.Summary), 1, loadAxis)
	e.Notes = append(e.Notes[:1:1], "The traces are synthetic, and their parameters are ours: they stand for the two traces of a bank and the three of a search engine of sPIN'17 §5.3, which are not at hand.")
	e.Ledger = ledgerLoads()
	return e
}

// loadOf are the requests of a point.
func loadOf(p *experiment.Point) []spc.Request {
	m, err := spc.ModelOf(p.Text(loadAxis))
	if err != nil {
		panic(fmt.Sprintf("spin17: %v", err)) //lint:panic programmer's mistake: the axis lists the models
	}
	return m.Generate(p.Int("requests"), p.Seed).Requests
}

// ledgerLoads are the rows of sPIN'17 §5.3 on traces.
func ledgerLoads() []experiment.LedgerRow {
	const of, traces = bothNICs + "load=oltp,websearch mode=rdma,spin", ", with 300 requests of synthetic loads in place of the traces"
	improvements := func(m *experiment.Measured) (list []float64) {
		for _, r := range m.Results {
			if r.Point.Text("mode") == experiment.ModeSpin {
				list = append(list, 100*m.Of(r, "improvement"))
			}
		}
		return list
	}
	return []experiment.LedgerRow{
		{ID: "spin17-5.3-09", Of: of, How: "the least improvement of two loads on two devices" + traces, Ours: func(m *experiment.Measured) []float64 { return []float64{slices.Min(improvements(m))} }},
		{ID: "spin17-5.3-10", Of: "profile=spin-int load=oltp mode=rdma,spin", How: "the improvement on the integrated NIC with the bank's load" + traces, Ours: improvements},
		{
			ID: "spin17-5.3-11", Of: of, How: "the improvement on the integrated NIC with the bank's load is the largest of two loads on two devices" + traces,
			Holds: func(m *experiment.Measured) bool {
				return slices.Max(improvements(m)) == 100*m.At("improvement", "profile=spin-int load=oltp mode=spin")
			},
		},
	}
}
