package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// Role is the task of the handlers at some points of an experiment. A user's
// module must fill it to take the place of the experiment's own.
type Role struct {
	// the points where the axis has this value, as a user writes it; "": all
	Axis, Is string
	// the experiment's own handlers; a user's may have these names, or header,
	// payload and completion
	Exports handlers.Exports
	// kinds of handlers that the user's module must have; handlers of other
	// kinds run if it has them
	Needs []handlers.Kind
	Alone bool // handlers of kinds without a name in Exports do not run
	// names of the numbers of the state that the experiment sets; a module must
	// have them
	Sets []string
	May  []string // numbers that it sets if the module has them
}

// role returns the role of the handlers at the point. Without roles, any
// handlers do.
func (p *Point) role() *Role {
	for i := range p.experiment.Roles {
		r := &p.experiment.Roles[i]
		if r.Axis == "" || p.experiment.Axis(r.Axis).write(p.Value(r.Axis)) == r.Is {
			return r
		}
	}
	return &Role{}
}

// String names the points of a role.
func (r *Role) String() string {
	if r.Axis == "" {
		return "every point"
	}
	return r.Axis + " " + r.Is
}

// called lists the names of a handler of a kind: the name in Exports, and the
// name of the kind. Empty: it does not run.
func (r *Role) called(i int) []string {
	if r.Alone && r.Exports[i] == "" {
		return nil
	}
	kind := string(manifest.Kinds()[i])
	if own := r.Exports[i]; own != "" && own != kind {
		return []string{own, kind}
	}
	return []string{kind}
}

// take finds the handlers of a user's module for the role.
func (r *Role) take(m *hpu.Module) (found handlers.Exports) {
	for i, kind := range manifest.Kinds() {
		names := r.called(i)
		for _, name := range names {
			if found[i] == "" && handlers.Check(m, kind, name) == nil {
				found[i] = name
			}
		}
		if m.Manifest() != nil && found[i] == "" && names != nil {
			if all := m.Manifest().OfKind(kind); len(all) == 1 {
				found[i] = all[0]
			}
		}
	}
	return found
}

