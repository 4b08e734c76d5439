package portals

import (
	"encoding/binary"
	"math/bits"
)

// ext is an x87 extended-precision number in software: sign, 15 bits of
// exponent, 64 bits of mantissa with an explicit integer bit. It rounds to
// nearest, ties to even. A NaN has one form, extNaN. Encodings that the
// processor rejects (an exponent without an integer bit) count as NaN.
type ext struct {
	neg bool
	exp int    // biased; 0 for zero and subnormal numbers
	man uint64 // with the integer bit
}

const (
	extBias    = 16383
	extMaxExp  = 0x7fff
	extInteger = 1 << 63
	extBytes   = 10 // in memory, without padding
)

var extNaN = ext{neg: true, exp: extMaxExp, man: 0xc0 << 56}

func loadExt(b []byte) ext {
	se := binary.LittleEndian.Uint16(b[8:])
	x := ext{neg: se>>15 != 0, exp: int(se & extMaxExp), man: binary.LittleEndian.Uint64(b)}
	if x.exp > 0 && x.man&extInteger == 0 || x.exp == extMaxExp && x.man != extInteger {
		return extNaN
	}
	return x
}

func (x ext) store(b []byte) {
	se := uint16(x.exp)
	if x.neg {
		se |= 1 << 15
	}
	binary.LittleEndian.PutUint64(b, x.man)
	binary.LittleEndian.PutUint16(b[8:], se)
}

func (x ext) isNaN() bool  { return x.exp == extMaxExp && x.man != extInteger }
func (x ext) isInf() bool  { return x.exp == extMaxExp && x.man == extInteger }
func (x ext) isZero() bool { return x.man == 0 }

func (x ext) isNegative() bool { return x.neg }

func (ext) constant(c constant, negative bool) ext {
	switch c {
	case one:
		return ext{neg: negative, exp: extBias, man: extInteger}
	case infinity:
		return ext{neg: negative, exp: extMaxExp, man: extInteger}
	case zero:
	}
	return ext{neg: negative}
}

func (x ext) negate() ext {
	if !x.isNaN() {
		x.neg = !x.neg
	}
	return x
}

// scale is the exponent of the mantissa. Subnormal numbers have the exponent of
// the smallest normal ones.
func (x ext) scale() int { return max(x.exp, 1) }

func (x ext) compare(y ext) (order int, ordered bool) {
	if x.isNaN() || y.isNaN() {
		return 0, false
	}
	if x.isZero() && y.isZero() {
		return 0, true
	}
	if x.neg != y.neg {
		if x.neg {
			return -1, true
		}
		return 1, true
	}
	switch {
	case x.scale() != y.scale():
		order = -1
		if x.scale() > y.scale() {
			order = 1
		}
	case x.man != y.man:
		order = -1
		if x.man > y.man {
			order = 1
		}
	}
	if x.neg {
		order = -order
	}
	return order, true
}

func (x ext) add(y ext) ext {
	switch {
	case x.isNaN() || y.isNaN() || x.isInf() && y.isInf() && x.neg != y.neg:
		return extNaN
	case x.isInf():
		return x
	case y.isInf():
		return y
	}
	if x.scale() < y.scale() {
		x, y = y, x
	}
	yhi, ylo := shiftSticky(y.man, 0, uint(x.scale()-y.scale()))
	if x.neg == y.neg {
		hi, carry := bits.Add64(x.man, yhi, 0)
		if carry != 0 {
			hi2, lo2 := shiftSticky(hi, ylo, 1)
			return roundExt(x.neg, x.scale()+1, hi2|extInteger, lo2)
		}
		return roundExt(x.neg, x.scale(), hi, ylo)
	}
	lo, borrow := bits.Sub64(0, ylo, 0)
	hi, borrow := bits.Sub64(x.man, yhi, borrow)
	neg := x.neg
	if borrow != 0 {
		neg = !neg
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	if hi|lo == 0 {
		return ext{neg: x.isZero() && y.isZero() && x.neg && y.neg}
	}
	return roundExt(neg, x.scale(), hi, lo)
}

func (x ext) mul(y ext) ext {
	neg := x.neg != y.neg
	switch {
	case x.isNaN() || y.isNaN() || x.isInf() && y.isZero() || y.isInf() && x.isZero():
		return extNaN
	case x.isInf() || y.isInf():
		return ext{neg: neg, exp: extMaxExp, man: extInteger}
	case x.isZero() || y.isZero():
		return ext{neg: neg}
	}
	hi, lo := bits.Mul64(x.man, y.man)
	// The product of two integer bits is bit 62 of hi.
	return roundExt(neg, x.scale()+y.scale()-extBias+1, hi, lo)
}

// shiftSticky shifts a 128-bit number right. Bits that fall out set the last
// bit.
func shiftSticky(hi, lo uint64, n uint) (uint64, uint64) {
	switch {
	case n == 0:
		return hi, lo
	case n < 64:
		sticky := truth(lo<<(64-n) != 0)
		return hi >> n, lo>>n | hi<<(64-n) | sticky
	case n < 128:
		sticky := truth(lo != 0 || n > 64 && hi<<(128-n) != 0)
		return 0, hi>>(n-64) | sticky
	}
	return 0, truth(hi|lo != 0)
}

// roundExt normalises and rounds hi:lo. The first bit of hi is the integer bit,
// and exp is the biased exponent.
func roundExt(neg bool, exp int, hi, lo uint64) ext {
	if hi|lo == 0 {
		return ext{neg: neg}
	}
	n := bits.LeadingZeros64(hi)
	if hi == 0 {
		n = 64 + bits.LeadingZeros64(lo)
	}
	n = min(n, max(exp-1, 0))
	if n >= 64 {
		hi, lo = lo<<(n-64), 0
	} else if n > 0 {
		hi, lo = hi<<n|lo>>(64-n), lo<<n
	}
	exp -= n
	if exp < 1 {
		hi, lo = shiftSticky(hi, lo, uint(1-exp))
		exp = 1
	}
	if lo > extInteger || lo == extInteger && hi&1 != 0 {
		if hi++; hi == 0 {
			hi = extInteger
			exp++
		}
	}
	if hi&extInteger == 0 {
		return ext{neg: neg, man: hi}
	}
	if exp >= extMaxExp {
		return ext{neg: neg, exp: extMaxExp, man: extInteger}
	}
	return ext{neg: neg, exp: exp, man: hi}
}
