package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// Stack returns the bytes of shadow stack that a handler may need: those of the
// longest chain of calls that begins with it, by the frames that compilers make
// (docs/abi.md, Module). They are bounded if no function of the chain recurses
// or makes a frame of a size that it computes.
func (m *Module) Stack(f Func) (bytes int64, bounded bool) {
	if !m.globals.hasStack {
		return 0, true
	}
	s := m.stacks()
	return s.bytes[f.x.index], s.bounded[f.x.index]
}

// stacks is what each function needs with all that it calls.
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

// upwards lists the nodes so that what a node calls comes before it; of those
// on a cycle the order is any.
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

// frameOf returns the bytes of the largest frame that a function makes, -1 if
// it computes the size of one, and notes whom it calls.
func (m *Module) frameOf(code int, facts *wasm.Facts) (bytes int64) {
	var before, in wasm.Instr
	var pointer bool // the instruction before the one before has read the stack pointer
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
