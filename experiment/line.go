package experiment

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// LineColumns show whether handlers keep up with line rate. AtLineRate sets
// them.
func LineColumns() []report.Column {
	return []report.Column{
		{
			Name: "hpus_needed", Kind: report.Number,
			Help: "Little's law: HPUs with which handlers would keep up with line rate, handler time x arrival rate, at the node that needs the most; it has hpu.cores. The handler time is what it computes or, if that is more, all from its beginning to its end by hpu.contexts, as many as share an HPU. At line rate the link of the node is never idle, in the direction that has more to carry; empty without handlers",
		},
		{Name: "littles_law_share", Kind: report.Share, Help: "share of the line rate that the HPUs there are can reach by that, at most all of it"},
	}
}

// HPUsNeeded is Little's law: the mean number of busy HPUs if the node did all
// its work in the time line.
func (p *Point) HPUsNeeded(s *runtime.Stats, line sim.Time) float64 {
	computing := p.Profile.HPU.Clock.Cycles(s.HandlerCycles)
	inside := float64(s.HandlerTime) / float64(p.Profile.HPU.Contexts)
	return max(float64(computing), inside) / float64(line)
}

// AtLineRate sets LineColumns for the node whose handlers need the most HPUs.
// line returns the time that a node takes at line rate; nil: as long as its
// link needs.
func (p *Point) AtLineRate(c *runtime.Cluster, values Values, line func(node int) sim.Time) {
	values["hpus_needed"], values["littles_law_share"] = nil, nil
	if line == nil {
		line = linkTimes(c)
	}
	most := 0.0
	for i := range c.Nodes() {
		s := c.Node(i).Stats()
		if s.HandlerCalls == 0 {
			continue
		}
		if t := line(i); t > 0 {
			most = max(most, p.HPUsNeeded(&s, t))
		}
	}
	if most > 0 {
		values["hpus_needed"], values["littles_law_share"] = most, min(1, float64(p.Profile.HPU.Cores)/most)
	}
}

// linkTimes returns the least time that the link of a node needs for its
// packets, in the slower direction.
func linkTimes(c *runtime.Cluster) func(node int) sim.Time {
	f, nodes := c.Fabric(), c.Nodes()
	carried := map[string]fabric.LinkStats{}
	for _, l := range f.Links() {
		carried[l.Name] = l
	}
	of := func(hop fabric.Hop) sim.Time {
		l := carried[hop.Link]
		return max(sim.Time(l.Packets)*c.Profile().Fabric.Gap, l.Busy)
	}
	return func(node int) sim.Time {
		other := (node + 1) % nodes
		out, into := f.Path(node, other), f.Path(other, node)
		if len(out) == 0 || len(into) == 0 {
			return 0
		}
		return max(of(out[0]), of(into[len(into)-1]))
	}
}

// LineRate is the least share of the line rate that counts as line rate.
const LineRate = 0.95

// KeepingUp is a View.Answer. For each profile it writes that handlers keep up
// with line rate in all rows, or names the row that is furthest from it.
func KeepingUp(results []*Result) (lines []string) {
	worst := map[string]*Result{}
	var profiles []string
	for _, r := range results {
		if _, given := r.Values["hpus_needed"].(float64); !given {
			continue
		}
		name := r.Point.Profile.Name
		if worst[name] == nil {
			profiles = append(profiles, name)
		}
		if worst[name] == nil || r.Float("hpus_needed") > worst[name].Float("hpus_needed") {
			worst[name] = r
		}
	}
	slices.Sort(profiles)
	for _, name := range profiles {
		r := worst[name]
		hpus, needed := r.Point.Profile.HPU.Cores, r.Float("hpus_needed")
		if needed <= float64(hpus) {
			lines = append(lines, fmt.Sprintf("%s: handlers keep up with line rate; they need up to %.1f HPUs for it, of %d (Little's law).", name, needed, hpus))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: handlers need up to %.1f HPUs to keep up with line rate; %d reach %.1f%% of it (Little's law).", name, needed, hpus, 100*r.Float("littles_law_share")))
	}
	return lines
}
