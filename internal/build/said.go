package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// In some languages, annotations do not reach the debugging information. There
// the source describes the fields of a state with words behind a field: in
// SPIN_FIELD("...") of C++, or in a comment spin:"..." of Rust and
// AssemblyScript.
var (
	fieldWords = regexp.MustCompile(`(?:SPIN_FIELD\(|spin:)"([^"]*)"\)?`)
	fieldLine  = regexp.MustCompile(`^\s*(?:pub(?:\([a-z]+\))?\s+)?([A-Za-z_]\w*)\s*:\s*([\w<>\[\]; ]+?)\s*[,;]\s*(?://+\s*(.*?)\s*)?$`)
	cppLine    = regexp.MustCompile(`\b([A-Za-z_]\w*)(?:\[[^\]]*\])*\s+SPIN_FIELD\("`)
	typeHead   = regexp.MustCompile(`\b(?:struct|class)\s+(\w+)\b[^;{]*\{`)
)

// saidField is a field in a source.
type saidField struct {
	name, typ, words, comment string
	line                      int
}

// saidOf reads the structs in the sources of a folder, by their names.
func saidOf(dir string, lang Lang) (map[string][]saidField, error) {
	names, err := sourcesOf(dir, lang)
	if err != nil {
		return nil, err
	}
	structs := make(map[string][]saidField)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		in := ""
		for i, line := range strings.Split(string(text), "\n") {
			if m := typeHead.FindStringSubmatch(line); m != nil {
				in = m[1]
				structs[in] = nil
			} else if strings.HasPrefix(strings.TrimSpace(line), "}") {
				in = ""
			} else if f, is := sayField(line); is && in != "" {
				f.line = i + 1
				structs[in] = append(structs[in], f)
			}
		}
	}
	return structs, nil
}

// sayField reads a line of a struct.
func sayField(line string) (f saidField, is bool) {
	if m := fieldWords.FindStringSubmatch(line); m != nil {
		f.words = m[1]
	}
	if m := cppLine.FindStringSubmatch(line); m != nil {
		f.name = m[1]
		return f, true
	}
	m := fieldLine.FindStringSubmatch(line)
	if m == nil {
		return f, false
	}
	f.name, f.typ = m[1], m[2]
	f.comment = strings.TrimSpace(fieldWords.ReplaceAllString(m[3], ""))
	return f, true
}

// annotateAll adds the sources' descriptions of fields to the states of a
// manifest.
func annotateAll(m *manifest.Manifest, dir string, lang Lang) error {
	said, err := saidOf(dir, lang)
	if err != nil {
		return err
	}
	for _, s := range m.States {
		for _, f := range said[s.Name] {
			for i := range s.Fields {
				if to := &s.Fields[i]; to.Name == f.name {
					if to.Description == "" {
						to.Description = f.comment
					}
					if err := annotate(to, f.words); err != nil {
						return fmt.Errorf("struct %s, field %s: %w", s.Name, f.name, err)
					}
				}
			}
		}
	}
	return nil
}

// asHandler is an exported function of AssemblyScript.
var asHandler = regexp.MustCompile(`(?m)^export\s+function\s+(\w+)\s*\(\s*\w+\s*:\s*(?:\w+\.)?(\w+)\s*,\s*\w+\s*:\s*(?:\w+\.)?(\w+)\s*\)\s*:\s*i32\b`)

// describeAssemblyScript makes the manifest of a handler in AssemblyScript from
// its source, because the compiler writes no types.
func describeAssemblyScript(dir string, exports []export) (*manifest.Manifest, error) {
	src := &cSource{dir: dir, lang: AssemblyScript}
	m := &described{}
	names, err := sourcesOf(dir, AssemblyScript)
	if err != nil {
		return nil, err
	}
	if err := src.directives(m, names); err != nil {
		return nil, err
	}
	structs, err := saidOf(dir, AssemblyScript)
	if err != nil {
		return nil, err
	}
	found, states := make(map[string]*manifest.Handler), make(map[string]*manifest.State)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		notes := readComments(string(text))
		for _, at := range asHandler.FindAllSubmatchIndex(text, -1) {
			part := func(i int) string { return string(text[at[2*i]:at[2*i+1]]) }
			line := 1 + strings.Count(string(text[:at[0]]), "\n")
			h := &manifest.Handler{Export: part(1), Kind: recordsElsewhere[part(2)], Description: withoutName(notes.of(line), part(1))}
			if fields, known := structs[part(3)]; known && len(fields) > 0 {
				h.State = part(3)
				if states[h.State], err = layoutOf(h.State, fields); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			found[h.Export] = h
		}
	}
	if err := m.arrange(exports, found, states); err != nil {
		return nil, err
	}
	return &m.Manifest, annotateAll(&m.Manifest, dir, AssemblyScript)
}

// asTypes are the number types of AssemblyScript that have other names here.
var asTypes = map[string]manifest.Type{"bool": manifest.U8, "usize": manifest.U32, "isize": "i32"}

// layoutOf lays out the fields of an unmanaged class as AssemblyScript does:
// one after the other, each at a multiple of its size.
func layoutOf(name string, fields []saidField) (*manifest.State, error) {
	s := &manifest.State{Name: name}
	align := int64(1)
	for _, f := range fields {
		t := manifest.Type(f.typ)
		if other, is := asTypes[f.typ]; is {
			t = other
		}
		if !slices.Contains(manifest.Types(), t) {
			return nil, fmt.Errorf("line %d: field %s of type %s, expected a number, such as u64", f.line, f.name, f.typ)
		}
		s.Size = (s.Size + t.Size() - 1) / t.Size() * t.Size()
		s.Fields = append(s.Fields, manifest.Field{Name: f.name, Type: t, Offset: s.Size})
		s.Size += t.Size()
		align = max(align, t.Size())
	}
	s.Size = (s.Size + align - 1) / align * align
	return s, nil
}
