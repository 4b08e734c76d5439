package fabric

// Crossbar is one switch with a port for every node.
const Crossbar = "crossbar"

var crossbarKind = &kind{
	name:  Crossbar,
	build: func(_ *Spec, nodes int) (Topology, error) { return newTree(nodes, nodes), nil },
}
