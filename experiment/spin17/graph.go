package spin17

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const graphHelp = `A graph is spread over the nodes, vertex v on node v modulo their number. A search goes through it from a root: kernel bfs counts edges, sssp adds their weights. A search that
reaches a vertex sends new distances to the nodes of its neighbours, which keep the smaller ones. Modes select who does that:
  spin           handlers, by compare-and-swap in host memory; HPU memory keeps the labels seen, 8 B for each vertex, so that only updates that may improve a label go to host memory
  spin-uncached  the same, but each update goes to host memory, as in sPIN'17
  host           one core of each node: it takes packets from its memory, and acknowledges them, by the same protocol
A label may be taken and corrected later; distances are exact in the end. Counting detects the end (Dijkstra and Scholten), by handlers or by hosts. A core is charged for messages,
for bytes in sequence, for a cache line for each label, and for an access to DRAM for each vertex that it continues from. Its instructions cost nothing; those of handlers do.`

// Values of the axes kernel and mode of graph.
const (
	kernelBFS        = "bfs"
	kernelSSSP       = "sssp"
	modeSpinUncached = "spin-uncached"
	largestScale     = 24
	// both directions in the graph and on nodes, and the list from which the
	// graph is made
	bytesOfEdge       = 2*8 + 2*8 + 12
	bytesOfVertex     = 64
	workedEdgesColumn = "work"
)

var graphs = graphExperiment(&graphSearch{name: "graph"}, []experiment.Axis{
	{Name: "scale", Kind: report.Count, Least: "1", Most: fmt.Sprint(largestScale), Default: "10,12", Help: "the graph has 2^scale vertices (R-MAT as in Graph500, from the seed)"},
	{Name: "search", Kind: report.Count, Least: "1", Most: "1000000", Default: "1", Help: "number of the root, a vertex with edges drawn from the seed"},
	{Name: "factor", Kind: report.Count, Least: "1", Most: "1024", Default: fmt.Sprint(graph.Factor), Help: "edges of the graph for each vertex"},
})

// GraphOf searches a given graph, which must not change afterwards. name is its
// name in tables. nil: the experiment can be described but not run.
func GraphOf(name string, g *graph.Graph) *experiment.Experiment {
	first := 0
	if g != nil {
		first = g.First()
	}
	e := graphExperiment(&graphSearch{name: "graph", graph: g}, []experiment.Axis{
		{Name: "file", Kind: report.Text, Of: []string{strings.ReplaceAll(name, ",", "_")}, Help: "the graph"},
		{Name: "root", Kind: report.Count, Least: "0", Most: fmt.Sprint(graph.MaxVertices - 1), Default: fmt.Sprint(first), Help: "vertex at which the search begins; default: the first that has an edge to another one"},
	})
	made := func(axis string) bool { return axis == "scale" || axis == "factor" || axis == "search" }
	e.Presets, e.Smoke, e.Ledger = nil, nil, nil
	e.View.Answer = func(results []*experiment.Result) []string { return answerGraph(g, results) }
	e.View.X, e.View.Quiet, e.View.Summary = "ranks", append(slices.DeleteFunc(e.View.Quiet, made), "root"), slices.DeleteFunc(e.View.Summary, made)
	return e
}

