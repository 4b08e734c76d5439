package part

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// faulting is a running measurement.
type faulting struct {
	*experiment.Point
	policy, side string
	bytes        int
	c            *runtime.Cluster
	watch        *pagefaultWatch
	way          pagefaultWay
	// one as a warm-up, one with all pages present, then the measured exchanges
	exchanges []exchange
	kept      [2]runtime.View // source and destination of all exchanges whose pages are present
}

// pagefaultWay carries the data.
type pagefaultWay interface {
	// open prepares a process. It must be called before the process waits.
	open(p *runtime.Proc) error
	// invite tells the source, from the destination, that exchange i may begin.
	// invited waits for that at the source.
	invite(p *runtime.Proc, i int) error
	invited(p *runtime.Proc, i int) error
	// begin posts the data of exchange i. end waits at the source for the
	// acknowledgement, and arrived waits at the destination for the data.
	begin(p *runtime.Proc, i int) error
	end(p *runtime.Proc, i int) error
	arrived(p *runtime.Proc, i int) error
	// settled waits, after arrived, until the destination's invitation is
	// complete.
	settled() error
	// count adds all counts so far to into.
	count(into *pagefaultCounts)
}

// exchange is one transfer between its own buffers.
type exchange struct {
	src, dst runtime.View
	// pages that are absent at the beginning, of the source and of the
	// destination; nil: none
	holes    [2][]bool
	prepared [2]sim.Time
	begun    sim.Time // when the source begins, including its touching of pages
	seen     sim.Time
	before   pagefaultCounts
	after    pagefaultCounts
	parts    [partCount]sim.Time
}

// latency is the time of the exchange.
func (x *exchange) latency() sim.Time { return x.prepared[1] - x.prepared[0] + x.seen - x.begun }

// pagefaultCounts are all counts so far.
type pagefaultCounts struct {
	driver                                                                      sim.Time
	pageIn                                                                      sim.Time
	faults, terminated, pagedIn, tasklets, messages, requests, timeouts, resent int64
	entries, refused, idleRuns                                                  int64
}

const pageBytes = host.PageBytes

// runPagefault measures a point.
func runPagefault(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	w := newFaulting(p)
	err = w.run(ctx, breakdown.Watch(w.watch, p.Tracer), func() error {
		var err error
		values, err = w.values()
		return err
	})
	return values, err
}

// newFaulting begins a measurement.
func newFaulting(p *experiment.Point) *faulting {
	w := &faulting{Point: p, policy: p.Text("policy"), side: p.Text("side"), bytes: p.Int("size")}
	w.watch = newPagefaultWatch(w.policy != policyNaive)
	w.plan()
	return w
}

// run simulates the exchanges.
func (w *faulting) run(ctx context.Context, tracer sim.Tracer, finish func() error) error {
	cfg := w.Config(ctx, w.Int("nodes"))
	cfg.Tracer = tracer
	_, err := experiment.Simulate(ctx, cfg, func(c *runtime.Cluster) error {
		w.c = c
		return w.spawn()
	}, finish)
	return err
}

// plan draws the absent pages of each exchange.
func (w *faulting) plan() {
	runs := 1
	f := w.Float("frequency")
	if absent(w.Point) && f < 1 {
		runs = w.Int("runs")
	}
	w.exchanges = make([]exchange, 2+runs)
	if !absent(w.Point) {
		return
	}
	pages := (w.bytes + pageBytes - 1) / pageBytes
	r := newDraws(w.Seed)
	for i := 2; i < len(w.exchanges); i++ {
		for side, name := range []string{SideSource, SideDestination} {
			if w.side != name && w.side != sideBoth {
				continue
			}
			w.exchanges[i].holes[side] = w.draw(r, pages, f)
		}
	}
}

func newDraws(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7061676566617565)) }

// draw chooses a fraction f of the pages, none if that is less than one page
// (P §6.1.1).
func (w *faulting) draw(r *rand.Rand, pages int, f float64) []bool {
	holes := make([]bool, pages)
	if float64(pages)*f < 1 {
		return holes
	}
	if w.Text("draw") == drawExact {
		for _, k := range r.Perm(pages)[:int(math.Round(float64(pages)*f))] {
			holes[k] = true
		}
		return holes
	}
	for k := range holes {
		holes[k] = r.Float64() < f
	}
	if w.Text("draw") == drawOne && !slices.Contains(holes, true) {
		holes[r.IntN(pages)] = true
	}
	return holes
}

