package wasm

import "slices"

// Facts is the result of the validation of a function.
type Facts struct {
	Calls        []uint32 // functions called, once for each call instruction, in order
	Indirect     []uint32 // type index of each call_indirect
	Instructions int
	Loops        int
	Branches     int  // branches, labels of br_table, and conditions
	Height       int  // greatest operand stack, values
	Vectors      bool // it has values of type v128
	// instructions that begin blocks, and the values that wait on the operand
	// stack at each of them, all together
	Begins, Waiting int64
	// data segments of the function's data.drop instructions, in order
	Dropped []uint32
}

// frame is an open control instruction.
type frame struct {
	op          Opcode
	result      ValueType // 0: none
	height      int
	unreachable bool
}

// anyType is the type of an unknown value, from unreachable code.
const anyType ValueType = 0

// validator checks one function after the other.
type validator struct {
	m      *Module
	locals []ValueType
	stack  []ValueType
	frames []frame
	in     Instr
	facts  Facts
	err    *Error
}

// Validate checks the bodies of all functions. It returns one Facts for each
// defined function.
func Validate(m *Module) ([]Facts, error) {
	v := &validator{m: m}
	facts := make([]Facts, len(m.Codes))
	for i := range m.Codes {
		v.function(i)
		if v.err != nil {
			v.err.Func = len(m.Imports) + i
			return nil, v.err
		}
		facts[i] = v.facts
	}
	return facts, nil
}

func (v *validator) function(i int) {
	code, sig := &v.m.Codes[i], v.m.Types[v.m.Funcs[i]]
	v.facts = Facts{}
	v.locals = append(v.locals[:0], sig.Params...)
	for _, g := range code.Locals {
		for range g.Count {
			v.locals = append(v.locals, g.Type)
		}
	}
	v.facts.Vectors = slices.Contains(v.locals, V128)
	v.stack, v.frames = v.stack[:0], v.frames[:0]
	v.open(OpBlock, resultOf(sig))
	instrs := v.m.Instrs(code)
	for len(v.frames) > 0 {
		if err := instrs.Next(&v.in); err != nil {
			v.err = err
			return
		}
		v.facts.Instructions++
		v.instr()
		if v.err != nil {
			return
		}
		switch v.in.Op {
		case OpBlock, OpLoop, OpIf, OpElse, OpBrIf, OpBrTable:
			v.facts.Begins++
			v.facts.Waiting += int64(len(v.stack))
		}
		v.facts.Height = max(v.facts.Height, len(v.stack))
		if v.facts.Height > maxHeight {
			v.fail("%d values on the operand stack, at most %d", v.facts.Height, maxHeight)
			return
		}
	}
	if instrs.More() {
		v.fail("instructions behind the end of the function")
	}
}

func resultOf(sig FuncType) ValueType {
	if len(sig.Results) == 0 {
		return 0
	}
	return sig.Results[0]
}

func (v *validator) fail(format string, args ...any) {
	if v.err == nil {
		v.err = failf(v.in.Offset, format, args...)
	}
}

func (v *validator) open(op Opcode, result ValueType) {
	if len(v.frames) >= maxNesting {
		v.fail("%d control instructions within each other", maxNesting)
		return
	}
	v.frames = append(v.frames, frame{op: op, result: result, height: len(v.stack)})
}

func (v *validator) top() *frame { return &v.frames[len(v.frames)-1] }

func (v *validator) push(t ValueType) {
	v.stack = append(v.stack, t)
	v.facts.Vectors = v.facts.Vectors || t == V128
}

func (v *validator) pop(want ValueType) ValueType {
	f := v.top()
	if len(v.stack) == f.height {
		if f.unreachable {
			return want
		}
		if want == anyType {
			v.fail("%s: a value is missing", v.in.Info.Name)
		} else {
			v.fail("%s: a value of type %v is missing", v.in.Info.Name, want)
		}
		return want
	}
	got := v.stack[len(v.stack)-1]
	v.stack = v.stack[:len(v.stack)-1]
	if got != want && got != anyType && want != anyType {
		v.fail("%s: value of type %v, expected %v", v.in.Info.Name, got, want)
	}
	if got == anyType {
		return want
	}
	return got
}

// dead marks the rest of the block as unreachable.
func (v *validator) dead() {
	f := v.top()
	v.stack = v.stack[:f.height]
	f.unreachable = true
}

func (v *validator) instr() {
	switch v.in.Op {
	case OpUnreachable:
		v.dead()
	case OpBlock, OpLoop, OpIf, OpElse, OpEnd:
		v.structure()
	case OpBr, OpBrIf, OpBrTable, OpReturn:
		v.branch()
	case OpCall, OpCallIndirect:
		v.call()
	case OpDrop:
		v.pop(anyType)
	case OpSelect:
		v.pop(I32)
		t := v.pop(anyType)
		v.push(v.pop(t))
		if v.stack[len(v.stack)-1] == anyType {
			v.stack[len(v.stack)-1] = t
		}
	case OpLocalGet, OpLocalSet, OpLocalTee, OpGlobalGet, OpGlobalSet:
		v.variable()
	default:
		v.simple()
	}
}

func (v *validator) structure() {
	result := ValueType(v.in.Imm)
	if result == 0x40 {
		result = 0
	}
	switch v.in.Op {
	case OpLoop:
		v.facts.Loops++
		v.open(OpLoop, result)
	case OpBlock:
		v.open(OpBlock, result)
	case OpIf:
		v.facts.Branches++
		v.pop(I32)
		v.open(OpIf, result)
	case OpElse:
		f := v.closeFrame()
		if f.op != OpIf {
			v.fail("else without if")
			return
		}
		v.frames = v.frames[:len(v.frames)-1]
		v.open(OpElse, f.result)
	case OpEnd:
		f := v.closeFrame()
		if f.op == OpIf && f.result != 0 {
			v.fail("if of type %v without else", f.result)
		}
		v.frames = v.frames[:len(v.frames)-1]
		if f.result != 0 {
			v.push(f.result)
		}
	}
}