func graphExperiment(s *graphSearch, of []experiment.Axis) *experiment.Experiment {
	return &experiment.Experiment{
		Name:   s.name,
		Short:  "breadth-first search and shortest paths in a graph that is spread over nodes",
		Long:   graphHelp,
		Source: "sPIN'17, Simple Graph Kernels",
		Smoke:  []experiment.Values{{"scale": 4, "ranks": 3, "kernel": kernelSSSP}},
		Axes: append([]experiment.Axis{
			{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeSpin, modeSpinUncached, experiment.ModeHost}, Help: "who searches; the command's help describes each"},
			{Name: "kernel", Kind: report.Text, Of: []string{kernelBFS, kernelSSSP}, Help: "bfs: edges from the root; sssp: the sum of their weights, whole numbers from 1 to 255"},
			{Name: "ranks", Kind: report.Count, Least: "1", Most: "4096", Default: "16", Help: "nodes"},
			{Name: "workers", Kind: report.Count, Least: "0", Most: fmt.Sprint(graph.MaxWorkers), Default: "0", Help: "workers of each node, each with one packet in flight to each other node; 0: one for each context of all HPUs but one, if there is room for their packets"},
		}, of...),
		Points:      s.has,
		Independent: true,
		Run:         s.run,
		Memory:      s.memory,
		Columns: append([]report.Column{
			{Name: "time", Unit: "us", Kind: report.Duration, Scale: "time", Help: "from the beginning of the search until the last host has seen its end"},
			{Name: "teps", Unit: "MTEPS", Kind: report.Number, Help: "traversed edges per microsecond: those of the graph that the root is connected with, each once (Graph500), by time"},
			{Name: "edges", Kind: report.Count, Help: "of these, how many"},
			{Name: workedEdgesColumn, Kind: report.Ratio, Help: "edges that were followed, by those of a search that follows each once in both directions: 1 is the least"},
			{Name: "improved", Kind: report.Count, Help: "labels that were changed in host memory"},
			{Name: "swaps", Kind: report.Count, Help: "compare-and-swaps of handlers in host memory; empty without handlers"},
			{Name: "updates", Kind: report.Count, Help: "that were sent to other nodes, 16 B each"},
			{Name: "line_share", Kind: report.Share, Help: "bytes of updates / what links carry in that time (fabric.rate)"},
			{Name: "hpus_busy", Kind: report.Share, Help: "of their time: that in which they ran handlers; empty without handlers"},
		}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
		Relative: []experiment.Relative{
			{Column: report.Column{Name: "speedup_vs_host", Kind: report.Ratio, Help: "time of host / time"}, Of: "time", Axis: "mode", Base: experiment.ModeHost},
			{Column: report.Column{Name: "memory_vs_host", Kind: report.Ratio, Help: "bytes through host memories with host / the same here"}, Of: "host_memory", Axis: "mode", Base: experiment.ModeHost},
		},
		Slots: func(p *experiment.Point) []*handlers.Slot {
			if p.Text("mode") == experiment.ModeHost {
				return nil
			}
			return []*handlers.Slot{graph.NodeSlot}
		},
		View: experiment.View{
			Value: "time", Series: []string{"mode"}, Base: experiment.ModeHost, X: "scale", Quiet: []string{"factor", "search", "workers"},
			Summary: []string{
				experiment.ProfileColumn, "scale", "kernel", "ranks", "search", "workers", "mode", "time", "teps", workedEdgesColumn, "host_cpu", "host_memory", "line_share", "hpus_busy", "hpus_needed", "speedup_vs_host", "memory_vs_host",
			},
			Answer: answerGraphs,
		},
		Followed: "time",
		Ledger:   ledgerGraph(),
		Presets:  graphPresets(),
		Notes: []string{
			"Every search was compared with a sequential one (a queue; Dijkstra with a heap), and its tree validated by the rules of Graph500. Nothing was published of its speed: all figures are predicted.",
		},
	}
}

func graphPresets() []experiment.Preset {
	return []experiment.Preset{
		{
			Name: "nodes", Short: "breadth-first search and shortest paths on more and more nodes", Source: "ours",
			Values: map[string]string{"scale": "12", "ranks": "1,2,4,8,16,32,64"},
			View:   &experiment.View{Value: "teps", Series: []string{"mode"}, X: "ranks", Quiet: []string{"factor", "search", "workers", "scale"}, Answer: answerGraphs},
		},
		{
			Name: "scales", Short: "breadth-first search and shortest paths in larger and larger graphs", Source: "ours",
			Values: map[string]string{"scale": "6,8,10,12,14", "ranks": "16"},
			View:   &experiment.View{Value: "teps", Series: []string{"mode"}, X: "scale", Quiet: []string{"factor", "search", "workers", "ranks"}, Answer: answerGraphs},
		},
	}
}

