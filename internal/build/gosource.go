package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// tinygoTags are the build tags that TinyGo sets for the target of handlers
// besides the tags in the target file.
const tinygoTags = "tinygo,tinygo.wasm,wasm_unknown,purego,osusergo,math_big_pure_go,gc.none,scheduler.none"

// spinPath is the package whose record types decide the kind of a handler.
const spinPath = "github.com/spinsim/spinsim/spin"

// describeGo makes the manifest of a handler in Go from its source. The
// compiler has already accepted the source.
func describeGo(dir string, exports []export) (*manifest.Manifest, error) {
	src, err := loadGo(dir)
	if err != nil {
		return nil, err
	}
	m := &described{}
	main := src.packages[src.main]
	for _, file := range main.files {
		if file.Doc != nil && m.Description == "" {
			m.Description = oneLine(file.Doc.Text())
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if text, is := strings.CutPrefix(c.Text, prefix); is {
					if err := m.directive(text, src.at(c.Pos())); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	found, err := src.exported()
	if err != nil {
		return nil, err
	}
	made := make(map[string]*manifest.Handler)
	// names of states in the handler's own package come without the package
	for _, own := range []bool{true, false} {
		for _, e := range exports {
			if f := found[e.name]; f != nil && src.ownState(f) == own {
				if made[e.name], err = src.handler(e.name, f); err != nil {
					return nil, err
				}
			}
		}
	}
	return &m.Manifest, m.arrange(exports, made, src.states)
}

// goSource is the source of a handler and of all its imports.
type goSource struct {
	dir      string // of the handler
	set      *token.FileSet
	main     string
	packages map[string]*goPackage
	fields   map[token.Pos]*ast.Field // of structs, by the positions of their names
	types    map[token.Pos]string     // comments of types, by the positions of their names
	states   map[string]*manifest.State
	named    map[*types.TypeName]string // names of states
}

func newGoSource(dir string) *goSource {
	return &goSource{
		dir: dir, set: token.NewFileSet(), packages: make(map[string]*goPackage), fields: make(map[token.Pos]*ast.Field),
		types: make(map[token.Pos]string), states: make(map[string]*manifest.State), named: make(map[*types.TypeName]string),
	}
}

// goPackage is the output of go list for a package, and the results of reading
// it.
type goPackage struct {
	ImportPath string
	Dir        string
	Name       string
	Standard   bool
	GoFiles    []string
	ImportMap  map[string]string

	files   []*ast.File
	checked *types.Package
}

// loadGo lists the packages and reads all outside the standard library.
func loadGo(dir string) (*goSource, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-tags="+tinygoTags, "-json=ImportPath,Dir,Name,Standard,GoFiles,ImportMap", ".")
	cmd.Dir = dir
	// as in the target file
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm", "CGO_ENABLED=0")
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, messages.String())
	}
	src := newGoSource(dir)
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &goPackage{}
		if err := list.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		src.packages[p.ImportPath], src.main = p, p.ImportPath // the last is the requested one
		if !p.Standard {
			if err := src.parse(p); err != nil {
				return nil, err
			}
		}
	}
	if p := src.packages[src.main]; p == nil || len(p.files) == 0 {
		return nil, errors.New("go list: no Go files")
	}
	return src, nil
}

// parse reads the files of a package. Outside the standard library, it also
// indexes the comments.
func (s *goSource) parse(p *goPackage) error {
	for _, name := range p.GoFiles {
		if strings.HasPrefix(name, "zcgo") {
			continue
		}
		file, err := parser.ParseFile(s.set, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
		if !p.Standard {
			s.index(file)
		}
	}
	return nil
}

// index notes the fields of structs and the comments of types.
func (s *goSource) index(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if t, is := spec.(*ast.TypeSpec); is {
					doc := t.Doc
					if doc == nil {
						doc = n.Doc
					}
					s.types[t.Name.Pos()] = oneLine(doc.Text())
				}
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				for _, name := range f.Names {
					s.fields[name.Pos()] = f
				}
			}
		}
		return true
	})
}

