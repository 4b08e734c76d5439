package fabric

import "fmt"

// LeafSpine is two levels of switches: every leaf has Spec.LeafNodes nodes and a
// link to each of Spec.Spines spines.
const LeafSpine = "leaf-spine"

// maxLeaf bounds the ports of a switch, down and up.
const maxLeaf = 1 << 12

var leafSpineKind = &kind{
	name: LeafSpine,
	fields: []*field{
		leafNodesField,
		numberField("spines", func(s *Spec) *int { return &s.Spines }),
		numberField("rails", func(s *Spec) *int { return &s.Rails }),
		pathsField,
		choicesField,
	},
	check: func(s *Spec) (errs []error) {
		errs = s.checkLeafNodes()
		if s.Rails < 0 || s.Rails > maxLeaf {
			errs = append(errs, fmt.Errorf("rails: want 0 or 1 (none) to %d, got %d", maxLeaf, s.Rails))
		}
		if s.Spines < 1 || s.Spines > maxLeaf {
			errs = append(errs, fmt.Errorf("spines: want 1 to %d, got %d", maxLeaf, s.Spines))
		}
		return append(errs, s.checkPaths()...)
	},
	build: func(s *Spec, nodes int) (Topology, error) {
		t := &leafSpine{nodes: nodes, down: s.LeafNodes, spines: s.Spines, rails: max(1, s.Rails), flows: s.Paths == ByFlow || s.spread()}
		of := t.down * t.rails
		t.leaves = (nodes + of - 1) / of * t.rails
		if _, links := t.Size(); links > maxLinks {
			return nil, fmt.Errorf("leaf_nodes, spines: %d links, want at most %d", links, maxLinks)
		}
		return t, nil
	},
}

// numberField is a field that is set if it is not 0.
func numberField(name string, of func(s *Spec) *int) *field {
	return &field{
		name: name,
		set: func(s *Spec) []string {
			if *of(s) == 0 {
				return nil
			}
			return []string{fmt.Sprintf("%s: %d", name, *of(s))}
		},
		clear: func(s *Spec) { *of(s) = 0 },
	}
}

// leafNodesField is the number of nodes of a switch that has nodes.
var leafNodesField = numberField("leaf_nodes", func(s *Spec) *int { return &s.LeafNodes })

func (s *Spec) checkLeafNodes() (errs []error) {
	if s.LeafNodes < 1 || s.LeafNodes > maxLeaf {
		errs = append(errs, fmt.Errorf("leaf_nodes: want 1 to %d, got %d", maxLeaf, s.LeafNodes))
	}
	return errs
}

// leafSpine has leaves, as many as its nodes need, and then spines. A leaf's
// links lead down to its nodes and up to the spines; a spine's to the leaves.
// With fewer spines than nodes of a leaf it is oversubscribed.
//
// With rails, nodes in a row are the devices of one host, and each is at another
// leaf: node n is device n mod rails, and its leaf is the rail of as many hosts as
// a leaf has nodes.
type leafSpine struct {
	nodes, down, leaves, spines, rails int

	flows bool // ByFlow, or packets of a pair take different ways
}

// at returns the leaf of a node, and its port there.
func (t *leafSpine) at(node int) (leaf, port int) {
	host, rail := node/t.rails, node%t.rails
	return host/t.down*t.rails + rail, host % t.down
}

// ports is how many links leave a leaf.
func (t *leafSpine) ports() int { return t.down + t.spines }

func (t *leafSpine) Size() (switches, links int) {
	return t.leaves + t.spines, t.leaves * (t.ports() + t.spines)
}

func (t *leafSpine) Channels() int { return 1 }

func (t *leafSpine) Home(node int) int {
	leaf, _ := t.at(node)
	return leaf
}

func (t *leafSpine) Route(at, src, dst int) (link, channel int) {
	return t.routeBy(at, src, dst, 0), 0
}

func (t *leafSpine) routeBy(at, src, dst int, path uint32) int {
	leaf, port := t.at(dst)
	switch {
	case at >= t.leaves: // a spine
		return t.leaves*t.ports() + (at-t.leaves)*t.leaves + leaf
	case at == leaf:
		return at*t.ports() + port
	case t.flows:
		return at*t.ports() + t.down + int(mixed(uint32(src), uint32(dst)|path<<nodeBits, 0)%uint32(t.spines))
	}
	return at*t.ports() + t.down + dst%t.spines
}

func (t *leafSpine) Link(link int) Link {
	if k := link - t.leaves*t.ports(); k >= 0 {
		return Link{From: t.leaves + k/t.leaves, To: k % t.leaves}
	}
	leaf, port := link/t.ports(), link%t.ports()
	host := leaf/t.rails*t.down + port
	switch node := host*t.rails + leaf%t.rails; {
	case port >= t.down:
		return Link{From: leaf, To: t.leaves + port - t.down}
	case node >= t.nodes:
		return Link{From: leaf, To: nowhere}
	default:
		return Link{From: leaf, To: node, Node: true}
	}
}

// SwitchName names a switch by level and index.
func (t *leafSpine) SwitchName(s int) string {
	if s >= t.leaves {
		return fmt.Sprintf("Spine[%d]", s-t.leaves)
	}
	return fmt.Sprintf("Leaf[%d]", s)
}

func (t *leafSpine) LinkName(link int) string {
	if k := link - t.leaves*t.ports(); k >= 0 {
		return fmt.Sprintf("Spine[%d].Down[%d]", k/t.leaves, k%t.leaves)
	}
	leaf, port := link/t.ports(), link%t.ports()
	if port >= t.down {
		return fmt.Sprintf("Leaf[%d].Up[%d]", leaf, port-t.down)
	}
	return fmt.Sprintf("Leaf[%d].Down[%d]", leaf, port)
}
