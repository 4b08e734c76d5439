package npf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/npf/target"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfStorage = &experiment.Experiment{
	Name:  "npf-storage",
	Short: "random reads from a storage target whose page cache and communication buffers share memory",
	Long: `Initiators read random blocks of a disk from a target on node 0 (tgt over iSER). The target reads them through its page cache, copies them to a communication buffer, and writes them to the
initiator's memory. Each request has its own buffer of 512 KiB, even for a small block. Strategies make buffers ready for the interface:
  static  all of them are pinned from the beginning (as tgt does)
  fine    each is pinned before its transfer and unpinned after it
  none    nothing is pinned: the interface has page faults (NPF)
The cache is warm before the first request: the disk has been read once from its beginning, and then as many random blocks as it has. A target that cannot pin its buffers fails.`,
	Source:   npfSource + " §6",
	Smoke:    []experiment.Values{{"requests": 20, "depth": 2, "pool": 4 << 20, "disk": 16 << 20, "memory": 256 << 20, "strategy": "none"}},
	Profiles: []string{"ib-npf"},
	Axes: []experiment.Axis{
		{Name: "strategy", Kind: report.Text, Of: []string{pinning.StaticKind, pinning.FineKind, pinning.NoneKind}, Default: "static,none", Help: "which buffers are pinned; the command's help describes each"},
		{Name: "initiators", Kind: report.Count, Least: "1", Most: "256", Default: "1", Help: "who reads, each from a process of the target"},
		{Name: "depth", Kind: report.Count, Least: "1", Most: fmt.Sprint(target.MaxDepth), Default: "8", Help: "requests that an initiator has in flight"},
		{Name: "requests", Kind: report.Count, Least: "1", Most: "1000000", Default: "2000", Help: "requests of all initiators; each has at least twice as many as in flight"},
		{Name: "pool", Kind: report.Size, Least: "64KiB", Most: "64GiB", Default: "1GiB", Help: "all communication buffers"},
		{Name: "disk", Kind: report.Size, Least: "512KiB", Most: "64GiB", Default: "4GiB", Help: "size of the disk (LUN)"},
		{Name: "other", Kind: report.Size, Most: "64GiB", Default: "0", Help: "memory of the node that another user has locked"},
		{Name: "work", Kind: report.Duration, Unit: "ms", Most: "1s", Default: "0ms", Help: "time of the target's own instructions for a request, besides copies and kernel calls"},
		storageTerms,
		{Name: "memory", Kind: report.Size, Least: "4MiB", Most: "128GiB", Multiple: "2MiB", Default: "4GiB,5GiB,6GiB,7GiB,8GiB", Field: "os.memory", Help: "of the node"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4KiB", Most: "512KiB", Multiple: "4KiB", Default: "512KiB", Help: "size of a block"},
	},
	Points: hasStorageTarget,
	Run:    runNPFStorage,
	Columns: append([]report.Column{
		{Name: "state", Kind: report.Text, Help: "runs, or fails: the buffers cannot be pinned"},
		{Name: "bandwidth", Unit: "MBps", Kind: report.Number, Help: "bytes that were read by the time from the first request to the last answer; empty if the target fails"},
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "the same time, for each request"},
		{Name: "hit_rate", Kind: report.Share, Help: "share of the bytes that were read which were in the cache"},
		{Name: "cached", Kind: report.Size, Help: "part of the disk that is in the cache at the end"},
		{Name: "resident", Kind: report.Size, Help: "memory that the target has at the end beside the cache: buffers that were used or pinned, queues"},
		{Name: "pinned", Kind: report.Size, Help: "the most of the buffers that was pinned at a time"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "time for each request with static by that here, at the same profile and other values; empty if static fails or was not measured"},
		Of:     experiment.LatencyColumn, Axis: "strategy", Base: pinning.StaticKind,
	}},
	Slots:     experiment.Always(rnr.EngineSlot),
	Operation: "the mean of requests, from the call until the initiator has seen the answer; it has as many under way as --depth says",
	Memory: func(p *experiment.Point) int64 {
		const pageState = 256 // our bytes for each used page of memory
		n := p.Int("initiators")
		return p.Footprint(1+n) + int64(p.Int("memory"))/host.PageBytes*pageState + int64(2*n*p.Int("depth")*p.Int("size"))
	},
	View: experiment.View{
		Value: "bandwidth", Series: []string{"strategy"}, X: "memory", Quiet: []string{"initiators", "depth", "requests", "pool", "disk", "other", "work", "term", "size"},
		Summary: []string{experiment.ProfileColumn, "memory", "bytes", "strategy", "state", "bandwidth", "hit_rate", "cached", "resident", "pinned", "speedup"},
		Answer:  npfStorageAnswer,
	},
	Ledger: slices.Concat(ledgerNPFStorage(), ledgerInitiators()),
	Presets: []experiment.Preset{{
		Name: "waterfall", Short: "from the speedup here to the published one, one term at a time", Values: map[string]string{"term": strings.Join(storageTerms.Of, ","), "memory": "5GiB,6GiB"},
		View: &experiment.View{
			Value: "bandwidth", Series: []string{"strategy"}, X: "memory", Quiet: []string{"initiators", "depth", "requests", "pool", "disk", "size"},
			Summary: []string{"term", "other", "work", "memory", "strategy", "bandwidth", "hit_rate", "speedup"},
			Answer:  npfStorageAnswer,
		},
	}, {
		Name: "initiators", Short: "memory of a storage target by the number of initiators, with 6 GiB", Values: map[string]string{
			"memory": "6GiB", "size": "64KiB,512KiB", "initiators": "1,4,16,64", "depth": "32", "requests": "4096",
		},
		View: &experiment.View{
			Value: "resident", Series: []string{"strategy"}, X: "initiators", Quiet: []string{"depth", "requests", "pool", "disk", "other", "work", "term", "memory"},
			Summary: []string{experiment.ProfileColumn, "bytes", "initiators", "strategy", "resident", "pinned", "cached", "bandwidth", "hit_rate"},
		},
	}, {
		Name: "other", Short: "bandwidth of a storage target if 2 GiB of the memory are somebody else's", Source: "ours", Values: map[string]string{"other": "2GiB"},
		View: &experiment.View{
			Value: "bandwidth", Series: []string{"strategy"}, X: "memory", Quiet: []string{"initiators", "depth", "requests", "pool", "disk", "other", "work", "term", "size"},
			Summary: []string{experiment.ProfileColumn, "memory", "bytes", "strategy", "state", "bandwidth", "hit_rate", "cached", "resident", "pinned", "speedup"},
			Answer:  npfStorageAnswer,
		},
	}},
	Notes: []string{
		"Every byte that came was compared with the disk's.",
		"NPF'17's figures as text: pinned buffers of 1 GB fail under 5 GB and cache the whole disk from 7, NPF runs from 4 and is up to 1.9 times faster. How many requests an initiator has under way is not given.",
	},
}

