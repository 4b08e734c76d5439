package npf

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/handlers/backupring"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Values of the axis server of npf-working-set.
const (
	wsetGrows   = "grows"
	wsetShrinks = "shrinks"
	wsetBoth    = "both"
)

var workingSet = &experiment.Experiment{
	Name:  "npf-working-set",
	Short: "two key-value servers whose working sets change: hits in a second over time",
	Long: `Two key-value servers (memcached's protocol, 90% gets, values of 20 kB, keys of 64 B) on node 0 share a memory. Each has a load on node 1. At the beginning one load requests the small working
set and the other the large one; at the change they swap. The items requested at the beginning are stored. Others are stored by the tenth of the operations that store.
  npf     each may have nearly all of the memory, and nothing is pinned: the kernel brings in pages that one server touches, and writes pages that the other has not used for long to storage
  pinned  each has a half of the memory for its items, pinned
--scale divides memory and time. So rates stay the same (operations, faults, bytes to storage per second), and so does the fraction of its working set that a server has stored, or lost, after
a fraction of the run. Not divided are rings and frames in flight, which have 2 MiB besides the memory, slabs of 1 MiB, and the latency of one operation or fault, which is small compared with the run if there
are many of them. Times in the table are the testbed's. --scale 1 is full size, and takes half an hour of a core for each mode.`,
	Source:   "NPF'17 §6",
	Smoke:    []experiment.Values{{"horizon": 2 * sim.Second, "change": sim.Second, "window": sim.Second, "at": 2 * sim.Second}},
	Profiles: []string{"eth-npf"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{fleetNPF, fleetPinned}, Help: "treatment of absent memory; the command's help describes each"},
		{Name: "server", Kind: report.Text, Of: []string{wsetGrows, wsetShrinks, wsetBoth}, Help: "server with the hits: the one whose working set grows, the other one, or both"},
		{Name: "scale", Kind: report.Count, Least: "1", Most: "256", Default: "256", Help: "memory and time are divided by it"},
		{Name: "memory", Kind: report.Size, Least: "512MiB", Most: "64GiB", Default: "1GiB", Help: "of both servers, undivided"},
		{Name: "small", Kind: report.Size, Least: "16MB", Most: "64GiB", Default: "100MB", Help: "working set, undivided"},
		{Name: "large", Kind: report.Size, Least: "16MB", Most: "64GiB", Default: "900MB", Help: "the other working set, undivided"},
		{Name: "connections", Kind: report.Count, Least: "1", Most: "256", Default: "4", Help: "connections of the load of a server, each with one operation in flight; the paper gives no number. memaslap's 16 would have two objects each in the small set"},
		{Name: "operation", Kind: report.Duration, Unit: "us", Least: "0ns", Most: "1ms", Default: "0ns", Help: "time of a server's instructions for an operation, besides packets (host.message), copies and accesses to memory"},
		{
			Name: "swap-read", Column: "swap_read", Kind: report.Duration, Unit: "ms", Most: "1s", Default: "0.1ms", Field: "storage.read_latency",
			Help: "of the storage that the kernel swaps to, for a page; the paper does not say what it is. 0.1ms is a flash drive; its example of a major fault is 10ms (§3), a disk that seeks for each page",
		},
		{
			Name: "swap-write", Column: "swap_write", Kind: report.Duration, Unit: "ms", Most: "1s", Default: "0ms", Field: "storage.write_latency",
			Help: "of the storage, before a page that is written crosses its bandwidth. Linux writes pages to slots one behind the other (mm/swapfile.c, SWAPFILE_CLUSTER), for which a disk does not seek; 10ms would be a seek for 32 of them",
		},
		{Name: "change", Kind: report.Duration, Unit: "s", Least: "1s", Most: "10000s", Multiple: "1s", Default: "50s", Help: "when the working sets change, undivided"},
		{Name: "horizon", Kind: report.Duration, Unit: "s", Least: "1s", Most: "10000s", Multiple: "1s", Default: "100s", Help: "end of the run, undivided"},
		{Name: "window", Kind: report.Duration, Unit: "s", Least: "1s", Most: "10000s", Multiple: "1s", Default: "5s", Help: "time in which hits are counted, undivided"},
		{Name: "at", Kind: report.Duration, Unit: "s", Least: "1s", Most: "10000s", Multiple: "1s", Default: "10s,20s,30s,40s,50s,55s,60s,65s,70s,80s,90s,100s", Help: "end of the window, undivided"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if p.Time("at") < p.Time("window") || p.Time("at") > p.Time("horizon") {
			return false, &experiment.NoPoint{Why: errors.New("a window ends after its length, --window, and not behind --horizon")}
		}
		for _, set := range []string{"small", "large"} {
			if n := p.Int(set) / p.Int("scale") / wsetChunk; n < p.Int("connections") {
				return false, &experiment.NoPoint{Why: fmt.Errorf("--%s: %d B divided by --scale hold %d values, expected one for each of --connections, %d", set, p.Int(set), n, p.Int("connections"))}
			}
		}
		return true, errors.Join(hasStack(p), outlastsLosses(p, p.Time("window")/sim.Time(p.Int("scale")), "--window, divided by --scale as TCP's time-outs are not,"))
	},
	Run: runWorkingSet,
	Columns: append([]report.Column{
		{Name: "hits", Unit: "kops", Kind: report.Number, Help: "gets in a second that found something, thousands, in the window"},
		{Name: "operations", Unit: "kops", Kind: report.Number, Help: "operations in a second, thousands, likewise"},
		{Name: "hit_rate", Kind: report.Share, Help: "part of the gets that found something, likewise; empty: there was none"},
		{Name: "resident", Unit: "bytes", Kind: report.Size, Help: "memory that both servers have in the end"},
		{Name: "absent", Kind: report.Count, Help: "frames whose memory was absent, in the whole run"},
		{Name: "reclaimed", Kind: report.Count, Help: "pages that the kernel has taken away, likewise"},
		{Name: "major", Kind: report.Count, Help: "page faults that had to read storage, likewise"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerWorkingSet(),
	Slots:     experiment.Always(backupring.ProviderSlot),
	Operation: fleetOperation,
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(2) + int64(p.Int("memory")+p.Int("large"))/int64(p.Int("scale"))/host4K*160 + 512<<20
	},
	View: experiment.View{
		Value: "hits", Series: []string{"mode"}, X: "at", Course: true,
		Quiet: []string{"scale", "memory", "small", "large", "connections", "operation", "swap-read", "swap-write", "change", "horizon", "window"},
	},
	Presets: []experiment.Preset{{
		Name: "swap", Short: "the server whose working set grows, by what it takes to read a page back from storage", Source: "ours",
		Values: map[string]string{"mode": fleetNPF, "server": wsetGrows, "swap-read": "0.1ms,1ms,10ms", "at": "50s,60s,70s,80s,90s,100s", "window": "10s"},
		View: &experiment.View{
			Value: "hits", X: "at", Course: true,
			Quiet:   []string{"mode", "server", "scale", "memory", "small", "large", "connections", "operation", "swap-write", "change", "horizon", "window"},
			Summary: []string{"swap_read", "at", "hits", "operations", "hit_rate", "major"},
		},
	}},
	Notes: []string{
		"Every value that came was compared with the one that was stored.",
		"The paper's text has no numbers for this figure: with page faults both are served, with a half for each one of them always starves.",
	},
}

// ledgerWorkingSet are the rows of NPF'17 §6 that npf-working-set answers.
func ledgerWorkingSet() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "npf17-6.1-22", Of: "mode=npf server=grows,shrinks at=40s,50s,90s,100s", How: "hits of both servers are the same to within 10%, 10 s before the change and 40 s after it, in windows of 5 s",
			Holds: func(m *experiment.Measured) bool {
				all := true
				for _, at := range []string{"40s", "50s", "90s", "100s"} {
					a, b := m.At("hits", "server=grows at="+at), m.At("hits", "server=shrinks at="+at)
					all = all && min(a, b) >= 0.9*max(a, b)
				}
				return all
			},
		},
		{
			ID: "npf17-6.1-26", Of: "mode=pinned server=shrinks at=50s", How: "hit_rate of the large working set before the change",
			Ours: func(m *experiment.Measured) []float64 { return []float64{m.At("hit_rate", "server=shrinks")} },
		},
		{
			ID: "npf17-6.4-09", Of: "mode=npf server=both at=100s window=100s", How: "fewer than 1% of the operations of the whole run met a frame whose memory was absent; of npf-working-set, the fault of every page included",
			Holds: func(m *experiment.Measured) bool {
				p := m.Results[0].Point
				operations := 1000 * m.At("operations", "server=both") * p.Time("window").Seconds() / float64(p.Int("scale"))
				return m.At("absent", "server=both") < 0.01*operations
			},
		},
	}
}

