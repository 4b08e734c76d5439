package handlers

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// Rules are the slot's further rules in lines behind the error of a module,
// which may have broken one.
func (s *Slot) Rules(module string) string {
	return fmt.Sprintf("\n%s runs in slot %s, whose rules are:\n  %s", module, s.Name, strings.Join(s.Expects, "\n  "))
}

// Text is the contract for people: handlers, state, needs and rules.
func (s *Slot) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s.", s.Name, s.Short)
	if s.Free {
		b.WriteString(" By default no module runs.\n")
	} else {
		fmt.Fprintf(&b, " By default library %s.\n", s.Library.Name)
	}
	m := s.Library.Manifest()
	if m == nil {
		m = &manifest.Manifest{}
	}
	for _, name := range s.Handlers {
		h := m.Handler(name)
		if h == nil {
			h = &manifest.Handler{}
		}
		fmt.Fprintf(&b, "  %-10s  %s", s.Kind(name), name)
		for _, o := range s.Optional {
			if o == name {
				b.WriteString(", optional")
			}
		}
		if h.Description != "" {
			b.WriteString(": " + strings.TrimSuffix(h.Description, "."))
		}
		b.WriteString("\n")
	}
	if state := s.State(); state != nil {
		s.stateText(&b, state)
	}
	if n, err := m.NeedsOf(s.Exports()); err == nil {
		needsText(&b, &n)
	}
	for _, rule := range s.Expects {
		b.WriteString("  rule        " + rule + "\n")
	}
	return b.String()
}

func (s *Slot) stateText(b *strings.Builder, state *State) {
	if s.Fields == nil {
		fmt.Fprintf(b, "  state       begins with the %d B of %s: spinsim handler inspect %s\n", state.Size, state.Name, s.Library.Name)
		return
	}
	for _, name := range append(append([]string{}, s.Fields...), s.May...) {
		n, err := state.Lookup(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(b, "  state       %s, %s", name, n.Field.Type)
		if n.Field.Unit != "" {
			b.WriteString(" (" + n.Field.Unit + ")")
		}
		if n.Field.Description != "" {
			b.WriteString(": " + n.Field.Description)
		}
		for _, may := range s.May {
			if may == name {
				b.WriteString("; optional")
			}
		}
		b.WriteString("\n")
	}
}

func needsText(b *strings.Builder, n *manifest.Needs) {
	if n.UserHeader > 0 {
		fmt.Fprintf(b, "  messages    have a user header of %d B\n", n.UserHeader)
	}
	if len(n.EntryOptions) > 0 {
		fmt.Fprintf(b, "  entry       with %s\n", strings.Join(n.EntryOptions, ", "))
	}
}
