package scan

import (
	"encoding/binary"
	"math"
	"structs"
)

// Instruction is an instruction of a program. The program runs on a stack
// machine without jumps, so it ends after as many steps as it has instructions.
type Instruction struct {
	_      structs.HostLayout
	Op     uint8
	Kind   uint8  // of a field: see the kinds
	Offset uint16 // of a field, in the row
	Length uint32 // of a field of Bytes: 1 to 8; else 0
	Value  uint64 // constant
}

// Limits of a program.
const (
	MaxProgram = 64
	MaxStack   = 8
)

// Operations. An operation on two words takes the upper one from the stack
// first and leaves its result.
const (
	Const = 1 + iota // push Value
	Load             // push a field
	And              // of truth values, 0 and 1
	Or
	Not // one word: 1 for 0, else 0
	Equal
	Unequal
	LessI // signed
	AtMostI
	LessU // unsigned
	AtMostU
	EqualF // floating point
	UnequalF
	LessF
	AtMostF
	Add // integers, modulo 2^64
	Sub
	Mul
	AddF
	SubF
	MulF
	ops

	// with an operation on two words: apply it to a field, as by Load, and
	// Value, and push the result
	OnField = 0x80
)

// Kinds of fields. A load extends a field to 64 bits: signed ones with their
// sign, floating point to a double, bytes with the first one in the lowest
// bits.
const (
	I8 = iota
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F32
	F64
	Bytes
	kinds
)

// sizes are the sizes of the kinds, bytes.
var sizes = [kinds]uint8{1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0}

// Verify reports whether a program can run on rows of a length: all operations
// exist, it stays within the row and the stack, and it leaves one word. wrong
// is the index of the wrong instruction, or -1 for the whole program.
func Verify(code []Instruction, rowBytes uint32) (wrong int, ok bool) {
	if len(code) == 0 || len(code) > MaxProgram {
		return -1, false
	}
	depth := 0
	for i := range code {
		c := &code[i]
		switch {
		case c.Op == 0 || c.Op&^OnField >= ops || c.Op >= OnField && (c.Op&^OnField <= Load || c.Op&^OnField == Not):
			return i, false
		case c.Op == Const:
			depth++
		case c.Op == Load || c.Op >= OnField:
			if !inRow(c, rowBytes) {
				return i, false
			}
			depth++
		case c.Op == Not:
			if depth < 1 {
				return i, false
			}
		default:
			if depth < 2 {
				return i, false
			}
			depth--
		}
		if depth > MaxStack {
			return i, false
		}
	}
	return -1, depth == 1
}

// inRow reports whether the field of an instruction lies in the row.
func inRow(c *Instruction, rowBytes uint32) bool {
	if c.Kind == Bytes {
		return c.Length-1 < 8 && uint32(c.Offset)+c.Length <= rowBytes
	}
	return c.Kind < Bytes && c.Length == 0 && uint32(c.Offset)+uint32(sizes[c.Kind]) <= rowBytes
}

// Eval runs a program that Verify has accepted on a row, and reports whether
// the remaining word is not 0.
func Eval(code []Instruction, row []byte) bool {
	var stack [MaxStack + 1]uint64 // from 1 on
	top := 0
	for i := range code {
		c := &code[i]
		if c.Op >= OnField {
			top++
			stack[top] = binaryOp(c.Op-OnField, load(c, row), c.Value)
			continue
		}
		if c.Op <= Load {
			top++
			if c.Op == Const {
				stack[top] = c.Value
			} else {
				stack[top] = load(c, row)
			}
			continue
		}
		if c.Op == Not {
			stack[top] = truth(stack[top] == 0)
			continue
		}
		top--
		stack[top] = binaryOp(c.Op, stack[top], stack[top+1])
	}
	return stack[1] != 0
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// load reads a field.
func load(c *Instruction, row []byte) uint64 {
	b := row[c.Offset:]
	switch c.Kind {
	case I8:
		return uint64(int8(b[0]))
	case I16:
		return uint64(int16(binary.LittleEndian.Uint16(b)))
	case I32:
		return uint64(int32(binary.LittleEndian.Uint32(b)))
	case U8:
		return uint64(b[0])
	case U16:
		return uint64(binary.LittleEndian.Uint16(b))
	case U32:
		return uint64(binary.LittleEndian.Uint32(b))
	case F32:
		return math.Float64bits(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case Bytes:
		w := uint64(0)
		for i := c.Length; i > 0; i-- {
			w = w<<8 | uint64(b[i-1])
		}
		return w
	}
	return binary.LittleEndian.Uint64(b)
}

func binaryOp(op uint8, a, b uint64) uint64 {
	switch op {
	case And:
		return a & b
	case Or:
		return a | b
	case Equal:
		return truth(a == b)
	case Unequal:
		return truth(a != b)
	case LessI:
		return truth(int64(a) < int64(b))
	case AtMostI:
		return truth(int64(a) <= int64(b))
	case LessU:
		return truth(a < b)
	case AtMostU:
		return truth(a <= b)
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	}
	x, y := math.Float64frombits(a), math.Float64frombits(b)
	switch op {
	case EqualF:
		return truth(x == y)
	case UnequalF:
		return truth(x != y)
	case LessF:
		return truth(x < y)
	case AtMostF:
		return truth(x <= y)
	case AddF:
		return math.Float64bits(x + y)
	case SubF:
		return math.Float64bits(x - y)
	}
	return math.Float64bits(x * y)
}
