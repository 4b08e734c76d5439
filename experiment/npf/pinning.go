package npf

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var npfPinning = &experiment.Experiment{
	Name:  "npf-pinning",
	Short: "writes to memory of another process, made ready at both ends by each of the pinning strategies, and by none",
	Long: `A process writes messages, one after the other in memory, to a process on another node, over a reliable connection of InfiniBand (handlers/rnr). For each message it makes the memory ready at both ends and gives it back after the
write. All strategies run the same program (package pinning):
  static      all memory of both was pinned before
  fine        pages are pinned only for the write; the other process is asked to pin, and told after the write: Firehose's authors call that a rendezvous with unpinning
  cache       pin-down caches of --bound on both sides; the other process is asked each time
  firehose    the memory that firehoses reach, --bound together, is pinned, and nobody is asked; for other memory they are moved
  rendezvous  the other process is asked each time and keeps everything pinned: a rendezvous without unpinning
  bounce      copies through pinned buffers on both sides; the other process is asked for room, and to copy
  none        nothing is pinned, and nobody is asked: the interface has page faults (NPF)
All messages are written twice. --pass first times the first writes, when the memory of the other process is untouched; later times the second.`,
	Source:   "ours, of NPF'17 §2.2",
	Smoke:    []experiment.Values{{"messages": 3, "size": 5000, "strategy": "fine"}},
	Profiles: []string{"ib-npf"},
	Axes: []experiment.Axis{
		{Name: "strategy", Kind: report.Text, Of: pinning.Kinds(), Help: "how memory becomes ready for the interface; the command's help describes each"},
		{Name: "pass", Kind: report.Text, Of: []string{imbFirst, imbLater}, Default: imbLater, Help: "pass that is timed"},
		{Name: "bound", Kind: report.Size, Least: "4KiB", Most: "64GiB", Multiple: "4KiB", Default: "1GiB", Help: "cache and firehose: most memory that each process pins"},
		{Name: "messages", Kind: report.Count, Least: "1", Most: "256", Default: "16", Help: "that are written"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "1MiB", Default: "4KiB,64KiB,1MiB", Help: "of a message"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if err := hasNPF(p); err != nil {
			return false, err
		}
		return true, nil
	},
	Run: runNPFPinning,
	Columns: append([]report.Column{
		{Name: "state", Kind: report.Text, Help: "runs, or no room: a message, and the pages in which it begins and ends, are more than --bound, so that the strategy can never have it pinned"},
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "of a message, on average: until the memory has been made ready, written, and given back; empty: no room"},
		{Name: "asked", Kind: report.Number, Help: "requests to the other process for a message, on average of all"},
		{Name: "faults", Kind: report.Count, Help: "page faults of interfaces, all of the run"},
		{Name: "pinned", Kind: report.Count, Help: "pages that were pinned by both, all of the run; again counts"},
		{Name: "most_pinned", Kind: report.Size, Help: "the most that both had pinned at a time, together"},
		{Name: "copied", Kind: report.Size, Help: "bytes that were copied to and from bounce buffers, all of the run"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "vs_none", Kind: report.Ratio, Help: "how many times as fast as with page faults: latency with them / latency, at the same profile and other values; empty if that was not measured"},
		Of:     experiment.LatencyColumn, Axis: "strategy", Base: pinning.NoneKind,
	}},
	Slots:    experiment.Always(rnr.EngineSlot),
	Followed: experiment.LatencyColumn,
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(2) + 2*int64(p.Int("messages"))*int64(imbStride(p.Int("size"))) + 2*pinningBuffer
	},
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"strategy"}, X: "bytes", Quiet: []string{"pass", "bound", "messages"},
		Summary: []string{experiment.ProfileColumn, "pass", "bytes", "strategy", "state", experiment.LatencyColumn, "vs_none", "asked", "faults", "pinned", "most_pinned", "copied"},
	},
	Caveats: pinningCaveats,
	Presets: []experiment.Preset{{Name: "first", Short: "the first use of all memory", Source: "ours", Values: map[string]string{"pass": imbFirst}}},
	Notes:   []string{experiment.Compared, "No point of a publication stands beside these: NPF'17 compares copying, a cache and page faults, of MPI (npf-imb, npf-beff)."},
}

const (
	pinningPage   = 4 << 10
	pinningBuffer = 4 << 20 // of bounce buffers
	pinningWords  = 64 << 10
)

// pinningFits reports whether a strategy may pin a whole message within its
// bound, including the pages at both ends.
func pinningFits(p *experiment.Point) bool {
	bounded := p.Text("strategy") == pinning.CacheKind || p.Text("strategy") == pinning.FirehoseKind
	return !bounded || p.Int("bound") >= p.Int("size")+2*pinningPage
}

// pinningCaveats warn of messages that do not fit.
func pinningCaveats(results []*experiment.Result) (lines []string) {
	for _, r := range results {
		if p := r.Point; !pinningFits(p) {
			lines = append(lines, fmt.Sprintf("%s, %v: a message, and the pages in which it begins and ends, take %v, for which --bound %v has no room.", p.Text("strategy"), sim.Size(p.Int("size")), sim.Size(p.Int("size")+2*pinningPage), sim.Size(p.Int("bound"))))
		}
	}
	return lines
}

// pinned is a running measurement.
type pinned struct {
	*experiment.Point
	lib    *rnr.Loaded
	target runtime.View
	took   sim.Time // of all messages of the pass
	stats  [2]pinning.Stats
	asked  int64
}

