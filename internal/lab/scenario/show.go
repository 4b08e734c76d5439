package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/portals"
)

// tableNames are the names of tables.
func tableNames() (names []string) {
	for _, t := range tables() {
		names = append(names, t.Name)
	}
	return names
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

// shown lists the tables that the scenario shows.
func (p *Plan) shown() []string {
	if p.only != "" {
		return []string{p.only}
	}
	return append(p.output.tables(len(p.spec.measured()) > 0, p.options.Breakdown), "log")
}

// tables lists the tables that are shown. measures: programs measure intervals.
func (o *Output) tables(measures, breakdown bool) (list []string) {
	add := func(name string, wanted bool) {
		if wanted {
			list = append(list, name)
		}
	}
	add("latency", measures)
	add("breakdown", breakdown)
	add("state", len(o.State) > 0)
	add("memory", len(o.Memory) > 0)
	add("events", o.Events.IsSet())
	if o.Stats.IsSet() || len(list) == 0 || list[0] == "breakdown" && len(list) == 1 {
		list = append(list, "stats")
	}
	return list
}

// show makes one table the only one. If the scenario does not select it, it
// holds everything. A range of host memory and a measured interval must come
// from the scenario.
func (p *Plan) show(table string) error {
	o := &p.output
	switch table {
	case "latency":
		if len(p.spec.measured()) == 0 {
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
		return fmt.Errorf("no table %q, expected one of %s%s", table, strings.Join(tableNames(), ", "), fields.DidYouMean(table, tableNames()))
	}
	p.only = table
	return nil
}
