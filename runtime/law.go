package runtime

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/nic"
)

// The slots of a transport's modules (Config.Slots).
const (
	SlotLaw = "transport.law" // in place of transport.law
	SlotWay = "transport.way" // in place of transport.way
	// SlotArbiter is in place of hpu.arbiter.
	SlotArbiter = "tenants.arbiter"
)

// loadLaws loads the modules of the transport's slots.
func (c *Cluster) loadLaws() error {
	t := &c.profile.Transport
	for i, slot := range []string{SlotLaw, SlotWay} {
		place := []string{t.Law, t.Way}[i]
		m, err := c.LoadSlot(slot, "")
		if m == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		law, err := m.Export(laws.Export)
		switch {
		case err != nil:
		case place == "":
			err = fmt.Errorf("%s is not set: the module takes the place of one of spinsim's", slot)
		case t.Numbers != nil:
			err = errors.New("transport.numbers is set: a module has numbers of its own")
		case t.LawCycles == 0:
			err = errors.New("transport.law_cycles is not set: how many cycles may it take for an event?")
		case law.MaySuspend():
			err = fmt.Errorf("%s may wait, and a pipeline does not", laws.Export)
		}
		if err != nil {
			return fmt.Errorf("module %s in slot %s: %w", m.Name(), slot, err)
		}
		c.laws[i] = law
	}
	return c.loadArbiter()
}

// loadArbiter loads the module of the tenants' slot.
func (c *Cluster) loadArbiter() error {
	m, err := c.LoadSlot(SlotArbiter, "")
	if m == nil || err != nil {
		return err
	}
	key, err := m.Export(laws.ExportKey)
	switch a := c.profile.HPU.Arbiter; {
	case err != nil:
	case a == "" || a == nic.FIFO:
		err = fmt.Errorf("hpu.arbiter is not set, or %s: the module takes the place of one that looks at tenants", nic.FIFO)
	case key.MaySuspend():
		err = fmt.Errorf("%s may wait, and an arbiter does not", laws.ExportKey)
	}
	if err != nil {
		return fmt.Errorf("module %s in slot %s: %w", m.Name(), SlotArbiter, err)
	}
	c.arbiter = key
	return nil
}

// lawModule makes the module of a slot of the transport for a node; nil: the
// slot has none.
func (n *Node) lawModule(way bool) (*nic.LawModule, error) {
	law := n.cluster.laws[0]
	if way {
		law = n.cluster.laws[1]
	}
	if !law.Valid() {
		return nil, nil //nolint:nilnil // the law of package laws runs
	}
	return n.pipeline(law, nic.LawMemory)
}

// pipeline makes a module that runs beside the HPUs.
func (n *Node) pipeline(f hpu.Func, memory int) (*nic.LawModule, error) {
	code, err := n.compile(f.Module(), memory)
	if err != nil {
		return nil, err
	}
	program, err := code.Instantiate(fmt.Sprintf("rank %d", n.rank), pipeline{})
	if err != nil {
		return nil, err
	}
	return &nic.LawModule{Program: program, Law: f}, nil
}

// pipeline is the device of a transport's modules: they have no memory but their
// own, and nobody to ask.
type pipeline struct{}

// Act implements hpu.Device.
func (pipeline) Act(*hpu.Context, *hpu.Action) (result int64, blocked bool) {
	return hpu.NotSupported, false
}
