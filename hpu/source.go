package hpu

import (
	"cmp"
	"debug/dwarf"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/visible"
)

// Source is a place in the source of a module. The zero value is no place.
type Source struct {
	Path string // of the file, as the compiler noted it
	Line int    // from 1
	Func string // function of the source with the line
	// Callers are the inlined calls around the function, innermost first. The
	// last one is in the function of the module.
	Callers []Call
}

// Call is a call that a compiler has replaced by the body of the function.
type Call struct {
	Path string
	Line int
	Func string // that makes the call
}

// File is the last part of the path, with the folder if the path is absolute.
func (s Source) File() string { return short(s.Path) }

// short returns the part of a path that does not depend on the location of the
// source.
func short(file string) string {
	if dir := path.Dir(file); path.IsAbs(file) && dir != "/" {
		return path.Join(path.Base(dir), path.Base(file))
	}
	return strings.TrimPrefix(path.Clean(file), "./")
}

// String writes file, line and function, for example "filter.c:12 (payload)",
// with the inlined calls around the function.
func (s Source) String() string {
	if s.Line == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d", s.File(), s.Line)
	if s.Func != "" {
		fmt.Fprintf(&b, " (%s)", s.Func)
	}
	for _, c := range s.Callers {
		fmt.Fprintf(&b, ", called at %s:%d", short(c.Path), c.Line)
		if c.Func != "" {
			fmt.Fprintf(&b, " (%s)", c.Func)
		}
	}
	return visible.Line(b.String()) // the debugging information may hold anything
}

// source is the debugging information of a module, read at its first use.
type source struct {
	once   sync.Once
	rows   []row
	scopes []scope
}

// row is a line of the source. Code from addr to the next row comes from the
// line; line 0: from no line. Addresses count from the beginning of the
// contents of the code section.
type row struct {
	addr uint64
	file string
	line int
}

// scope is a function or an inlined call.
type scope struct {
	from, to uint64
	depth    int
	name     string
	callFile string // for a call
	callLine int
	inlined  bool
}

// HasSource reports whether the module has debugging information with the
// source lines of its code.
func (m *Module) HasSource() bool {
	m.source.once.Do(m.readSource)
	return len(m.source.rows) > 0
}

// Source returns the place in the source of the instruction at offset of the
// module; the zero value: the module does not give it.
func (m *Module) Source(offset int) (at Source) {
	if offset < m.wasm.CodeAt || !m.HasSource() {
		return at
	}
	s, addr := &m.source, uint64(offset-m.wasm.CodeAt)
	i, found := slices.BinarySearchFunc(s.rows, addr, func(r row, a uint64) int { return cmp.Compare(r.addr, a) })
	if !found {
		i--
	}
	var chain []*scope
	for k := range s.scopes {
		if c := &s.scopes[k]; c.from <= addr && addr < c.to {
			chain = append(chain, c)
		}
	}
	if len(chain) == 0 {
		return at
	}
	// Code of no line was made for the code behind it.
	for i >= 0 && i+1 < len(s.rows) && s.rows[i].line == 0 && s.rows[i+1].addr < chain[0].to {
		i++
	}
	for i > 0 && s.rows[i].line == 0 && s.rows[i].addr > chain[0].from {
		i--
	}
	if i < 0 || s.rows[i].line == 0 {
		return at
	}
	at = Source{Path: s.rows[i].file, Line: s.rows[i].line, Func: chain[len(chain)-1].name}
	for k := len(chain) - 1; k > 0; k-- {
		if c := chain[k]; c.inlined && c.callLine > 0 {
			at.Callers = append(at.Callers, Call{c.callFile, c.callLine, chain[k-1].name})
		}
	}
	return at
}

// Place describes the place of the instruction at offset of the module for
// people: file, line and function. Without debugging information it gives the
// function and the offset.
func (m *Module) Place(offset int) string {
	if s := m.Source(offset); s.Line > 0 {
		return s.String()
	}
	if name := m.FunctionAt(offset); name != "" {
		return fmt.Sprintf("function %s, offset 0x%x", visible.Line(name), offset)
	}
	return fmt.Sprintf("offset 0x%x", offset)
}

// FunctionAt returns the name of the function with the code at offset of the
// module; "": there is none.
func (m *Module) FunctionAt(offset int) string {
	i, found := slices.BinarySearchFunc(m.wasm.Codes, offset, func(c wasm.Code, at int) int { return cmp.Compare(c.Offset, at) })
	if !found {
		i--
	}
	if i < 0 || offset >= m.wasm.Codes[i].End {
		return ""
	}
	return m.functions[i+len(m.ops)].Name
}

