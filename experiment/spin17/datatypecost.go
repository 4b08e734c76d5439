package spin17

import (
	"fmt"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/report"
)

// datatypeColumns are the measured columns of experiments with datatypes, and
// the predictions of the loader's model.
func datatypeColumns() []report.Column {
	return append([]report.Column{
		{Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "size of the message by latency"},
		{Name: "line_share", Kind: report.Share, Help: "throughput / line rate, that of links (fabric.rate)"},
		{Name: "strategy", Kind: report.Text, Help: "how payload handlers find where a packet belongs; empty: none unpack"},
		{Name: "why", Kind: report.Text, Help: "what the loader's model has for each strategy: cycles of a handler, and HPU memory"},
		{Name: "cycles", Kind: report.Number, Help: "that a payload handler took, mean over packets"},
		{Name: "cycles_predicted", Kind: report.Number, Help: "what the loader's model says of them"},
		{Name: "cycles_deviation", Kind: report.Change, Help: "(cycles_predicted - cycles) / cycles"},
		{Name: "hpu_memory", Unit: "bytes", Kind: report.Size, Help: "HPU memory of the type: state, tree, and checkpoints"},
	}, experiment.LineColumns()...)
}

// costed sets the model's values for the strategy that unpacks.
func (v *vectors) costed(p *datatype.Program) {
	c := p.Costs[p.State.Strategy]
	v.More["strategy"], v.More["why"], v.More["hpu_memory"] = datatype.StrategyNames[c.Strategy], p.Why, c.Memory
	if v.sends {
		return // counts mix handlers that pack and unpack, and packets are messages
	}
	v.More["cycles_predicted"] = c.Cycles
}

// costs sets the measured values beside the model, after the run.
func (v *vectors) costs() error {
	for _, c := range datatypeColumns() {
		if _, given := v.More[c.Name]; !given {
			v.More[c.Name] = nil
		}
	}
	v.More["line_share"] = v.More["throughput"].(float64) * v.Profile.Fabric.Rate.Time(1<<30).Seconds()
	predicted, modelled := v.More["cycles_predicted"].(float64)
	stats := v.Cluster.Stats()
	if !modelled || stats.HandlerCycles == 0 {
		return nil
	}
	cycles := float64(stats.HandlerCycles) / float64(stats.HandlerCalls)
	v.More["cycles"], v.More["cycles_deviation"] = cycles, (predicted-cycles)/cycles
	v.AtLineRate(v.Cluster, v.More, nil)
	return nil
}

// behindLineRate describes each row where handlers did not keep up with line
// rate: by how much, and Little's law. It leaves out messages with no more
// packets than HPUs, because each packet finds an idle HPU.
func behindLineRate(results []*experiment.Result) (lines []string) {
	for _, r := range results {
		needed, given := r.Values["hpus_needed"].(float64)
		hpus := r.Point.Profile.HPU.Cores
		if !given || r.Float("line_share") >= experiment.LineRate || needed <= float64(hpus) || r.Values["handler_calls"].(int64) <= int64(hpus) {
			continue
		}
		what := r.Point.Text("mode")
		if r.Point.Experiment().Axis("block") != nil {
			what += fmt.Sprintf(", %d B in blocks of %d B", r.Point.Int("size"), r.Point.Int("block"))
		} else {
			what = applicationOf(r) + ", " + what
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %.1f%% of the line rate; a handler takes %.0f cycles, so that %.1f HPUs would keep up, and %d reach %.1f%% (Little's law).",
			r.Point.Profile.Name, what, 100*r.Float("line_share"), r.Float("cycles"), needed, hpus, 100*r.Float("littles_law_share")))
	}
	return lines
}

// fitsHPUs returns an error if handlers cannot pack or unpack an element of a
// type on the device of a point, in the mode of the point.
func fitsHPUs(p *experiment.Point, t *mpi.Type) error {
	if _, called := mpiForms[p.Text("mode")]; called || p.Text("mode") == experiment.ModeRDMA {
		return nil
	}
	v := &vectors{Bench: &experiment.Bench{Point: p, Mode: p.Text("mode")}, of: t, sends: p.Text("side") != typeDestination, receives: p.Text("side") != typeSource}
	var err error
	if v.sends {
		_, err = v.packer()
	}
	if v.receives && err == nil {
		_, err = v.unpacker()
	}
	if err != nil {
		return fmt.Errorf("profile %s: hpu.max_hpu_memory: %d B: %w", p.Profile.Origin.Name, p.Profile.HPU.MaxHPUMemory, err)
	}
	return nil
}

// loaderAnswer describes the choice of the loader for the shortest and longest
// blocks.
func loaderAnswer(results []*experiment.Result) (lines []string) {
	type ends struct{ short, long *experiment.Result }
	of := map[string]*ends{}
	var profiles []string
	for _, r := range results {
		if _, chosen := r.Values["why"].(string); !chosen || r.Point.Text("mode") != experiment.ModeSpin {
			continue
		}
		e := of[r.Point.Profile.Name]
		if e == nil {
			e = &ends{r, r}
			of[r.Point.Profile.Name] = e
			profiles = append(profiles, r.Point.Profile.Name)
		}
		if r.Point.Int("block") < e.short.Point.Int("block") {
			e.short = r
		}
		if r.Point.Int("block") > e.long.Point.Int("block") {
			e.long = r
		}
	}
	for _, name := range profiles {
		e := of[name]
		lines = append(lines, fmt.Sprintf("%s, %d B in blocks of %d B: %s.", name, e.short.Point.Int("size"), e.short.Point.Int("block"), e.short.Values["why"]))
		if e.long != e.short {
			lines = append(lines, fmt.Sprintf("%s, %d B in blocks of %d B: %s.", name, e.long.Point.Int("size"), e.long.Point.Int("block"), e.long.Values["why"]))
		}
	}
	return lines
}