// graphSearch makes and runs the points of the experiment. It keeps the last
// graph.
type graphSearch struct {
	name  string
	graph *graph.Graph // given; nil: R-MAT

	lock sync.Mutex
	of   [3]uint64
	last *graph.Graph

	solved bool // far is known for root
	root   int
	far    error
}

// made is the graph of a point. It depends on scale, factor and seed.
func (s *graphSearch) made(p *experiment.Point) *graph.Graph {
	if s.graph != nil {
		return s.graph
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	of := [3]uint64{uint64(p.Int("scale")), uint64(p.Int("factor")), p.Seed}
	if s.last == nil || of != s.of {
		s.last = nil // free its memory first
		s.of, s.last = of, graph.RMAT(p.Int("scale"), p.Int("factor"), p.Seed)
	}
	return s.last
}

// size is the size of the graph of a point.
func (s *graphSearch) size(p *experiment.Point) (vertices, edges int) {
	if s.graph != nil {
		return s.graph.Vertices, s.graph.Edges()
	}
	return 1 << p.Int("scale"), p.Int("factor") << p.Int("scale")
}

func graphOptions(p *experiment.Point) graph.Options {
	return graph.Options{PT: experiment.RequestPT, Weighted: p.Text("kernel") == kernelSSSP, ByHost: p.Text("mode") == experiment.ModeHost, Uncached: p.Text("mode") == modeSpinUncached, Workers: p.Int("workers")}
}

// has leaves out points whose handlers need more memory than the device has.
func (s *graphSearch) has(p *experiment.Point) (bool, error) {
	vertices, _ := s.size(p)
	if s.graph != nil && p.Int("root") >= vertices {
		return false, fmt.Errorf("--root: %d, expected a vertex below %d", p.Int("root"), vertices)
	}
	if s.graph != nil && p.Text("kernel") == kernelSSSP {
		if err := s.tooFar(p.Int("root")); err != nil {
			return false, fmt.Errorf("%s: --kernel sssp: %w", p.Text("file"), err)
		}
	}
	n, err := graphOptions(p).HPUMemory(p.Profile, vertices, p.Int("ranks"))
	if err != nil {
		return false, fmt.Errorf("--ranks: %w", err)
	}
	if most := p.Profile.HPU.MaxHPUMemory; p.Text("mode") != experiment.ModeHost && n > most {
		return false, fmt.Errorf("profile %s: hpu.max_hpu_memory: %d B, expected %d for %d vertices on %d nodes (--ranks)", p.Profile.Origin.Name, most, n, vertices, p.Int("ranks"))
	}
	return true, nil
}

// tooFar returns an error for a vertex of the given graph whose distance from a
// root is too large. It keeps the result for the last root.
func (s *graphSearch) tooFar(root int) error {
	if uint64(s.graph.Heaviest())*uint64(s.graph.Vertices) < graph.None {
		return nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.solved || s.root != root {
		_, s.far = s.graph.Solve(root, true)
		s.solved, s.root = true, root
	}
	return s.far
}

func (s *graphSearch) memory(p *experiment.Point) int64 {
	vertices, edges := s.size(p)
	return p.Footprint(p.Int("ranks")) + int64(vertices)*bytesOfVertex + int64(edges)*bytesOfEdge
}

// searching is a running measurement.
type searching struct {
	*experiment.Point
	o       graph.Options
	members []*graph.Member
	ends    []sim.Time
	counts  graph.Counts
	edges   int // as Graph500 counts them
	least   int // that a search follows at least
	cluster *runtime.Cluster
	line    experiment.Values // lineColumns
}

func (s *graphSearch) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	ranks := p.Int("ranks")
	w := &searching{Point: p, o: graphOptions(p), members: make([]*graph.Member, ranks), ends: make([]sim.Time, ranks)}
	w.o.Graph = s.made(p)
	if s.graph != nil {
		w.o.Root = p.Int("root")
	} else {
		w.o.Root = w.o.Graph.Root(p.Int("search")-1, p.Seed)
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, ranks), w.spawn, w.finish)
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	end := sim.Time(0)
	for _, t := range w.ends {
		end = max(end, t)
	}
	seconds := end.Seconds()
	values["time"], values["teps"], values["edges"] = end, float64(w.edges)/seconds/1e6, w.edges
	values[workedEdgesColumn] = nil
	if w.least > 0 {
		values[workedEdgesColumn] = float64(w.counts.Edges) / float64(w.least)
	}
	values["improved"], values["updates"] = int(w.counts.Improved), int(w.counts.Sent)
	values["line_share"] = p.Profile.Fabric.Rate.Time(int64(w.counts.Sent)*graph.UpdateSize).Seconds() / float64(ranks) / seconds
	values["swaps"], values["hpus_busy"] = nil, nil
	maps.Copy(values, w.line)
	if p.Text("mode") == experiment.ModeHost {
		return values, nil
	}
	busy := p.Profile.HPU.Clock.Cycles(stats.HandlerCycles).Seconds() / float64(ranks)
	values["swaps"], values["hpus_busy"] = int(w.counts.Swaps), busy/seconds/float64(p.Profile.HPU.Cores)
	return values, nil
}

