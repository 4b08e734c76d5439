package npf

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/backupring"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Values of axes by default.
const (
	coldTimes = "5s,10s,15s,..,80s"
	ringSizes = "16,32,..,4096"
)

// coldTerms lead to a published time of drop. Each changes one of the choices
// that the paper leaves open.
func coldTerms(spacing string) experiment.Axis {
	return experiment.Axis{
		Name: "term", Kind: report.Text, Of: []string{"ours", "page-buffers", "spaced"}, Default: "ours",
		Help: "a way from our choices to the published time; the command's help describes each",
		Terms: []experiment.Term{
			{},
			{Help: "each buffer is a page", Values: map[string]string{"buffer": "4KiB"}, WhatIf: true},
			{Help: "connections begin one behind the other", Values: map[string]string{"spacing": spacing}, WhatIf: true},
		},
	}
}

var coldRing = &experiment.Experiment{
	Name:  "npf-cold-ring",
	Short: "a key-value server begins with a receive ring none of whose pages is there: throughput over time",
	Long: `A key-value server (memcached's protocol, 90% gets, values of 1 KiB) starts on node 0, with lwIP's time-outs, and its load on node 1. Nobody has touched the buffers of the server's receive ring. The
throughput at a time covers the window before it.
` + npfModesHelp + `
A run is simulated until all connections that have not given up are answered, and six slices of 5 ms have equal numbers of operations, to within 3%, and no frame whose memory is absent. From then on the throughput is assumed constant (column
simulated). If the network loses frames (fabric.faults), the run is simulated until the mean of eight stretches of four time-outs each has a standard error of 10%: minutes. While the throughput is steady and some connections wait for their time-outs, the load pauses until the next of these is answered, and its throughput continues to count (column paused).`,
	Source:   npfSource + " §5, figure 4(a)",
	Smoke:    []experiment.Values{{"mode": npfBackup, "connections": 2, "ring": 8, "at": sim.Second, "window": sim.Second, "horizon": sim.Second}},
	Profiles: []string{"eth-npf"},
	Axes: slices.Concat([]experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: npfModes(), Help: "treatment of frames with absent memory; the command's help describes each"},
		npfDescriptorAxis(), coldTerms("32us"),
	}, npfRingAxes(experiment.Axis{Default: "64"}), npfLoadAxes(), []experiment.Axis{
		{Name: "window", Kind: report.Duration, Unit: "s", Least: "10ms", Most: "1000s", Multiple: "10ms", Default: "5s", Help: "time in which operations are counted"},
		{Name: "horizon", Kind: report.Duration, Unit: "s", Least: "10ms", Most: "10000s", Default: "200s", Help: "longest simulated time of a run"},
		{Name: "at", Kind: report.Duration, Unit: "s", Least: "10ms", Most: "2000s", Multiple: "10ms", Default: coldTimes, Help: "end of the window, from the start of server and load"},
	}),
	Points: func(p *experiment.Point) (bool, error) {
		if p.Time("at") < p.Time("window") || p.Time("at") > p.Time("horizon") {
			return false, &experiment.NoPoint{Why: errors.New("a window ends after its length, --window, and before --horizon")}
		}
		return true, hasStack(p)
	},
	Run: runColdRing,
	Columns: append([]report.Column{
		{Name: "throughput", Unit: "ops", Kind: report.Number, Help: "operations in a second, in the window"},
		{Name: "warm", Unit: "s", Kind: report.Duration, Help: "since when the throughput is what it stays; empty: not in what was simulated"},
		{Name: "silent", Unit: "s", Kind: report.Duration, Help: "time with less than 1% of that, 5 ms at a time; if there is none, all that was simulated"},
		{Name: "simulated", Unit: "s", Kind: report.Duration, Help: "until when the run was simulated; the throughput behind it is the last one"},
		{Name: "paused", Unit: "s", Kind: report.Duration, Help: "time before that in which the throughput was steady, and the load was paused until the next connection's time-out was over; it counts as it was"},
		{Name: "gave_up", Kind: report.Count, Help: "connections whose stack has given up, in all that was simulated"},
		{Name: "absent", Kind: report.Count, Help: "frames whose memory was absent, in all that was simulated"},
		{Name: "dropped", Kind: report.Count, Help: "frames that the interface has dropped, likewise"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerColdRing(),
	Slots:     experiment.Always(backupring.ProviderSlot),
	Memory:    cacheFootprint,
	Operation: "the mean of operations of connections that have ended in the window, each from the end of the one before or the begin of the connection; behind what was simulated, and where the load was paused, of those in the last 30 ms",
	View: experiment.View{
		Value: "throughput", Series: []string{"mode"}, X: "at", Quiet: []string{"descriptor", "term", "ring", "buffer", "bitmap", "backup-slots", "cold", "connections", "spacing", "client", "timeout", "window", "horizon"},
		Course: true,
		Answer: coldRingAnswer,
	},
	Presets: []experiment.Preset{{
		Name: "waterfall", Short: "from what drop makes of our choices to the published time, one of them at a time",
		Values: map[string]string{"mode": npfDrop, "term": "ours,page-buffers,spaced", "at": "60s"},
		View: &experiment.View{
			Value: "silent", X: "connections", Quiet: []string{"mode", "descriptor", "ring", "bitmap", "backup-slots", "cold", "connections", "client", "timeout", "window", "at", "horizon"},
			Summary: []string{"term", "buffer", "spacing", "silent", "warm", "gave_up", "dropped"}, Answer: coldRingEnded,
		},
	}, {
		Name: "choices", Short: "what drop makes of other choices than ours, which the paper leaves open", Source: "ours",
		Values: map[string]string{"mode": npfDrop, "descriptor": npfStays + "," + npfSkips, "buffer": "2KiB,4KiB", "connections": "1,16", "spacing": "0us,1ms", "at": "100s"},
		View: &experiment.View{
			Value: "silent", X: "connections", Quiet: []string{"mode", "term", "ring", "bitmap", "backup-slots", "cold", "client", "timeout", "window", "at", "horizon"},
			Summary: []string{"descriptor", "buffer", "connections", "spacing", "throughput", "silent", "warm", "paused", "gave_up", "dropped"}, Answer: coldRingQuiet,
		},
	}, {
		Name: "gives-up", Short: "from which size of the ring on TCP gives up when absent memory drops frames, with its time-outs and with short ones", Source: npfSource + " §5",
		Values: map[string]string{"mode": npfDrop, "descriptor": npfStays + "," + npfSkips, "ring": "32,64,128,256", "timeout": "0ms,100ms", "at": "100s"},
		View: &experiment.View{
			Value: "silent", Series: []string{"descriptor"}, X: "ring", Quiet: []string{"mode", "term", "buffer", "cold", "connections", "spacing", "bitmap", "backup-slots", "client", "window", "at", "horizon"},
			Summary: []string{"descriptor", "timeout", "ring", "throughput", "silent", "warm", "gave_up", "dropped"}, Answer: coldRingQuiet,
		},
	}},
	Caveats: coldRingCaveats,
	Notes: []string{
		"Every value that came was compared with the one that was stored.",
		"The paper does not say how many connections there are, which time-outs and retries they have, nor what a NIC that drops does with the descriptor: they decide what drop does. Ours stays at it unless --descriptor says otherwise.",
	},
}

// ledgerColdRing are the rows of NPF'17 §5 that npf-cold-ring answers.
func ledgerColdRing() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{ID: "npf17-5-07", Of: "mode=drop at=60s", Column: "silent"},
		{
			ID: "npf17-5-13", Of: "mode=backup,pinned at=" + coldTimes, How: "with a backup ring the throughput equals the one with a pinned ring to within 5%, in each window of 5 s from 0 to 80 s",
			Holds: func(m *experiment.Measured) bool { return asPinned(m, 0.05) },
		},
		{
			ID: "npf17-5-15", Of: "mode=backup,pinned at=60s ring=16,64,256,1024,4096", How: "a minute after the start the throughput equals the one with a pinned ring to within 1%, with 16, 64 .. 4,096 descriptors",
			Holds: func(m *experiment.Measured) bool { return asPinned(m, 0.01) },
		},
	}
}