// at returns the place of a position, with the file relative to the handler's
// folder.
func (s *goSource) at(pos token.Pos) place {
	p := s.set.Position(pos)
	if abs, err := filepath.Abs(s.dir); err == nil {
		if rel, err := filepath.Rel(abs, p.Filename); err == nil {
			return place{rel, p.Line}
		}
	}
	return place{p.Filename, p.Line}
}

// Import checks the types of a package on demand, without the bodies of
// functions. Some names that the compiler of handlers defines are unknown to go
// list and stay unknown. That matters only if a state uses them.
func (s *goSource) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := s.packages[path]
	if p == nil {
		return nil, fmt.Errorf("no package %s", path)
	}
	if p.checked != nil {
		return p.checked, nil
	}
	if p.Standard {
		if err := s.parse(p); err != nil {
			return nil, err
		}
	}
	c := types.Config{
		Importer: importMap{s, p}, IgnoreFuncBodies: true, FakeImportC: true, Sizes: wasmSizes,
		Error: func(error) {}, // of packages behind the handler; the compiler has checked them
	}
	p.checked, _ = c.Check(path, s.set, p.files, nil)
	return p.checked, nil
}

// importMap resolves the imports of one package.
type importMap struct {
	src *goSource
	of  *goPackage
}

func (i importMap) Import(path string) (*types.Package, error) {
	if mapped, is := i.of.ImportMap[path]; is {
		path = mapped
	}
	return i.src.Import(path)
}

// exported finds the exported functions in the sources, by the names of the
// exports.
func (s *goSource) exported() (map[string]*types.Func, error) {
	found := make(map[string]*types.Func)
	for path, p := range s.packages { //lint:maporder a name is exported once, or the linker has refused it
		if p.Standard {
			continue
		}
		for _, file := range p.files {
			for _, d := range file.Decls {
				f, is := d.(*ast.FuncDecl)
				if !is || f.Recv != nil {
					continue
				}
				name := exportName(f)
				if name == "" {
					continue
				}
				checked, err := s.Import(path)
				if err != nil {
					return nil, err
				}
				if function, is := checked.Scope().Lookup(f.Name.Name).(*types.Func); is {
					found[name] = function
					s.types[function.Pos()] = withoutName(oneLine(f.Doc.Text()), f.Name.Name)
				}
			}
		}
	}
	return found, nil
}

// exportName returns the export name of a function, "" if it is not exported.
func exportName(f *ast.FuncDecl) string {
	if f.Doc == nil {
		return ""
	}
	name := ""
	for _, c := range f.Doc.List {
		words := strings.Fields(c.Text)
		if len(words) == 2 && (words[0] == "//go:wasmexport" || name == "" && (words[0] == "//export" || words[0] == "//go:export")) {
			name = words[1]
		}
	}
	return name
}

// handler describes a handler by its signature and its comment.
func (s *goSource) handler(name string, f *types.Func) (*manifest.Handler, error) {
	h := &manifest.Handler{Export: name, Description: s.types[f.Pos()]}
	parameters := f.Signature().Params()
	if parameters.Len() != 2 {
		return h, nil
	}
	if record, is := pointee(parameters.At(0).Type()).(*types.Named); is && record.Obj().Pkg() != nil && record.Obj().Pkg().Path() == spinPath {
		h.Kind = recordsElsewhere[record.Obj().Name()]
	}
	var err error
	if state, is := pointee(parameters.At(1).Type()).(*types.Named); is {
		if layout, is := state.Underlying().(*types.Struct); is {
			h.State, err = s.state(state.Obj(), layout)
		}
	}
	return h, err
}

// ownState reports whether a handler's state is a type of the handler's own
// package.
func (s *goSource) ownState(f *types.Func) bool {
	parameters := f.Signature().Params()
	if parameters.Len() != 2 {
		return false
	}
	state, is := pointee(parameters.At(1).Type()).(*types.Named)
	return is && state.Obj().Pkg() != nil && state.Obj().Pkg().Path() == s.main
}

// pointee returns the type that a pointer points to, nil if it is not a
// pointer.
func pointee(t types.Type) types.Type {
	if p, is := types.Unalias(t).Underlying().(*types.Pointer); is {
		return types.Unalias(p.Elem())
	}
	return nil
}

