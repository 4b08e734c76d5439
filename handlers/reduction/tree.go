//go:build !tinygo

package reduction

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// Ref is a child of an aggregator: a member, by its rank, or an aggregator, by
// its number in the tree.
type Ref struct {
	Inner  bool
	Number int
}

// Aggregator is a place of a tree. Its sum begins with the first child's vector,
// to which the others are added in order.
type Aggregator struct {
	Node     int // a unit, or a node
	Parent   int // number in the tree; -1: it is the root
	Place    int // among the parent's children
	Children []Ref
}

// Tree is aggregators, the root first; every member is a child of one of them.
type Tree []Aggregator

// add adds a child to an aggregator.
func (t Tree) add(parent int, child Ref) {
	if child.Inner {
		t[child.Number].Parent, t[child.Number].Place = parent, len(t[parent].Children)
	}
	t[parent].Children = append(t[parent].Children, child)
}

// Height returns how many aggregators a vector passes at most.
func (t Tree) Height() (most int) {
	for i := range t {
		height := 0
		for at := i; at >= 0; at = t[at].Parent {
			height++
		}
		most = max(most, height)
	}
	return most
}

// Check returns why a tree is none of a number of members on a number of nodes.
func (t Tree) Check(members, nodes int) error {
	parents, times := make([]int, len(t)), make([]int, members)
	for i := range parents {
		parents[i] = -1
	}
	for i := range t {
		if t[i].Node < 0 || t[i].Node >= nodes {
			return fmt.Errorf("aggregator %d is on node %d of %d", i, t[i].Node, nodes)
		}
		for place, r := range t[i].Children {
			switch {
			case r.Number < 0 || r.Inner && r.Number >= len(t) || !r.Inner && r.Number >= members:
				return fmt.Errorf("child %d of aggregator %d has number %d: there are %d members and %d aggregators", place, i, r.Number, members, len(t))
			case !r.Inner:
				times[r.Number]++
			case parents[r.Number] >= 0 || t[r.Number].Parent != i || t[r.Number].Place != place:
				return fmt.Errorf("aggregator %d is not child %d of aggregator %d alone", r.Number, place, i)
			default:
				parents[r.Number] = i
			}
		}
	}
	if rank := slices.IndexFunc(times, func(n int) bool { return n != 1 }); rank >= 0 {
		return fmt.Errorf("rank %d is a child of %d aggregators, expected one", rank, times[rank])
	}
	for i := range t {
		steps := 0
		for at := i; at > 0; at = parents[at] {
			if steps++; steps > len(t) {
				return fmt.Errorf("aggregator %d is below itself", i)
			}
		}
		if len(t[i].Children) == 0 || (parents[i] < 0) != (i == 0) || (t[i].Parent < 0) != (i == 0) {
			return fmt.Errorf("aggregator %d: expected children, and a parent but for aggregator 0", i)
		}
	}
	return nil
}

// Switches returns a tree of the units of switches: one where a member's node is,
// and those on the packets' ways from there to a root, unless they have only one
// child. The root is one to which the ways are short; number chooses among
// several, so that groups spread. Members below one unit keep the order of their
// ranks, and children that of their first member.
func Switches(c *runtime.Cluster, members []portals.ID, number int) (Tree, error) {
	units := fabric.UnitsOf(c.Fabric())
	if units == nil {
		return nil, fmt.Errorf("reduction: no switch of the network has a unit (fabric.units)")
	}
	leaves, of := map[int]bool{}, make([]int, len(members))
	for rank, id := range members {
		if id.NID >= uint32(c.Nodes()) {
			return nil, fmt.Errorf("reduction: rank %d is on node %d of %d", rank, id.NID, c.Nodes())
		}
		of[rank], _ = units.Of(int(id.NID)) // switches with nodes have a unit
		leaves[of[rank]] = true
	}
	parents, err := ways(units, leaves, number)
	if err != nil {
		return nil, err
	}
	return arrange(of, parents), nil
}

// ways returns the parent of each unit that takes part; the root has none.
func ways(units *fabric.Units, leaves map[int]bool, number int) (best map[int]int, err error) {
	first, behind := units.Nodes()
	if len(leaves) == 1 {
		return map[int]int{}, nil
	}
	var found []map[int]int
	least := behind
	for root := first; root < behind; root++ {
		parents, depth := map[int]int{}, 0
		for leaf := range leaves { //lint:maporder the deepest way does not depend on the order
			steps := 0
			for at := leaf; at != root; steps++ {
				if steps > behind-first {
					return nil, fmt.Errorf("reduction: the ways from %s to %s go round in a circle", units.Switch(leaf), units.Switch(root))
				}
				next, known := parents[at]
				if !known {
					next = units.Toward(at, root)
					parents[at] = next
				}
				at = next
			}
			depth = max(depth, steps)
		}
		switch {
		case depth < least:
			least, found = depth, []map[int]int{parents}
		case depth == least:
			found = append(found, parents)
		}
	}
	return found[number%len(found)], nil
}

// arrange makes the tree from the unit of each member and the units' parents.
func arrange(of []int, parents map[int]int) Tree {
	below := map[int][]int{} // of each unit: its units, in the order of their first member
	ranks := map[int][]int{}
	root, seen := of[0], map[int]bool{}
	for rank, unit := range of {
		ranks[unit] = append(ranks[unit], rank)
		for !seen[unit] {
			seen[unit] = true
			parent, has := parents[unit]
			if !has {
				root = unit
				break
			}
			below[parent] = append(below[parent], unit)
			unit = parent
		}
	}
	var t Tree
	var grow func(unit int) Ref
	grow = func(unit int) Ref {
		if len(ranks[unit]) == 0 && len(below[unit]) == 1 {
			return grow(below[unit][0])
		}
		n := len(t)
		t = append(t, Aggregator{Node: unit, Parent: -1})
		for _, rank := range ranks[unit] {
			t.add(n, Ref{Number: rank})
		}
		for _, u := range below[unit] {
			child := grow(u)
			t.add(n, child)
		}
		return Ref{true, n}
	}
	grow(root)
	return t
}

// NICs returns a tree of aggregators in the NICs of members: each has its own
// process and up to arity others below it.
func NICs(members []portals.ID, arity int) (Tree, error) {
	if arity < 1 || arity >= MaxChildren {
		return nil, fmt.Errorf("reduction: %d children, expected 1 to %d", arity, MaxChildren-1)
	}
	var t Tree
	for rank, id := range members {
		t = append(t, Aggregator{Node: int(id.NID), Parent: -1, Children: []Ref{{Number: rank}}})
	}
	for rank := 1; rank < len(members); rank++ {
		t.add((rank-1)/arity, Ref{true, rank})
	}
	return t, nil
}