// storageTerms lead to the published speedup at every memory size with which
// the paper's pinned target runs.
var storageTerms = experiment.Axis{
	Name: "term", Kind: report.Text, Of: []string{"ours", "others-memory", "slow-target"}, Default: "ours",
	Help: "a way to the published speedup; the command's help describes each",
	Terms: []experiment.Term{
		{},
		{Help: "somebody else has locked a part of the node's memory", Values: map[string]string{"other": "2GiB"}, WhatIf: true},
		{Help: "a request takes the target's own instructions as long as makes 1.9 of what is left", Values: map[string]string{"work": "3.1ms"}, WhatIf: true},
	},
}

// storageSpeedup is the largest speedup in the text of NPF'17 §6. Which memory
// has it is only in a figure.
const storageSpeedup = "npf17-6.1-31"

// ledgerNPFStorage are the rows of NPF'17 §6.1 that npf-storage answers. Memory
// in GB is ours in GiB.
func ledgerNPFStorage() []experiment.LedgerRow {
	sizes := []string{"4GiB", "5GiB", "6GiB", "7GiB", "8GiB"}
	return []experiment.LedgerRow{
		{
			ID: "npf17-6.1-29", Of: "strategy=static memory=1GiB,2GiB," + strings.Join(sizes, ","), How: "the least of 1, 2, 4, 5 .. 8 GiB with which pinned buffers run",
			Ours: func(m *experiment.Measured) []float64 {
				least := math.Inf(1)
				for _, r := range m.Results {
					if r.Values["state"] == "runs" {
						least = min(least, float64(r.Point.Int("memory"))/(1<<30))
					}
				}
				return []float64{least}
			},
		},
		{
			ID: "npf17-6.1-30", Of: "strategy=none memory=4GiB", How: "4 if it runs with 4 GiB, else 0",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{map[bool]float64{true: 4}[m.Results[0].Values["state"] == "runs"]}
			},
		},
		{
			ID: storageSpeedup, Of: "strategy=static,none memory=5GiB,6GiB,7GiB", How: "the largest of speedup with 5, 6 and 7 GiB",
			Ours: func(m *experiment.Measured) []float64 {
				most := 0.0
				for _, memory := range sizes[1:4] {
					most = max(most, m.At("speedup", "strategy=none memory="+memory))
				}
				return []float64{most}
			},
		},
		{
			ID: "npf17-6.1-32", Of: "strategy=static memory=" + strings.Join(sizes, ","), How: "the least of 4, 5 .. 8 GiB with which all of the disk is in the cache; 0: none",
			Ours: func(m *experiment.Measured) []float64 {
				for _, memory := range sizes {
					if p := m.Results[0].Point; m.At("cached", "memory="+memory) >= float64(p.Int("disk")) {
						return []float64{float64(memory[0] - '0')}
					}
				}
				return []float64{0}
			},
		},
	}
}

