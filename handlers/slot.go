package handlers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/runtime"
)

// Slot is a named place that takes a handler module: in a library, or in an
// experiment. The library's module runs there, unless a cluster has another one
// for the slot (runtime.Config.Slots). The fields are the contract between that
// module and the host program that installs it. It is read-only.
type Slot struct {
	Name  string // the library and the place: "rdma.engine"
	Short string // what runs there, in part of a line
	// Handlers are the exports of the library's module that run in the slot. Their
	// kinds are in its manifest. A module needs exports of the same names. Where
	// the slot has one handler of a kind, the kind is a name for it, too.
	Handlers []string
	// Optional are the exports of Handlers that a module may lack.
	Optional []string
	// More: handlers of other kinds run, too, if a module has them.
	More bool
	// Fields are the numbers of the state that the host uses, by their names: a
	// module must have them, wherever it keeps them. nil: the host uses the bytes
	// of the whole state, so a module has every number of the library's state, at
	// the same offset.
	Fields []string
	May    []string // numbers that the host sets if the module has them
	// Free: without a module of the user's no module runs. The simulator does it
	// itself, on no pool of processors, and the library's module does the same.
	Free bool
	// Kernel: the handlers run in the kernel of a node (runtime.KernelHandlers).
	Kernel bool
	// Expects are the further rules, a sentence each: which messages come, and what
	// the host waits for.
	Expects []string

	Library *Library
}

// Slot adds a slot to a library and returns it. s.Name is the place. It panics
// if the name is taken, which is a programmer's mistake.
func (l *Library) Slot(s Slot) *Slot {
	s.Library, s.Name = l, l.Name+"."+s.Name
	if slices.ContainsFunc(l.slots, func(o *Slot) bool { return o.Name == s.Name }) {
		panic("handlers: there are two slots " + s.Name)
	}
	l.slots = append(l.slots, &s)
	return &s
}

// Slots lists the slots of the library.
func (l *Library) Slots() []*Slot { return l.slots }

// Slots lists the slots of all built-in libraries, in alphabetical order of
// these.
func Slots() (list []*Slot) {
	for _, l := range builtins {
		list = append(list, l.slots...)
	}
	return list
}