func (w *searching) spawn(c *runtime.Cluster) error {
	w.cluster, w.line = c, experiment.Values{}
	var library *graph.Loaded // hosts need none
	if !w.o.ByHost {
		var err error
		if library, err = graph.Load(c); err != nil {
			return err
		}
	}
	for i := range w.members {
		if err := c.Spawn(i, "search", func(p *runtime.Proc) (err error) {
			if w.members[i], err = library.Join(p, w.o); err != nil {
				return err
			}
			err = w.members[i].Run()
			w.ends[i] = p.Now()
			w.LastOperation(p, 0)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// finish compares the result with a sequential search, and validates it.
func (w *searching) finish() error {
	g := w.o.Graph
	distance, parent := graph.Collect(w.members)
	want, err := g.Solve(w.o.Root, w.o.Weighted)
	if err != nil {
		return err
	}
	for v := range want {
		if want[v] != distance[v] {
			return fmt.Errorf("vertex %d has distance %d from vertex %d, expected %d", v, distance[v], w.o.Root, want[v])
		}
		if want[v] != graph.None {
			w.least += g.Degree(v)
		}
	}
	if err := g.Validate(w.o.Root, distance, parent, w.o.Weighted); err != nil {
		return err
	}
	w.edges = g.Traversed(distance)
	var sent []int64
	for _, m := range w.members {
		if err := m.Quiet(); err != nil {
			return err
		}
		one := m.Counts()
		sent = append(sent, int64(one.Sent)*graph.UpdateSize)
		w.counts.Sent, w.counts.Swaps = w.counts.Sent+one.Sent, w.counts.Swaps+one.Swaps
		w.counts.Improved, w.counts.Edges = w.counts.Improved+one.Improved, w.counts.Edges+one.Edges
	}
	// only updates
	w.AtLineRate(w.cluster, w.line, func(node int) sim.Time { return w.Profile.Fabric.Rate.Time(sent[node]) })
	return nil
}

// answerGraphs writes the gain with handlers for each profile and kernel, at
// the largest point that was measured with both, and whether handlers keep up
// with the links.
func answerGraphs(results []*experiment.Result) (lines []string) {
	at := func(r *experiment.Result, mode string) *experiment.Result {
		return experiment.Beside(results, r, "mode", mode)
	}
	of := func(r *experiment.Result, column string) float64 {
		x, _ := experiment.Magnitude(r.Values[column])
		return x
	}
	for i, r := range results {
		if r.Point.Text("mode") != experiment.ModeSpin {
			continue
		}
		last := true
		for _, o := range results[i+1:] {
			last = last && (o.Point.Text("mode") != experiment.ModeSpin || o.Point.Profile.Name != r.Point.Profile.Name || o.Point.Text("kernel") != r.Point.Text("kernel"))
		}
		h := at(r, experiment.ModeHost)
		if !last || h == nil {
			continue
		}
		what := fmt.Sprintf("%s, %s, %s", r.Point.Profile.Name, r.Point.Text("kernel"), graphNodes(r.Point))
		speed := fmt.Sprintf("handlers are %.2f times as fast as a core of each node", of(h, "time")/of(r, "time"))
		if of(h, "time") < of(r, "time") {
			speed = fmt.Sprintf("a core of each node is %.2f times as fast as handlers", of(r, "time")/of(h, "time"))
		}
		lines = append(lines, fmt.Sprintf("%s: %s; %.1f times fewer bytes go through host memory, and cores are busy for %.1f µs instead of %.1f.",
			what, speed, of(h, "host_memory")/of(r, "host_memory"), 1e6*r.Time("host_cpu").Seconds(), 1e6*h.Time("host_cpu").Seconds()))
		if needed, given := r.Values["hpus_needed"].(float64); given && needed > float64(r.Point.Profile.HPU.Cores) {
			lines = append(lines, fmt.Sprintf("%s: updates are %.1f%% of the line rate; %.0f HPUs would keep up with it (Little's law), of which a node has %d.",
				what, 100*r.Float("line_share"), needed, r.Point.Profile.HPU.Cores))
		}
	}
	return lines
}

// answerGraph is answerGraphs for a given graph. It also names roots without an
// edge.
func answerGraph(g *graph.Graph, results []*experiment.Result) (lines []string) {
	var alone []int
	kept := slices.DeleteFunc(slices.Clone(results), func(r *experiment.Result) bool {
		root := r.Point.Int("root")
		if g.Degree(root) > 0 {
			return false
		}
		if !slices.Contains(alone, root) {
			alone = append(alone, root)
		}
		return true
	})
	for _, root := range alone {
		line := fmt.Sprintf("Vertex %d has no edge to another one: a search from it (--root) finds nothing, and its times say nothing of handlers.", root)
		if first := g.First(); g.Degree(first) > 0 {
			line += fmt.Sprintf(" The first that has one is %d.", first)
		}
		lines = append(lines, line)
	}
	return append(lines, answerGraphs(kept)...)
}

// graphNodes names the graph and the nodes of a point.
func graphNodes(p *experiment.Point) string {
	if p.Experiment().Axis("scale") == nil {
		return experiment.Counted(p.Int("ranks"), "node")
	}
	return fmt.Sprintf("2^%d vertices, %s", p.Int("scale"), experiment.Counted(p.Int("ranks"), "node"))
}

// ledgerGraph are the rows of sPIN'17 §5.4 that graph answers.
func ledgerGraph() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "spin17-5.4-04", Of: bothNICs + "mode=spin-uncached,host kernel=bfs,sssp scale=10",
		How: "with spin-uncached, for each update that it sends 32 B less go through the host memories than with the host, which stores and loads its 16 B; 2^10 vertices",
		Holds: func(m *experiment.Measured) bool {
			held := true
			for _, r := range m.Results {
				if r.Point.Text("mode") == modeSpinUncached {
					held = held && m.Of(r, "host_memory")+2*graphUpdate*m.Of(r, "updates") <= m.Beside(r, "host_memory", "mode="+experiment.ModeHost)
				}
			}
			return held
		},
	}}
}

// graphUpdate is how many bytes an update has.
const graphUpdate = 16
