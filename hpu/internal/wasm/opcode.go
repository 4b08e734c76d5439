package wasm

import "strings"

// Opcode is an opcode of WebAssembly. An opcode behind the prefix 0xFC is
// 0xFC00 plus its number, one of SIMD, behind 0xFD, is 0xFD00 plus its number.
type Opcode uint16

// Opcodes that readers of instructions handle one by one. The others are known
// only by their OpInfo.
const (
	OpUnreachable  Opcode = 0x00
	OpNop          Opcode = 0x01
	OpBlock        Opcode = 0x02
	OpLoop         Opcode = 0x03
	OpIf           Opcode = 0x04
	OpElse         Opcode = 0x05
	OpEnd          Opcode = 0x0B
	OpBr           Opcode = 0x0C
	OpBrIf         Opcode = 0x0D
	OpBrTable      Opcode = 0x0E
	OpReturn       Opcode = 0x0F
	OpCall         Opcode = 0x10
	OpCallIndirect Opcode = 0x11
	OpDrop         Opcode = 0x1A
	OpSelect       Opcode = 0x1B
	OpLocalGet     Opcode = 0x20
	OpLocalSet     Opcode = 0x21
	OpLocalTee     Opcode = 0x22
	OpGlobalGet    Opcode = 0x23
	OpGlobalSet    Opcode = 0x24
	OpTableSet     Opcode = 0x26 // only in modules written by package hpu
	OpRefFunc      Opcode = 0xD2 // only in modules written by package hpu
	OpMemorySize   Opcode = 0x3F
	OpMemoryGrow   Opcode = 0x40
	OpI32Const     Opcode = 0x41
	OpI64Const     Opcode = 0x42
	OpF32Const     Opcode = 0x43
	OpF64Const     Opcode = 0x44
	OpF32Load      Opcode = 0x2A
	OpF64Load      Opcode = 0x2B
	OpF32Store     Opcode = 0x38
	OpF64Store     Opcode = 0x39
	OpI32Eqz       Opcode = 0x45
	OpI32GeU       Opcode = 0x4F
	OpI64LtS       Opcode = 0x53
	OpI32LtU       Opcode = 0x49
	OpF32Eq        Opcode = 0x5B
	OpF64Eq        Opcode = 0x61
	OpI32LtS       Opcode = 0x48
	OpI32Ne        Opcode = 0x47
	OpI32Eq        Opcode = 0x46
	OpI32Add       Opcode = 0x6A
	OpI32Or        Opcode = 0x72
	OpI32Sub       Opcode = 0x6B
	OpI32Mul       Opcode = 0x6C
	OpI64Shl       Opcode = 0x86
	OpI64Rotr      Opcode = 0x8A
	OpI32Clz       Opcode = 0x67
	OpI32ShrS      Opcode = 0x75
	OpI32DivS      Opcode = 0x6D
	OpI32RemS      Opcode = 0x6F
	OpI32RemU      Opcode = 0x70
	OpI32And       Opcode = 0x71
	OpI32Xor       Opcode = 0x73
	OpI32Shl       Opcode = 0x74
	OpI32Rotr      Opcode = 0x78
	OpI64Add       Opcode = 0x7C
	OpI64Sub       Opcode = 0x7D
	OpI64Mul       Opcode = 0x7E
	OpI64DivU      Opcode = 0x80
	OpI64RemS      Opcode = 0x81
	OpI64RemU      Opcode = 0x82
	OpI64Eq        Opcode = 0x51
	OpF32Add       Opcode = 0x92
	OpF32Sub       Opcode = 0x93
	OpF32Mul       Opcode = 0x94
	OpF64Add       Opcode = 0xA0
	OpF64Sub       Opcode = 0xA1
	OpF64Mul       Opcode = 0xA2
	OpI64ExtendI32 Opcode = 0xAD // unsigned
	OpMemoryInit   Opcode = 0xFC08
	OpDataDrop     Opcode = 0xFC09
	OpMemoryCopy   Opcode = 0xFC0A
	OpMemoryFill   Opcode = 0xFC0B
	OpV128Const    Opcode = 0xFD0C
	OpV128Bits     Opcode = 0xFD52 // bitselect
	OpI8x16Popcnt  Opcode = 0xFD62
	OpF32x4Min     Opcode = 0xFDE8 // max is the next
	OpF64x2Min     Opcode = 0xFDF4 // max is the next
	OpF32x4Eq      Opcode = 0xFD41
	OpF64x2Eq      Opcode = 0xFD47
)

