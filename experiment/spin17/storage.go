package spin17

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Trace is a trace of requests to block devices in SPC's format.
type Trace = spc.Trace

// ReadTrace reads a trace. Errors name the file and the line.
func ReadTrace(r io.Reader, file string) (*Trace, error) { return spc.Read(r, file) }

// Storage plays a trace on an array of servers with parity, as in raid5. name
// is the trace's name in tables. Its requests must not change afterwards.
func Storage(name string, trace *Trace) *experiment.Experiment {
	s := &traceRun{trace: trace}
	e := &experiment.Experiment{
		Name:   "storage",
		Short:  "a trace of block storage, played on servers with parity",
		Long:   storageHelp,
		Source: "sPIN'17 §5.3",
		Axes: []experiment.Axis{
			{Name: "file", Kind: report.Text, Of: []string{strings.ReplaceAll(name, ",", "_")}, Help: "the trace"},
			{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeRDMA, experiment.ModeP4, experiment.ModeSpin}, Default: "rdma,p4,spin", Help: "who serves; the command's help describes each"},
			{Name: "clients", Kind: report.Count, Least: "1", Most: fmt.Sprint(raid5.MaxClients), Default: "1", Help: "nodes that play the trace; each has whole units, in turn, and one request in flight"},
			{Name: "speed", Kind: report.Number, Least: "0", Most: "1e9", Default: "0", Help: "factor by which requests are faster than their time stamps, but not before the previous one has ended; 0: time stamps are ignored"},
			{Name: "requests", Column: "first", Kind: report.Count, Least: "0", Most: "1000000000", Default: "0", Help: "play only this number of requests, from the first; 0: all"},
			{Name: "block", Column: "block_bytes", Kind: report.Size, Least: "1", Most: "1MiB", Default: fmt.Sprint(spc.Block), Help: "unit of block addresses"},
			{Name: "servers", Kind: report.Count, Least: "1", Most: fmt.Sprint(raid5.MaxData), Default: "4", Help: "data servers, besides the parity server"},
			{Name: "cores", Kind: report.Count, Least: "1", Most: "1024", Default: "1", Help: "cores of each server that serve, without handlers"},
			{Name: "unit", Kind: report.Size, Least: fmt.Sprint(raid5.LeastUnit), Most: "64MiB", Multiple: "8", Default: "4KiB", Help: "stripe unit: consecutive bytes of a server"},
			durableAxis(),
		},
		Points: s.has,
		Run:    s.run,
		Columns: append([]report.Column{
			{Name: "reads", Kind: report.Count, Help: "requests that read"},
			{Name: "writes", Kind: report.Count, Help: "requests that write"},
			{Name: "data", Unit: "bytes", Kind: report.Size, Help: "bytes of all requests"},
			{Name: "time", Unit: "us", Kind: report.Duration, Help: "from the beginning of the first request to the end of the last"},
			{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "mean time of a request, to its end from its call, with --speed from its time stamp"},
			{Name: "p50", Unit: "us", Kind: report.Duration, Help: "time that half of the requests did not take longer than"},
			{Name: "p99", Unit: "us", Kind: report.Duration, Help: "time that 99% of the requests did not take longer than"},
		}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
		Relative: []experiment.Relative{{
			Column: report.Column{Name: "improvement", Kind: report.Share, Help: "1 - time / time of rdma: by how much sooner the whole trace is done; empty if rdma was not measured"},
			Of:     "time", Axis: "mode", Base: experiment.ModeRDMA,
		}},
		Slots:  experiment.SlotIn(raid5.ServerSlot, experiment.ModeSpin),
		Memory: s.memory,
		View: experiment.View{
			Value: "time", Series: []string{"mode"}, Base: experiment.ModeRDMA, X: "clients", Quiet: []string{"speed", "requests", "block", "servers", "cores", "unit", "durable"},
			Summary: []string{experiment.ProfileColumn, "clients", "speed", "first", "block_bytes", "servers", "cores", "unit", "durable", "mode", "time", experiment.LatencyColumn, "p50", "p99", "hpus_needed", "host_cpu", "host_memory", "improvement"},
		},
		Notes: []string{
			"Every byte that was read, and every one that servers have afterwards, was compared with what was written before; parity with the exclusive or of the data.",
			"sPIN'17 §5.3 played two traces of a bank's transactions and three of a search engine: 2.8% to 43.7% sooner with handlers, most on the integrated NIC (spin-int) with the bank's. Which trace has which number is not said, nor the stripe unit, the cores and how many requests are under way: no number of theirs stands beside these.",
		},
	}
	if trace != nil && trace.Synthetic != "" {
		e.Notes = append(e.Notes, fmt.Sprintf("The trace is synthetic: spinsim storage generate %s has made it, whose parameters are ours. It is none of the traces above.", trace.Synthetic))
	}
	return e
}

