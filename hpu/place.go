package hpu

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// place maps rewritten code to its origin. The code from at to the next place
// belongs to the instruction at offset of the loaded module. at counts in the
// contents of the code section of the rewritten module.
type place struct{ at, offset uint32 }

// mark begins a place at the end of out or block, for the instruction at offset.
func mark(places []place, at, offset int) []place {
	if n := len(places); n > 0 && places[n-1].at == uint32(at) {
		places[n-1].offset = uint32(offset)
		return places
	}
	return append(places, place{uint32(at), uint32(offset)})
}

// original returns the offset, in the loaded module, of the instruction that
// rewritten code belongs to. It returns -1 if the code was added around an
// import or a handler. at counts from the beginning of the contents of the code
// section.
func (m *Module) original(at int) int {
	i, found := slices.BinarySearchFunc(m.places, uint32(at), func(p place, at uint32) int { return cmp.Compare(p.at, at) })
	if !found {
		i--
	}
	if at < 0 || i < 0 || at >= m.placesEnd {
		return -1
	}
	return int(m.places[i].offset)
}

// whence returns the offset of the instruction of function fn that caused a
// trap. The engine found the trap at at: at the instruction, or behind the call
// of an import that has ended the handler.
func (m *Module) whence(fn, at int, t *Trap) int {
	offset := m.original(at)
	if offset < 0 || fn < len(m.ops) {
		return -1
	}
	if t.Op == OpNone && t.Kind != TrapKilled {
		return offset
	}
	call, found := m.find(fn, func(in *wasm.Instr) bool {
		return in.Info.Class == wasm.ClassCall && (in.Offset == offset || in.End == offset)
	})
	if !found {
		return offset
	}
	return call.Offset
}

// find returns the first instruction of a function that is wanted.
func (m *Module) find(fn int, wanted func(in *wasm.Instr) bool) (in wasm.Instr, found bool) {
	for instrs := m.wasm.Instrs(&m.wasm.Codes[fn-len(m.ops)]); instrs.More(); {
		if instrs.Next(&in) != nil {
			return in, false
		}
		if wanted(&in) {
			return in, true
		}
	}
	return in, false
}

// maxCallers is how many calls a message names at most.
const maxCallers = 8

// callers adds to a place in the source the calls from outer functions that led
// there.
func (m *Module) callers(s *Source, stack []level) {
	for _, l := range stack {
		at := m.Source(m.original(l.at))
		if s.Line == 0 || at.Line == 0 || len(s.Callers) >= maxCallers {
			return
		}
		s.Callers = append(append(s.Callers, Call{at.Path, at.Line, at.Func}), at.Callers...)
	}
}

// offsetSections are sections of debugging information (DWARF 4). They make
// wazero put the place of each instruction in the code section into its stack
// traces. They have one unit for all code, and all code is one line of a file.
func offsetSections(b []byte) []byte {
	const low, high = 1, 1<<31 - 1 // of the unit: the possible addresses of code
	le := binary.LittleEndian
	lengthOf := func(b []byte) []byte { return append(le.AppendUint32(nil, uint32(len(b))), b...) }
	abbrev := []byte{
		1, 0x11, 0, // abbreviation 1: DW_TAG_compile_unit without children
		0x10, 0x17, // DW_AT_stmt_list, DW_FORM_sec_offset
		0x11, 0x01, // DW_AT_low_pc, DW_FORM_addr
		0x12, 0x06, // DW_AT_high_pc, DW_FORM_data4
		0, 0, 0,
	}
	// version, abbreviations at 0, addresses of 4 bytes; abbreviation 1, lines
	// at 0
	info := []byte{4, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0}
	info = le.AppendUint32(le.AppendUint32(info, low), high-low)
	// header of a line program; no folders, one file
	header := []byte{1, 1, 1, 0xFB, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 'w', 0, 0, 0, 0, 0}
	line := append([]byte{4, 0}, lengthOf(header)...)
	line = le.AppendUint32(append(line, 0, 5, 2), low)  // DW_LNE_set_address
	line = wasm.AppendU32(append(line, 1, 2), high-low) // DW_LNS_copy, DW_LNS_advance_pc
	line = append(line, 0, 1, 1)                        // DW_LNE_end_sequence
	for _, s := range []struct {
		name     string
		contents []byte
	}{{".debug_abbrev", abbrev}, {".debug_info", lengthOf(info)}, {".debug_line", lengthOf(line)}, {".debug_str", []byte{0}}} {
		b = wasm.AppendSection(b, 0, append(wasm.AppendName(nil, s.name), s.contents...))
	}
	return b
}