// Class is a group of instructions with the same cost.
type Class uint8

// Classes of instructions.
const (
	ClassNone Class = iota // not an instruction of the accepted set
	ClassMove
	ClassInt
	ClassIntMul
	ClassIntDiv
	ClassFloat
	ClassFloatMul
	ClassFloatDiv
	ClassFloatSqrt
	ClassConvert
	ClassLoad
	ClassStore
	ClassSelect
	ClassBranch
	ClassCall
	ClassCallIndirect
	ClassGlobal
	ClassBulk

	// SIMD (vector.go).
	ClassVectorInt
	ClassVectorIntMul
	ClassVectorFloat
	ClassVectorFloatMul
	ClassVectorFloatDiv
	ClassVectorFloatSqrt
	ClassVectorConvert
	ClassVectorShuffle
	ClassVectorLoad
	ClassVectorStore

	NumClasses // greater than every class
)

// Imm is the kind of immediate operands of an opcode.
type Imm uint8

// Kinds of immediate operands.
const (
	ImmNone     Imm = iota
	ImmBlock        // block type
	ImmLabel        // label
	ImmLabels       // vector of labels and a default
	ImmIndex        // index of a function, local, global or data segment
	ImmIndirect     // type index and table index
	ImmMem          // alignment and offset
	ImmZero         // memory index 0
	ImmZeroZero     // two memory indices 0
	ImmInit         // data segment and memory index 0
	ImmI32
	ImmI64
	ImmF32
	ImmF64
	ImmV128    // 16 bytes
	ImmLane    // a lane
	ImmLanes   // 16 lanes of two vectors
	ImmMemLane // alignment, offset and a lane
)

// OpInfo describes an opcode. Sig has one letter per operand, a colon, and one
// letter per result: i is i32, I is i64, f is f32, F is f64, v is v128. Sig is
// empty if the type of the instruction depends on its context.
type OpInfo struct {
	Name  string
	Sig   string
	Imm   Imm
	Class Class
	Align uint8 // loads and stores: log2 of the bytes accessed
	Lanes uint8 // of a vector, if a lane is an operand: the number of lanes
	// 'f' or 'F' if the result may be a NaN whose bits the standard leaves
	// open, 'x' or 'X' if its lanes f32x4 or f64x2 may be, otherwise 0
	NaN byte
	// 'x' or 'X' if all NaNs in such lanes of the last operand are alike to a
	// SIMD instruction, otherwise 0
	AlikeNaN byte
}

// Loads reports whether the instruction reads memory at an address.
func (o *OpInfo) Loads() bool { return o.Class == ClassLoad || o.Class == ClassVectorLoad }

// Stores reports whether the instruction writes memory at an address.
func (o *OpInfo) Stores() bool { return o.Class == ClassStore || o.Class == ClassVectorStore }

// Accesses reports whether the instruction reads or writes memory at an address.
func (o *OpInfo) Accesses() bool { return o.Loads() || o.Stores() }

// Vector reports whether the instruction is one of SIMD.
func (o *OpInfo) Vector() bool {
	return o.Name != "" && (o.Class >= ClassVectorInt || o.Imm == ImmV128)
}

// Above is the type of the operand above the address of a load or store; 0:
// there is none.
func (o *OpInfo) Above() ValueType {
	if o.Sig[1] == ':' {
		return 0
	}
	return LetterType(o.Sig[1])
}

// group describes consecutive opcodes.
type group struct {
	first Opcode
	class Class
	imm   Imm
	sig   string
	names string
}