// asPinned reports whether the throughput with a backup ring equals a
// pinned ring everywhere, to within a share.
func asPinned(m *experiment.Measured, within float64) bool {
	all, compared := true, 0
	for _, r := range m.Results {
		if r.Point.Text("mode") == npfBackup {
			compared++
			rate := r.Float("throughput") / experiment.Beside(m.Results, r, "mode", npfPinned).Float("throughput")
			all = all && rate >= 1-within && rate <= 1+within
		}
	}
	return all && compared > 0
}

// givesUpFrom is the smallest ring from which on connections give up.
func givesUpFrom(m *experiment.Measured) []float64 {
	from := 0
	for _, r := range slices.Backward(m.Results) { // from the largest ring
		if r.Values["gave_up"] == 0 {
			break
		}
		from = r.Point.Int("ring")
	}
	return []float64{float64(from)}
}

// cacheFootprint estimates the memory of a run in bytes.
func cacheFootprint(p *experiment.Point) int64 {
	return p.Footprint(2) + int64(p.Int("connections"))*cacheWindow*1024 + 256<<20
}

var coldRuns experiment.SharedRuns[cacheResult]

// coldRingCaveats warn of a throughput that was not simulated on a lossy
// network.
func coldRingCaveats(results []*experiment.Result) []string {
	for _, r := range results {
		if losesByChance(r.Point) && r.Values["warm"] != nil && r.Point.Time("at") > r.Time("simulated") {
			return []string{"Frames get lost: behind what was simulated a throughput is a mean with a standard error of up to 10%."}
		}
	}
	return nil
}

