package wasm

import (
	"encoding/binary"
	"strings"
)

// Limits bounds the modules that Decode accepts. They are checked before
// anything is allocated or validated.
type Limits struct {
	CodeBytes   int   // code section
	Functions   int   // defined functions
	MemoryBytes int64 // declared memory, together with all passive data segments
	Rewritten   bool  // package hpu wrote the module, so structural limits do not apply
	SIMD        bool  // the device has SIMD

	Custom string // name of the custom section to keep; "": none
}

// Structural limits. They are far beyond the output of compilers, and no module
// within them makes an engine slow.
const (
	maxParams  = 64    // parameters of a function type
	maxNesting = 1024  // control instructions within each other
	maxHeight  = 4096  // values on the operand stack of a function
	maxGlobals = 1024  // globals
	maxTable   = 65536 // elements of the table
	// locals that a function may declare beyond the number of bytes in its body
	maxFreeLocals = 64
)

// Section numbers.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
	secTag       = 13
)

var sectionNames = [...]string{"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data", "data count"}

// debugPrefix begins the names of sections that compilers write for debuggers.
const debugPrefix = ".debug_"

// sectionOrder is the place of each section. The data count section stands
// before the code section.
var sectionOrder = [...]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 10}

type decoder struct {
	reader
	m         Module
	lim       Limits
	seen      int // order of the last section
	dataCount int
}

