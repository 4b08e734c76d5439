package datatype

import (
	"fmt"
	"math/bits"
)

// Signature identifies the basic types of elements and their order (MPI-4.1
// §5.1, the type signature). Different signatures mean different basic types,
// order or number. Equal signatures mean equal types, except with a probability
// of about 2^-60.
type Signature struct {
	Elements int64  // number of basic elements
	Sum      uint64 // polynomial of their types
}

// A signature is a polynomial modulo a prime. Its coefficients are the numbers
// of the basic types. To append elements, it is multiplied by a power of the
// base and the sum of the new elements is added.
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

// Then returns the signature of s followed by o.
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

// times returns the signature of n copies of s.
func (s Signature) times(n int64) (all Signature) {
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			all = all.Then(s)
		}
		s = s.Then(s)
	}
	return all
}

// Signature returns the signature of count elements. Layout must accept the
// type and count.
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
	default: // copies of one type
		old := t.args.Types[0]
		s = old.signature(known).times(t.size / old.size)
	}
	known[t] = s
	return s
}

// Basic returns the named type that all data of a type has, or nil if there are
// several or no data.
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

// String returns the number of basic elements and the sum, which differs
// between signatures of equal length.
func (s Signature) String() string { return fmt.Sprintf("%d basic elements (%x)", s.Elements, s.Sum) }