// plan checks a module for the role. own: it is the experiment's own.
func (r *Role) plan(m *hpu.Module, own bool) (*handlers.Plan, error) {
	if own && r.Exports != (handlers.Exports{}) {
		return handlers.PlanOf(m, r.Exports)
	}
	if own {
		return handlers.PlanOf(m, handlers.Exports{})
	}
	found := r.take(m)
	var missing []error
	for i, kind := range manifest.Kinds() {
		if found[i] == "" && slices.Contains(r.Needs, kind) {
			missing = append(missing, fmt.Errorf("no %s handler, expected an export %s, or the only one that its manifest calls a %s handler; it has %s",
				kind, strings.Join(r.called(i), " or "), kind, exportsOf(m)))
		}
	}
	if len(missing) == 0 && found == (handlers.Exports{}) {
		missing = append(missing, fmt.Errorf("no handler, expected an export header, payload or completion; it has %s", exportsOf(m)))
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	plan, err := handlers.PlanOf(m, found)
	if err != nil || plan.State == nil {
		return plan, err
	}
	var absent []string
	for _, name := range r.Sets {
		if _, err := plan.State.Lookup(name); err != nil {
			absent = append(absent, name)
		}
	}
	if len(absent) > 0 {
		return nil, fmt.Errorf("no %s in its state %s; it has %s", strings.Join(absent, ", "), plan.State.Name, plan.State.FieldNames())
	}
	return plan, nil
}

// exportsOf lists the handlers of a module, with their kinds if they are known.
func exportsOf(m *hpu.Module) string {
	var list []string
	for _, f := range m.Exports() {
		text := f.Name()
		if m.Manifest() != nil {
			if h := m.Manifest().Handler(f.Name()); h != nil && h.Kind != "" {
				text += " (" + string(h.Kind) + ")"
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// Handlers are the handlers of a point, loaded for a cluster.
type Handlers struct {
	plan *handlers.Plan
	own  *handlers.Plan // the experiment's own, if the user's module does not describe its state
}

// spare is the HPU memory behind the state, in bytes, for a user's handlers
// that do not state their need.
const spare = 16 << 10

// Load loads the module of the point, the user's or the experiment's, for a
// cluster of the point's device. nil: no module runs.
func (p *Point) Load(c *runtime.Cluster) (*Handlers, error) {
	list := p.Modules()
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // there are no handlers
	}
	load := func(l *handlers.Library, own bool) (*handlers.Plan, error) {
		m, err := l.Load(c)
		if err != nil {
			return nil, err
		}
		plan, err := p.role().plan(m.Module, own)
		if err != nil {
			err = fmt.Errorf("module %s: %w", l.Name, err)
		}
		return plan, err
	}
	var h Handlers
	var err error
	if h.plan, err = load(list[0], p.Handler == nil); err != nil || h.plan.State != nil || p.Handler == nil {
		return &h, err
	}
	h.own, err = load(p.experiment.Modules(p)[0], true)
	return &h, err
}

// Install gives a process HPU memory with the handlers. values are the numbers
// of the state that the role sets, by name. The other numbers have the initial
// values of the module. A module without a description of its state gets the
// state of the experiment's own module.
func (h *Handlers) Install(proc *runtime.Proc, values map[string]any) (in *handlers.Installed, err error) {
	runtime.Deep(proc, func() { in, err = h.install(proc, values) })
	return in, err
}

func (h *Handlers) install(proc *runtime.Proc, values map[string]any) (*handlers.Installed, error) {
	if h.plan.State != nil {
		known := make(map[string]any, len(values))
		for name, v := range values { //lint:maporder a map is made of a map
			if _, err := h.plan.State.Lookup(name); err == nil {
				known[name] = v
			}
		}
		return h.plan.Install(proc, handlers.Options{State: known})
	}
	o := handlers.Options{Memory: spare}
	if h.own != nil && h.own.State != nil {
		device := handlers.DeviceOf(proc.Cluster().Profile(), proc.Rank(), proc.Cluster().Nodes())
		state, err := h.own.Initial(values, device)
		if err != nil {
			return nil, err
		}
		needed, err := h.own.Memory(device)
		if err != nil {
			return nil, err
		}
		o.State, o.Memory = state, needed+spare
	}
	return h.plan.Install(proc, o)
}

// narrow leaves one value to each axis that makes no difference to the user's
// module, because its state lacks the number of Axis.State.
func (s *Sweep) narrow(base *profile.Profile) error {
	if s.Handler == nil {
		return nil
	}
	for i := range s.grid.experiment.Axes {
		a := &s.grid.experiment.Axes[i]
		if a.State == "" || len(s.grid.values[i]) == 1 {
			continue
		}
		m, err := hpu.Load(s.Handler.Name, s.Handler.Wasm, base.Device())
		if err != nil {
			return err
		}
		if m.Manifest() == nil || slices.ContainsFunc(m.Manifest().States, func(st *manifest.State) bool { _, err := st.Lookup(a.State); return err == nil }) {
			continue
		}
		if s.grid.chosen[i] {
			return fmt.Errorf("--%s: %d values, but they make no difference to %s, whose state has no %s: choose one", a.Name, len(s.grid.values[i]), s.Handler.Name, a.State)
		}
		s.grid.values[i] = s.grid.values[i][:1]
	}
	return nil
}

// checkHandler returns an error if the user's module cannot replace the
// experiment's own.
func (s *Sweep) checkHandler(points []*Point) error {
	type device struct {
		spec any
		role *Role
	}
	checked := make(map[device]bool)
	runs := false
	var errs []error
	for _, p := range points {
		if len(p.Modules()) == 0 {
			continue
		}
		runs = true
		key := device{p.Profile, p.role()}
		if checked[key] {
			continue
		}
		checked[key] = true
		m, err := hpu.Load(s.Handler.Name, s.Handler.Wasm, p.Profile.Device())
		if err != nil {
			return err
		}
		if _, err := key.role.plan(m, false); err != nil {
			err = fmt.Errorf("%s cannot take the place of the handlers of %s, %v: %w", s.Handler.Name, s.grid.experiment.Name, key.role, err)
			if !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
				errs = append(errs, err)
			}
		}
	}
	if !runs {
		return fmt.Errorf("%s runs at no point of this sweep: no handlers run there", s.Handler.Name)
	}
	return errors.Join(errs...)
}
