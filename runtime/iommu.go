package runtime

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// translate installs the translator between the node's bus and memory: from the
// run or, without one, from the profile.
func (n *Node) translate(cfg *Config) {
	c := n.cluster
	switch spec := &c.profile.SMMU; {
	case cfg.Translator != nil:
		n.bus.Translate(cfg.Translator(n.domain.engine, int(n.rank), &n.bus))
	case spec.On():
		n.iommu = host.NewIOMMU(&host.IOMMUConfig{
			Engine: n.domain.engine, Rank: int(n.rank), Spec: spec, Bus: &n.bus,
			Memory: &n.host.memory, Latency: c.profile.Host.MemoryLatency, Watcher: newSMMUTrace(n),
		})
	}
}

// IOMMU returns the IOMMU between the NIC and memory. nil: the profile has no
// SMMU, or the run has its own translator.
func (n *Node) IOMMU() *host.IOMMU { return n.iommu }

// StaleAccesses returns the device accesses that used a translation after it
// was removed from the tables, and the number of all. They are in the order of
// time, at most 100 of each node. There are none unless smmu.stale is poison.
func (c *Cluster) StaleAccesses() (list []host.StaleAccess, all int) {
	for i := range c.nodes {
		if m := c.nodes[i].iommu; m != nil {
			kept, n := m.Stale()
			list = append(list, kept...)
			all += n
		}
	}
	slices.SortStableFunc(list, func(a, b host.StaleAccess) int { return cmp.Compare(a.At, b.At) })
	return list, all
}

// smmuTrace draws the walks, faults and stalls of a node's SMMU on the timeline.
type smmuTrace struct {
	t     sim.Tracer
	track sim.TrackID
}

// newSMMUTrace returns a nil interface if nothing is drawn.
func newSMMUTrace(n *Node) smmu.Watcher {
	t, track := n.Track("SMMU")
	if t == nil {
		return nil
	}
	return &smmuTrace{t, track}
}

// Track returns the tracer of the run and the node's track of that name; a nil
// tracer: nothing is drawn.
func (n *Node) Track(name string) (sim.Tracer, sim.TrackID) {
	e := n.domain.engine
	if !e.Tracing() {
		return nil, 0
	}
	t := e.Tracer()
	return t, t.Track(nic.TraceGroup, int(n.rank), name)
}

func page(addr uint64) sim.Arg { return sim.Arg{Key: "address", Text: fmt.Sprintf("%#x", addr)} }

// Walked implements smmu.Watcher.
func (s *smmuTrace) Walked(w smmu.WalkInfo) {
	s.t.Span(s.track, "walk", w.From, w.To, w.Flow, page(w.Addr), sim.Arg{Key: "descriptors", Num: int64(w.Reads)}, sim.Arg{Key: "result", Text: w.Result.String()})
}

// Faulted implements smmu.Watcher.
func (s *smmuTrace) Faulted(f smmu.FaultInfo) {
	what := "fault on read"
	if f.Write {
		what = "fault on write"
	}
	s.t.Instant(s.track, what, f.At, f.Flow)
}

// Stalled implements smmu.Watcher.
func (s *smmuTrace) Stalled(t smmu.StallInfo) {
	s.t.Span(s.track, "stalled", t.From, t.To, t.Flow, page(t.Addr))
}

// Stale implements smmu.Watcher.
func (s *smmuTrace) Stale(i smmu.StaleInfo) { s.t.Instant(s.track, "stale translation", i.At, i.Flow) }