// ledgerInitiators are the rows about the target's memory by the number of
// initiators.
func ledgerInitiators() []experiment.LedgerRow {
	const initiators = " memory=6GiB depth=32 requests=4096 initiators="
	return []experiment.LedgerRow{
		{
			ID: "npf17-6.1-39", Of: "strategy=none size=64KiB,512KiB" + initiators + "1,4,16,64", How: "resident is more with 4 initiators than with 1, with 16 than with 4, and with 64 than with 16, for both sizes of blocks",
			Holds: func(m *experiment.Measured) bool {
				all := true
				for _, size := range []string{"64KiB", "512KiB"} {
					last := 0.0
					for _, n := range []string{"1", "4", "16", "64"} {
						is := m.At("resident", "size="+size+" initiators="+n)
						all, last = all && is > last, is
					}
				}
				return all
			},
		},
		{
			ID: "npf17-6.1-41", Of: "strategy=static,none size=512KiB" + initiators + "64", How: "with 64 initiators resident is at least three quarters of that with pinned buffers, and less than that",
			Holds: func(m *experiment.Measured) bool {
				share := m.At("resident", "strategy=none") / m.At("resident", "strategy=static")
				return share >= 0.75 && share < 1
			},
		},
	}
}

// npfNodes is the number of nodes besides the target's (NPF'17 §6: eight in
// all).
const npfNodes = 7

// hasStorageTarget reports which points exist.
func hasStorageTarget(p *experiment.Point) (bool, error) {
	if err := hasNPF(p); err != nil {
		return false, err
	}
	if !p.Profile.Storage.On() {
		return false, fmt.Errorf("profile %s: no disk (storage.kind)", p.Profile.Origin.Name)
	}
	o := npfTarget(p)
	if err := o.Validate(); err != nil {
		return false, &experiment.NoPoint{Why: err}
	}
	if p.Int("size") > o.Buffer {
		return false, &experiment.NoPoint{Why: fmt.Errorf("--size: %v, expected at most %v, the buffer of a request: --pool is %v for %d initiators", sim.Size(p.Int("size")), sim.Size(o.Buffer), sim.Size(o.Pool), o.Sessions)}
	}
	if disk, n := p.Int("disk"), p.Int("size"); disk%n != 0 {
		return false, &experiment.NoPoint{Why: fmt.Errorf("a disk of %v is no number of blocks of %v", sim.Size(disk), sim.Size(n))}
	}
	return true, nil
}

// tgtBuffer is how many bytes tgt allocates for a transaction (NPF'17 §6).
const tgtBuffer = 512 << 10

func npfTarget(p *experiment.Point) target.Options {
	n := p.Int("initiators")
	return target.Options{
		Work: p.Time("work"), Held: true, Disk: p.Int("disk"), Buffer: min(tgtBuffer, p.Int("pool")/n/host.PageBytes*host.PageBytes), Pool: p.Int("pool"), Sessions: n, Depth: p.Int("depth"),
		Pinning: pinning.Options{Kind: p.Text("strategy")},
	}
}

// storageRun is a running measurement.
type storageRun struct {
	p      *experiment.Point
	c      *runtime.Cluster
	target *target.Target
	start  sim.Time   // when the cache is warm
	end    []sim.Time // of each initiator
	before host.StorageStats
}

func runNPFStorage(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	n := p.Int("initiators")
	r := &storageRun{p: p, end: make([]sim.Time, n)}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 1+min(n, npfNodes)), r.setUp, func() error { return nil })
	values := experiment.Values{"state": "runs"}
	if errors.Is(err, host.ErrNoMemory) && r.start == 0 {
		for _, c := range p.Experiment().Columns {
			values[c.Name] = nil
		}
		values["state"] = "fails"
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	took, s, bytes := slices.Max(r.end)-r.start, r.target.Stats(), float64(r.requests()*n*p.Int("size"))
	values["bandwidth"] = bytes / 1e6 * float64(sim.Second) / float64(took)
	values[experiment.LatencyColumn] = took / sim.Time(r.requests()*n)
	values["hit_rate"] = 1 - float64(r.c.Node(0).Storage().Stats().BytesRead-r.before.BytesRead)/bytes
	values["cached"], values["resident"], values["pinned"] = s.Cached, s.Resident, int64(s.Pinning.MostPinned)
	return values, nil
}

// requests is the number of requests of each initiator.
func (r *storageRun) requests() int {
	return max(r.p.Int("requests")/r.p.Int("initiators"), 2*r.p.Int("depth"))
}

