package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// Stack returns how many bytes of shadow stack a handler may need: the sum over
// the longest chain of calls from it. It counts the frames that compilers make
// (docs/abi.md, Module). bounded is false if a function of the chain recurses
// or computes the size of a frame.
func (m *Module) Stack(f Func) (bytes int64, bounded bool) {
	if !m.globals.hasStack {
		return 0, true
	}
	s := m.stacks()
	return s.bytes[f.x.index], s.bounded[f.x.index]
}

// stacks is the need of each function together with its callees.
type stacks struct {
	bytes   []int64
	bounded []bool
	frames  []int64
	edges   [][]uint32
}

func (m *Module) stacks() *stacks {
	facts := make([]wasm.Facts, len(m.wasm.Codes))
	n := m.wasm.FuncCount()
	s := &stacks{bytes: make([]int64, n), bounded: make([]bool, n), frames: make([]int64, n)}
	for i := range facts {
		s.frames[len(m.ops)+i] = m.frameOf(i, &facts[i])
	}
	graph := newCallGraph(m.wasm, facts)
	s.edges = graph.edges
	weights := make([]int64, n)
	recursive, _ := graph.recursion(weights)
	s.bytes = append(s.bytes, make([]int64, len(graph.edges)-n)...)
	s.bounded = append(s.bounded, make([]bool, len(graph.edges)-n)...)
	for i := range s.bounded {
		s.bounded[i] = i >= n || !recursive[i] && s.frames[i] >= 0
	}
	for _, node := range graph.upwards() {
		for _, to := range s.edges[node] {
			s.bytes[node] = max(s.bytes[node], s.bytes[to])
			s.bounded[node] = s.bounded[node] && s.bounded[to]
		}
		if int(node) < n {
			s.bytes[node] += max(s.frames[node], 0)
		}
	}
	return s
}

// upwards lists the nodes with each callee before its callers. Nodes on a cycle
// are in any order.
func (g *callGraph) upwards() (order []uint32) {
	seen := make([]bool, len(g.edges))
	var work []visit
	for root := range g.edges {
		if seen[root] {
			continue
		}
		seen[root] = true
		for work = append(work[:0], visit{node: uint32(root)}); len(work) > 0; {
			v := &work[len(work)-1]
			if v.edge == len(g.edges[v.node]) {
				order = append(order, v.node)
				work = work[:len(work)-1]
				continue
			}
			to := g.edges[v.node][v.edge]
			v.edge++
			if !seen[to] {
				seen[to] = true
				work = append(work, visit{node: to})
			}
		}
	}
	return order
}

// frameOf returns the bytes of the largest frame that a function makes, and
// notes its callees. The result is -1 if the function computes the size of a
// frame.
func (m *Module) frameOf(code int, facts *wasm.Facts) (bytes int64) {
	var before, in wasm.Instr
	var pointer bool // two instructions ago, the stack pointer was read
	for instrs := m.wasm.Instrs(&m.wasm.Codes[code]); instrs.More(); {
		if instrs.Next(&in) != nil {
			return -1
		}
		switch in.Op {
		case wasm.OpCall:
			facts.Calls = append(facts.Calls, uint32(in.Imm))
		case wasm.OpCallIndirect:
			facts.Indirect = append(facts.Indirect, uint32(in.Imm))
		case wasm.OpI32Sub:
			switch {
			case pointer && before.Op == wasm.OpI32Const && bytes >= 0:
				bytes = max(bytes, int64(int32(before.Imm)))
			case pointer:
				bytes = -1
			}
		}
		pointer = before.Op == wasm.OpGlobalGet && before.Imm == uint64(m.globals.stack)
		before = in
	}
	return bytes
}