// The paper's numbers, and the parts of a node's memory that are not items.
const (
	wsetValue = 20_000 // bytes
	wsetChunk = 21_696 // memcached's chunk for such an object
	// rings, frames to send, the least hash tables, the backup ring: not
	// divided
	wsetFixed      = 2 << 20
	wsetLeastHash  = 12         // memcached.Config.HashPower
	wsetGrain      = 2 << 20    // unit of a node's memory (os.memory)
	wsetClientRing = 512        // descriptors of a load
	wsetStep       = sim.Second // of the testbed
)

var workingSets experiment.SharedRuns[*fleet]

// wsetProfile is the profile with the divided memory of the servers. It also
// returns the rest in bytes, because memory has a unit. The paper's limit is
// the limit of a cgroup, which has no watermarks. Ours are a few batches of the
// kernel's reclaim.
func wsetProfile(p *experiment.Point) (*profile.Profile, int, error) {
	wanted := (p.Int("memory")/p.Int("scale") + wsetFixed + wsetTables(wsetHash(p))) / host.PageBytes * host.PageBytes
	memory := (wanted + wsetGrain - 1) / wsetGrain * wsetGrain
	changed, err := experiment.WithFields(p.Profile, []string{"os.watermark_min=128KiB", "os.watermark_low=256KiB", "os.watermark_high=384KiB", fmt.Sprintf("os.memory=%dB", memory)})
	return changed, memory - wanted, err
}

