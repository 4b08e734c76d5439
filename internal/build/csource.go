package build

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// records are the types in spin.h that decide the kind of a handler.
var records = map[string]manifest.Kind{
	"ptl_header_t": manifest.Header, "ptl_payload_t": manifest.Payload, "ptl_completion_t": manifest.Completion,
}

// recordsElsewhere are these types in package spin, spin.rs and spin.ts.
var recordsElsewhere = map[string]manifest.Kind{"Header": manifest.Header, "Payload": manifest.Payload, "Completion": manifest.Completion}

// fieldTag begins the annotations that SPIN_FIELD of spin.h makes.
const fieldTag = "spin:"

// describeC makes the manifest of a handler in C. It uses debug, the module
// with debugging information, and the comments of the sources.
func (o *Options) describeC(dir, library string, lang Lang, debug []byte, exports []export) (*manifest.Manifest, error) {
	src := &cSource{
		dir: dir, library: library, lang: lang, comments: make(map[string]*comments), functions: make(map[string]*manifest.Handler),
		states: make(map[string]*manifest.State), named: make(map[dwarf.Offset]string),
	}
	m := &described{}
	sources, err := o.sources(dir, lang)
	if err != nil {
		return nil, err
	}
	if err := src.directives(m, sources); err != nil {
		return nil, err
	}
	wanted := make(map[string]bool)
	for _, e := range exports {
		wanted[e.symbol] = true
	}
	if err := src.read(debug, wanted); err != nil {
		return nil, fmt.Errorf("debugging information: %w", err)
	}
	found := make(map[string]*manifest.Handler)
	for _, e := range exports {
		if f := src.functions[e.symbol]; f != nil {
			h := *f
			h.Export = e.name
			found[e.name] = &h
		}
	}
	err = m.arrange(exports, found, src.states)
	if lang != C && err == nil {
		err = annotateAll(&m.Manifest, dir, lang)
	}
	return &m.Manifest, err
}

// cSource is the source of a handler in C.
type cSource struct {
	dir       string
	lang      Lang
	library   string               // real folder of the files in libraryName
	comments  map[string]*comments // by file; nil: do not read
	data      *dwarf.Data
	files     []*dwarf.LineFile            // of the compilation unit
	functions map[string]*manifest.Handler // by symbol
	states    map[string]*manifest.State
	named     map[dwarf.Offset]string // names of states
}