const storageHelp = `Clients read and write according to the lines of a trace, on memory that is striped over data servers, with parity: the array and the modes of compare raid5.
Modes select who serves:
  rdma   cores of the servers, --cores of each
  p4     as rdma, but the NIC of a data server tells the client, by an operation that the parity server's answer triggers
  spin   handlers, packet by packet
Servers have memory for the rows of stripes that a request touches. Neighbouring data of a unit is also neighbouring in the array.`

// traceRun measures points of a trace. It never changes.
type traceRun struct {
	trace *spc.Trace // nil: of the load of the point
}

// called names the trace of a point.
func (s *traceRun) called(p *experiment.Point) string {
	if s.trace == nil {
		return p.Text(loadAxis)
	}
	return p.Text("file")
}

// played are the requests of a point.
func (s *traceRun) played(p *experiment.Point) []spc.Request {
	if s.trace == nil {
		return loadOf(p)
	}
	if n := p.Int("requests"); n > 0 && n < len(s.trace.Requests) {
		return s.trace.Requests[:n]
	}
	return s.trace.Requests
}

// has checks a point.
func (s *traceRun) has(p *experiment.Point) (bool, error) {
	if cores := p.Int("cores"); cores > p.Profile.Host.Cores {
		return false, fmt.Errorf("profile %s: host.cores: %d, fewer than the %d of --cores", p.Profile.Origin.Name, p.Profile.Host.Cores, cores)
	}
	if p.Flag("durable") && !p.Profile.Storage.On() {
		return false, noDevice(p)
	}
	units := make(map[int]bool)
	data := int64(0)
	for _, one := range s.played(p) {
		units[one.Unit] = true
		data += one.Size
	}
	if data == 0 {
		return false, fmt.Errorf("%s: %s, and each has a size of 0: there is nothing to be read or written", s.called(p), experiment.Counted(len(s.played(p)), "request"))
	}
	if list, speed := s.played(p), p.Float("speed"); speed > 0 {
		if last := list[len(list)-1].At - list[0].At; float64(last)/speed > float64(sim.MaxTime/2) {
			return false, fmt.Errorf("--speed: %v, too slow for a trace of %v: its requests take longer than virtual time goes on, %v", speed, last, sim.MaxTime)
		}
	}
	if clients := p.Int("clients"); clients > len(units) {
		return false, fmt.Errorf("--clients: %d, expected at most %d: a client plays whole units, and the trace has so many", clients, len(units))
	}
	return true, nil
}

// row is one of the stripes of a unit.
type row struct {
	unit int
	at   int64
}

// rows are the stripes that requests touch, in order.
func rows(requests []spc.Request, block, stripe int64) (list []row) {
	for _, one := range requests {
		from, to := one.LBA*block/stripe, (one.LBA*block+one.Size+stripe-1)/stripe
		for at := from; at < to; at++ {
			if n := len(list); n == 0 || list[n-1] != (row{one.Unit, at}) {
				list = append(list, row{one.Unit, at})
			}
		}
	}
	slices.SortFunc(list, row.compare)
	return slices.Compact(list)
}

func (a row) compare(b row) int {
	if a.unit != b.unit {
		return a.unit - b.unit
	}
	switch {
	case a.at < b.at:
		return -1
	case a.at > b.at:
		return 1
	}
	return 0
}

// memory estimates the memory of a point: the contents of servers, and the
// expected contents.
func (s *traceRun) memory(p *experiment.Point) int64 {
	servers, clients := p.Int("servers"), p.Int("clients")
	unit := int64(p.Int("unit"))
	stripe := unit * int64(servers)
	list := rows(s.played(p), int64(p.Int("block")), stripe)
	return p.Footprint(servers+1+clients) + int64(len(list))*3*stripe + int64(servers*servers*clients*p.Int("cores"))<<18
}

// playing is a running measurement.
type playing struct {
	*experiment.Point
	requests []spc.Request
	o        raid5.Options
	array    *raid5.Array
	rows     []row
	cluster  *runtime.Cluster
	line     experiment.Values // lineColumns
	want     []byte            // of the array; each client has its own units
	clients  []traceClient
}

// traceClient has the requests and results of a client.
type traceClient struct {
	list  []int // of requests
	times []sim.Time
	end   sim.Time
}

