package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// budget writes the code that uses the cycles left.
type budget struct {
	global uint32 // that holds them
	cached bool   // a local holds them as well
	local  uint32 // its index
}

// reload reads the cycles left from the global, because callees have charged
// for themselves.
func (s *budget) reload(b []byte) []byte {
	if !s.cached {
		return b
	}
	return wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpGlobalGet, s.global), wasm.OpLocalSet, s.local)
}

func (s *budget) get(b []byte) []byte {
	if s.cached {
		return wasm.AppendIndexed(b, wasm.OpLocalGet, s.local)
	}
	return wasm.AppendIndexed(b, wasm.OpGlobalGet, s.global)
}

func (s *budget) set(b []byte) []byte {
	if s.cached {
		b = wasm.AppendIndexed(b, wasm.OpLocalTee, s.local)
	}
	return wasm.AppendIndexed(b, wasm.OpGlobalSet, s.global)
}

// check ends the handler if its budget is used up.
func (s *budget) check(b []byte) []byte {
	return append(append(s.get(b), byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS)), trapIf...)
}
