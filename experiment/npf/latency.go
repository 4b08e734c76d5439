package npf

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfLatency = &experiment.Experiment{
	Name:  "npf-latency",
	Short: "what the page fault of a message takes that is sent from memory which is absent: average, percentiles, parts",
	Long: `A process sends messages over a reliable connection of InfiniBand (handlers/rnr). It gives up their memory before each; the fault is minor, so storage is not read. The latency is the additional time of a message
compared with one from present memory.
  batched   the kernel brings in all pages of the work request at once
  one-page  it brings in the reported page, as ATS and PRI dictate
Parts of the average, which add up to it: firmware, until the interrupt; handler, until the kernel begins with the fault; addresses, until it has the pages; tables, until the interface's tables have them; resume.
The table also has the time to give the memory up (madvise), and the part of its invalidation. The notifier asks the driver, which changes tables and tells the interface (os.invalidate). The interface acknowledges (os.acknowledge) when no access to the pages is in flight. Then the driver releases them.
  noise none   each part takes the time in the profile
  noise linux  the core has interrupts off when the interrupt comes, for a time from a histogram of Linux (C. Hallinan, Embedded Linux Primer, listing 17-6: 60 million samples, 92% below 4 us, at most 97 us; the distribution between these is not given: ours is uniform in the logarithm)
What-ifs, each in addition to those before it, show how the parts would have to vary to give table 4. They were made for that, explain nothing else, and no profile has them:
  noise steep     times between 4 and 97 us are rarer the longer they are: by the inverse of the square
  noise firmware  the firmware takes 189 us in 92% of faults, up to 31 us longer in 5%, about 40 us longer in nearly all others, and in 0.3% up to 250 us longer: 192 us on average
  noise pages     and each of the kernel's pages takes 0.07 us longer in 6% of faults, in 0.3% up to 0.33 us`,
	Source:   "NPF'17 §4, table 4, figure 3",
	Smoke:    []experiment.Values{{"mode": npfBatched, "noise": "linux", "runs": 3, "size": 8192}},
	Profiles: []string{"ib-npf"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{npfBatched, npfOnePage}, Help: "pages that a report covers; the command's help describes each"},
		{
			Name: "noise", Kind: report.Text, Of: []string{noiseNone, noiseLinux, noiseSteep, noiseFirmware, noisePages}, Default: noiseNone + "," + noiseLinux, Help: "what varies; the command's help describes each. With one-page nothing does",
			Terms: []experiment.Term{
				{},
				{Help: "the core has interrupts off now and then, as measured of Linux"},
				{Help: "the longest of those times are rarer", WhatIf: true},
				{Help: "the firmware takes longer in 8% of faults, and less in the others", Set: []string{"pools.firmware.invocation=189us"}, WhatIf: true},
				{Help: "the kernel takes longer for each page in 6% of faults", WhatIf: true},
			},
		},
		{Name: "runs", Kind: report.Count, Least: "1", Most: "100000", Default: "500", Help: "messages, with noise; without it 2"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4KiB", Most: "64MiB", Multiple: "4KiB", Default: "4KiB,4MiB", Help: "of the message"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		return p.Text("mode") == npfBatched || p.Text("noise") == noiseNone, hasNPF(p)
	},
	Run: runNPFLatency,
	Columns: append([]report.Column{
		{Name: "average", Unit: "us", Kind: report.Duration, Help: "of the latencies of faults"},
		{Name: "p50", Unit: "us", Kind: report.Duration, Help: "half of them take no longer"},
		{Name: "p95", Unit: "us", Kind: report.Duration, Help: "95% of them take no longer"},
		{Name: "p99", Unit: "us", Kind: report.Duration, Help: "99% of them take no longer"},
		{Name: "most", Unit: "us", Kind: report.Duration, Help: "the longest"},
		{Name: "firmware", Unit: "us", Kind: report.Duration, Help: "part of the average: until the interrupt"},
		{Name: "handler", Unit: "us", Kind: report.Duration, Help: "likewise: until the kernel begins with the fault"},
		{Name: "addresses", Unit: "us", Kind: report.Duration, Help: "likewise: until it has the pages"},
		{Name: "tables", Unit: "us", Kind: report.Duration, Help: "likewise: until the interface's tables have them"},
		{Name: "resume", Unit: "us", Kind: report.Duration, Help: "likewise: until the interface goes on, which makes up for what it had fetched before"},
		{Name: "reports", Kind: report.Number, Help: "faults that the firmware reports for a message"},
		{Name: "given_up", Unit: "us", Kind: report.Duration, Help: "what giving the memory of a message up takes, on average: unmapped + invalidated"},
		{Name: "unmapped", Unit: "us", Kind: report.Duration, Help: "part of given_up: the operating system's own, before and behind the invalidation"},
		{Name: "invalidated", Unit: "us", Kind: report.Duration, Help: "part of given_up: from the notifier to the driver's answer, told + acknowledged"},
		{Name: "told", Unit: "us", Kind: report.Duration, Help: "part of invalidated: the driver changes tables and its own state, and tells the interface"},
		{Name: "acknowledged", Unit: "us", Kind: report.Duration, Help: "likewise: until the interface has acknowledged it, which it does when nothing that uses the pages is on its way any more"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerNPFLatency(),
	Slots:     experiment.Always(rnr.EngineSlot),
	Operation: "the mean of messages from absent memory, from the call to the end of the send: the average above and what a message takes whose memory is there",
	View: experiment.View{
		Value: "average", Series: []string{"mode", "noise"}, X: "bytes", Quiet: []string{"runs"},
		Summary: []string{"mode", "noise", "bytes", "average", "p50", "p95", "p99", "most", "firmware", "handler", "addresses", "tables", "resume", "reports"},
	},
	Presets: []experiment.Preset{{
		Name: "waterfall", Short: "from the percentiles here to table 4, one part's variation at a time: how it would have to be, and not how it is known to be",
		Values: map[string]string{"mode": npfBatched, "noise": strings.Join([]string{noiseNone, noiseLinux, noiseSteep, noiseFirmware, noisePages}, ","), "runs": "2000"},
		View: &experiment.View{
			Value: "p95", Series: []string{"noise"}, X: "bytes", Quiet: []string{"mode", "runs"},
			Summary: []string{"bytes", "noise", "average", "p50", "p95", "p99", "most", "firmware", "handler", "addresses"},
		},
	}, {
		Name: "invalidation", Short: "memory that was sent from is given up: the way from the operating system through its driver to the interface, and back, by parts",
		Values: map[string]string{"mode": npfBatched, "noise": "none", "size": "4KiB,64KiB,1MiB,4MiB"},
		View: &experiment.View{
			Value: "invalidated", Series: []string{"mode"}, X: "bytes", Quiet: []string{"mode", "noise", "runs"},
			Summary: []string{"bytes", "given_up", "unmapped", "invalidated", "told", "acknowledged"},
		},
	}},
	Notes: []string{
		"Averages of batched without noise set parameters: 220 us, of which 90% are firmware, and 350 us for 1,024 pages. All else is predicted: that of one-page, and percentiles.",
		"An invalidation is cheaper than a fault, as published; figure 3(b) has no numbers in the text. os.invalidate and os.acknowledge are ours. When memory is given up here nothing of it is on its way.",
		"Percentiles have only the noise that there is a source for. Of the firmware, 90% of the time, none gives a distribution: it takes the same time always, and most of the published spread is missing.",
	},
}

const (
	npfBatched = "batched"
	npfOnePage = "one-page"
)

// Values of the axis noise.
const (
	noiseNone     = "none"
	noiseLinux    = "linux"
	noiseSteep    = "steep"
	noiseFirmware = "firmware"
	noisePages    = "pages"
)

// ledgerNPFLatency are the rows of NPF'17 §4 that npf-latency answers.
func ledgerNPFLatency() []experiment.LedgerRow {
	const one, all = "mode=batched noise=none size=4KiB", "mode=batched noise=linux size="
	list := []experiment.LedgerRow{
		{ID: "npf17-4-04", Of: one, Column: "average"},
		{
			ID: "npf17-4-05", Of: one, How: "firmware / average",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{100 * m.At("firmware", "size=4KiB") / m.At("average", "size=4KiB")}
			},
		},
		{ID: "npf17-4-06", Of: "mode=batched noise=none size=4MiB", Column: "average"},
		{
			ID: "npf17-4-20", Of: one + ",4MiB", How: "the invalidation of 4 KiB takes less than its fault, and that of 4 MiB, too",
			Holds: func(m *experiment.Measured) bool {
				cheaper := func(size string) bool { return m.At("invalidated", size) < m.At("average", size) }
				return cheaper("size=4KiB") && cheaper("size=4MiB")
			},
		},
		{ID: "npf17-4-32", Of: "mode=one-page noise=none size=4MiB", Column: "average"},
	}
	ids := []string{"npf17-4-09", "npf17-4-10", "npf17-4-11", "npf17-4-12", "npf17-4-13", "npf17-4-14", "npf17-4-15", "npf17-4-16"}
	columns := []string{"p50", "p95", "p99", "most"}
	for i, id := range ids {
		size := []string{"4KiB", "4MiB"}[i/len(columns)]
		// the preset waterfall has more messages
		list = append(list, experiment.LedgerRow{ID: id, Of: all + size, Also: []string{"runs=2000"}, Column: columns[i%len(columns)]})
	}
	return list
}

// What-ifs for table 4: how much longer a part takes, in us, against the share
// of faults that take no longer. Between the entries it is linear.
var (
	firmwareLonger = [][2]float64{{0, 0}, {0.92, 0}, {0.95, 31}, {0.988, 38}, {0.997, 42}, {0.999, 230}, {1, 250}}
	pageLonger     = [][2]float64{{0, 0}, {0.93, 0}, {0.94, 0.075}, {0.997, 0.078}, {0.999, 0.3}, {1, 0.33}}
)

// faultNoise draws the additional times of the parts of a fault.
func faultNoise(p *experiment.Point) func(part rnr.Part, pages int) sim.Time {
	rng := rand.New(rand.NewPCG(p.Seed, 0x6e7066))
	noise := slices.Index(p.Experiment().Axis("noise").Of, p.Text("noise"))
	return func(part rnr.Part, pages int) sim.Time {
		switch {
		case part == rnr.PartHandler:
			return interruptsOff(rng, noise >= 2)
		case part == rnr.PartFirmware && noise >= 3:
			return longer(rng, firmwareLonger)
		case part == rnr.PartAddresses && noise >= 4:
			return sim.Time(pages-1) * longer(rng, pageLonger)
		}
		return 0
	}
}

// longer draws a time from a table.
func longer(r *rand.Rand, table [][2]float64) sim.Time {
	u := r.Float64()
	i := 1
	for ; u > table[i][0]; i++ {
	}
	from, to := table[i-1], table[i]
	return sim.Time((from[1] + (to[1]-from[1])*(u-from[0])/(to[0]-from[0])) * float64(sim.Microsecond))
}

// interruptsOff draws how long a core has interrupts off. Samples of 0 to 3 us
// are drawn by the microsecond (Hallinan). Of the other samples only the
// longest is published: they are uniform in the logarithm (our choice), or
// follow the inverse square if steep.
func interruptsOff(r *rand.Rand, steep bool) sim.Time {
	at := r.Float64() * 60097595
	for us, n := range []float64{13475417, 38914907, 2714349, 442308} {
		if at < n {
			return sim.Time((float64(us) + at/n) * float64(sim.Microsecond))
		}
		at -= n
	}
	if steep {
		return sim.Time(float64(sim.Microsecond) / (1.0/4 - r.Float64()*(1.0/4-1.0/97)))
	}
	return sim.Time(4 * math.Pow(97.0/4, r.Float64()) * float64(sim.Microsecond))
}

// npfFaults is a running measurement: messages from absent memory.
type npfFaults struct {
	*experiment.Point
	latencies []sim.Time
	warm      sim.Time
	parts     [4]sim.Time
	given     npfGiven
	reports   int
	counting  bool
}

// npfGiven measures how memory is given up. It is a notifier of the process,
// after the driver's.
type npfGiven struct {
	count                  int
	notified, synced       sim.Time // the last times
	all, invalidated, told sim.Time // sums
	now                    func() sim.Time
	tell                   sim.Time // os.invalidate
}

// InvalidateRange implements host.Notifier.
func (g *npfGiven) InvalidateRange(_, _ uint64, _ bool) { g.notified = g.now() }

// Sync implements host.Notifier. The driver's Sync has returned before.
func (g *npfGiven) Sync(t *host.Thread) { g.synced = t.Now() }

// gives has a process give up memory, and notes the times.
func (g *npfGiven) gives(p *runtime.Proc, v runtime.View) error {
	if g.now == nil {
		g.now, g.tell = p.Now, p.Cluster().Profile().OS.Invalidate
		p.OS().Tables().Register(g)
	}
	start := p.Now()
	if err := p.OS().Discard(p.Thread(), v.Addr(), uint64(v.Len())); err != nil {
		return err
	}
	g.count++
	g.all += p.Now() - start
	g.invalidated += g.synced - g.notified
	g.told += min(g.tell, g.synced-g.notified)
	return nil
}

// values sets the averages.
func (g *npfGiven) values(values experiment.Values) {
	n := sim.Time(g.count)
	// differences, so that the parts add up despite rounding
	all, invalidated, told := g.all/n, g.invalidated/n, g.told/n
	values["given_up"], values["unmapped"], values["invalidated"], values["told"], values["acknowledged"] = all, all-invalidated, invalidated, told, invalidated-told
}

func (w *npfFaults) served(s *rnr.Served) {
	if w.counting {
		w.reports++
		for i, d := range []sim.Time{s.Interrupt - s.Found, s.Begun - s.Interrupt, s.Addresses - s.Begun, s.Tables - s.Addresses} {
			w.parts[i] += d
		}
	}
}

func runNPFLatency(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &npfFaults{Point: p}
	o := rnr.Options{OnePage: p.Text("mode") == npfOnePage, Served: func(_ int, s *rnr.Served) { w.served(s) }}
	runs := 2
	if p.Text("noise") != noiseNone {
		runs = p.Int("runs")
		o.Delay = faultNoise(p)
	}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 2), func(c *runtime.Cluster) error {
		lib, err := rnr.Load(c, o)
		if err != nil {
			return err
		}
		return errors.Join(
			c.Spawn(0, "sender", func(proc *runtime.Proc) error { return w.sends(proc, lib, runs) }),
			c.Spawn(1, "receiver", func(proc *runtime.Proc) error { return w.receives(proc, lib, runs) }),
		)
	}, func() error { return nil })
	if err != nil {
		return nil, err
	}
	slices.Sort(w.latencies)
	values := experiment.ClusterValues(&stats)
	n := sim.Time(len(w.latencies))
	sum := sim.Time(0)
	for _, t := range w.latencies {
		sum += t
	}
	rest := sum / n
	for i, name := range []string{"firmware", "handler", "addresses", "tables"} {
		values[name] = w.parts[i] / n
		rest -= w.parts[i] / n
	}
	w.given.values(values)
	values["average"], values["resume"], values["reports"] = sum/n, rest, float64(w.reports)/float64(n)
	for name, share := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99, "most": 1} { //lint:maporder a map is made of a map
		values[name] = w.latencies[max(0, int(math.Ceil(share*float64(n)))-1)]
	}
	return values, nil
}