var groups = []group{
	{0x00, ClassBranch, ImmNone, "", "unreachable"},
	{0x01, ClassMove, ImmNone, ":", "nop"},
	{0x02, ClassMove, ImmBlock, "", "block loop"},
	{0x04, ClassBranch, ImmBlock, "", "if"},
	{0x05, ClassMove, ImmNone, "", "else"},
	{0x0B, ClassMove, ImmNone, "", "end"},
	{0x0C, ClassBranch, ImmLabel, "", "br br_if"},
	{0x0E, ClassBranch, ImmLabels, "", "br_table"},
	{0x0F, ClassBranch, ImmNone, "", "return"},
	{0x10, ClassCall, ImmIndex, "", "call"},
	{0x11, ClassCallIndirect, ImmIndirect, "", "call_indirect"},
	{0x1A, ClassMove, ImmNone, "", "drop"},
	{0x1B, ClassSelect, ImmNone, "", "select"},
	{0x20, ClassMove, ImmIndex, "", "local.get local.set local.tee"},
	{0x23, ClassGlobal, ImmIndex, "", "global.get global.set"},
	{0x28, ClassLoad, ImmMem, "i:i", "i32.load"},
	{0x29, ClassLoad, ImmMem, "i:I", "i64.load"},
	{0x2A, ClassLoad, ImmMem, "i:f", "f32.load"},
	{0x2B, ClassLoad, ImmMem, "i:F", "f64.load"},
	{0x2C, ClassLoad, ImmMem, "i:i", "i32.load8_s i32.load8_u i32.load16_s i32.load16_u"},
	{0x30, ClassLoad, ImmMem, "i:I", "i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u"},
	{0x36, ClassStore, ImmMem, "ii:", "i32.store"},
	{0x37, ClassStore, ImmMem, "iI:", "i64.store"},
	{0x38, ClassStore, ImmMem, "if:", "f32.store"},
	{0x39, ClassStore, ImmMem, "iF:", "f64.store"},
	{0x3A, ClassStore, ImmMem, "ii:", "i32.store8 i32.store16"},
	{0x3C, ClassStore, ImmMem, "iI:", "i64.store8 i64.store16 i64.store32"},
	{0x3F, ClassMove, ImmZero, ":i", "memory.size"},
	{0x41, ClassMove, ImmI32, ":i", "i32.const"},
	{0x42, ClassMove, ImmI64, ":I", "i64.const"},
	{0x43, ClassMove, ImmF32, ":f", "f32.const"},
	{0x44, ClassMove, ImmF64, ":F", "f64.const"},
	{0x45, ClassInt, ImmNone, "i:i", "i32.eqz"},
	{0x46, ClassInt, ImmNone, "ii:i", "i32.eq i32.ne i32.lt_s i32.lt_u i32.gt_s i32.gt_u i32.le_s i32.le_u i32.ge_s i32.ge_u"},
	{0x50, ClassInt, ImmNone, "I:i", "i64.eqz"},
	{0x51, ClassInt, ImmNone, "II:i", "i64.eq i64.ne i64.lt_s i64.lt_u i64.gt_s i64.gt_u i64.le_s i64.le_u i64.ge_s i64.ge_u"},
	{0x5B, ClassFloat, ImmNone, "ff:i", "f32.eq f32.ne f32.lt f32.gt f32.le f32.ge"},
	{0x61, ClassFloat, ImmNone, "FF:i", "f64.eq f64.ne f64.lt f64.gt f64.le f64.ge"},
	{0x67, ClassInt, ImmNone, "i:i", "i32.clz i32.ctz i32.popcnt"},
	{0x6A, ClassInt, ImmNone, "ii:i", "i32.add i32.sub"},
	{0x6C, ClassIntMul, ImmNone, "ii:i", "i32.mul"},
	{0x6D, ClassIntDiv, ImmNone, "ii:i", "i32.div_s i32.div_u i32.rem_s i32.rem_u"},
	{0x71, ClassInt, ImmNone, "ii:i", "i32.and i32.or i32.xor i32.shl i32.shr_s i32.shr_u i32.rotl i32.rotr"},
	{0x79, ClassInt, ImmNone, "I:I", "i64.clz i64.ctz i64.popcnt"},
	{0x7C, ClassInt, ImmNone, "II:I", "i64.add i64.sub"},
	{0x7E, ClassIntMul, ImmNone, "II:I", "i64.mul"},
	{0x7F, ClassIntDiv, ImmNone, "II:I", "i64.div_s i64.div_u i64.rem_s i64.rem_u"},
	{0x83, ClassInt, ImmNone, "II:I", "i64.and i64.or i64.xor i64.shl i64.shr_s i64.shr_u i64.rotl i64.rotr"},
	{0x8B, ClassFloat, ImmNone, "f:f", "f32.abs f32.neg f32.ceil f32.floor f32.trunc f32.nearest"},
	{0x91, ClassFloatSqrt, ImmNone, "f:f", "f32.sqrt"},
	{0x92, ClassFloat, ImmNone, "ff:f", "f32.add f32.sub"},
	{0x94, ClassFloatMul, ImmNone, "ff:f", "f32.mul"},
	{0x95, ClassFloatDiv, ImmNone, "ff:f", "f32.div"},
	{0x96, ClassFloat, ImmNone, "ff:f", "f32.min f32.max f32.copysign"},
	{0x99, ClassFloat, ImmNone, "F:F", "f64.abs f64.neg f64.ceil f64.floor f64.trunc f64.nearest"},
	{0x9F, ClassFloatSqrt, ImmNone, "F:F", "f64.sqrt"},
	{0xA0, ClassFloat, ImmNone, "FF:F", "f64.add f64.sub"},
	{0xA2, ClassFloatMul, ImmNone, "FF:F", "f64.mul"},
	{0xA3, ClassFloatDiv, ImmNone, "FF:F", "f64.div"},
	{0xA4, ClassFloat, ImmNone, "FF:F", "f64.min f64.max f64.copysign"},
	{0xA7, ClassInt, ImmNone, "I:i", "i32.wrap_i64"},
	{0xA8, ClassConvert, ImmNone, "f:i", "i32.trunc_f32_s i32.trunc_f32_u"},
	{0xAA, ClassConvert, ImmNone, "F:i", "i32.trunc_f64_s i32.trunc_f64_u"},
	{0xAC, ClassInt, ImmNone, "i:I", "i64.extend_i32_s i64.extend_i32_u"},
	{0xAE, ClassConvert, ImmNone, "f:I", "i64.trunc_f32_s i64.trunc_f32_u"},
	{0xB0, ClassConvert, ImmNone, "F:I", "i64.trunc_f64_s i64.trunc_f64_u"},
	{0xB2, ClassConvert, ImmNone, "i:f", "f32.convert_i32_s f32.convert_i32_u"},
	{0xB4, ClassConvert, ImmNone, "I:f", "f32.convert_i64_s f32.convert_i64_u"},
	{0xB6, ClassConvert, ImmNone, "F:f", "f32.demote_f64"},
	{0xB7, ClassConvert, ImmNone, "i:F", "f64.convert_i32_s f64.convert_i32_u"},
	{0xB9, ClassConvert, ImmNone, "I:F", "f64.convert_i64_s f64.convert_i64_u"},
	{0xBB, ClassConvert, ImmNone, "f:F", "f64.promote_f32"},
	{0xBC, ClassMove, ImmNone, "f:i", "i32.reinterpret_f32"},
	{0xBD, ClassMove, ImmNone, "F:I", "i64.reinterpret_f64"},
	{0xBE, ClassMove, ImmNone, "i:f", "f32.reinterpret_i32"},
	{0xBF, ClassMove, ImmNone, "I:F", "f64.reinterpret_i64"},
	{0xC0, ClassInt, ImmNone, "i:i", "i32.extend8_s i32.extend16_s"},
	{0xC2, ClassInt, ImmNone, "I:I", "i64.extend8_s i64.extend16_s i64.extend32_s"},
	{0xFC00, ClassConvert, ImmNone, "f:i", "i32.trunc_sat_f32_s i32.trunc_sat_f32_u"},
	{0xFC02, ClassConvert, ImmNone, "F:i", "i32.trunc_sat_f64_s i32.trunc_sat_f64_u"},
	{0xFC04, ClassConvert, ImmNone, "f:I", "i64.trunc_sat_f32_s i64.trunc_sat_f32_u"},
	{0xFC06, ClassConvert, ImmNone, "F:I", "i64.trunc_sat_f64_s i64.trunc_sat_f64_u"},
	{0xFC08, ClassBulk, ImmInit, "iii:", "memory.init"},
	{0xFC09, ClassBulk, ImmIndex, ":", "data.drop"},
	{0xFC0A, ClassBulk, ImmZeroZero, "iii:", "memory.copy"},
	{0xFC0B, ClassBulk, ImmZero, "iii:", "memory.fill"},
}