// closeFrame checks that the innermost block leaves only its result.
func (v *validator) closeFrame() frame {
	f := *v.top()
	if f.result != 0 {
		v.pop(f.result)
	}
	if len(v.stack) > f.height {
		v.fail("%s: %d values too many", v.in.Info.Name, len(v.stack)-f.height)
	}
	v.stack = v.stack[:f.height]
	return f
}

// label returns the type of the value that a branch to label l carries; 0: no
// value.
func (v *validator) label(l uint64) ValueType {
	if l >= uint64(len(v.frames)) {
		v.fail("%s: label %d of %d", v.in.Info.Name, l, len(v.frames))
		return 0
	}
	f := &v.frames[len(v.frames)-1-int(l)]
	if f.op == OpLoop {
		return 0
	}
	return f.result
}

func (v *validator) popResult(t ValueType) {
	if t != 0 {
		v.pop(t)
	}
}

func (v *validator) branch() {
	v.facts.Branches += 1 + len(v.in.Labels)
	switch v.in.Op {
	case OpBr:
		v.popResult(v.label(v.in.Imm))
		v.dead()
	case OpBrIf:
		v.pop(I32)
		if t := v.label(v.in.Imm); t != 0 {
			v.pop(t)
			v.push(t)
		}
	case OpBrTable:
		v.pop(I32)
		t := v.label(uint64(v.in.Labels[len(v.in.Labels)-1]))
		for _, l := range v.in.Labels {
			if u := v.label(uint64(l)); u != t {
				v.fail("br_table: labels of different types")
			}
			if v.err != nil {
				return
			}
		}
		v.popResult(t)
		v.dead()
	case OpReturn:
		v.popResult(v.frames[0].result)
		v.dead()
	}
}

func (v *validator) call() {
	var sig FuncType
	if v.in.Op == OpCall {
		if v.in.Imm >= uint64(v.m.FuncCount()) {
			v.fail("call of function %d of %d", v.in.Imm, v.m.FuncCount())
			return
		}
		sig = v.m.TypeOf(uint32(v.in.Imm))
		v.facts.Calls = append(v.facts.Calls, uint32(v.in.Imm))
	} else {
		switch {
		case v.in.Imm >= uint64(len(v.m.Types)):
			v.fail("call_indirect of type %d of %d", v.in.Imm, len(v.m.Types))
			return
		case !v.m.HasTable:
			v.fail("call_indirect without a table")
			return
		}
		sig = v.m.Types[v.in.Imm]
		v.facts.Indirect = append(v.facts.Indirect, uint32(v.in.Imm))
		v.pop(I32)
	}
	for _, param := range slices.Backward(sig.Params) {
		v.pop(param)
	}
	for _, t := range sig.Results {
		v.push(t)
	}
}

func (v *validator) variable() {
	var t ValueType
	switch v.in.Op {
	case OpGlobalGet, OpGlobalSet:
		if v.in.Imm >= uint64(len(v.m.Globals)) {
			v.fail("%s: global %d of %d", v.in.Info.Name, v.in.Imm, len(v.m.Globals))
			return
		}
		g := &v.m.Globals[v.in.Imm]
		t = g.Type
		if v.in.Op == OpGlobalSet && !g.Mutable {
			v.fail("global.set: global %d is immutable", v.in.Imm)
		}
	default:
		if v.in.Imm >= uint64(len(v.locals)) {
			v.fail("%s: local %d of %d", v.in.Info.Name, v.in.Imm, len(v.locals))
			return
		}
		t = v.locals[v.in.Imm]
	}
	switch v.in.Op {
	case OpLocalGet, OpGlobalGet:
		v.push(t)
	case OpLocalSet, OpGlobalSet:
		v.pop(t)
	case OpLocalTee:
		v.pop(t)
		v.push(t)
	}
}

// simple checks an instruction whose type is in the opcode table.
func (v *validator) simple() {
	info := v.in.Info
	if (info.Accesses() || info.Class == ClassBulk) && !v.m.HasMemory {
		v.fail("%s without a memory", info.Name)
		return
	}
	switch v.in.Op {
	case OpMemorySize:
		if !v.m.HasMemory {
			v.fail("memory.size without a memory")
		}
	case OpMemoryInit, OpDataDrop:
		if !v.m.HasCount {
			v.fail("%s without a data count section", info.Name)
		}
		if v.in.Imm >= uint64(len(v.m.Data)) {
			v.fail("%s: data segment %d of %d", info.Name, v.in.Imm, len(v.m.Data))
		}
		if v.in.Op == OpDataDrop {
			v.facts.Dropped = append(v.facts.Dropped, uint32(v.in.Imm))
		}
	}
	colon := 0
	for info.Sig[colon] != ':' {
		colon++
	}
	for i := colon - 1; i >= 0; i-- {
		v.pop(LetterType(info.Sig[i]))
	}
	for i := colon + 1; i < len(info.Sig); i++ {
		v.push(LetterType(info.Sig[i]))
	}
}

// LetterType returns the type that a letter of OpInfo.Sig stands for.
func LetterType(l byte) ValueType {
	switch l {
	case 'i':
		return I32
	case 'I':
		return I64
	case 'f':
		return F32
	case 'v':
		return V128
	}
	return F64
}