// directives reads the description and the directives of the sources.
func (s *cSource) directives(m *described, sources []string) error {
	for _, name := range sources {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		if err != nil {
			return err
		}
		c := readComments(string(text))
		if m.Description == "" && name != "spin.rs" && name != "spin.ts" { // not the user's
			// documentation of a crate begins with //!
			m.Description = oneLine(strings.TrimLeft(c.first, "!/"))
		}
		for _, one := range c.all {
			if text, is := directiveOf(one.text); is {
				if err := m.directive(text, place{name, one.line}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// read finds the wanted functions.
func (s *cSource) read(debug []byte, wanted map[string]bool) error {
	list, err := manifest.Sections(debug)
	if err != nil {
		return err
	}
	parts := make(map[string][]byte)
	for i := range list {
		parts[list[i].Name] = list[i].Contents
	}
	if parts[".debug_info"] == nil {
		return errors.New("there is none: is the compiler clang?")
	}
	s.data, err = dwarf.New(parts[".debug_abbrev"], nil, nil, parts[".debug_info"], parts[".debug_line"], nil, parts[".debug_ranges"], parts[".debug_str"])
	if err != nil {
		return err
	}
	r := s.data.Reader()
	for {
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		switch name, _ := e.Val(dwarf.AttrName).(string); {
		case e.Tag == dwarf.TagCompileUnit:
			lines, err := s.data.LineReader(e)
			if err != nil {
				return err
			}
			if s.files = nil; lines != nil {
				s.files = lines.Files()
			}
			continue // continues with its children
		case e.Tag == dwarf.TagSubprogram && wanted[name] && e.Val(dwarf.AttrDeclaration) == nil && e.Children:
			if err := s.function(name, e, r); err != nil {
				return err
			}
			continue
		case e.Tag == dwarf.TagNamespace:
			continue // continues with its contents
		case (e.Tag == dwarf.TagSubprogram || e.Tag == dwarf.TagVariable) && e.Children:
			text, err := annotation(e, r)
			if err != nil {
				return err
			}
			if text != "" {
				return s.shown(e).errorf("SPIN_NEEDS(%q) stands in front of %s, which is no handler that the module exports", strings.TrimSpace(text), name)
			}
			continue
		}
		r.SkipChildren()
	}
}

// comment returns the comment beside or above the declaration of an entry.
func (s *cSource) comment(e *dwarf.Entry) string {
	at := s.place(e)
	if at.file == "" {
		return ""
	}
	c, known := s.comments[at.file]
	if !known {
		if text, err := os.ReadFile(at.file); err == nil {
			c = readComments(string(text))
		}
		s.comments[at.file] = c
	}
	return c.of(at.line)
}

// place returns the place of an entry's declaration.
func (s *cSource) place(e *dwarf.Entry) place {
	file, _ := e.Val(dwarf.AttrDeclFile).(int64)
	line, _ := e.Val(dwarf.AttrDeclLine).(int64)
	if file <= 0 || file >= int64(len(s.files)) || s.files[file] == nil {
		return place{}
	}
	name := s.files[file].Name
	if within, ours := strings.CutPrefix(name, libraryName); ours {
		name = filepath.Join(s.library, within)
	} else if !filepath.IsAbs(name) {
		name = filepath.Join(s.dir, name)
	}
	return place{name, int(line)}
}

// shown returns the place for messages, relative to the handler's folder.
func (s *cSource) shown(e *dwarf.Entry) place {
	p := s.place(e)
	if abs, err := filepath.Abs(s.dir); err == nil {
		if rel, err := filepath.Rel(abs, p.file); err == nil && filepath.IsAbs(p.file) {
			p.file = rel
		}
	}
	return p
}

// function describes a handler by its two parameters and its comment. r is
// behind the entry.
func (s *cSource) function(name string, e *dwarf.Entry, r *dwarf.Reader) error {
	h := &manifest.Handler{Description: withoutName(s.comment(e), name)}
	var parameters []*dwarf.Entry
	for {
		child, err := r.Next()
		if err != nil {
			return err
		}
		if child == nil || child.Tag == 0 {
			break
		}
		switch child.Tag {
		case dwarf.TagFormalParameter:
			parameters = append(parameters, child)
		case tagAnnotation:
			if err := needed(h, child); err != nil {
				return s.shown(e).errorf("function %s: %w", name, err)
			}
		}
		if child.Children {
			r.SkipChildren()
		}
	}
	s.functions[name] = h
	if len(parameters) != 2 {
		return nil
	}
	record, _, err := s.pointee(parameters[0])
	if err != nil || record == nil {
		return err
	}
	h.Kind = records[record.name]
	if s.lang == Rust {
		h.Kind = recordsElsewhere[record.name]
	}
	state, layout, err := s.pointee(parameters[1])
	if err != nil || layout == nil || layout.Tag != dwarf.TagStructType {
		return err
	}
	h.State, err = s.state(state, layout)
	return err
}

// needed applies SPIN_NEEDS to a handler.
func needed(h *manifest.Handler, e *dwarf.Entry) error {
	value, _ := e.Val(dwarf.AttrConstValue).(string)
	words, is := strings.CutPrefix(value, fieldTag)
	if !is {
		return nil
	}
	for word := range strings.FieldsSeq(words) {
		key, value, given := strings.Cut(word, "=")
		if !given {
			return fmt.Errorf("%q, expected words KEY=VALUE", word)
		}
		if err := need(&h.Needs, key, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// typeName is the first name on the way to a type: the name of a typedef or of
// the type itself.
type typeName struct {
	name string
	of   *dwarf.Entry
}

// pointee resolves the type to which an entry's type points. It is nil if the
// type is not a pointer or points to void.
func (s *cSource) pointee(e *dwarf.Entry) (*typeName, *dwarf.Entry, error) {
	_, t, err := s.typeOf(e)
	if err != nil || t == nil || t.Tag != dwarf.TagPointerType {
		return nil, nil, err
	}
	return s.typeOf(t)
}

// typeOf resolves the type of an entry, behind typedefs and qualifiers; nil for
// void.
func (s *cSource) typeOf(e *dwarf.Entry) (name *typeName, t *dwarf.Entry, err error) {
	name = &typeName{}
	for {
		offset, has := e.Val(dwarf.AttrType).(dwarf.Offset)
		if !has {
			return nil, nil, nil
		}
		r := s.data.Reader()
		r.Seek(offset)
		if t, err = r.Next(); err != nil {
			return nil, nil, err
		}
		if t == nil {
			return nil, nil, errors.New("a type is missing")
		}
		if own, _ := t.Val(dwarf.AttrName).(string); name.name == "" && own != "" {
			name.name, name.of = own, t
		}
		switch t.Tag {
		case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType:
			e = t
		default:
			return name, t, nil
		}
	}
}

// state describes a struct once and returns the name of the layout.
func (s *cSource) state(name *typeName, layout *dwarf.Entry) (string, error) {
	if known, is := s.named[layout.Offset]; is {
		return known, nil
	}
	st := &manifest.State{Name: name.name, Description: s.comment(layout)}
	if st.Name == "" {
		st.Name = "state"
	}
	if st.Description == "" && name.of != nil {
		st.Description = s.comment(name.of)
	}
	var err error
	if st.Size, st.Fields, err = s.structFields(layout); err != nil {
		return "", err
	}
	// Another file has the same struct, from the same header, or another struct
	// with the same name.
	another := func(o *manifest.State) bool {
		return o != nil && (o.Size != st.Size || !reflect.DeepEqual(o.Fields, st.Fields))
	}
	for of, i := st.Name, 2; another(s.states[st.Name]); i++ {
		st.Name = fmt.Sprintf("%s_%d", of, i)
	}
	if known := s.states[st.Name]; known == nil {
		s.states[st.Name] = st
	} else if known.Description == "" {
		known.Description = st.Description
	}
	s.named[layout.Offset] = st.Name
	return st.Name, nil
}
