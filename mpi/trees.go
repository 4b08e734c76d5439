package mpi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
)

// Allreduce, and what else is Rooted, in trees of aggregators (handlers/reduction),
// in switches or in NICs.
// A tree is set up before time begins, when all processes have their places. So
// the world has one, or each of Options.Groups, but no communicator that ranks make
// later.

// treeArity is how many aggregators a NIC's has below it.
const treeArity = 2

// trees are the groups of aggregators: of the world, or of each of Options.Groups.
// nil: one rank needs none.
type trees struct {
	library *reduction.Loaded
	groups  []*reduction.Group
}

// inTrees reports whether aggregators do Allreduce.
func (o *Options) inTrees() bool { return o.Allreduce == ModeTree || o.Allreduce == ModeSwitch }

// Rooted reports whether a mode also does what Options.Rooted has.
func (m Mode) Rooted() bool {
	return m == "" || m == ModeHost || (&Options{Allreduce: m}).inTrees()
}

// beginRooted gives a call with a root to the tree.
func (k *call) beginRooted(m *reduction.Member, j *job) error {
	switch k.kind {
	case callBcast:
		return m.Broadcast(j.from, k.root)
	case callReduce:
		return m.Reduce(k.vector(j.from, j.to), k.root)
	case callAllgather:
		return m.Allgather(j.from, j.to)
	case callReduceScatter:
		return m.ReduceScatter(k.vector(j.from, j.to))
	}
	return m.Barrier()
}

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
	switch o := (Options{Allreduce: m}); {
	case m == ModeSwitch && network.Units.At == "":
		return errNoUnits
	case o.inTrees() && network.MTU%8 != 0:
		return fmt.Errorf("fabric.mtu: %d, expected a multiple of 8 for allreduce by %s", network.MTU, m)
	}
	return nil
}

var errNoUnits = errors.New("allreduce by switches: no switch of the network has a unit: expected fabric.units")

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
	list := []reduction.Options{{Members: w.places}}
	if len(w.groups) > 0 {
		list = list[:0]
	}
	for i := range w.groups {
		o := reduction.Options{Number: int(w.groups[i].number)}
		for _, rank := range w.groups[i].members {
			o.Members = append(o.Members, w.places[rank])
		}
		list = append(list, o)
	}
	at := make(map[int]int) // groups with aggregators at a node
	for i := range list {
		if err := w.grow(&list[i], i); err != nil {
			return err
		}
		for _, node := range nodesOf(list[i].Tree) {
			at[node]++
		}
	}
	for _, o := range list {
		var g *reduction.Group
		if o.Window = w.o.Window; o.Tree != nil {
			for _, node := range nodesOf(o.Tree) {
				o.Beside = max(o.Beside, at[node]-1)
			}
			var err error
			if g, err = w.trees.library.Group(o); err != nil {
				return fmt.Errorf("mpi: allreduce by %s: %w", w.o.Allreduce, err)
			}
		}
		w.trees.groups = append(w.trees.groups, g)
	}
	return nil
}

// grow makes the tree of a group. number spreads the roots.
func (w *World) grow(o *reduction.Options, number int) (err error) {
	switch {
	case len(o.Members) == 1:
	case w.o.Allreduce == ModeSwitch:
		o.Tree, err = reduction.Switches(w.c, o.Members, number)
	default:
		o.Tree, err = reduction.NICs(o.Members, treeArity)
	}
	if err != nil {
		return fmt.Errorf("mpi: allreduce by %s: %w", w.o.Allreduce, err)
	}
	return nil
}

// nodesOf returns the nodes of a tree's aggregators.
func nodesOf(t reduction.Tree) (nodes []int) {
	for i := range t {
		nodes = append(nodes, t[i].Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// join makes a rank a member of the tree of its communicator.
func (t *trees) join(c *Comm) (*reduction.Member, error) {
	var beside *reduction.Member
	if of := c.r.modules.any; of != nil {
		beside = of.unit.(*reduction.Member) //nolint:forcetypeassert // a world has one kind
	}
	return t.groups[max(c.planned, 1)-1].Open(c.r.p, c.rank, beside)
}
