package hpu

import (
	"encoding/binary"
	"math"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

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
	if rate := x.r.spec.Costs.BulkBytesPerCycle; rate > 0 {
		x.r.used += int64(math.Ceil(float64(n) / float64(rate)))
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
