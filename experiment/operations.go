package experiment

import (
	"slices"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// operation is one that was measured: a program of a node has called at from and gone on at to.
type operation struct {
	rank     int
	process  string // "": any program of the node
	from, to sim.Time
	parts    *breakdown.Times // of it, if they were found before its record was dropped
}

// operations are those of a point, whose mean is the value of Experiment.Followed.
type operations struct {
	list  []operation
	share int // so many values are in one, see Point.shares; 0: 1
}

func (o *operations) each() sim.Time { return sim.Time(max(o.share, 1)) }

// times are those of the operations as the value has them, sorted.
func (o *operations) times() []sim.Time {
	list := make([]sim.Time, len(o.list))
	for i, one := range o.list {
		list[i] = (one.to - one.from) / o.each()
	}
	slices.Sort(list)
	return list
}

// Operations are those that Run has noted.
func (p *Point) Operations() []operation {
	if p.done == nil {
		return nil
	}
	return p.done.list
}

// Operation notes that an operation of a program, which began at a time, has just ended: Run calls it for each that it measures, for --breakdown and --samples.
func (p *Point) Operation(proc *runtime.Proc, from sim.Time) {
	p.operation(proc.Rank(), proc.Name(), from, proc.Now())
}

// operation is Operation of a program that has ended it at a time.
func (p *Point) operation(rank int, process string, from, to sim.Time) {
	if p.done != nil {
		p.done.list = append(p.done.list, operation{rank: rank, process: process, from: from, to: to})
	}
}

// only has the operations be these, of a program that took longer than those that were noted.
func (p *Point) only(list []operation) {
	if p.done != nil {
		p.done.list = list
	}
}

// during has the operations be those of a list that are of a time.
func (p *Point) during(list []operation, of func(o *operation) bool) {
	var some []operation
	for i := range list {
		if of(&list[i]) {
			some = append(some, list[i])
		}
	}
	p.only(some)
}

// last notes an operation that several programs take part in, whose end is that of the last of them.
func (p *Point) last(proc *runtime.Proc, from sim.Time) {
	if p.done == nil {
		return
	}
	if one := (operation{rank: proc.Rank(), process: proc.Name(), from: from, to: proc.Now()}); len(p.done.list) == 0 {
		p.done.list = append(p.done.list, one)
	} else if one.to > p.done.list[0].to {
		p.done.list[0] = one
	}
}

// shares says that so many values are in an operation: 2 if it is a round trip and the value half of one.
func (p *Point) shares(n int) {
	if p.done != nil {
		p.done.share = n
	}
}

// Percentile is the nearest rank: the least of sorted times that so many percent of them, 1 to 100, are not above. Without any it is 0.
func Percentile(sorted []sim.Time, percent int) sim.Time {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// SampleColumns are those of the table of Samples behind the columns of the axes.
func SampleColumns() []report.Column {
	return []report.Column{
		{Name: "operation", Kind: report.Count, Help: "its number among those of the point, from 1"},
		{Name: "rank", Kind: report.Count, Help: "the node whose program has seen its end"},
		{Name: "program", Kind: report.Text, Help: "that program"},
		{Name: "begin", Unit: "ns", Kind: report.Duration, Help: "when it began, since the start of the run"},
		{Name: "time", Unit: "ns", Kind: report.Duration, Help: "what it took; half a round trip where the experiment measures that"},
	}
}

// Samples are all operations of results, one by one.
func (s *Sweep) Samples(results []*Result) *report.Table {
	e := s.Experiment
	columns := []report.Column{
		{Name: nameColumn, Help: "the experiment: what was measured; its manual says how"},
		{Name: profileColumn, Help: "the device and network simulated"},
	}
	for i := range e.Axes {
		columns = append(columns, e.Axes[i].column())
	}
	t := report.New(append(columns, SampleColumns()...)...)
	t.Title = s.title() + ", every operation"
	record := provenance.Record{}
	if s.record != nil {
		record = *s.record
	}
	record.Command = samplesOf + record.Command // which makes it again, but not as its result
	t.Origin = &record
	for _, r := range results {
		p := r.Point
		if p.done == nil {
			continue
		}
		for i, o := range p.done.list {
			row := append([]any{e.Name, p.Profile.Name}, p.values...)
			t.Add(append(row, i+1, o.rank, o.process, o.from, (o.to-o.from)/p.done.each())...)
		}
	}
	return t
}

// samplesOf begins what a table of samples says of the command that made it.
const samplesOf = "samples of "
