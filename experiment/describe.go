package experiment

import (
	"slices"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Description is what a program needs to offer an experiment to its users. It is
// made for encoding/json.
type Description struct {
	Name     string          `json:"name"`
	Short    string          `json:"short"`
	Source   string          `json:"source,omitempty"`
	Profiles []string        `json:"profiles"` // the default devices
	Axes     []axisOf        `json:"axes"`     // those with several values
	Presets  []presetOf      `json:"presets"`
	Columns  []report.Column `json:"columns"` // of every table, also --breakdown and --waterfall
	Tables   []string        `json:"tables"`  // beside the rows of points
	Slots    []slotOf        `json:"slots"`
}

type axisOf struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Help    string   `json:"help"`
	Default string   `json:"default"` // a list, as users write it
	Of      []string `json:"of,omitempty"`
	Least   string   `json:"least,omitempty"`
	Most    string   `json:"most,omitempty"`
}

type presetOf struct {
	Name   string `json:"name"`
	Short  string `json:"short"`
	Source string `json:"source,omitempty"`
}

type slotOf struct {
	Name     string   `json:"name"`
	Short    string   `json:"short"`
	Library  string   `json:"library"` // whose module runs there by default
	Handlers []string `json:"handlers"`
	Optional []string `json:"optional,omitempty"`
	Contract string   `json:"contract"` // as --slots prints it
}

// Describe describes an experiment. Slices are not nil: their JSON is a list.
func Describe(e *Experiment) *Description {
	d := &Description{
		Name: e.Name, Short: e.Short, Source: e.Source, Profiles: append([]string{}, e.DefaultProfiles()...),
		Axes: []axisOf{}, Presets: []presetOf{}, Tables: []string{}, Slots: []slotOf{},
	}
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() {
			d.Axes = append(d.Axes, axisOf{a.Name, a.Kind.String(), a.Help, a.DefaultList(), a.Of, a.Least, a.Most})
		}
	}
	for _, p := range e.Presets {
		d.Presets = append(d.Presets, presetOf{p.Name, p.Short, p.Source})
	}
	for _, slot := range slotsOf(e) {
		d.Slots = append(d.Slots, slotOf{slot.Name, slot.Short, slot.Library.Name, slot.Handlers, slot.Optional, slot.Text()})
	}
	all := slices.Concat(e.TableColumns(), publishedOf(e), e.BreakdownColumns(), e.WaterfallColumns(), provenance.Columns())
	for i := range e.Details {
		d.Tables = append(d.Tables, e.Details[i].Name)
		all = append(all, e.Details[i].Columns...)
	}
	for _, c := range all {
		if !slices.ContainsFunc(d.Columns, func(o report.Column) bool { return o.Key() == c.Key() }) {
			d.Columns = append(d.Columns, c)
		}
	}
	return d
}

// publishedOf are the columns beside those with published numbers.
func publishedOf(e *Experiment) (list []report.Column) {
	published := e.published()
	for _, c := range e.TableColumns() {
		if slices.ContainsFunc(published, func(p report.Published) bool { return p.Column == c.Name }) {
			list = append(list, report.PublishedColumns(c)...)
		}
	}
	if list != nil {
		all := publishedColumns()
		list = append(list, all[len(all)-1])
	}
	return list
}
