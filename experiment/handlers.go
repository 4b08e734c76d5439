package experiment

import (
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/runtime"
)

// Handlers are the handlers of a point's first slot, loaded for a cluster.
type Handlers struct{ plan *handlers.Plan }

// Load loads the module in the first slot of the point, the user's or the
// library's, for a cluster of the point's device. nil: no module runs.
func (p *Point) Load(c *runtime.Cluster) (*Handlers, error) {
	list := p.Slots()
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // there are no handlers
	}
	m, err := list[0].Load(c)
	if err != nil {
		return nil, err
	}
	e := list[0].Exports()
	plan, err := m.Plan(e[0], e[1], e[2])
	return &Handlers{plan}, err
}

// Has reports whether the state of the handlers has a number of a name.
func (h *Handlers) Has(name string) bool {
	if h.plan.State == nil {
		return false
	}
	_, err := h.plan.State.Lookup(name)
	return err == nil
}

// Install gives a process HPU memory with the handlers. values are numbers of
// their state, by name. The others have the initial values of the module.
func (h *Handlers) Install(proc *runtime.Proc, values map[string]any) (in *handlers.Installed, err error) {
	o := handlers.Options{}
	if values != nil {
		o.State = values
	}
	runtime.Deep(proc, func() { in, err = h.plan.Install(proc, o) })
	return in, err
}