// state describes a type once and returns the name of the layout.
func (s *goSource) state(of *types.TypeName, layout *types.Struct) (string, error) {
	if name, known := s.named[of]; known {
		return name, nil
	}
	name := of.Name()
	if s.states[name] != nil && of.Pkg() != nil {
		name = of.Pkg().Name() + "_" + name
	}
	fields, err := s.structFields(layout)
	if err != nil {
		return "", err
	}
	s.named[of] = name
	s.states[name] = &manifest.State{
		Name: name, Description: s.types[of.Pos()], Size: wasmSizes.Sizeof(layout), Fields: fields,
	}
	return name, nil
}

// structFields describes the fields of a struct.
func (s *goSource) structFields(layout *types.Struct) (out []manifest.Field, err error) {
	all := slices.Collect(layout.Fields())
	offsets := wasmSizes.Offsetsof(all)
	for i, v := range all {
		if v.Name() == "_" || wasmSizes.Sizeof(v.Type()) == 0 {
			continue
		}
		f := manifest.Field{Name: manifest.FieldName(v.Name()), Offset: offsets[i]}
		if node := s.fields[v.Pos()]; node != nil {
			f.Description = oneLine(node.Comment.Text())
			if node.Doc != nil {
				f.Description = oneLine(node.Doc.Text())
			}
		}
		if err := s.fieldType(&f, v.Type()); err != nil {
			return nil, s.at(v.Pos()).errorf("field %s: %w", v.Name(), err)
		}
		if err := annotate(&f, reflect.StructTag(layout.Tag(i)).Get(manifest.Tag)); err != nil {
			return nil, s.at(v.Pos()).errorf("field %s: tag %s: %w", v.Name(), manifest.Tag, err)
		}
		if f.Type != "" || f.Fields != nil { // a struct with only gaps is a gap
			out = append(out, f)
		}
	}
	return out, nil
}

// numbers are the Go types for the numbers of a state.
var numbers = map[types.BasicKind]manifest.Type{
	types.Uint8: manifest.U8, types.Uint16: manifest.U16, types.Uint32: manifest.U32, types.Uint64: manifest.U64,
	types.Int8: manifest.I8, types.Int16: manifest.I16, types.Int32: manifest.I32, types.Int64: manifest.I64,
	types.Float32: manifest.F32, types.Float64: manifest.F64, types.Bool: manifest.U8,
	types.Uintptr: manifest.U32, types.UnsafePointer: manifest.U32,
}

// address is the unit of numbers that are addresses in the module's memory.
const address = "address"

// fieldType describes the type of a field.
func (s *goSource) fieldType(f *manifest.Field, t types.Type) (err error) {
	named, _ := types.Unalias(t).(*types.Named)
	switch u := t.Underlying().(type) {
	case *types.Array:
		f.Dims = append(f.Dims, u.Len())
		return s.fieldType(f, u.Elem())
	case *types.Struct:
		f.Size = wasmSizes.Sizeof(u)
		f.Fields, err = s.structFields(u)
		return err
	case *types.Pointer:
		f.Type, f.Unit = manifest.U32, address
		return nil
	case *types.Basic:
		if part, is := map[types.BasicKind]manifest.Type{types.Complex64: manifest.F32, types.Complex128: manifest.F64}[u.Kind()]; is {
			f.Size = 2 * part.Size()
			f.Fields = []manifest.Field{{Name: "re", Type: part}, {Name: "im", Type: part, Offset: part.Size()}}
			return nil
		}
		if f.Type = numbers[u.Kind()]; f.Type == "" {
			break
		}
		switch u.Kind() {
		case types.Bool:
			f.Max = manifest.Const(1)
		case types.Uintptr, types.UnsafePointer:
			f.Unit = address
		}
		if named != nil && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == spinPath && named.Obj().Name() == "Counter" {
			f.Unit = "counter"
		}
		return nil
	}
	return fmt.Errorf("a state cannot hold a %v, expected numbers of fixed size, arrays and structs of them", t)
}
