package spin

import "math"

// Half is a float of 16 bits with 11 bits of precision, up to 65504: binary16
// of IEEE 754.
type Half uint16

// Brain is a float of 16 bits with 8 bits of precision and the range of float32,
// whose upper half it is: bfloat16.
type Brain uint16

// What a number that is not one becomes, whatever its bits were: natively and
// on a device the bits that arithmetic gives may differ.
const (
	halfNaN  Half  = 0x7E00
	brainNaN Brain = 0x7FC0
)

// Parts of a float32.
const (
	float32Sign     = 1 << 31
	float32Infinity = 0xFF << 23
	// The bits of a float32 behind those of a Half, and how far exponents are
	// apart.
	halfShift = 23 - 10
	halfBias  = 127 - 15
	// The bits of the least normal Half, as a float32.
	leastHalf = (1 + halfBias) << 23
)

// HalfOf rounds to the nearest Half, of two as near to the even one.
func HalfOf(x float32) Half {
	bits := math.Float32bits(x)
	sign := Half(bits >> 16 & 0x8000)
	switch bits &^= float32Sign; {
	case bits > float32Infinity:
		return halfNaN
	case bits >= (31+halfBias)<<23: // 65536 and more
		return sign | 0x7C00
	case bits < leastHalf:
		// the last bit of the sum is worth what the last bit of a small Half is
		return sign | Half(math.Float32bits(math.Float32frombits(bits)+0.5)&0x7FF)
	}
	return sign | Half((bits-halfBias<<23+1<<(halfShift-1)-1+bits>>halfShift&1)>>halfShift)
}

// Float32 returns the same number.
func (h Half) Float32() float32 {
	sign, bits := uint32(h)>>15<<31, uint32(h)&0x7FFF<<halfShift
	if bits >= 31<<23 {
		return math.Float32frombits(sign | bits | float32Infinity)
	}
	// With the exponent of a Half it is too small by a power of two, also where
	// it is below the normal numbers.
	x := math.Float32frombits(bits) * (1 << halfBias)
	return math.Float32frombits(sign | math.Float32bits(x))
}

// BrainOf rounds to the nearest Brain, of two as near to the even one.
func BrainOf(x float32) Brain {
	bits := math.Float32bits(x)
	if bits&^float32Sign > float32Infinity {
		return brainNaN
	}
	return Brain((bits + 1<<15 - 1 + bits>>16&1) >> 16)
}

// Float32 returns the same number.
func (b Brain) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// AddHalves adds the elements of from to those of to, each sum rounded once.
// from has at least as many.
func AddHalves(to, from []Half) {
	from = from[:len(to)]
	for i := range to {
		// A sum of two in float32 is exact or has more than twice the bits of a
		// Half: rounding it again gives what rounding once would have given.
		to[i] = HalfOf(to[i].Float32() + from[i].Float32())
	}
}

// AddBrains adds the elements of from to those of to, each sum rounded once.
// from has at least as many.
func AddBrains(to, from []Brain) {
	from = from[:len(to)]
	for i := range to {
		to[i] = BrainOf(to[i].Float32() + from[i].Float32())
	}
}
