package handlers

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/runtime"
)

// Module is a library that the devices of a cluster have accepted.
type Module struct {
	*hpu.Module
	Library *Library
	slot    *Slot       // of a module in place of the library's
	own     *hpu.Module // the library's
}

// Load makes the library ready for the processes of a cluster.
func (l *Library) Load(c *runtime.Cluster) (*Module, error) {
	m, err := c.LoadModule(l.Name, l.Wasm)
	if err != nil {
		return nil, err
	}
	return &Module{Module: m, Library: l}, nil
}

// Plan checks which handlers an entry gets. To install them in many processes,
// make the plan once.
func (m *Module) Plan(header, payload, completion string) (*Plan, error) {
	wanted := Exports{header, payload, completion}
	if m.slot != nil {
		return m.slot.plan(m.own, m.Module, wanted)
	}
	return PlanOf(m.Module, wanted)
}