// readSource reads the debugging information of compilers. It is for people, so
// unreadable parts are ignored.
func (m *Module) readSource() {
	if len(m.wasm.Debug) == 0 {
		return
	}
	defer func() {
		if recover() != nil { // a panic of package dwarf, which trusts its input in places
			m.source.rows, m.source.scopes = nil, nil
		}
	}()
	sections := make(map[string][]byte, len(m.wasm.Debug))
	for _, s := range m.wasm.Debug {
		sections[s.Name] = s.Bytes
	}
	if lines := sections[manifest.LinesSection]; lines != nil {
		m.readLines(lines)
		return
	}
	data, err := dwarf.New(sections[".debug_abbrev"], nil, nil, sections[".debug_info"], sections[".debug_line"], nil, sections[".debug_ranges"], sections[".debug_str"])
	if err != nil {
		return
	}
	// sections of version 5
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"} {
		if contents := sections[name]; contents != nil && data.AddSection(name, contents) != nil {
			return
		}
	}
	u := unitReader{data: data, m: m, end: uint64(m.wasm.CodeBytes)}
	u.units()
	slices.SortStableFunc(m.source.rows, func(a, b row) int { return cmp.Compare(a.addr, b.addr) })
	slices.SortStableFunc(m.source.scopes, func(a, b scope) int { return cmp.Compare(a.depth, b.depth) })
}

// readLines reads the section that internal/build has made from a source map.
// It has lines, but no inlined calls.
func (m *Module) readLines(section []byte) {
	files, lines, err := manifest.DecodeLines(section)
	if err != nil {
		return
	}
	for _, l := range lines {
		m.source.rows = append(m.source.rows, row{addr: l.At, file: files[l.File], line: l.Line})
	}
	for i := range m.wasm.Codes {
		c := &m.wasm.Codes[i]
		from, to := uint64(c.Offset-m.wasm.CodeAt), uint64(c.End-m.wasm.CodeAt)
		m.source.scopes = append(m.source.scopes, scope{from: from, to: to, name: m.functions[i+len(m.ops)].Name})
		// code before the first line of a function has no line
		m.source.rows = append(m.source.rows, row{addr: from})
	}
	slices.SortStableFunc(m.source.rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.line, b.line)) })
}

// unitReader reads compilation units.
type unitReader struct {
	data  *dwarf.Data
	m     *Module
	end   uint64 // of the code
	files []*dwarf.LineFile
}

func (u *unitReader) units() {
	r := u.data.Reader()
	depth := 0
	for {
		e, err := r.Next()
		if err != nil || e == nil {
			return
		}
		switch e.Tag {
		case 0:
			depth--
			continue
		case dwarf.TagCompileUnit:
			depth = 0
			u.lines(e)
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			u.scope(e, depth)
		}
		if e.Children {
			depth++
		}
	}
}

// lines reads the rows of a unit. Code that the linker has removed is at
// address 0 or beyond the end.
func (u *unitReader) lines(unit *dwarf.Entry) {
	u.files = nil
	lines, err := u.data.LineReader(unit)
	if err != nil || lines == nil {
		return
	}
	u.files = lines.Files()
	var e dwarf.LineEntry
	var sequence []row
	for lines.Next(&e) == nil {
		r := row{addr: e.Address, line: e.Line}
		if e.File != nil {
			r.file = e.File.Name
		}
		if e.EndSequence {
			r.line = 0
		}
		sequence = append(sequence, r)
		if !e.EndSequence {
			continue
		}
		if first := sequence[0].addr; first > 0 && first < u.end {
			u.m.source.rows = append(u.m.source.rows, sequence...)
		}
		sequence = sequence[:0]
	}
}

func (u *unitReader) scope(e *dwarf.Entry, depth int) {
	ranges, err := u.data.Ranges(e)
	if err != nil || len(ranges) == 0 {
		return
	}
	s := scope{depth: depth, name: u.name(e), inlined: e.Tag == dwarf.TagInlinedSubroutine}
	if line, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		s.callLine = int(line)
	}
	if file, ok := e.Val(dwarf.AttrCallFile).(int64); ok && file >= 0 && file < int64(len(u.files)) && u.files[file] != nil {
		s.callFile = u.files[file].Name
	}
	for _, r := range ranges {
		if s.from, s.to = r[0], r[1]; s.from > 0 && s.from < u.end && s.to <= u.end {
			u.m.source.scopes = append(u.m.source.scopes, s)
		}
	}
}

// name is the name of a function, which may be given at its declaration.
func (u *unitReader) name(e *dwarf.Entry) string {
	r := u.data.Reader()
	for range 4 { // a copy of a copy of a declaration
		if name, ok := e.Val(dwarf.AttrName).(string); ok {
			return name
		}
		next := e.Val(dwarf.AttrAbstractOrigin)
		if next == nil {
			next = e.Val(dwarf.AttrSpecification)
		}
		at, ok := next.(dwarf.Offset)
		if !ok {
			return ""
		}
		r.Seek(at)
		var err error
		if e, err = r.Next(); err != nil || e == nil {
			return ""
		}
	}
	return ""
}
