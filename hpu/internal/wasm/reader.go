package wasm

import (
	"encoding/binary"
	"unicode/utf8"
)

// reader reads b[pos:end]. It keeps the first error. After an error, all
// results are zero.
type reader struct {
	b        []byte
	pos, end int
	simd     bool // Limits.SIMD
	err      *Error
}

// noSIMD names the field of a profile that turns SIMD on.
const noSIMD = "SIMD: this device has none (hpu.costs.simd.access_bytes)"

func (r *reader) fail(offset int, format string, args ...any) {
	if r.err == nil {
		r.err = failf(offset, format, args...)
		r.pos = r.end
	}
}

func (r *reader) rest() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(r.pos, "unexpected end")
		return 0
	}
	r.pos++
	return r.b[r.pos-1]
}

// u32 reads an unsigned LEB128 number of 32 bits.
func (r *reader) u32() uint32 {
	at := r.pos
	var v uint64
	for shift := uint(0); ; shift += 7 {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			break
		}
		if shift == 28 {
			r.fail(at, "number longer than 32 bits")
			return 0
		}
	}
	if v > 0xFFFFFFFF {
		r.fail(at, "number longer than 32 bits")
		return 0
	}
	return uint32(v)
}

// signed reads a signed LEB128 number of the given width.
func (r *reader) signed(bits uint) int64 {
	at := r.pos
	var v int64
	for shift := uint(0); ; {
		c := r.byte()
		if r.err != nil {
			return 0
		}
		v |= int64(c&0x7F) << shift
		if left := bits - shift; left < 7 {
			// In the last byte of the longest form, the bits beyond the width
			// repeat the sign.
			mask := byte(0x7F) << (left - 1) & 0x7F
			if c >= 0x80 || c&mask != 0 && c&mask != mask {
				r.fail(at, "number longer than %d bits", bits)
				return 0
			}
		}
		shift += 7
		if c < 0x80 {
			if shift < 64 && c&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (r *reader) f32() uint64 {
	if r.rest() < 4 {
		r.fail(r.pos, "unexpected end")
		return 0
	}
	r.pos += 4
	return uint64(binary.LittleEndian.Uint32(r.b[r.pos-4:]))
}

func (r *reader) f64() uint64 {
	if r.rest() < 8 {
		r.fail(r.pos, "unexpected end")
		return 0
	}
	r.pos += 8
	return binary.LittleEndian.Uint64(r.b[r.pos-8:])
}

// v128 reads a constant of 16 bytes.
func (r *reader) v128() (low, high uint64) {
	low = r.f64()
	return low, r.f64()
}

// count reads the length of a vector. Each item takes at least one byte.
func (r *reader) count(what string) int {
	at := r.pos
	n := r.u32()
	if int64(n) > int64(r.rest()) {
		r.fail(at, "%d %s in %d bytes", n, what, r.rest())
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	n := r.count("bytes of a name")
	s := string(r.b[r.pos : r.pos+n])
	if !utf8.ValidString(s) {
		r.fail(r.pos, "name is not UTF-8")
		return ""
	}
	r.pos += n
	return s
}

func (r *reader) valueType() ValueType {
	at := r.pos
	t := ValueType(r.byte())
	if r.err != nil {
		return 0
	}
	switch t {
	case I32, I64, F32, F64:
	case V128:
		if !r.simd {
			r.fail(at, noSIMD)
		}
	case 0x70, 0x6F, 0x64, 0x63:
		r.fail(at, "reference types: not supported")
	case 0x69, 0x74:
		r.fail(at, "exceptions: not supported")
	default:
		r.fail(at, "invalid value type 0x%02x", byte(t))
	}
	return t
}
