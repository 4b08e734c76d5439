package wasm

import "encoding/binary"

// AppendU32 appends an unsigned LEB128 number.
func AppendU32(b []byte, v uint32) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// AppendS64 appends a signed LEB128 number. It also serves for 32 bits.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7F)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// AppendName appends the length of s, then s.
func AppendName(b []byte, s string) []byte {
	return append(AppendU32(b, uint32(len(s))), s...)
}

// AppendTypes appends a vector of value types.
func AppendTypes(b []byte, types []ValueType) []byte {
	b = AppendU32(b, uint32(len(types)))
	for _, t := range types {
		b = append(b, byte(t))
	}
	return b
}

// AppendSection appends a section, unless it is empty.
func AppendSection(b []byte, id byte, content []byte) []byte {
	if len(content) == 0 {
		return b
	}
	b = append(b, id)
	b = AppendU32(b, uint32(len(content)))
	return append(b, content...)
}

// AppendVector appends an instruction of SIMD, without its immediate operands.
func AppendVector(b []byte, op Opcode) []byte {
	return AppendU32(append(b, 0xFD), uint32(op&0xFF))
}

// AppendV128 appends a constant of 128 bits.
func AppendV128(b []byte, low, high uint64) []byte {
	b = binary.LittleEndian.AppendUint64(AppendVector(b, OpV128Const), low)
	return binary.LittleEndian.AppendUint64(b, high)
}

// AppendIndexed appends an instruction with one unsigned immediate operand.
func AppendIndexed(b []byte, op Opcode, index uint32) []byte {
	return AppendU32(append(b, byte(op)), index)
}