// wsetHash is the power of the number of buckets in a server's hash table.
// There are as many as it could have items in all of the memory.
func wsetHash(p *experiment.Point) int {
	hash := wsetLeastHash
	for wsetChunk<<hash < p.Int("memory")/p.Int("scale") {
		hash++
	}
	return hash
}

// wsetTables are the bytes of both servers' hash tables beyond wsetFixed.
func wsetTables(hash int) int { return 2 * memcached.BucketBytes * (1<<hash - 1<<wsetLeastHash) }

// newWorkingSet makes the run of a point.
func newWorkingSet(p *experiment.Point) (*fleet, error) {
	one := *p
	changed, other, err := wsetProfile(p)
	if err != nil {
		return nil, err
	}
	one.Profile = changed
	scale, connections := p.Int("scale"), p.Int("connections")
	objects := func(set string) int { return p.Int(set) / scale / wsetChunk / connections }
	f := &fleet{Point: &one, operation: p.Time("operation"), other: other, pinned: p.Text("mode") == fleetPinned, hash: wsetHash(p), ring: wsetClientRing, limit: int64(p.Int("memory") / scale)}
	if f.pinned {
		f.limit /= 2
	}
	for i, set := range []string{"small", "large"} {
		var load []*memaslap.Client
		for n := range connections {
			x, err := memaslap.New(memaslap.Config{Window: objects(set), ValueBytes: wsetValue, Overwrite: 1, Seed: p.Seed}, i*connections+n)
			if err != nil {
				return nil, err
			}
			load = append(load, x)
		}
		f.loads = append(f.loads, load)
	}
	for at := wsetStep; at <= p.Time("horizon"); at += wsetStep {
		f.ends = append(f.ends, at/sim.Time(scale))
	}
	change := int(p.Time("change") / wsetStep)
	f.begins = func(server, slice int) {
		if slice == change {
			for _, x := range f.loads[server] {
				x.Resize(objects([]string{"large", "small"}[server]))
			}
		}
	}
	return f, nil
}

func runWorkingSet(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	content, err := p.Profile.Content()
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(sha256.Sum256(content), p.Seed, p.Engine)
	for _, a := range p.Experiment().Axes {
		if !slices.Contains([]string{"server", "window", "at"}, a.Name) {
			key += fmt.Sprint(" ", p.Value(a.Name))
		}
	}
	r, err := workingSets.Of(p, key, func(r *experiment.SharedRun[*fleet]) (err error) {
		if r.Result, err = newWorkingSet(p); err == nil {
			r.Stats, err = r.Result.run(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	to := int(p.Time("at") / wsetStep)
	from := to - int(p.Time("window")/wsetStep)
	slice := wsetStep / sim.Time(p.Int("scale"))
	p.OnlyDuring(r.Operations, func(o *experiment.Operation) bool {
		loads := []string{fleetLoad(0), fleetLoad(1)}
		switch p.Text("server") {
		case wsetGrows:
			loads = loads[:1]
		case wsetShrinks:
			loads = loads[1:]
		}
		return o.To > fleetBegin+sim.Time(from)*slice && o.To <= fleetBegin+sim.Time(to)*slice && slices.Contains(loads, o.Process)
	})
	var ops, gets, hits int64
	for i, name := range []string{wsetGrows, wsetShrinks} {
		if s := p.Text("server"); s != name && s != wsetBoth {
			continue
		}
		for sign, end := range map[int64]int{1: to, -1: from} { //lint:maporder sums do not depend on the order
			if end > 0 {
				c := &r.Result.counts[i][end-1]
				ops, gets, hits = ops+sign*c.Ops(), gets+sign*c.Gets, hits+sign*c.Hits
			}
		}
	}
	seconds := (p.Time("window") / sim.Time(p.Int("scale"))).Seconds()
	values := experiment.ClusterValues(&r.Stats)
	values["hits"], values["operations"], values["hit_rate"] = float64(hits)/seconds/1000, float64(ops)/seconds/1000, nil
	if gets > 0 {
		values["hit_rate"] = float64(hits) / float64(gets)
	}
	values["resident"], values["absent"] = int(r.Result.resident), int(r.Result.absent)
	values["reclaimed"], values["major"] = int(r.Result.kernel.Reclaimed), int(r.Result.kernel.Major)
	return values, nil
}