func (r *storageRun) setUp(c *runtime.Cluster) error {
	r.c = c
	lib, err := rnr.Load(c, rnr.Options{})
	if err != nil {
		return err
	}
	if r.target, err = target.New(c, lib, npfTarget(r.p)); err != nil {
		return err
	}
	if err := c.Spawn(0, "warm", r.warmUp); err != nil {
		return err
	}
	for i := range r.p.Int("initiators") {
		if err := c.Spawn(1+i%npfNodes, fmt.Sprintf("initiator %d", i), func(p *runtime.Proc) error { return r.initiator(p, i) }); err != nil {
			return err
		}
	}
	return nil
}

// warmUp is a process on the target's node. It locks the memory of other
// programs, and reads the disk before the target serves anybody.
func (r *storageRun) warmUp(p *runtime.Proc) error {
	if n := r.p.Int("other"); n > 0 {
		p.Alloc(n).Lock()
	}
	const step = 512 << 10
	disk := r.target.Disk()
	for at := 0; at < disk.Size(); at += step {
		if err := disk.Read(p.Thread(), p.OS(), at, min(step, disk.Size()-at), nil); err != nil {
			return err
		}
	}
	block := r.p.Int("size")
	random := rand.New(rand.NewPCG(r.p.Seed, 0))
	for range disk.Size() / max(block, step/8) {
		if err := disk.Read(p.Thread(), p.OS(), random.IntN(disk.Size()/block)*block, block, nil); err != nil {
			return err
		}
	}
	r.start, r.before = p.Now(), r.c.Node(0).Storage().Stats()
	r.target.Begin()
	return nil
}

// initiator reads random blocks and checks them.
func (r *storageRun) initiator(p *runtime.Proc, session int) error {
	i, err := r.target.Connect(p, session)
	if err != nil {
		return err
	}
	block := r.p.Int("size")
	random := rand.New(rand.NewPCG(r.p.Seed, uint64(1+session)))
	var asked []sim.Time // when the pending requests were posted
	for left := r.requests(); left > 0 || !i.Idle(); {
		if left > 0 && !i.Full() {
			asked = append(asked, p.Now())
			if err := i.Post(random.IntN(r.p.Int("disk")/block)*block, block); err != nil {
				return err
			}
			left--
			continue
		}
		a, err := i.Next()
		if err != nil {
			return err
		}
		// the first requests were posted while the cache was being warmed
		r.p.Operation(p, max(asked[0], r.start))
		asked = asked[1:]
		if err := target.Check(a.At, a.Data.Read()); err != nil {
			return err
		}
	}
	r.end[session] = p.Now()
	return nil
}

// npfStorageAnswer writes, for each term, where page faults gain most, and the
// published gain.
func npfStorageAnswer(results []*experiment.Result) (answer []string) {
	row, _ := ledger.Find(storageSpeedup)
	published := row.Published.Numbers[0].High
	for _, term := range storageTerms.Of {
		if best, at := storageBest(results, term); at != nil {
			line := fmt.Sprintf("With %v of memory a target that pins nothing reads %.1f times as fast as one that pins %v; NPF'17 measured up to %.1f (%+.0f%%).",
				sim.Size(at.Point.Int("memory")).Rounded(), best, sim.Size(at.Point.Int("pool")).Rounded(), published, 100*(best/published-1))
			if term != storageTerms.Of[0] {
				line = term + ": " + strings.ToLower(line[:1]) + line[1:]
			}
			answer = append(answer, line)
		}
	}
	return answer
}

// storageBest is the point where page faults gain most, and the gain. nil:
// there is none.
func storageBest(results []*experiment.Result, term string) (best float64, at *experiment.Result) {
	for _, r := range results {
		for _, o := range results {
			a, b := r.Point, o.Point
			if a.Text("term") != term || a.Text("strategy") != pinning.StaticKind || b.Text("strategy") != pinning.NoneKind || r.Values["bandwidth"] == nil || o.Values["bandwidth"] == nil {
				continue
			}
			if gain := o.Float("bandwidth") / r.Float("bandwidth"); a.Profile.Name == b.Profile.Name && sameStorage(a, b) && gain > best {
				best, at = gain, o
			}
		}
	}
	return best, at
}

// sameStorage reports whether points differ only in their strategy.
func sameStorage(a, b *experiment.Point) bool {
	if a.Text("term") != b.Text("term") || a.Time("work") != b.Time("work") {
		return false
	}
	for _, axis := range []string{"initiators", "depth", "requests", "pool", "disk", "other", "memory", "size"} {
		if cmp.Compare(a.Int(axis), b.Int(axis)) != 0 {
			return false
		}
	}
	return true
}
