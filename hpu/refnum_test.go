package hpu

import (
	"math"
	"math/bits"
)

// numeric executes an instruction of numbers. NaN results of arithmetic are canonical.
func (x *refFrame) numeric(in *refInstr) {
	sig := in.Info.Sig
	var b uint64
	if sig[1] != ':' {
		b = x.pop()
	}
	a := x.pop()
	op := in.Op
	var v uint64
	switch {
	case op >= 0x45 && op <= 0x4F:
		v = refCompare(int(op)-0x46, uint32(a) == 0, int64(int32(a)), int64(int32(b)), uint64(uint32(a)), uint64(uint32(b)))
	case op >= 0x50 && op <= 0x5A:
		v = refCompare(int(op)-0x51, a == 0, int64(a), int64(b), a, b)
	case op >= 0x5B && op <= 0x60:
		v = refFloatCompare(int(op)-0x5B, float64(f32(a)), float64(f32(b)))
	case op >= 0x61 && op <= 0x66:
		v = refFloatCompare(int(op)-0x61, math.Float64frombits(a), math.Float64frombits(b))
	case op >= 0x67 && op <= 0x78:
		v = uint64(uint32(x.integer(int(op)-0x67, 32, a, b)))
	case op >= 0x79 && op <= 0x8A:
		v = x.integer(int(op)-0x79, 64, a, b)
	case op >= 0x8B && op <= 0x98:
		v = refF32(int(op)-0x8B, uint32(a), uint32(b))
	case op >= 0x99 && op <= 0xA6:
		v = refF64(int(op)-0x99, a, b)
	default:
		v = x.convert(in, a)
	}
	x.push(v)
}

func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) }

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func refCompare(i int, zero bool, sa, sb int64, ua, ub uint64) uint64 {
	return truth([]bool{zero, ua == ub, ua != ub, sa < sb, ua < ub, sa > sb, ua > ub, sa <= sb, ua <= ub, sa >= sb, ua >= ub}[i+1])
}

func refFloatCompare(i int, a, b float64) uint64 {
	return truth([]bool{a == b, a != b, a < b, a > b, a <= b, a >= b}[i])
}

// integer executes clz, ctz, popcnt, add, sub, mul, div_s, div_u, rem_s, rem_u,
// and, or, xor, shl, shr_s, shr_u, rotl, rotr.
func (x *refFrame) integer(i int, width uint, a, b uint64) uint64 {
	mask := ^uint64(0) >> (64 - width)
	a, b = a&mask, b&mask
	signed := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
	k := uint(b) % width
	switch i {
	case 0:
		return uint64(bits.LeadingZeros64(a)) - uint64(64-width)
	case 1:
		return uint64(min(uint(bits.TrailingZeros64(a)), width))
	case 2:
		return uint64(bits.OnesCount64(a))
	case 3:
		return a + b
	case 4:
		return a - b
	case 5:
		return a * b
	case 6, 7, 8, 9:
		return x.divide(i, width, a, b)
	case 10:
		return a & b
	case 11:
		return a | b
	case 12:
		return a ^ b
	case 13:
		return a << k
	case 14:
		return uint64(signed(a) >> k)
	case 15:
		return a >> k
	case 16:
		return a<<k | a>>(width-k)
	}
	return a>>k | a<<(width-k)
}

func (x *refFrame) divide(i int, width uint, a, b uint64) uint64 {
	if b == 0 {
		x.trap(TrapDivideByZero)
	}
	sa, sb := int64(a<<(64-width))>>(64-width), int64(b<<(64-width))>>(64-width)
	switch i {
	case 6:
		if sb == -1 && a == 1<<(width-1) {
			x.trap(TrapIntegerOverflow)
		}
		return uint64(sa / sb)
	case 7:
		return a / b
	case 8:
		if sb == -1 {
			return 0
		}
		return uint64(sa % sb)
	}
	return a % b
}

func refF32(i int, a, b uint32) uint64 {
	x, y := math.Float32frombits(a), math.Float32frombits(b)
	switch i {
	case 0:
		return uint64(a &^ (1 << 31))
	case 1:
		return uint64(a ^ 1<<31)
	case 13:
		return uint64(a&^(1<<31) | b&(1<<31))
	case 7:
		return canonical32(x + y)
	case 8:
		return canonical32(x - y)
	case 9:
		return canonical32(x * y)
	case 10:
		return canonical32(x / y)
	}
	return canonical32(float32(refFloat(i, float64(x), float64(y))))
}