// npfWarm is how many messages from present memory come first.
const npfWarm = 2

// npfPause is the time between messages, in which the firmware completes its
// work.
const npfPause = 2 * sim.Millisecond

func (w *npfFaults) sends(p *runtime.Proc, lib *rnr.Loaded, runs int) error {
	conn, err := lib.Connect(p, "latency")
	if err != nil {
		return err
	}
	v := p.Alloc(w.Int("size"))
	experiment.Pattern(v.Write(), w.Seed)
	for i := range npfWarm + runs {
		if w.counting = i >= npfWarm; w.counting {
			if err := w.given.gives(p, v); err != nil {
				return err
			}
		}
		p.Sleep(npfPause)
		start := p.Now()
		work, err := conn.PostSend(v)
		if err != nil {
			return err
		}
		if _, err := work.Wait(); err != nil {
			return err
		}
		if took := p.Now() - start; w.counting {
			w.latencies = append(w.latencies, took-w.warm)
			w.Operation(p, start)
		} else {
			w.warm = took
		}
	}
	return nil
}

func (w *npfFaults) receives(p *runtime.Proc, lib *rnr.Loaded, runs int) error {
	conn, err := lib.Connect(p, "latency")
	if err != nil {
		return err
	}
	v := p.Alloc(w.Int("size"))
	v.Write()
	want := make([]byte, v.Len())
	experiment.Pattern(want, w.Seed)
	for i := range npfWarm + runs {
		if i == npfWarm {
			clear(want) // memory that was given up is zeros
		}
		work, err := conn.PostReceive(v)
		if err != nil {
			return err
		}
		if _, err := work.Wait(); err != nil {
			return err
		}
		if i <= npfWarm {
			if err := experiment.SameView("message", v, want); err != nil {
				return err
			}
		}
	}
	return nil
}
