package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
)

// TableNames are the possible tables of a result, in the order of the result.
var TableNames = []string{"latency", "breakdown", "stats", "state", "memory", "events", "log"}

// Format returns the format of the scenario's tables.
func (p *Plan) Format() report.Format {
	if f := p.output.Format; f != "" {
		return report.Format(f)
	}
	return report.TextFormat
}

// TraceFile returns the file for the timeline, "" if the scenario has none. It
// must be below one of the folders, because somebody else may have written the
// scenario.
func (p *Plan) TraceFile(folders []string) (string, error) {
	name := p.output.Trace
	if name == "" {
		return "", nil
	}
	err := input.Below(folders, name)
	if outside := (*input.OutsideError)(nil); errors.As(err, &outside) {
		err = fmt.Errorf("%w, or below a folder of spinsim run --allow-output", err)
	}
	if err != nil {
		return "", p.at("output.trace", err)
	}
	return name, nil
}

// Tables lists the tables that the scenario shows. The log of handlers is added
// to them.
func (p *Plan) Tables() []string {
	if p.only != "" {
		return []string{p.only}
	}
	o := &p.output
	var list []string
	add := func(name string, wanted bool) {
		if wanted {
			list = append(list, name)
		}
	}
	add("latency", p.measures())
	add("breakdown", p.options.Breakdown)
	add("state", len(o.State) > 0)
	add("memory", len(o.Memory) > 0)
	add("events", o.Events.IsSet())
	if o.Stats.IsSet() || len(list) == 0 || list[0] == "breakdown" && len(list) == 1 {
		list = append(list, "stats")
	}
	return list
}

func (p *Plan) measures() bool {
	return slices.ContainsFunc(p.programs, func(g *programPlan) bool { return len(g.measures) > 0 })
}

// Show makes one table the only one. If the scenario does not select it, it
// holds everything. A range of host memory and a measured interval must come
// from the scenario.
func (p *Plan) Show(table string) error {
	o := &p.output
	switch table {
	case "latency":
		if !p.measures() {
			return errors.New("the scenario measures nothing")
		}
	case "breakdown":
		p.options.Breakdown = true
	case "stats", "log":
	case "state":
		if len(o.State) > 0 {
			break
		}
		for _, e := range p.entries {
			if e.handlers != nil {
				o.State = append(o.State, StateOut{Of: e.Name})
			}
		}
	case "memory":
		if len(o.Memory) == 0 {
			return errors.New("the scenario names no memory in output.memory")
		}
	case "events":
		if !o.Events.IsSet() {
			for i := range portals.EventNames {
				o.Events.chosen[i] = true
			}
		}
	default:
		return fmt.Errorf("no table %q, expected one of %s%s", table, strings.Join(TableNames, ", "), fields.DidYouMean(table, TableNames))
	}
	p.only = table
	return nil
}

// CheckFormat reports a format that cannot hold the scenario's tables. CSV,
// NDJSON and Parquet hold one table, so CheckFormat selects the scenario's only
// table.
func (p *Plan) CheckFormat(f report.Format) error {
	if f != report.CSVFormat && f != report.NDJSONFormat && f != report.ParquetFormat {
		return nil
	}
	tables := p.Tables()
	if len(tables) > 1 {
		return fmt.Errorf("%s holds one table, but the scenario shows %s: choose one with --table", f, strings.Join(tables, ", "))
	}
	return p.Show(tables[0])
}
