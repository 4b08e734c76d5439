package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// callGraph is the possible calls of a module. Its nodes are the functions of
// the module, followed by one node for each type. The node of a type stands for
// any function of the table with this type. So the graph stays linear in the
// size of the module.
type callGraph struct {
	edges [][]uint32
	funcs int
}

func newCallGraph(m *wasm.Module, facts []wasm.Facts) *callGraph {
	g := &callGraph{funcs: m.FuncCount()}
	g.edges = make([][]uint32, g.funcs+len(m.Types))
	representative := make(map[string]uint32, len(m.Types)) // node of each distinct type
	nodeOf := make([]uint32, len(m.Types))
	for i, t := range m.Types {
		key := t.String()
		node, ok := representative[key]
		if !ok {
			node = uint32(g.funcs + i)
			representative[key] = node
		}
		nodeOf[i] = node
	}
	for i := range facts {
		n := len(m.Imports) + i
		g.edges[n] = facts[i].Calls
		for _, t := range facts[i].Indirect {
			g.edges[n] = append(g.edges[n], nodeOf[t])
		}
	}
	inTable := make([]bool, g.funcs)
	for _, e := range m.Elems {
		for _, fn := range e.Funcs {
			if inTable[fn] {
				continue
			}
			inTable[fn] = true
			node := nodeOf[m.TypeIndex(fn)]
			g.edges[node] = append(g.edges[node], fn)
		}
	}
	return g
}

// reaching returns for each function whether its calls may reach one of the
// targets.
func (g *callGraph) reaching(targets []uint32) []bool {
	callers := make([][]uint32, len(g.edges))
	for n, edges := range g.edges {
		for _, to := range edges {
			callers[to] = append(callers[to], uint32(n))
		}
	}
	reach := make([]bool, len(g.edges))
	queue := append([]uint32(nil), targets...)
	for _, t := range targets {
		reach[t] = true
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, caller := range callers[n] {
			if !reach[caller] {
				reach[caller] = true
				queue = append(queue, caller)
			}
		}
	}
	return reach[:g.funcs]
}

// components is Tarjan's algorithm without recursion. For each node it finds
// whether the node lies on a cycle, and the length of the longest chain of
// calls from it, without functions on cycles.
type components struct {
	g        *callGraph
	weights  []int64
	index    []int32 // order of discovery, 0: not yet seen
	low      []int32
	onStack  []bool
	stack    []uint32
	work     []visit
	next     int32
	onCycle  []bool
	chain    []int32
	selfEdge []bool
}

// visit is a node whose edges are being followed.
type visit struct {
	node uint32
	edge int
}

// recursion returns which functions may recurse. It also returns the greatest
// weight of active calls of functions that may not recurse.
func (g *callGraph) recursion(weights []int64) (recursive []bool, depth int) {
	n := len(g.edges)
	c := &components{
		g: g, weights: weights, index: make([]int32, n), low: make([]int32, n), onStack: make([]bool, n), onCycle: make([]bool, n),
		chain: make([]int32, n), selfEdge: make([]bool, n),
	}
	for node := range g.edges {
		if c.index[node] == 0 {
			c.run(uint32(node))
		}
	}
	for _, l := range c.chain {
		depth = max(depth, int(l))
	}
	return c.onCycle[:g.funcs], depth
}

func (c *components) enter(node uint32) {
	c.next++
	c.index[node], c.low[node] = c.next, c.next
	c.onStack[node] = true
	c.stack = append(c.stack, node)
	c.work = append(c.work, visit{node: node})
}

func (c *components) run(root uint32) {
	c.enter(root)
	for len(c.work) > 0 {
		v := &c.work[len(c.work)-1]
		if v.edge < len(c.g.edges[v.node]) {
			to := c.g.edges[v.node][v.edge]
			v.edge++
			switch {
			case to == v.node:
				c.selfEdge[to] = true
			case c.index[to] == 0:
				c.enter(to)
			case c.onStack[to]:
				c.low[v.node] = min(c.low[v.node], c.index[to])
			default:
				c.chain[v.node] = max(c.chain[v.node], c.chain[to])
			}
			continue
		}
		node := v.node
		c.work = c.work[:len(c.work)-1]
		done := c.low[node] == c.index[node]
		if done {
			c.leave(node)
		}
		if len(c.work) > 0 {
			parent := c.work[len(c.work)-1].node
			c.low[parent] = min(c.low[parent], c.low[node])
			if done {
				c.chain[parent] = max(c.chain[parent], c.chain[node])
			}
		}
	}
}

// leave takes the component of node off the stack.
func (c *components) leave(node uint32) {
	first := len(c.stack) - 1
	for c.stack[first] != node {
		first--
	}
	members := c.stack[first:]
	cyclic := len(members) > 1 || c.selfEdge[node]
	longest := int32(0)
	for _, m := range members {
		longest = max(longest, c.chain[m])
	}
	if !cyclic && int(node) < c.g.funcs {
		// longer chains make no difference
		longest += int32(min(c.weights[node], maxCallDepth+1))
		longest = min(longest, 1<<20)
	}
	for _, m := range members {
		c.onStack[m] = false
		c.onCycle[m] = cyclic
		c.chain[m] = longest
	}
	c.stack = c.stack[:first]
}