// spawn starts the programs: source and destination, or both in one process.
func (w *faulting) spawn() error {
	way, err := w.makeWay()
	if err != nil {
		return err
	}
	w.way = way
	if w.Int("nodes") == 1 {
		return w.c.Spawn(0, "process", func(p *runtime.Proc) error {
			if err := w.ready(p, true, true); err != nil {
				return err
			}
			for i := range w.exchanges {
				if err := w.within(p, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = w.c.Spawn(0, "source", func(p *runtime.Proc) error {
		if err := w.ready(p, true, false); err != nil {
			return err
		}
		for i := range w.exchanges {
			if err := w.source(p, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.c.Spawn(1, "destination", func(p *runtime.Proc) error {
		if err := w.ready(p, false, true); err != nil {
			return err
		}
		for i := range w.exchanges {
			if err := w.destination(p, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// within runs an exchange between buffers of one process.
func (w *faulting) within(p *runtime.Proc, i int) error {
	x := &w.exchanges[i]
	if err := w.forget(p, i, true, true); err != nil {
		return err
	}
	w.fill(x, i)
	w.lay(x)
	if err := w.prepare(p, x, x.dst, SideDestination, x.prepared[:]); err != nil {
		return err
	}
	if err := w.send(p, i); err != nil {
		return err
	}
	if err := w.look(p, i); err != nil {
		return err
	}
	return w.end(p, i)
}

// end waits for the status at the source.
func (w *faulting) end(p *runtime.Proc, i int) error {
	err := w.way.end(p, i)
	if w.Text("ends") == endsStatus {
		w.exchanges[i].seen = p.Now()
	}
	return err
}

// source runs the source's part of an exchange.
func (w *faulting) source(p *runtime.Proc, i int) error {
	if err := w.way.invited(p, i); err != nil {
		return err
	}
	// now, while the other end measures nothing
	if err := w.forget(p, i, true, false); err != nil {
		return err
	}
	w.fill(&w.exchanges[i], i)
	if err := w.send(p, i); err != nil {
		return err
	}
	return w.end(p, i)
}

// destination runs the destination's part of an exchange.
func (w *faulting) destination(p *runtime.Proc, i int) error {
	x := &w.exchanges[i]
	if err := w.forget(p, i, false, true); err != nil {
		return err
	}
	w.lay(x)
	if err := w.prepare(p, x, x.dst, SideDestination, x.prepared[:]); err != nil {
		return err
	}
	if err := w.way.invite(p, i); err != nil {
		return err
	}
	if err := w.look(p, i); err != nil {
		return err
	}
	return w.way.settled()
}

// send prepares the source as the policy requires, and posts the data.
func (w *faulting) send(p *runtime.Proc, i int) error {
	x := &w.exchanges[i]
	var took [2]sim.Time
	w.count(&x.before)
	x.begun = p.Now()
	if err := w.prepare(p, x, x.src, SideSource, took[:]); err != nil {
		return err
	}
	return w.way.begin(p, i)
}

// look waits for the data and compares it.
func (w *faulting) look(p *runtime.Proc, i int) error {
	if err := w.way.arrived(p, i); err != nil {
		return err
	}
	x := &w.exchanges[i]
	if w.Text("ends") != endsStatus {
		x.seen = p.Now()
	}
	w.count(&x.after)
	return experiment.SameBytes(fmt.Sprintf("transfer %d", i), x.dst.Snapshot(), w.expected(x.dst.Len(), x, i))
}

func (w *faulting) count(into *pagefaultCounts) {
	*into = pagefaultCounts{}
	for i := range w.c.Nodes() {
		n := w.c.Node(i)
		into.driver += n.CPU().BusyAt(host.Interrupt) + n.CPU().BusyAt(host.Softirq)
		for _, k := range n.CPU().Work() {
			if k.What == "get_user_pages" && k.Level == host.Softirq {
				into.pageIn += k.Time
			}
		}
		if d := n.Driver(); d != nil {
			into.faults += d.Stats().Faults
		}
		if m := n.IOMMU(); m != nil {
			into.terminated += int64(m.SMMU().Counters().Terminated)
		}
		s := n.Stats()
		into.pagedIn += s.PageFaults
	}
	w.way.count(into)
}

// values are the values of the run with the median latency.
func (w *faulting) values() (experiment.Values, error) {
	w.watch.finish()
	measured := w.exchanges[2:]
	order := make([]int, len(measured))
	sum := sim.Time(0)
	for i := range measured {
		order[i] = i
		sum += measured[i].latency()
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, measured[a].latency()-measured[b].latency()))) })
	x := &measured[order[(len(order)-1)/2]]
	w.NoteOperation(1%w.c.Nodes(), "", x.seen-x.latency(), x.seen)
	w.watch.attribute(&x.parts, x.prepared[0], x.prepared[1])
	w.watch.attribute(&x.parts, x.begun, x.seen)
	v := experiment.Values{
		experiment.LatencyColumn: x.latency(), "latency_least": measured[order[0]].latency(), "latency_most": measured[order[len(order)-1]].latency(),
		"latency_mean": sum / sim.Time(len(order)), "present": w.exchanges[1].latency(),
	}
	total := sim.Time(0)
	for i, c := range pagefaultParts {
		v[c.Name] = x.parts[i]
		total += x.parts[i]
	}
	if total != x.latency() {
		return nil, fmt.Errorf("the parts of the latency are %v, and it is %v", total, x.latency())
	}
	a, b := &x.after, &x.before
	v[driverColumn] = a.driver - b.driver
	v["absent"] = int64(holes(x))
	v["faults"], v["paged_in"], v["tasklets"] = a.faults-b.faults, a.pagedIn-b.pagedIn, a.tasklets-b.tasklets
	v["idle_runs"], v["first_resent"] = a.idleRuns-b.idleRuns, w.watch.firstAgain(x)
	v["terminated"] = a.terminated - b.terminated
	v["entries"], v["refused"] = a.entries-b.entries, w.exchanges[len(w.exchanges)-1].after.refused
	v["messages"], v["requests"], v["timeouts"], v["resent"] = a.messages-b.messages, a.requests-b.requests, a.timeouts-b.timeouts, a.resent-b.resent
	v[overlapColumn] = nil
	if nto, timeout, err := blockTimeout(w.Point); err == nil && !nto && w.policy == policyPIA && absent(w.Point) {
		if g := a.pageIn - b.pageIn; g > timeout { // else the request comes first, and nothing overlaps
			v[overlapColumn] = overlap(g, w.exchanges[1].latency(), timeout)
		}
	}
	return v, nil
}

// holes counts the absent pages of an exchange.
func holes(x *exchange) (n int) {
	for _, side := range x.holes {
		for _, hole := range side {
			if hole {
				n++
			}
		}
	}
	return n
}