func runColdRing(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	content, err := p.Profile.Content()
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(sha256.Sum256(content), p.Seed, p.Engine, p.Text("mode"), npfRing(p), p.Int("backup-slots"), p.Text("cold"), p.Int("connections"), p.Text("client"), p.Time("timeout"), p.Time("spacing"), p.Time("horizon"))
	r, err := coldRuns.Of(p, key, func(r *experiment.SharedRun[cacheResult]) (err error) {
		w := &cacheRun{Point: p, until: p.Time("horizon"), steady: true, each: true}
		r.Stats, err = w.run(ctx)
		r.Result = w.result
		return err
	})
	if err != nil {
		return nil, err
	}
	at := p.Time("at")
	p.OnlyDuring(r.Operations, func(o *experiment.Operation) bool { return o.To > at-p.Time("window") && o.To <= at })
	steady := at > r.Result.end || len(p.Operations()) == 0 && r.Result.rateIn(at-p.Time("window"), at) > 0
	if r.Result.rate > 0 && steady { // not simulated: as it was last
		p.OnlyDuring(r.Operations, func(o *experiment.Operation) bool { return o.To > r.Result.end-r.Result.looked })
	}
	values := experiment.ClusterValues(&r.Stats)
	values["throughput"] = r.Result.rateIn(at-p.Time("window"), at)
	values["simulated"], values["paused"], values["warm"] = r.Result.end, r.Result.skipped, nil
	if r.Result.rate > 0 {
		values["warm"] = r.Result.end - r.Result.looked
	}
	values["silent"], values["gave_up"] = r.Result.silence(), r.Result.gaveUp
	values["absent"], values["dropped"] = int(r.Result.ring.Absent), int(r.Result.ring.Dropped)
	return values, nil
}

// coldRingAnswer writes when each mode reached its throughput, for all measured
// choices.
func coldRingAnswer(results []*experiment.Result) (lines []string) {
	said := map[string]bool{}
	others := slices.DeleteFunc([]string{"descriptor", "term", "buffer", "bitmap", "backup-slots", "spacing", "timeout", "horizon"}, func(name string) bool {
		return !slices.ContainsFunc(results, func(r *experiment.Result) bool { return r.Point.Value(name) != results[0].Point.Value(name) })
	})
	for _, r := range results {
		p := r.Point
		what := fmt.Sprintf("%s, %s, %d descriptors, %d connections, %s", p.Profile.Name, p.Text("mode"), p.Int("ring"), p.Int("connections"), p.Text("client"))
		for _, name := range others {
			what += ", " + name + " " + p.Experiment().Axis(name).Plain(p.Value(name))
		}
		if said[what] {
			continue
		}
		said[what] = true
		warm, is := r.Values["warm"].(sim.Time)
		switch {
		case is:
			lines = append(lines, fmt.Sprintf("%s: next to nothing for %.2f s; all connections are served from %.2f s on.", what, r.Time("silent").Seconds(), warm.Seconds()))
		default:
			lines = append(lines, fmt.Sprintf("%s: no steady throughput in %.0f s; of the connections %d have given up.", what, r.Time("simulated").Seconds(), r.Values["gave_up"]))
		}
	}
	return lines
}

