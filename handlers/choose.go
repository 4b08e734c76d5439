package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
)

// Kind is what a handler handles.
type Kind = manifest.Kind

// The kinds of handlers.
const (
	Header     = manifest.Header     // the header of a message
	Payload    = manifest.Payload    // a packet
	Completion = manifest.Completion // the end of a message
)

// Exports are the names of the exports that handle header, packets and end of a
// message; "": none.
type Exports [3]string

// String lists the handlers that are set.
func (e Exports) String() string {
	return visible.Line(strings.Join(slices.DeleteFunc(slices.Clone(e[:]), func(name string) bool { return name == "" }), ", "))
}

// OfSet returns the handlers of a set of a module's manifest.
func OfSet(m *hpu.Module, set string) (Exports, error) {
	if m.Manifest() == nil {
		return Exports{}, fmt.Errorf("module %s has no manifest, and so no set %s", m.Name(), visible.Line(set))
	}
	e, err := m.Manifest().OfSet(set)
	if err != nil {
		err = fmt.Errorf("module %s: %w", m.Name(), err)
	}
	return e, err
}

// None as the name of an export means no handler, while an empty name asks for
// a choice.
const None = "-"

// choose returns the exports of a module for an entry. Given names must be
// handlers of their kind. If all three are empty, each kind gets the only
// handler that the manifest lists for it. If the manifest lists several or
// none, the kind gets the export with the kind's name. If nothing can be
// chosen, the error lists the exports.
func choose(m *hpu.Module, wanted Exports) (chosen Exports, err error) {
	if wanted != (Exports{}) {
		var errs []error
		for i, kind := range manifest.Kinds() {
			if wanted[i] == "" || wanted[i] == None {
				continue
			}
			chosen[i] = wanted[i]
			errs = append(errs, Check(m, kind, wanted[i]))
		}
		return chosen, errors.Join(errs...)
	}
	var open []string
	for i, kind := range manifest.Kinds() {
		if chosen[i], err = only(m, kind); err != nil {
			open = append(open, err.Error())
		}
	}
	switch {
	case open != nil:
		return Exports{}, fmt.Errorf("no handler is given: module %s has %s", m.Name(), strings.Join(open, ", and "))
	case chosen == (Exports{}):
		_, err := m.Export(string(Payload))
		return chosen, fmt.Errorf("no handler is given: %w", err)
	}
	return chosen, nil
}

// Check returns why an export cannot be a handler of a kind.
func Check(m *hpu.Module, kind Kind, export string) error {
	if _, err := m.Export(export); err != nil {
		return err
	}
	if is := kindOf(m, export); is != "" && is != kind {
		return fmt.Errorf("module %s: %s is a %s handler, expected a %s handler", m.Name(), visible.Line(export), is, kind)
	}
	return nil
}

// kindOf returns the kind of an export in the manifest, or "".
func kindOf(m *hpu.Module, export string) Kind {
	if m.Manifest() == nil {
		return ""
	}
	if h := m.Manifest().Handler(export); h != nil {
		return h.Kind
	}
	return ""
}

// Named returns the handler that has its kind as name, or "".
func Named(m *hpu.Module, kind Kind) string {
	name := string(kind)
	if _, err := m.Export(name); err != nil {
		return ""
	}
	if is := kindOf(m, name); is != "" && is != kind {
		return ""
	}
	return name
}

// only returns the default handler for a kind if no handler at all is named, or
// "". Its error lists several candidates.
func only(m *hpu.Module, kind Kind) (export string, err error) {
	if name := Named(m, kind); name != "" {
		return name, nil
	}
	if m.Manifest() == nil {
		return "", nil
	}
	switch all := m.Manifest().OfKind(kind); len(all) {
	case 0:
		return "", nil
	case 1:
		return all[0], nil
	default:
		return "", fmt.Errorf("%d %s handlers, %s: name one", len(all), kind, visible.Line(strings.Join(all, ", ")))
	}
}

// stateOf returns the layout of the state that handlers of an entry share, or
// nil if the module does not describe it.
func stateOf(m *hpu.Module, of Exports) (*State, error) {
	if m.Manifest() == nil {
		return nil, nil
	}
	var known []*manifest.Handler
	for _, export := range of {
		if h := m.Manifest().Handler(export); h != nil && h.State != "" {
			known = append(known, h)
		}
	}
	if len(known) == 0 {
		return nil, nil
	}
	if i := slices.IndexFunc(known, func(h *manifest.Handler) bool { return h.State != known[0].State }); i >= 0 {
		return nil, fmt.Errorf("module %s: the state of %s is %s, that of %s is %s: they cannot be handlers of one entry",
			m.Name(), known[0].Export, known[0].State, known[i].Export, known[i].State)
	}
	return m.Manifest().State(known[0].State), nil
}