func runNPFPinning(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	if !pinningFits(p) {
		values := experiment.Values{}
		for _, c := range p.Experiment().Columns {
			values[c.Name] = nil
		}
		values["state"] = "no room"
		return values, nil
	}
	w := &pinned{Point: p}
	faults := 0
	stride := imbStride(p.Int("size"))
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 2), func(c *runtime.Cluster) (err error) {
		if w.lib, err = rnr.Load(c, rnr.Options{Served: func(int, *rnr.Served) { faults++ }}); err != nil {
			return err
		}
		return errors.Join(c.Spawn(0, "initiator", w.initiator), c.Spawn(1, "target", w.owner))
	}, func() error {
		want := memory.Make[byte](p.Int("size"))
		for i := range p.Int("messages") {
			experiment.Pattern(want, p.Seed+uint64(i))
			if err := experiment.SameBytes("message", w.target.Slice(i*stride, i*stride+len(want)).Snapshot(), want); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&stats)
	here, there := &w.stats[0], &w.stats[1]
	values["state"] = "runs"
	values[experiment.LatencyColumn] = w.took / sim.Time(p.Int("messages"))
	values["asked"] = float64(w.asked) / float64(2*p.Int("messages"))
	values["faults"], values["pinned"], values["copied"] = faults, int(here.Pins+there.Pins), int(here.CopiedBytes+there.CopiedBytes)
	values["most_pinned"] = int(here.MostPinned + there.MostPinned)
	return values, nil
}

// own makes a process's strategy for its own memory.
func (w *pinned) own(p *runtime.Proc) (pinning.Strategy, error) {
	o := pinning.Options{Kind: w.Text("strategy"), Bound: uint64(w.Int("bound")), Victims: uint64(w.Int("bound")), Buffer: pinningBuffer, Copy: copies(p)}
	if o.Kind == pinning.RendezvousKind { // it keeps the memory that was asked for
		o.Kind, o.Bound = pinning.CacheKind, 1<<40
	}
	return pinning.New(p.Thread(), p.OS(), o)
}

// others makes the initiator's strategy for memory of the other process.
func (w *pinned) others(c *courier) (pinning.Strategy, error) {
	o := pinning.Options{Kind: pinning.RendezvousKind, Courier: c, Peer: 1}
	switch w.Text("strategy") {
	case pinning.StaticKind, pinning.NoneKind: // memory is ready, or comes by page faults
		o = pinning.Options{Kind: pinning.NoneKind}
	case pinning.FirehoseKind:
		o.Kind, o.Each = pinning.FirehoseKind, pinning.FirehosesEach(uint64(w.Int("bound")), pinningPage, 2)
	}
	return pinning.New(nil, nil, o)
}

// initiator writes the messages. Strategies prepare the memory.
func (w *pinned) initiator(p *runtime.Proc) error {
	conn, err := w.lib.Connect(p, "data")
	if err != nil {
		return err
	}
	c, err := newCourier(w.lib, p)
	if err != nil {
		return err
	}
	n, messages := w.Int("size"), w.Int("messages")
	stride := imbStride(n)
	source := p.Alloc(messages * stride)
	for i := range messages {
		experiment.Pattern(source.Slice(i*stride, i*stride+n).Write(), w.Seed+uint64(i))
	}
	here, err := w.own(p)
	if err != nil {
		return err
	}
	there, err := w.others(c)
	if err != nil {
		return err
	}
	if err := c.awaits(); err != nil {
		return err
	}
	for _, pass := range []string{imbFirst, imbLater} {
		begin := p.Now()
		for i := range messages {
			from := p.Now()
			if err := w.write(p, conn, here, there, source.Addr()+uint64(i*stride), w.target.Addr()+uint64(i*stride)); err != nil {
				return err
			}
			if pass == w.Text("pass") {
				w.Operation(p, from)
			}
		}
		if pass == w.Text("pass") {
			w.took = p.Now() - begin
		}
	}
	w.asked = there.Stats().Moves
	w.stats[0] = here.Stats()
	return errors.Join(there.Close(p.Thread()), here.Close(p.Thread()), c.bye())
}

// write writes a message.
func (w *pinned) write(p *runtime.Proc, conn *rnr.Conn, here, there pinning.Strategy, from, to uint64) error {
	n := uint64(w.Int("size"))
	dst, err := there.Acquire(p.Thread(), pinning.Region{Addr: to, Length: n}, pinning.FromDevice)
	if err != nil {
		return err
	}
	src, err := here.Acquire(p.Thread(), pinning.Region{Addr: from, Length: n}, pinning.ToDevice)
	if err != nil {
		return err
	}
	v, err := p.View(src.Addr, int(n))
	if err != nil {
		return err
	}
	work, err := conn.PostWrite(dst.Addr, v)
	if err != nil {
		return err
	}
	if _, err := work.Wait(); err != nil {
		return err
	}
	return errors.Join(here.Release(p.Thread(), src), there.Release(p.Thread(), dst))
}

// owner has the memory that the other process writes to, and answers its
// requests.
func (w *pinned) owner(p *runtime.Proc) error {
	if _, err := w.lib.Connect(p, "data"); err != nil {
		return err
	}
	c, err := newCourier(w.lib, p)
	if err != nil {
		return err
	}
	w.target = p.Alloc(w.Int("messages") * imbStride(w.Int("size")))
	own, err := w.own(p)
	if err != nil {
		return err
	}
	var all *pinning.Lease
	if w.Text("strategy") == pinning.StaticKind {
		if all, err = own.Acquire(p.Thread(), pinning.Region{Addr: w.target.Addr(), Length: uint64(w.target.Len())}, pinning.Both); err != nil {
			return err
		}
	}
	if err := c.serve(p, pinning.NewExport(own, 0)); err != nil {
		return err
	}
	w.stats[1] = own.Stats()
	if all != nil {
		err = own.Release(p.Thread(), all)
	}
	return errors.Join(err, own.Close(p.Thread()))
}
