package mpi

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/portals"
)

// Allreduce in trees of aggregators (handlers/reduction), in switches or in NICs.
// A tree is set up before time begins, when all processes have their places. So
// the world has one, and each of Options.Groups, but no communicator that ranks
// make later.

// treeArity is how many aggregators a NIC's has below it.
const treeArity = 2

// trees are the groups of aggregators: of the world, and of each of
// Options.Groups. nil: one rank needs none.
type trees struct {
	library *reduction.Loaded
	groups  []*reduction.Group
}

// inTrees reports whether aggregators do Allreduce.
func (o *Options) inTrees() bool { return o.Allreduce == ModeTree || o.Allreduce == ModeSwitch }

// Slots returns the slot of what computes Allreduce; nil: processes do.
func (m Mode) Slots() []*handlers.Slot {
	switch m {
	case "", ModeHost:
		return nil
	case ModeTree, ModeSwitch:
		return []*handlers.Slot{reduction.AggregatorSlot}
	}
	return []*handlers.Slot{allreduce.AcceleratorSlot}
}

// Check returns an error if a network cannot do Allreduce by a mode.
func (m Mode) Check(network *fabric.Spec) error {
	if m == ModeSwitch && network.Units.At == "" {
		return errNoUnits
	}
	return nil
}

var errNoUnits = errors.New("allreduce by switches: no switch of the network has a unit (fabric.units)")

// loadTrees loads the library.
func (w *World) loadTrees() error {
	if w.o.Allreduce == ModeSwitch && fabric.UnitsOf(w.c.Fabric()) == nil {
		return fmt.Errorf("mpi: %w", errNoUnits)
	}
	library, err := reduction.Load(w.c)
	w.trees = &trees{library: library}
	return err
}

// plant starts the aggregators. All ranks have been spawned.
func (w *World) plant() error {
	err := w.grow(w.places, 0)
	for i := range w.groups {
		places := make([]portals.ID, len(w.groups[i].members))
		for k, rank := range w.groups[i].members {
			places[k] = w.places[rank]
		}
		err = errors.Join(err, w.grow(places, int(w.groups[i].number)))
	}
	return err
}

// grow adds the tree of some processes. number is one that no other group of these
// processes has.
func (w *World) grow(places []portals.ID, number int) (err error) {
	var tree reduction.Tree
	var g *reduction.Group
	of := w.trees
	switch {
	case len(places) == 1:
	case w.o.Allreduce == ModeSwitch:
		tree, err = reduction.Switches(w.c, places, len(of.groups))
	default:
		tree, err = reduction.NICs(places, treeArity)
	}
	if tree != nil {
		g, err = of.library.Group(reduction.Options{Members: places, Tree: tree, Number: number, Window: w.o.Window})
	}
	if err != nil {
		return fmt.Errorf("mpi: allreduce by %s: %w", w.o.Allreduce, err)
	}
	of.groups = append(of.groups, g)
	return nil
}

// join makes a rank a member of the tree of its communicator.
func (t *trees) join(c *Comm) (*reduction.Member, error) {
	var beside *reduction.Member
	if of := c.r.modules.any; of != nil {
		beside = of.unit.(*reduction.Member) //nolint:forcetypeassert // a world has one kind
	}
	return t.groups[c.planned].Open(c.r.p, c.rank, beside)
}