// The indices in the table of the first opcodes behind the prefixes 0xFC and
// 0xFD.
const (
	prefixed = 256
	vectors  = prefixed + 12
)

// NumOpcodes is greater than every Opcode.Index.
const NumOpcodes = vectors + 256

var opcodes = buildOpcodes()

func buildOpcodes() (table [NumOpcodes]OpInfo) {
	for _, g := range groups {
		for i, name := range strings.Fields(g.names) {
			op := g.first + Opcode(i)
			table[tableIndex(op)] = OpInfo{Name: name, Sig: g.sig, Imm: g.imm, Class: g.class, Align: accessWidth(name), NaN: openNaN(op, name)}
		}
	}
	for _, g := range vectorGroups {
		for i, name := range strings.Fields(g.names) {
			info := &table[tableIndex(g.first+Opcode(i))]
			*info = OpInfo{Name: name, Sig: g.sig, Imm: g.imm, Class: g.class, Align: vectorWidth(name), Lanes: lanesOf(name)}
			info.NaN, info.AlikeNaN = vectorNaN(name)
		}
	}
	return table
}

// Opcodes calls yield with every accepted opcode, in order.
func Opcodes(yield func(Opcode) bool) {
	for i := range opcodes {
		op := Opcode(i)
		switch {
		case i >= vectors:
			op = 0xFD00 + op - vectors
		case i >= prefixed:
			op = 0xFC00 + op - prefixed
		}
		if op.Info() != nil && !yield(op) {
			return
		}
	}
}

