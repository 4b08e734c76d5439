// Package wasm decodes, validates and encodes the WebAssembly that handlers may
// use: version 1.0 with mutable globals, sign extension, non-trapping
// conversions and bulk memory operations, and SIMD if the device has it
// (docs/abi.md, Module). It rejects everything else with the name of the feature
// and the offset in the file. Decoding takes time and memory linear in the length of the input.
package wasm

import "fmt"

// ValueType is the type of a value.
type ValueType byte

// Value types.
const (
	I32 ValueType = 0x7F
	I64 ValueType = 0x7E
	F32 ValueType = 0x7D
	F64 ValueType = 0x7C

	V128 ValueType = 0x7B

	FuncRef ValueType = 0x70 // only in modules written by package hpu
)

// String returns the name of the type in the text format.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	}
	return fmt.Sprintf("type 0x%02x", byte(t))
}

// FuncType is a signature. Results has at most one element, except in functions
// that package hpu adds.
type FuncType struct {
	Params, Results []ValueType
}

// Equal reports whether both signatures have the same parameters and results.
func (t FuncType) Equal(u FuncType) bool {
	return string(asBytes(t.Params)) == string(asBytes(u.Params)) && string(asBytes(t.Results)) == string(asBytes(u.Results))
}

func asBytes(types []ValueType) []byte {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = byte(t)
	}
	return b
}

// String returns the signature in the form (i32, i64) -> i32.
func (t FuncType) String() string {
	s := "("
	for i, p := range t.Params {
		if i > 0 {
			s += ", "
		}
		s += p.String()
	}
	s += ") -> "
	if len(t.Results) == 0 {
		return s + "()"
	}
	return s + t.Results[0].String()
}

// Import is an imported function.
type Import struct {
	Module, Name string
	Type         uint32 // index in Module.Types
	Offset       int    // in the file
}

// Code is the body of a function that the module defines.
type Code struct {
	Offset int // of the local declarations
	Body   int // of the first instruction
	End    int // behind the last instruction
	Locals []LocalGroup
}

// LocalGroup declares Count locals of one type.
type LocalGroup struct {
	Count uint32
	Type  ValueType
}

// Global is a global variable that the module defines.
type Global struct {
	Type    ValueType
	Mutable bool
	Value   uint64 // initial bits
	High    uint64 // of v128: the upper half
}

// Kinds of exports.
const (
	ExportFunc byte = iota
	ExportTable
	ExportMemory
	ExportGlobal
)

// Export gives a name to a function, table, memory or global.
type Export struct {
	Name   string
	Kind   byte
	Index  uint32
	Offset int // in the file
}

// Elem is an active element segment of table 0.
type Elem struct {
	At     uint32
	Funcs  []uint32
	Offset int // in the file
}

// Data is a data segment.
type Data struct {
	Passive bool
	At      uint32 // address, if active
	Bytes   []byte // part of Module.Bytes
	Offset  int    // in the file
}

// Module is a decoded module. Function indices count the imports first.
type Module struct {
	Bytes     []byte
	Types     []FuncType
	Imports   []Import
	Funcs     []uint32 // type index of each function that the module defines
	Codes     []Code   // of the same functions
	CodeBytes int      // code section, bytes
	HasTable  bool
	Table     uint32 // elements
	HasMemory bool
	Memory    uint32 // pages
	Globals   []Global
	Exports   []Export
	Start     int // function index, -1 if none
	Elems     []Elem
	Data      []Data
	HasCount  bool              // a data count section is present
	Names     map[uint32]string // of functions, from the name section
	GlobalSP  int               // global named __stack_pointer in the name section, -1 if none
	Custom    *Custom           // the custom section named in Limits; nil: there is none
	Debug     []Debug           // custom sections with debugging information
	CodeAt    int               // offset of the contents of the code section in the file
	simd      bool              // Limits.SIMD
}

// Debug is a custom section for debuggers.
type Debug struct {
	Name  string // such as .debug_line
	Bytes []byte
}

// Custom is a custom section.
type Custom struct {
	Offset int // of the contents in the module
	Bytes  []byte
}

// PageSize is the unit of a memory's size, bytes.
const PageSize = 65536

// FuncCount returns the number of functions, imports included.
func (m *Module) FuncCount() int { return len(m.Imports) + len(m.Funcs) }

// TypeIndex returns the index of a function's signature.
func (m *Module) TypeIndex(fn uint32) uint32 {
	if int(fn) < len(m.Imports) {
		return m.Imports[fn].Type
	}
	return m.Funcs[int(fn)-len(m.Imports)]
}

// TypeOf returns the signature of a function.
func (m *Module) TypeOf(fn uint32) FuncType { return m.Types[m.TypeIndex(fn)] }

// Error is an error in a module.
type Error struct {
	Func   int // function index, -1 outside functions
	Offset int // in the file, -1 if unknown
	Cause  string
}

// Error returns the cause with its place.
func (e *Error) Error() string {
	if e.Func >= 0 {
		return fmt.Sprintf("function %d, offset 0x%x: %s", e.Func, e.Offset, e.Cause)
	}
	return fmt.Sprintf("offset 0x%x: %s", e.Offset, e.Cause)
}

func failf(offset int, format string, args ...any) *Error {
	return &Error{Func: -1, Offset: offset, Cause: fmt.Sprintf(format, args...)}
}
