package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// HandlersHelp describes the requirements on a user's module. "": no module can
// replace the experiment's own.
func (e *Experiment) HandlersHelp() string {
	if !e.Replaceable {
		return ""
	}
	var b strings.Builder
	b.WriteString("Your own handler module (--handler) can replace the built-in one")
	if len(e.Roles) == 0 {
		b.WriteString(": its handlers are the exports header,\npayload and completion, or the only ones of their kinds in its manifest. Its manifest has the initial state.")
		return b.String()
	}
	b.WriteString(". It needs handlers with one of these names, or\nthe only one of its kind in its manifest (spinsim handler inspect):")
	for i := range e.Roles {
		r := &e.Roles[i]
		fmt.Fprintf(&b, "\n  %v: ", r)
		var needed, more []string
		for k, kind := range manifest.Kinds() {
			names := r.called(k)
			text := fmt.Sprintf("%s (%s)", kind, strings.Join(names, ", "))
			if slices.Contains(r.Needs, kind) {
				needed = append(needed, text)
			} else if names != nil {
				more = append(more, text)
			}
		}
		b.WriteString(strings.Join(needed, ", "))
		if len(more) > 0 {
			b.WriteString("; optional: " + strings.Join(more, ", "))
		}
	}
	e.stateHelp(&b)
	return b.String()
}

// stateHelp lists the numbers of the state that the experiment sets, with their
// help texts in the experiment's own module.
func (e *Experiment) stateHelp(b *strings.Builder) {
	var sets, may []string
	for i := range e.Roles {
		sets, may = append(sets, e.Roles[i].Sets...), append(may, e.Roles[i].May...)
	}
	state := e.ownState()
	for _, x := range []struct {
		intro string
		names []string
	}{{"\nThe benchmark sets these fields of its state:", sets}, {"\nIt also sets these fields if they exist:", may}} {
		for i, name := range x.names {
			if slices.Contains(x.names[:i], name) {
				continue
			}
			if i == 0 {
				b.WriteString(x.intro)
			}
			fmt.Fprintf(b, "\n  %s", name)
			if state == nil {
				continue
			}
			if n, err := state.Lookup(name); err == nil {
				fmt.Fprintf(b, ", %s", n.Field.Type)
				if n.Field.Unit != "" {
					b.WriteString(" (" + n.Field.Unit + ")")
				}
				if n.Field.Description != "" {
					b.WriteString(": " + n.Field.Description)
				}
			}
		}
	}
	if state != nil {
		b.WriteString("\nA module without a description of its state gets the built-in module's state.")
	}
}

// ownState returns the state of the experiment's own module at the first
// combination of values where a module runs. nil: it does not describe its
// state.
func (e *Experiment) ownState() (state *manifest.State) {
	s, err := New(e)
	if err != nil {
		return nil
	}
	found := errors.New("found")
	_ = combinations(s.grid.values, func(values []any) error {
		p := &Point{experiment: e, values: values}
		list := e.Modules(p)
		if len(list) == 0 || list[0].Manifest() == nil {
			return nil
		}
		m := list[0].Manifest()
		for _, export := range p.role().Exports {
			if h := m.Handler(export); h != nil && h.State != "" {
				state = m.State(h.State)
			}
		}
		return found
	})
	return state
}