// Decode reads a binary module and checks everything except the function
// bodies, which Validate checks. The module refers to b. After an error it
// holds the parts read so far, or is nil.
func Decode(b []byte, lim Limits) (*Module, error) {
	d := &decoder{reader: reader{b: b, end: len(b), simd: lim.SIMD}, lim: lim, dataCount: -1}
	d.m = Module{Bytes: b, Start: -1, GlobalSP: -1, simd: lim.SIMD}
	if len(b) < 8 || string(b[:4]) != "\x00asm" {
		return nil, failf(0, "not a WebAssembly module: it does not begin with \\0asm")
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != 1 {
		return nil, failf(4, "version %d of the binary format, expected 1", v)
	}
	d.pos = 8
	var names [][2]int
	for d.rest() > 0 && d.err == nil {
		at := d.pos
		id := d.byte()
		n := d.count("bytes of a section")
		start, next := d.pos, d.pos+n
		if d.err != nil {
			break
		}
		d.end = next
		if id == secCustom {
			switch name := d.name(); {
			case name == "name":
				names = append(names, [2]int{d.pos, next})
			case name == lim.Custom && name != "" && d.m.Custom != nil:
				d.fail(at, "a second custom section %s", name)
			case name == lim.Custom && name != "" && d.err == nil:
				d.m.Custom = &Custom{d.pos, b[d.pos:next]}
			case strings.HasPrefix(name, debugPrefix) && d.err == nil:
				d.m.Debug = append(d.m.Debug, Debug{name, b[d.pos:next]})
			}
			d.pos = next
		} else {
			d.section(at, id, start)
		}
		if d.err == nil && d.pos != next {
			d.fail(d.pos, "section is longer than its content")
		}
		d.end = len(b)
		if d.err == nil {
			d.pos = next
		}
	}
	if d.err == nil {
		d.whole()
	}
	if d.err != nil {
		return &d.m, d.err
	}
	for _, n := range names {
		d.nameSection(n[0], n[1])
	}
	return &d.m, nil
}

func (d *decoder) section(at int, id byte, start int) {
	if id == secTag {
		d.fail(at, "exceptions: not supported")
		return
	}
	if int(id) >= len(sectionOrder) {
		d.fail(at, "unknown section %d", id)
		return
	}
	if sectionOrder[id] <= d.seen {
		d.fail(at, "%s section out of order or twice", sectionNames[id])
		return
	}
	d.seen = sectionOrder[id]
	switch id {
	case secType:
		d.types()
	case secImport:
		d.imports()
	case secFunction:
		d.functions()
	case secTable:
		d.tables()
	case secMemory:
		d.memories()
	case secGlobal:
		d.globals()
	case secExport:
		d.exports()
	case secStart:
		d.m.Start = int(d.u32())
		if d.err == nil && d.m.Start >= d.m.FuncCount() {
			d.fail(start, "start function %d of %d", d.m.Start, d.m.FuncCount())
		}
	case secElement:
		d.elements()
	case secCode:
		d.codes(start)
	case secData:
		d.data()
	case secDataCount:
		d.m.HasCount = true
		d.dataCount = int(d.u32())
	}
}

// whole checks rules about several sections.
func (d *decoder) whole() {
	m := &d.m
	if len(m.Codes) != len(m.Funcs) {
		d.fail(-1, "%d functions declared, %d bodies", len(m.Funcs), len(m.Codes))
	}
	if d.dataCount >= 0 && d.dataCount != len(m.Data) {
		d.fail(-1, "%d data segments announced, %d present", d.dataCount, len(m.Data))
	}
	if m.Start >= 0 && d.err == nil {
		if t := m.TypeOf(uint32(m.Start)); len(t.Params)+len(t.Results) != 0 {
			d.fail(-1, "start function %d has signature %v, expected () -> ()", m.Start, t)
		}
	}
	for _, e := range m.Elems {
		if int64(e.At)+int64(len(e.Funcs)) > int64(m.Table) {
			d.fail(e.Offset, "element segment of %d functions at %d does not fit a table of %d", len(e.Funcs), e.At, m.Table)
		}
	}
	for i := range m.Data {
		s := &m.Data[i]
		if size := int64(m.Memory) * PageSize; !s.Passive && int64(s.At)+int64(len(s.Bytes)) > size {
			d.fail(s.Offset, "data segment of %d bytes at %d does not fit a memory of %d bytes", len(s.Bytes), s.At, size)
		}
	}
}

func (d *decoder) types() {
	for i := d.count("types"); i > 0 && d.err == nil; i-- {
		at := d.pos
		switch form := d.byte(); form {
		case 0x60:
		case 0x4E, 0x4F, 0x50, 0x5E, 0x5F:
			d.fail(at, "garbage collection: not supported")
		default:
			d.fail(at, "invalid form of a type 0x%02x", form)
		}
		t := FuncType{Params: d.valueTypes(maxParams, "parameters"), Results: d.valueTypes(maxParams, "results")}
		if len(t.Results) > 1 && !d.lim.Rewritten {
			d.fail(at, "multiple values: not supported (%d results)", len(t.Results))
		}
		d.m.Types = append(d.m.Types, t)
	}
}

func (d *decoder) valueTypes(most int, what string) []ValueType {
	at := d.pos
	n := d.count(what)
	if n > most {
		d.fail(at, "%d %s, at most %d", n, what, most)
		return nil
	}
	types := make([]ValueType, n)
	for i := range types {
		types[i] = d.valueType()
	}
	return types
}

func (d *decoder) typeIndex() uint32 {
	at := d.pos
	t := d.u32()
	if d.err == nil && int64(t) >= int64(len(d.m.Types)) {
		d.fail(at, "type %d of %d", t, len(d.m.Types))
	}
	return t
}

func (d *decoder) imports() {
	for i := d.count("imports"); i > 0 && d.err == nil; i-- {
		at := d.pos
		imp := Import{Offset: at, Module: d.name(), Name: d.name()}
		kind := d.byte()
		if d.err != nil {
			return
		}
		if kind != ExportFunc {
			kinds := [...]string{"function", "table", "memory", "global", "tag"}
			what := "definition of unknown kind"
			if int(kind) < len(kinds) {
				what = kinds[kind]
			}
			d.fail(at, "import of a %s (%s.%s): only functions can be imported", what, imp.Module, imp.Name)
			return
		}
		imp.Type = d.typeIndex()
		d.m.Imports = append(d.m.Imports, imp)
	}
}

func (d *decoder) functions() {
	at := d.pos
	n := d.count("functions")
	if n > d.lim.Functions {
		d.fail(at, "%d functions, at most %d on this device (hpu.max_functions)", n, d.lim.Functions)
		return
	}
	d.m.Funcs = make([]uint32, n)
	for i := range d.m.Funcs {
		d.m.Funcs[i] = d.typeIndex()
	}
}

func (d *decoder) tables() {
	at := d.pos
	n := d.count("tables")
	if n > 1 {
		d.fail(at, "reference types: not supported (%d tables)", n)
	}
	if n == 0 || d.err != nil {
		return
	}
	at = d.pos
	if t := d.byte(); d.err == nil && t != 0x70 {
		d.fail(at, "reference types: not supported (table of type 0x%02x)", t)
		return
	}
	size, _ := d.limits()
	if d.err == nil && size > maxTable {
		d.fail(at, "table of %d elements, at most %d", size, maxTable)
		return
	}
	d.m.HasTable, d.m.Table = true, size
}

// limits reads the size of a table or memory and its maximum (0xFFFFFFFF: no
// maximum).
func (d *decoder) limits() (least, most uint32) {
	at := d.pos
	flags := d.byte()
	if d.err != nil {
		return 0, 0
	}
	switch {
	case flags&4 != 0:
		d.fail(at, "64-bit memory: not supported")
	case flags&2 != 0:
		d.fail(at, "threads: not supported (shared memory)")
	case flags > 1:
		d.fail(at, "invalid limits 0x%02x", flags)
	}
	least, most = d.u32(), 0xFFFFFFFF
	if flags == 1 {
		most = d.u32()
		if d.err == nil && most < least {
			d.fail(at, "limits from %d to %d", least, most)
		}
	}
	return least, most
}

func (d *decoder) memories() {
	at := d.pos
	n := d.count("memories")
	if n > 1 {
		d.fail(at, "multiple memories: not supported")
	}
	if n == 0 || d.err != nil {
		return
	}
	at = d.pos
	pages, most := d.limits()
	if d.err != nil {
		return
	}
	if size := int64(pages) * PageSize; size > d.lim.MemoryBytes {
		d.fail(at, "memory of %d bytes, at most %d on this device (hpu.max_memory_bytes)", size, d.lim.MemoryBytes)
	}
	if pages > 65536 || most != 0xFFFFFFFF && most > 65536 {
		d.fail(at, "memory of more than 65536 pages")
	}
	d.m.HasMemory, d.m.Memory = true, pages
}

func (d *decoder) globals() {
	at := d.pos
	n := d.count("globals")
	if n > maxGlobals && !d.lim.Rewritten {
		d.fail(at, "%d globals, at most %d", n, maxGlobals)
		return
	}
	d.m.Globals = make([]Global, n)
	for i := range d.m.Globals {
		g := &d.m.Globals[i]
		if d.lim.Rewritten && d.rest() > 0 && d.b[d.pos] == byte(FuncRef) {
			d.reference(g)
			continue
		}
		g.Type = d.valueType()
		at := d.pos
		mut := d.byte()
		if d.err == nil && mut > 1 {
			d.fail(at, "invalid mutability 0x%02x", mut)
		}
		g.Mutable = mut == 1
		if g.Mutable && g.Type == V128 {
			d.fail(at, "variable global of type v128: not supported, its place is in memory")
		}
		g.Value, g.High = d.constant(g.Type)
	}
}

// reference reads a global, written by package hpu, that refers to a function.
func (d *decoder) reference(g *Global) {
	g.Type = ValueType(d.byte())
	d.pos += 2 // constant, ref.func
	g.Value = uint64(d.u32())
	d.pos++ // end
}

// constant reads a constant expression. high is the upper half of a v128.
func (d *decoder) constant(t ValueType) (v, high uint64) {
	at := d.pos
	op := Opcode(d.byte())
	if op == 0xFD {
		op = 0xFD00 + Opcode(min(d.u32(), 0xFF))
	}
	got := ValueType(0)
	switch op {
	case OpI32Const:
		v, got = uint64(uint32(d.signed(32))), I32
	case OpI64Const:
		v, got = uint64(d.signed(64)), I64
	case OpF32Const:
		v, got = d.f32(), F32
	case OpF64Const:
		v, got = d.f64(), F64
	case OpV128Const:
		v, high = d.v128()
		got = V128
	case OpGlobalGet:
		d.fail(at, "constant expression reads a global: not supported, there are no imported globals")
	default:
		d.fail(at, "instruction 0x%02x in a constant expression", uint16(op))
	}
	if d.err == nil && got != t {
		d.fail(at, "constant of type %v, expected %v", got, t)
	}
	at = d.pos
	if end := d.byte(); d.err == nil && end != byte(OpEnd) {
		d.fail(at, "extended constant expressions: not supported")
	}
	return v, high
}