func (s *traceRun) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &playing{Point: p, requests: s.played(p), clients: make([]traceClient, p.Int("clients"))}
	w.o = raid5.Options{Mode: raid5Modes[p.Text("mode")], Clients: len(w.clients), Cores: p.Int("cores"), Durable: p.Flag("durable")}
	w.o.Data, w.o.Unit = p.Int("servers"), int64(p.Int("unit"))
	w.rows = rows(w.requests, int64(p.Int("block")), w.stripe())
	w.o.Rows = int64(max(len(w.rows), 1))
	for i := range w.o.Data {
		w.o.Servers = append(w.o.Servers, raid5Data+i)
	}
	w.o.Servers = append(w.o.Servers, raid5Parity)
	w.want = memory.Make[byte](w.o.Bytes())
	experiment.Pattern(w.want, p.Seed)
	w.o.Fill = func(offset int64, b []byte) { copy(b, w.want[offset:]) }
	w.deal()
	stats, err := experiment.Simulate(ctx, p.Config(ctx, w.o.Data+1+len(w.clients)), w.spawn, w.check)
	if err != nil {
		return nil, err
	}
	values := w.values()
	maps.Copy(values, w.line)
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}

func (w *playing) stripe() int64 { return w.o.Unit * int64(w.o.Data) }

// deal gives units to clients in turn, in the order of the units' numbers.
func (w *playing) deal() {
	units := make([]int, 0, len(w.requests))
	for _, one := range w.requests {
		units = append(units, one.Unit)
	}
	slices.Sort(units)
	units = slices.Compact(units)
	for i, one := range w.requests {
		unit, _ := slices.BinarySearch(units, one.Unit)
		c := &w.clients[unit%len(w.clients)]
		c.list = append(c.list, i)
	}
}

func (w *playing) spawn(c *runtime.Cluster) (err error) {
	w.cluster, w.line = c, experiment.Values{}
	if w.array, err = raid5.New(c, w.o); err != nil {
		return err
	}
	for i := range w.clients {
		rank := raid5Client
		if i > 0 {
			rank = raid5Data + w.o.Data + i - 1
		}
		if err := c.Spawn(rank, fmt.Sprintf("client %d", i), func(p *runtime.Proc) error { return w.client(p, i) }); err != nil {
			return err
		}
	}
	return nil
}

// place is the position in the array where a request begins.
func (w *playing) place(one *spc.Request) int64 {
	x := one.LBA * int64(w.Int("block"))
	i, _ := slices.BinarySearchFunc(w.rows, row{one.Unit, x / w.stripe()}, row.compare)
	return int64(i)*w.stripe() + x%w.stripe()
}

// client plays its requests, one after the other.
func (w *playing) client(p *runtime.Proc, number int) error {
	client, err := w.array.Open(p, number)
	if err != nil {
		return err
	}
	c := &w.clients[number]
	largest := int64(1)
	for _, i := range c.list {
		largest = max(largest, w.requests[i].Size)
	}
	memory := p.Alloc(int(largest))
	c.times = make([]sim.Time, 0, len(c.list))
	for _, i := range c.list {
		one := &w.requests[i]
		begun := p.Now()
		if speed := w.Float("speed"); speed > 0 {
			begun = sim.Time(float64(one.At-w.requests[0].At) / speed)
			p.SleepUntil(max(begun, p.Now()))
		}
		if one.Size > 0 {
			if err := w.request(client, i, memory.Slice(0, int(one.Size))); err != nil {
				return fmt.Errorf("request %d of the trace: %w", i+1, err)
			}
		}
		c.times = append(c.times, p.Now()-begun)
	}
	c.end = p.Now()
	return nil
}

// request reads or writes, and compares the data that was read.
func (w *playing) request(client *raid5.Client, i int, memory runtime.View) error {
	one := &w.requests[i]
	at := w.place(one)
	should := w.want[at : at+one.Size]
	if !one.Write {
		if err := client.Read(at, memory); err != nil {
			return err
		}
		return experiment.SameView("memory", memory, should)
	}
	experiment.Pattern(memory.Write(), w.Seed+uint64(i)+1)
	if err := client.Write(at, memory); err != nil {
		return err
	}
	copy(should, memory.Read())
	return nil
}

// check checks the contents of the servers.
func (w *playing) check() error {
	w.AtLineRate(w.cluster, w.line, nil)
	return errors.Join(w.array.Check(), experiment.SameBytes("array", w.array.Contents(0, w.o.Bytes()), w.want), stored(w.array, &w.o))
}

func (w *playing) values() experiment.Values {
	var times []sim.Time
	var end, sum sim.Time
	for i := range w.clients {
		times = append(times, w.clients[i].times...)
		end = max(end, w.clients[i].end)
	}
	slices.Sort(times)
	for _, t := range times {
		sum += t
	}
	writes, data := 0, int64(0)
	for _, one := range w.requests {
		data += one.Size
		if one.Write {
			writes++
		}
	}
	n := len(times)
	return experiment.Values{
		"reads": n - writes, "writes": writes, "data": int(data), "time": end, experiment.LatencyColumn: sum / sim.Time(n),
		"p50": times[(n-1)/2], "p99": times[(n*99-1)/100],
	}
}
