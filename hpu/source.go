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
)

// Source is a place in the source of a module. The zero value is none.
type Source struct {
	Path string // of the file, as the compiler has noted it
	Line int    // from 1
	Func string // function of the source that has the line
	// Callers are the calls that the compiler has put the function into,
	// innermost first: the last is within the function of the module.
	Callers []Call
}

// Call is a call that a compiler has replaced by the body of the function.
type Call struct {
	Path string
	Line int
	Func string // that makes the call
}

// File is the path's last part, with the folder if the path is absolute.
func (s Source) File() string { return short(s.Path) }

// short leaves of a path what does not depend on where the source lay.
func short(file string) string {
	if dir := path.Dir(file); path.IsAbs(file) && dir != "/" {
		return path.Join(path.Base(dir), path.Base(file))
	}
	return strings.TrimPrefix(path.Clean(file), "./")
}

// String writes file, line and function: "filter.c:12 (payload)", with the
// calls that the function was put into.
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
	return b.String()
}

// source is the debugging information of a module, read when it is first asked for.
type source struct {
	once   sync.Once
	rows   []row
	scopes []scope
}

// row says that code from addr on, as far as the next row, comes from a line;
// line 0: from none. Addresses count from the beginning of the contents of the
// code section.
type row struct {
	addr uint64
	file string
	line int
}

// scope is a function, or a call that one was put into.
type scope struct {
	from, to uint64
	depth    int
	name     string
	callFile string // of a call
	callLine int
	inlined  bool
}

// HasSource reports whether the module has debugging information that says
// which lines its code comes from.
func (m *Module) HasSource() bool {
	m.source.once.Do(m.readSource)
	return len(m.source.rows) > 0
}

// Source returns where in the source the instruction at offset of the module
// comes from, none if the module does not say.
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
	// of no line: what it has been made for follows
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

// Place names the place of the instruction at offset of the module for people:
// file, line and function, or without debugging information the function and
// the offset.
func (m *Module) Place(offset int) string {
	if s := m.Source(offset); s.Line > 0 {
		return s.String()
	}
	if name := m.FunctionAt(offset); name != "" {
		return fmt.Sprintf("function %s, offset 0x%x", name, offset)
	}
	return fmt.Sprintf("offset 0x%x", offset)
}

// FunctionAt returns the name of the function whose code is at offset of the
// module, "" if there is none.
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

// readSource reads what compilers have written. It is for people: what cannot
// be read is as if it were not there.
func (m *Module) readSource() {
	if len(m.wasm.Debug) == 0 {
		return
	}
	defer func() {
		if recover() != nil { // of package dwarf, which trusts its input in places
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
	// of version 5
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

// readLines reads what internal/build has made of a source map: lines, but not
// which functions were put into others.
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
		// what lies before the first line of a function is of none
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

// lines reads the rows of a unit. The linker leaves code that it has thrown
// away at address 0 or beyond the end.
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

// name is that of a function, which may stand where it was declared.
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
