package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// Stack returns how many bytes of shadow stack a handler may need: the sum over
// the longest chain of calls from it. It counts the frames that compilers make
// (docs/abi.md, Module). bounded is false if a function of the chain recurses
// or moves the stack pointer in another way.
func (m *Module) Stack(f Func) (bytes int64, bounded bool) { return f.x.stack, f.x.bounded }

// measureStacks finds the need of each handler, and the greatest of all.
func (m *Module) measureStacks() {
	facts := make([]wasm.Facts, len(m.wasm.Codes))
	n := m.wasm.FuncCount()
	frames := make([]int64, n) // of each function
	for i := range facts {
		frames[len(m.ops)+i] = m.frameOf(i, &facts[i])
	}
	graph := newCallGraph(m.wasm, facts)
	recursive, _ := graph.recursion(make([]int64, n))
	bytes, bounded := make([]int64, len(graph.edges)), make([]bool, len(graph.edges)) // with callees
	for i := range bounded {
		bounded[i] = i >= n || !recursive[i] && frames[i] >= 0
	}
	for _, node := range graph.upwards() {
		for _, to := range graph.edges[node] {
			bytes[node] = max(bytes[node], bytes[to])
			bounded[node] = bounded[node] && bounded[to]
		}
		if int(node) < n {
			bytes[node] += max(frames[node], 0)
		}
	}
	m.stackBounded = true
	for _, x := range m.handlers {
		x.stack, x.bounded = bytes[x.index], bounded[x.index]
		m.stack, m.stackBounded = max(m.stack, x.stack), m.stackBounded && x.bounded
	}
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

// frameOf returns the bytes of the frames that a function makes, one within the
// other if it has several, and notes its callees. The result is -1 if the
// function does anything else with the stack pointer than making such frames and
// giving them back.
func (m *Module) frameOf(code int, facts *wasm.Facts) (bytes int64) {
	var in, before, first wasm.Instr // an instruction and the two before it
	var f frame
	known, stored, released := true, false, false
	for instrs := m.wasm.Instrs(&m.wasm.Codes[code]); instrs.More(); first, before = before, in {
		if instrs.Next(&in) != nil {
			return -1
		}
		switch in.Op {
		case wasm.OpCall:
			facts.Calls = append(facts.Calls, uint32(in.Imm))
		case wasm.OpCallIndirect:
			facts.Indirect = append(facts.Indirect, uint32(in.Imm))
		}
		if !m.globals.hasStack {
			continue
		}
		was := f
		f = f.after(&in, m.globals.stack)
		switch {
		case f == frameChecked && in.Op == wasm.OpI32Sub:
			known = known && int32(before.Imm) >= 0
			bytes += int64(int32(before.Imm))
		case f <= framePointer && (was == framePointer || was == frameSize):
			known = false
		case in.Op != wasm.OpGlobalSet || in.Imm != uint64(m.globals.stack):
		case was == frameChecked:
			stored = true
		default:
			released = true
			known = known && before.Op == wasm.OpI32Add && first.Op == wasm.OpI32Const && int32(first.Imm) > 0
		}
	}
	if !known || stored != released {
		return -1
	}
	return bytes
}
