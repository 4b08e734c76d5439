package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// opened is an open control instruction.
type opened struct {
	op       wasm.Opcode
	dead     bool // unreachable
	targeted bool // a branch leads to its end
	thenLive bool // the end of its first arm is reachable
	// of an if: instructions since the last check, at the beginning of its arms
	since int
	// the maximum of the same count at the end of its first arm and at branches
	// to its end
	most int
}

// nest is the open control instructions, the innermost last.
type nest []opened

func (n nest) top() *opened { return n.at(0) }

// at returns the instruction that a label names.
func (n nest) at(label uint64) *opened { return &n[len(n)-1-int(label)] }

// backward reports whether in is a br_if to the head of a loop.
func (n nest) backward(in *wasm.Instr) bool {
	return in.Op == wasm.OpBrIf && n.at(in.Imm).op == wasm.OpLoop
}

// left notes how many instructions have run without a check, at each block end
// that a branch may reach.
func (n nest) left(in *wasm.Instr, since int) {
	note := func(label uint64) {
		to := n.at(label)
		to.most = max(to.most, since)
	}
	switch in.Op {
	case wasm.OpBr, wasm.OpBrIf:
		note(in.Imm)
	case wasm.OpBrTable:
		for _, l := range in.Labels {
			note(uint64(l))
		}
	}
}
