package lab

import (
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Needs is what a point takes and reads.
type Needs struct {
	Memory  int64 // of this machine, bytes
	Modules []*handlers.Library
	Inputs  []provenance.Input
}

// Points finds the needs of points, and keeps them: a plan of each of many would
// take too much memory.
type Points struct {
	Of func(*experiment.Point) (*Needs, error)

	known sync.Map // *Needs by point
}

func (k *Points) of(p *experiment.Point) (*Needs, error) {
	if n, ok := k.known.Load(p); ok {
		return n.(*Needs), nil
	}
	n, err := k.Of(p)
	if err != nil {
		return &Needs{}, err
	}
	k.known.Store(p, n)
	return n, nil
}

// Fill gives an experiment its points, and what all runs have: the tables of
// Details behind its own, and their names.
func (k *Points) Fill(e *experiment.Experiment) {
	e.Failures, e.Warnings, e.Cut = FailuresTable, WarningsTable, CutColumn
	e.Details = append(e.Details, Details()...)
	e.Points = func(p *experiment.Point) (bool, error) {
		_, err := k.of(p)
		return true, err
	}
	// without needs it is no point, but one with another value
	needs := func(p *experiment.Point) *Needs { n, _ := k.of(p); return n }
	e.Memory = func(p *experiment.Point) int64 { return needs(p).Memory }
	e.Modules = func(p *experiment.Point) []*handlers.Library { return needs(p).Modules }
	e.Inputs = func(p *experiment.Point) []provenance.Input { return needs(p).Inputs }
}

// Parameters adds axes to an experiment, whose columns are not those of others.
func Parameters(e *experiment.Experiment, names []string, axis func(name string) (value, help string)) {
	taken := append(e.TableColumns(), provenance.Columns()...)
	for i := range e.Details {
		taken = append(taken, e.Details[i].Columns...)
	}
	for _, name := range names {
		value, help := axis(name)
		e.Axes = append(e.Axes, experiment.Parameter(name, value, help, taken))
		taken = append(taken, report.Column{Name: name}, report.Column{Name: name + "_ns"})
	}
}