func refF64(i int, a, b uint64) uint64 {
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	switch i {
	case 0:
		return a &^ (1 << 63)
	case 1:
		return a ^ 1<<63
	case 13:
		return a&^(1<<63) | b&(1<<63)
	case 7:
		return canonical64(x + y)
	case 8:
		return canonical64(x - y)
	case 9:
		return canonical64(x * y)
	case 10:
		return canonical64(x / y)
	}
	return canonical64(refFloat(i, x, y))
}

// refFloat executes what is exact, or rounds the same, in both widths: ceil,
// floor, trunc, nearest, sqrt, min, max.
func refFloat(i int, x, y float64) float64 {
	switch i {
	case 2:
		return math.Ceil(x)
	case 3:
		return math.Floor(x)
	case 4:
		return math.Trunc(x)
	case 5:
		return math.RoundToEven(x)
	case 6:
		return math.Sqrt(x)
	}
	if math.IsNaN(x) || math.IsNaN(y) {
		return math.NaN()
	}
	if i == 11 {
		return math.Min(x, y)
	}
	return math.Max(x, y)
}

func canonical32(v float32) uint64 {
	if v != v {
		return 0x7FC00000
	}
	return uint64(math.Float32bits(v))
}

func canonical64(v float64) uint64 {
	if v != v {
		return 0x7FF8000000000000
	}
	return math.Float64bits(v)
}

func (x *refFrame) convert(in *refInstr, a uint64) uint64 {
	switch name := in.Info.Name; name {
	case "i32.wrap_i64", "i64.extend_i32_u":
		return uint64(uint32(a))
	case "i64.extend_i32_s", "i64.extend32_s":
		return uint64(int64(int32(a)))
	case "i32.extend8_s":
		return uint64(uint32(int8(a)))
	case "i32.extend16_s":
		return uint64(uint32(int16(a)))
	case "i64.extend8_s":
		return uint64(int8(a))
	case "i64.extend16_s":
		return uint64(int16(a))
	case "f32.convert_i32_s":
		return canonical32(float32(int32(a)))
	case "f32.convert_i32_u":
		return canonical32(float32(uint32(a)))
	case "f32.convert_i64_s":
		return canonical32(float32(int64(a)))
	case "f32.convert_i64_u":
		return canonical32(float32(a))
	case "f64.convert_i32_s":
		return canonical64(float64(int32(a)))
	case "f64.convert_i32_u":
		return canonical64(float64(uint32(a)))
	case "f64.convert_i64_s":
		return canonical64(float64(int64(a)))
	case "f64.convert_i64_u":
		return canonical64(float64(a))
	case "f32.demote_f64":
		return canonical32(float32(math.Float64frombits(a)))
	case "f64.promote_f32":
		return canonical64(float64(f32(a)))
	}
	return x.truncate(in, a)
}

// truncate converts a float to an integer: with a trap, or saturating, where it does not fit.
func (x *refFrame) truncate(in *refInstr, a uint64) uint64 {
	name := in.Info.Name
	v := math.Float64frombits(a)
	if in.Info.Sig[0] == 'f' {
		v = float64(f32(a))
	}
	saturate := in.Op >= 0xFC00
	least, most := -9223372036854775808.0, 9223372036854775808.0 // most is the first that is too large
	unsigned := name[len(name)-2:] == "_u"
	switch {
	case unsigned && name[:3] == "i32":
		least, most = 0, 4294967296
	case unsigned:
		least, most = 0, 18446744073709551616
	case name[:3] == "i32":
		least, most = -2147483648, 2147483648
	}
	t := math.Trunc(v)
	var out uint64
	switch {
	case v != v && !saturate:
		x.trap(TrapInvalidConversion)
	case v != v:
	case (t < least || t >= most) && !saturate:
		x.trap(TrapIntegerOverflow)
	case t < least:
		out = uint64(int64(least))
	case t >= most && unsigned:
		out = math.MaxUint64
	case t >= most:
		out = uint64(int64(most/2)-1)*2 + 1
	case unsigned && t >= 9223372036854775808:
		out = uint64(int64(t-9223372036854775808)) + 1<<63
	default:
		out = uint64(int64(t))
	}
	if name[:3] == "i32" {
		return uint64(uint32(out))
	}
	return out
}
