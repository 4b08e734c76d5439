package datatype

import (
	"fmt"
	"math/bits"
)

// Signature stands for the basic types of elements in their order (MPI-4.1
// §5.1, the type signature). Two that differ are of different basic types, or
// of others in order or number; two that are equal are the same but for a
// chance of some 2^-60.
type Signature struct {
	Elements int64  // basic ones
	Sum      uint64 // of their numbers
}

// A signature is a polynomial modulo a prime whose coefficients are the numbers
// of the basic types: what follows something else is added to a multiple of it.
const (
	signaturePrime = 1<<61 - 1
	signatureBase  = 0x0f2c9d6a1b3e5847
)

func mulmod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return addmod(low&signaturePrime, high<<3|low>>61)
}

func addmod(a, b uint64) uint64 {
	a += b
	if a >= signaturePrime {
		a -= signaturePrime
	}
	return a
}

// Then is s and what follows it.
func (s Signature) Then(o Signature) Signature {
	power, base := uint64(1), uint64(signatureBase)
	for n := o.Elements; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = mulmod(power, base)
		}
		base = mulmod(base, base)
	}
	return Signature{s.Elements + o.Elements, addmod(mulmod(s.Sum, power), o.Sum)}
}

// times is s again and again.
func (s Signature) times(n int64) (all Signature) {
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			all = all.Then(s)
		}
		s = s.Then(s)
	}
	return all
}

// Signature is the signature of count elements. Type and count must be such that
// Layout accepts them.
func (t *Type) Signature(count int) Signature {
	return t.signature(map[*Type]Signature{}).times(int64(count))
}

func (t *Type) signature(known map[*Type]Signature) (s Signature) {
	if s, is := known[t]; is || t.size == 0 {
		return s
	}
	switch t.combiner {
	case Named:
		for i, o := range NamedTypes() {
			if o.name == t.name {
				s = Signature{1, uint64(i + 1)}
			}
		}
	case CombinerStruct:
		for i, o := range t.args.Types {
			s = s.Then(o.signature(known).times(int64(t.args.Integers[1+i])))
		}
	default: // of one type, again and again
		old := t.args.Types[0]
		s = old.signature(known).times(t.size / old.size)
	}
	known[t] = s
	return s
}

// Basic is the named type that a type is made of, if it is one only and there is data; else nil.
func (t *Type) Basic() *Type {
	if t == nil || t.size == 0 {
		return nil
	}
	for _, o := range NamedTypes() {
		if n := t.size / o.size; n*o.size == t.size && t.Signature(1) == o.Signature(1).times(n) {
			return o
		}
	}
	return nil
}

// String says how many basic elements there are, and tells signatures of as many apart.
func (s Signature) String() string { return fmt.Sprintf("%d basic elements (%x)", s.Elements, s.Sum) }