// SlotNamed returns the slot of a list with a name.
func SlotNamed(list []*Slot, name string) (*Slot, error) {
	var names []string
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("no slot %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Load makes the slot's module ready for the processes of a cluster: the
// cluster's own for this slot, or the library's. Plan and Install of the module
// take the names of the library's handlers.
func (s *Slot) Load(c *runtime.Cluster) (*Module, error) {
	own, err := s.Library.Load(c)
	if err != nil {
		return nil, err
	}
	m, err := c.LoadSlot(s.Name, s.Library.Served())
	if m == nil || err != nil {
		return own, err
	}
	if err := s.check(own.Module, m); err != nil {
		return nil, err
	}
	return &Module{Module: m, Library: s.Library, slot: s, own: own.Module}, nil
}

// Check returns why a module cannot run in the slot of a device.
func (s *Slot) Check(l *Library, device *hpu.Spec) error {
	own, err := hpu.Load(s.Library.Name, s.Library.Wasm, device)
	if err != nil {
		return err
	}
	m, err := hpu.Load(l.Name, l.Wasm, device)
	if err != nil {
		return err
	}
	return s.check(own, m)
}

func (s *Slot) check(own, m *hpu.Module) error {
	var errs []error
	for _, h := range s.Handlers {
		found := s.find(m, h)
		if found == "" && !slices.Contains(s.Optional, h) {
			errs = append(errs, fmt.Errorf("no %s handler, expected an export %s%s; it has %s", s.Kind(h), strings.Join(s.called(h), " or "), s.orOnly(h), exportsOf(m)))
		}
	}
	if errs == nil && !slices.ContainsFunc(s.Handlers, func(h string) bool { return s.find(m, h) != "" }) {
		errs = append(errs, fmt.Errorf("no handler, expected an export %s; it has %s", strings.Join(s.Handlers, ", "), exportsOf(m)))
	}
	if errs == nil {
		errs = append(errs, s.checkStates(own, m))
	}
	if s.Kernel && errors.Join(errs...) == nil {
		errs = append(errs, s.checkKernel(own, m))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("module %s cannot run in slot %s: %w", m.Name(), s.Name, err)
	}
	return nil
}

// Exports are Handlers by their kinds, for a slot with at most one of each.
func (s *Slot) Exports() (e Exports) {
	for i, kind := range manifest.Kinds() {
		for _, name := range s.Handlers {
			if s.Kind(name) == kind {
				e[i] = name
			}
		}
	}
	return e
}

// Kind returns the kind of one of Handlers, in the library's manifest, or by its
// name.
func (s *Slot) Kind(handler string) Kind {
	if m := s.Library.Manifest(); m != nil {
		if h := m.Handler(handler); h != nil && h.Kind != "" {
			return h.Kind
		}
	}
	return Kind(handler)
}

// State is the layout of the state of the library's handlers; nil: it is not
// described.
func (s *Slot) State() *State {
	m := s.Library.Manifest()
	if m == nil {
		return nil
	}
	for _, name := range s.Handlers {
		if h := m.Handler(name); h != nil && h.State != "" {
			return m.State(h.State)
		}
	}
	return nil
}

// alone returns the slot's only handler of a kind, or "".
func (s *Slot) alone(kind Kind) (only string) {
	for _, h := range s.Handlers {
		if s.Kind(h) == kind {
			if only != "" {
				return ""
			}
			only = h
		}
	}
	return only
}

// called lists the names that a module may give to one of Handlers.
func (s *Slot) called(handler string) []string {
	kind := s.Kind(handler)
	if string(kind) == handler || s.alone(kind) != handler {
		return []string{handler}
	}
	return []string{handler, string(kind)}
}

// orOnly ends the message about a missing handler.
func (s *Slot) orOnly(handler string) string {
	kind := s.Kind(handler)
	if s.alone(kind) != handler {
		return ""
	}
	return fmt.Sprintf(", or the only one that its manifest calls a %s handler", kind)
}

// find returns the export of a module for one of Handlers, or "".
func (s *Slot) find(m *hpu.Module, handler string) string {
	kind := s.Kind(handler)
	for _, name := range s.called(handler) {
		if Check(m, kind, name) == nil {
			return name
		}
	}
	if m.Manifest() == nil || s.alone(kind) != handler {
		return ""
	}
	if all := m.Manifest().OfKind(kind); len(all) == 1 {
		return all[0]
	}
	return ""
}

// checkStates compares the states that a module describes with those of the
// library's.
func (s *Slot) checkStates(own, m *hpu.Module) error {
	for _, h := range s.Handlers {
		export := s.find(m, h)
		if export == "" {
			continue
		}
		theirs, err := stateOf(m, Exports{export})
		if err != nil {
			return err
		}
		ours, err := stateOf(own, Exports{h})
		if err != nil || theirs == nil || ours == nil {
			return err
		}
		if err := s.checkState(ours, theirs); err != nil {
			return fmt.Errorf("handler %s: %w", export, err)
		}
	}
	return nil
}

func (s *Slot) checkState(ours, theirs *State) error {
	if s.Fields != nil {
		var absent []string
		for _, name := range s.Fields {
			if _, err := theirs.Lookup(name); err != nil {
				absent = append(absent, name)
			}
		}
		if absent != nil {
			return fmt.Errorf("no %s in its state %s; it has %s", strings.Join(absent, ", "), theirs.Name, theirs.FieldNames())
		}
		return nil
	}
	if reflect.DeepEqual(ours.Fields, theirs.Fields) {
		return nil // states may have thousands of numbers
	}
	for n := range ours.Numbers() {
		got, err := theirs.Lookup(n.Name)
		switch {
		case err != nil:
			return fmt.Errorf("state %s: no %s, expected %s at offset %d", theirs.Name, n.Name, n.Field.Type, n.Offset)
		case got.Offset != n.Offset || got.Field.Type != n.Field.Type:
			return fmt.Errorf("state %s: %s is %s at offset %d, expected %s at offset %d", theirs.Name, n.Name, got.Field.Type, got.Offset, n.Field.Type, n.Offset)
		}
	}
	return nil
}

// checkKernel returns why a module with the slot's handlers cannot run in a
// kernel, which reads Fields as numbers without a sign.
func (s *Slot) checkKernel(own, m *hpu.Module) error {
	if err := runtime.InKernel(m); err != nil {
		return err
	}
	p, err := s.plan(own, m, s.Exports())
	if err != nil {
		return err
	}
	if p.UserHeader > p.ours.UserHeader {
		return fmt.Errorf("user header of %d bytes, expected at most the %d of its messages", p.UserHeader, p.ours.UserHeader)
	}
	for _, name := range s.Fields {
		n, err := p.State.Lookup(name)
		switch {
		case err != nil:
			return fmt.Errorf("state %s: %w", p.State.Name, err)
		case n.Field.Type.Signed():
			return fmt.Errorf("state %s: %s is %s, expected a number without a sign", p.State.Name, name, n.Field.Type)
		}
	}
	return nil
}

// plan is Module.Plan for a user's module: wanted are handlers of the library.
func (s *Slot) plan(own, m *hpu.Module, wanted Exports) (*Plan, error) {
	ours, err := PlanOf(own, wanted)
	if err != nil {
		return nil, err
	}
	var chosen Exports
	for i, kind := range manifest.Kinds() {
		switch h := ours.Exports[i]; {
		case h != "":
			chosen[i] = s.find(m, h)
		case s.More:
			if chosen[i], err = only(m, kind); err != nil {
				return nil, err
			}
		}
	}
	p, err := PlanOf(m, chosen)
	if err != nil {
		return nil, err
	}
	if p.UserHeader == 0 {
		p.UserHeader = ours.UserHeader
	}
	if m.Manifest() == nil {
		p.needs = ours.needs
	}
	if p.State == nil {
		p.State = ours.State
	}
	p.EntryOptions |= ours.EntryOptions
	p.PTOptions |= ours.PTOptions
	p.slot, p.ours = s, ours
	return p, nil
}

// known returns the state that a host gives without the numbers of May that a
// module lacks.
func (p *Plan) known(given any) any {
	state, named := given.(map[string]any)
	if p.slot == nil || p.State == nil || !named {
		return given
	}
	known := make(map[string]any, len(state))
	for name, v := range state { //lint:maporder a map is made of a map
		if _, err := p.State.Lookup(name); err == nil || !slices.Contains(p.slot.May, name) {
			known[name] = v
		}
	}
	return known
}

// Called returns the name that the installed module gives to a handler of its
// slot.
func (in *Installed) Called(handler string) string {
	if in.slot == nil || handler == "" {
		return handler
	}
	return in.slot.find(in.module, handler)
}

// exportsOf lists the handlers of a module, with their kinds if they are known.
func exportsOf(m *hpu.Module) string {
	var list []string
	for _, f := range m.Exports() {
		text := f.Name()
		if kind := kindOf(m, f.Name()); kind != "" {
			text += " (" + string(kind) + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}