// coldRingEnded warns if the run ended before the silence did.
func coldRingEnded(results []*experiment.Result) (lines []string) {
	for _, r := range results {
		if p := r.Point; r.Values["warm"] == nil && r.Time("simulated")-r.Time("silent") < cacheSlice {
			lines = append(lines, fmt.Sprintf("%s, %s, %d descriptors: silent until the run ended, after %.0f s; of the connections %d have given up.", p.Text("mode"), p.Text("term"), p.Int("ring"), r.Time("simulated").Seconds(), r.Values["gave_up"]))
		}
	}
	return lines
}

// coldRingQuiet is for presets that need no answer besides their table.
func coldRingQuiet([]*experiment.Result) []string { return nil }

var ringSize = &experiment.Experiment{
	Name:  "npf-ring-size",
	Short: "the time that a number of operations take a key-value server whose receive ring begins without its pages",
	Long: `Server and load of npf-cold-ring, until a number of operations are done. The time is from the first connection's SYN to the end of the last operation. There is none if all connections have given up.
` + npfModesHelp,
	Source:   npfSource + " §5, figure 4(b)",
	Smoke:    []experiment.Values{{"mode": npfBackup, "ring": 16, "operations": 60, "connections": 3}},
	Profiles: []string{"eth-npf"},
	Axes: slices.Concat([]experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: npfModes(), Help: "treatment of frames with absent memory; the command's help describes each"},
		npfDescriptorAxis(), coldTerms("20us"),
		{Name: "operations", Kind: report.Count, Least: "1", Most: "10000000", Default: "10000", Help: "of all connections together"},
	}, npfLoadAxes(), npfRingAxes(experiment.Axis{Default: ringSizes})),
	Points: func(p *experiment.Point) (bool, error) { return true, hasStack(p) },
	Run:    runRingSize,
	Columns: append([]report.Column{
		{Name: "time", Unit: "s", Kind: report.Duration, Help: "until all operations are done; empty: all connections have given up before"},
		{Name: "done", Kind: report.Count, Help: "operations that were done"},
		{Name: "gave_up", Kind: report.Count, Help: "connections whose stack has given up"},
		{Name: "absent", Kind: report.Count, Help: "frames whose memory was absent"},
		{Name: "dropped", Kind: report.Count, Help: "frames that the interface has dropped"},
	}, experiment.ClusterColumns()...),
	Slots:    experiment.Always(backupring.ProviderSlot),
	Memory:   cacheFootprint,
	Followed: "time",
	View: experiment.View{
		Value: "time", Series: []string{"mode"}, Base: npfPinned, X: "ring", Quiet: []string{"operations", "term", "cold", "connections", "spacing", "client", "timeout", "descriptor", "buffer", "bitmap", "backup-slots"},
	},
	Presets: []experiment.Preset{{
		Name: "waterfall", Short: "from what drop makes of our choices with a ring of 16 to the published time, one of them at a time",
		Values: map[string]string{"mode": npfDrop, "term": "ours,page-buffers,spaced", "ring": "16"},
		View: &experiment.View{
			Value: "time", X: "ring", Quiet: []string{"mode", "descriptor", "operations", "ring", "cold", "connections", "bitmap", "backup-slots", "client", "timeout"},
			Summary: []string{"term", "buffer", "spacing", "time", "gave_up", "dropped"}, Answer: coldRingQuiet,
		},
	}},
	Ledger: []experiment.LedgerRow{
		{ID: "npf17-5-10", Of: "mode=drop ring=16", Column: "time"},
		{ID: "npf17-5-11", Of: "mode=drop ring=" + ringSizes, How: "the smallest of 16, 32 .. 4,096 descriptors from which on connections give up; 0: not even of 4,096", Ours: givesUpFrom},
	},
	Notes: coldRing.Notes,
}

// ringSizeMost is how long the operations of npf-ring-size may take.
const ringSizeMost = 10_000 * sim.Second

func runRingSize(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &cacheRun{Point: p, until: ringSizeMost, most: p.Int("operations")}
	stats, err := w.run(ctx)
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	r := &w.result
	values["time"], values["done"], values["gave_up"] = nil, int(w.total), r.gaveUp
	if w.total >= int64(w.most) {
		values["time"] = r.end - cacheBegin
		p.NoteOperation(1, "load", cacheBegin, r.end)
	}
	values["absent"], values["dropped"] = int(r.ring.Absent), int(r.ring.Dropped)
	return values, nil
}
