package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// frame is how far the present instructions match a frame on the shadow stack.
// Compilers make a frame with global.get of the stack pointer, i32.const,
// i32.sub, local.tee or local.set, and global.set. In functions without calls
// they leave out global.set.
type frame uint8

const (
	frameNone    frame = iota
	framePointer       // the pointer is on top of the stack
	frameSize          // a constant is on top of the pointer
	frameChecked       // their difference is on top, and it is not below the shadow stack
)

// after returns how far the instructions match with one more. stack is the
// global that is the pointer.
func (f frame) after(in *wasm.Instr, stack uint32) frame {
	switch {
	case in.Op == wasm.OpGlobalGet && in.Imm == uint64(stack):
		return framePointer
	case in.Op == wasm.OpI32Const && f == framePointer:
		return frameSize
	case in.Op == wasm.OpI32Sub && f == frameSize, in.Op == wasm.OpLocalTee && f == frameChecked:
		return frameChecked
	}
	return frameNone
}

// watchFrame checks the lowest address of a frame where it is computed.
func (r *rewriter) watchFrame(in *wasm.Instr) {
	if !r.globals.hasStack {
		return
	}
	if r.frame = r.frame.after(in, r.globals.stack); r.frame != frameChecked || in.Op != wasm.OpI32Sub {
		return
	}
	t := r.temps.get('i', wasm.I32)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalTee, t)
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	b = wasm.AppendIndexed(b, wasm.OpGlobalGet, r.globals.limit)
	b = append(b, byte(wasm.OpI32LtU), byte(wasm.OpIf), 0x40)
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	// to distinguish the trap from others
	b = wasm.AppendIndexed(b, wasm.OpGlobalSet, r.globals.stack)
	r.block = append(b, byte(wasm.OpUnreachable), byte(wasm.OpEnd))
}

// setGlobal checks the shadow stack pointer where the module sets it.
func (r *rewriter) setGlobal(in *wasm.Instr) {
	if !r.globals.hasStack || in.Imm != uint64(r.globals.stack) || r.frame == frameChecked {
		r.copy(in)
		return
	}
	t := r.temps.get('i', wasm.I32)
	r.block = wasm.AppendIndexed(r.block, wasm.OpLocalTee, t)
	r.copy(in)
	r.block = wasm.AppendIndexed(r.block, wasm.OpLocalGet, t)
	r.block = wasm.AppendIndexed(r.block, wasm.OpGlobalGet, r.globals.limit)
	r.block = append(r.block, byte(wasm.OpI32LtU))
	r.block = append(r.block, trapIf...)
}
