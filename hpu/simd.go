package hpu

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// SIMD is what instructions on vectors of 128 bits cost on a core: cycles, as
// in [CostTable]. A wide core executes them by its units for floating point,
// and loads and stores by those for loads and stores. The zero value is a core
// without such instructions, which refuses modules that have them. Constants
// are moves.
type SIMD struct {
	// AccessBytes is how many bytes a load or store of a vector moves at once.
	// 16: the port to memory is as wide as a vector. 8: it has 64 bits, and
	// 16 bytes are two accesses. 0: no SIMD; the other fields are then 0.
	AccessBytes int64 `yaml:"access_bytes,omitempty"`
	// addition, logic, shifts, comparison, min, max, abs, neg, average, bit
	// counts of integers
	Int    int64 `yaml:"int,omitempty"`
	IntMul int64 `yaml:"int_mul,omitempty"` // multiplication and dot product of integers
	// addition, subtraction, comparison, min, max, abs, neg, rounding
	Float     int64 `yaml:"float,omitempty"`
	FloatMul  int64 `yaml:"float_mul,omitempty"`  // multiplication
	FloatDiv  int64 `yaml:"float_div,omitempty"`  // division, of all lanes
	FloatSqrt int64 `yaml:"float_sqrt,omitempty"` // square root, of all lanes
	// between integers and floating point, promote, demote
	Convert int64 `yaml:"convert,omitempty"`
	// shuffle, swizzle, splat, extraction and replacement of a lane, narrow,
	// extend, any_true, all_true, bitmask
	Shuffle int64 `yaml:"shuffle,omitempty"`
	Load    int64 `yaml:"load,omitempty"`  // of an access
	Store   int64 `yaml:"store,omitempty"` // of an access
	// Latency is how many cycles after the beginning of an instruction another
	// can use its result. 0: when the instruction leaves its unit. A load of
	// several accesses takes the cost of each further one longer.
	Latency SIMDLatency `yaml:"latency,omitempty"`
}

// SIMDLatency is the number of cycles until a result can be used, by class of
// instructions on vectors.
type SIMDLatency struct {
	Int       int64 `yaml:"int,omitempty"`
	IntMul    int64 `yaml:"int_mul,omitempty"`
	Float     int64 `yaml:"float,omitempty"`
	FloatMul  int64 `yaml:"float_mul,omitempty"`
	FloatDiv  int64 `yaml:"float_div,omitempty"`
	FloatSqrt int64 `yaml:"float_sqrt,omitempty"`
	Convert   int64 `yaml:"convert,omitempty"`
	Shuffle   int64 `yaml:"shuffle,omitempty"`
	Load      int64 `yaml:"load,omitempty"`
}

// vectorBytes is the size of a vector.
const vectorBytes = 16

// has reports whether the core has SIMD.
func (s *SIMD) has() bool { return s.AccessBytes > 0 }

// accesses returns how many accesses to memory an instruction is.
func (s *SIMD) accesses(op *wasm.OpInfo) int64 {
	return (int64(1)<<op.Align + s.AccessBytes - 1) / s.AccessBytes
}

// cost returns the cost of an instruction on vectors.
func (s *SIMD) cost(op *wasm.OpInfo) InstrCost {
	l, c := &s.Latency, InstrCost{}
	switch op.Class {
	case wasm.ClassVectorInt:
		c = InstrCost{Cost: s.Int, Latency: l.Int}
	case wasm.ClassVectorIntMul:
		c = InstrCost{Cost: s.IntMul, Latency: l.IntMul}
	case wasm.ClassVectorFloat:
		c = InstrCost{Cost: s.Float, Latency: l.Float}
	case wasm.ClassVectorFloatMul:
		c = InstrCost{Cost: s.FloatMul, Latency: l.FloatMul}
	case wasm.ClassVectorFloatDiv:
		c = InstrCost{Cost: s.FloatDiv, Latency: l.FloatDiv}
	case wasm.ClassVectorFloatSqrt:
		c = InstrCost{Cost: s.FloatSqrt, Latency: l.FloatSqrt}
	case wasm.ClassVectorConvert:
		c = InstrCost{Cost: s.Convert, Latency: l.Convert}
	case wasm.ClassVectorShuffle:
		c = InstrCost{Cost: s.Shuffle, Latency: l.Shuffle}
	case wasm.ClassVectorLoad:
		c = InstrCost{Cost: s.Load, Latency: l.Load}
	case wasm.ClassVectorStore:
		c = InstrCost{Cost: s.Store}
	}
	c.Slots = min(c.Cost, 1)
	if op.Accesses() {
		n := s.accesses(op)
		if c.Latency > 0 {
			c.Latency += (n - 1) * c.Cost
		}
		c.Cost, c.Slots = n*c.Cost, n*c.Slots
	}
	return c
}

func (p *problems) simd(s *SIMD) {
	if s.AccessBytes != 0 && s.AccessBytes != vectorBytes/2 && s.AccessBytes != vectorBytes {
		p.errs = append(p.errs, fmt.Errorf("%ssimd.access_bytes: %d, expected 8 or 16, or 0 for a core without SIMD", p.path, s.AccessBytes))
	}
	most := int64(MaxCost)
	if !s.has() {
		most = 0 // a cost that nothing would use
	}
	l := &s.Latency
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"int", s.Int},
		{"int_mul", s.IntMul},
		{"float", s.Float},
		{"float_mul", s.FloatMul},
		{"float_div", s.FloatDiv},
		{"float_sqrt", s.FloatSqrt},
		{"convert", s.Convert},
		{"shuffle", s.Shuffle},
		{"load", s.Load},
		{"store", s.Store},
		{"latency.int", l.Int},
		{"latency.int_mul", l.IntMul},
		{"latency.float", l.Float},
		{"latency.float_mul", l.FloatMul},
		{"latency.float_div", l.FloatDiv},
		{"latency.float_sqrt", l.FloatSqrt},
		{"latency.convert", l.Convert},
		{"latency.shuffle", l.Shuffle},
		{"latency.load", l.Load},
	} {
		p.check("simd."+f.name, f.v, 0, most)
	}
}