// Index returns a small number for an accepted opcode, less than NumOpcodes.
func (op Opcode) Index() int { return tableIndex(op) }

var byName = func() map[string]Opcode {
	m := make(map[string]Opcode)
	for op := range Opcodes {
		m[op.Info().Name] = op
	}
	return m
}()

// OpcodeByName returns the opcode of an instruction's name, such as i64.add.
func OpcodeByName(name string) (Opcode, bool) {
	op, ok := byName[name]
	return op, ok
}

func tableIndex(op Opcode) int {
	switch {
	case op >= 0xFD00:
		return vectors + int(op&0xFF)
	case op >= 0xFC00+vectors-prefixed:
		return NumOpcodes // not accepted
	case op >= 0xFC00:
		return prefixed + int(op&0xFF)
	}
	return int(op)
}

// accessWidth returns log2 of the bytes that a load or store accesses.
func accessWidth(name string) uint8 {
	typ, access, _ := strings.Cut(name, ".")
	switch {
	case !strings.HasPrefix(access, "load") && !strings.HasPrefix(access, "store"):
		return 0
	case strings.Contains(access, "8"):
		return 0
	case strings.Contains(access, "16"):
		return 1
	case strings.Contains(access, "32"), strings.HasSuffix(typ, "32"):
		return 2
	}
	return 3
}

// openNaN reports whether the standard leaves the sign or the payload of a NaN
// result to the implementation. That is so for arithmetic, but not for abs, neg
// and copysign, which work on bits.
func openNaN(op Opcode, name string) byte {
	_, operation, _ := strings.Cut(name, ".")
	switch {
	case operation == "abs", operation == "neg", operation == "copysign":
		return 0
	case op >= 0x8B && op <= 0x98, op == 0xB6:
		return 'f'
	case op >= 0x99 && op <= 0xA6, op == 0xBB:
		return 'F'
	}
	return 0
}

// Info returns the description of op; nil: op is not accepted.
func (op Opcode) Info() *OpInfo {
	i := tableIndex(op)
	if i >= len(opcodes) || opcodes[i].Class == ClassNone {
		return nil
	}
	return &opcodes[i]
}

// feature names the proposal that defines an opcode outside the accepted set.
func feature(op Opcode) string {
	switch {
	case op >= 0x06 && op <= 0x0A, op == 0x18, op == 0x19, op == 0x1F:
		return "exceptions"
	case op == 0x12, op == 0x13:
		return "tail calls"
	case op == 0x14, op == 0x15, op >= 0xD0 && op <= 0xD6, op == 0x1C, op == 0x25, op == 0x26:
		return "reference types"
	case op >= 0xFC0C && op <= 0xFC11:
		return "bulk table operations"
	case op == OpMemoryGrow:
		return "memory.grow"
	case op == 0xFB:
		return "garbage collection"
	case op == 0xFE:
		return "threads"
	}
	return ""
}
