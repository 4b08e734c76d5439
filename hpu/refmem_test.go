package hpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// variable executes what moves values and names variables.
func (x *refFrame) variable(in *refInstr) {
	switch in.Op {
	case wasm.OpNop:
	case wasm.OpDrop:
		x.pop()
	case wasm.OpSelect:
		cond, b := uint32(x.pop()), x.pop()
		if cond == 0 {
			x.pop()
			x.push(b)
		}
	case wasm.OpLocalGet:
		x.push(x.locals[in.Imm])
	case wasm.OpLocalSet:
		x.locals[in.Imm] = x.pop()
	case wasm.OpLocalTee:
		x.locals[in.Imm] = x.stack[len(x.stack)-1]
	case wasm.OpGlobalGet:
		x.push(x.r.globals[in.Imm])
	case wasm.OpGlobalSet:
		x.r.globals[in.Imm] = x.pop()
		if x.r.hasSP && in.Imm == 0 && uint32(x.r.globals[0]) < x.r.limit {
			x.trap(TrapStackOverflow)
		}
	case wasm.OpMemorySize:
		x.push(uint64(x.r.m.Memory)) // the module's own memory
	case wasm.OpI32Const, wasm.OpI64Const, wasm.OpF32Const, wasm.OpF64Const:
		x.push(in.Imm)
	default:
		panic(fmt.Sprintf("reference: %s", in.Info.Name))
	}
}

// memory executes loads, stores and bulk operations.
func (x *refFrame) memory(in *refInstr) {
	switch in.Info.Class {
	case wasm.ClassBulk:
		x.bulk(in)
	case wasm.ClassStore:
		v := x.pop()
		b := x.load(uint64(uint32(x.pop()))+in.Imm, 1<<in.Info.Align)
		var all [8]byte
		binary.LittleEndian.PutUint64(all[:], v)
		copy(b, all[:])
	default:
		b := x.load(uint64(uint32(x.pop()))+in.Imm, 1<<in.Info.Align)
		var all [8]byte
		copy(all[:], b)
		v := binary.LittleEndian.Uint64(all[:])
		if name := in.Info.Name; name[len(name)-2:] == "_s" {
			shift := 64 - 8<<in.Info.Align
			v = uint64(int64(v<<shift) >> shift)
			if in.Info.Sig == "i:i" {
				v = uint64(uint32(v))
			}
		}
		x.push(v)
	}
}

func (x *refFrame) bulk(in *refInstr) {
	if in.Op == wasm.OpDataDrop {
		x.r.dropped[in.Imm] = true
		return
	}
	n, src, dst := uint64(uint32(x.pop())), uint64(uint32(x.pop())), uint64(uint32(x.pop()))
	if x.r.used > x.r.budget*x.r.parts {
		x.trap(TrapBudget)
	}
	x.r.used += int64(math.Ceil(float64(n)/float64(x.r.spec.Costs.BulkBytesPerCycle))) * x.r.parts
	if x.r.used > x.r.budget*x.r.parts {
		x.r.used = (x.r.budget + 1) * x.r.parts // it does not move bytes for which it has no time
		x.trap(TrapBudget)
	}
	switch in.Op {
	case wasm.OpMemoryFill:
		b := x.load(dst, int(n))
		for i := range b {
			b[i] = byte(src)
		}
	case wasm.OpMemoryCopy:
		from := append([]byte(nil), x.load(src, int(n))...)
		copy(x.load(dst, int(n)), from)
	case wasm.OpMemoryInit:
		d := x.r.m.Data[in.Imm].Bytes
		if x.r.dropped[in.Imm] || !x.r.m.Data[in.Imm].Passive {
			d = nil
		}
		if src+n > uint64(len(d)) {
			x.trap(TrapOutOfBounds)
		}
		copy(x.load(dst, int(n)), d[src:src+n])
	}
}
