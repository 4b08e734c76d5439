package build

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// Declared is what a package declares for the two sides of a contract.
type Declared struct {
	Name  string // of the package
	Items []Item // in the order of the source; files in alphabetical order
}

// Item is one declaration. One of Struct, Source and Value is set.
type Item struct {
	Struct *manifest.State // layout of a type with structs.HostLayout; Comment has its comment
	// Go source, with its comment, of what has no layout: exported functions, other
	// types, and constants that only functions use. The body of a function of more
	// than 15 lines is left out.
	Source string
	// of an exported integer constant: its name and value, its comment, and the
	// comment of its group at the first of it
	Constant, Value, Comment, Group string
}

// longBody is the most lines of a function that Declarations shows.
const longBody = 15

// Declarations reads a package, and the packages of the same module that it
// imports, and returns the importing one last. files returns the files of a
// package by their names; none: its declarations are unknown and not needed.
func Declarations(of string, files func(importPath string) map[string][]byte) ([]*Declared, error) {
	d := declarations{files: files, src: newGoSource("")}
	layout := types.NewPackage("structs", "structs")
	layout.Scope().Insert(types.NewTypeName(token.NoPos, layout, "HostLayout", nil))
	types.NewNamed(layout.Scope().Lookup("HostLayout").(*types.TypeName), types.NewStruct(nil, nil), nil)
	layout.MarkComplete()
	d.src.packages["structs"] = &goPackage{checked: layout}
	err := d.add(of)
	return d.list, err
}

type declarations struct {
	files func(string) map[string][]byte
	src   *goSource
	list  []*Declared
}

// add reads a package behind those that it imports.
func (d *declarations) add(importPath string) error {
	sources := d.files(importPath)
	if len(sources) == 0 || d.src.packages[importPath] != nil {
		return nil
	}
	p := &goPackage{ImportPath: importPath}
	d.src.packages[importPath] = p
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(d.src.set, path.Join(importPath, name), sources[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
		d.src.index(file)
		for _, i := range file.Imports {
			if err := d.add(strings.Trim(i.Path.Value, `"`)); err != nil {
				return err
			}
		}
	}
	checked, err := d.src.Import(importPath)
	if err != nil {
		return err
	}
	out := &Declared{Name: path.Base(importPath)}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			if err := d.declaration(out, checked.Scope(), decl); err != nil {
				return err
			}
		}
	}
	d.list = append(d.list, out)
	return nil
}

func (d *declarations) declaration(out *Declared, scope *types.Scope, decl ast.Decl) error {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() {
			return d.source(out, decl.Doc, shortened(d.src.set, decl))
		}
	case *ast.GenDecl:
		group := strings.TrimSpace(decl.Doc.Text())
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if decl.Tok != token.CONST {
					continue
				}
				if err := d.constants(out, scope, spec, group); err != nil {
					return err
				}
				group = ""
			case *ast.TypeSpec:
				if err := d.typ(out, scope, decl, spec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (d *declarations) constants(out *Declared, scope *types.Scope, spec *ast.ValueSpec, group string) error {
	for _, name := range spec.Names {
		c, is := scope.Lookup(name.Name).(*types.Const)
		if !is { // _
			continue
		}
		if c.Val().Kind() != constant.Int {
			return d.src.at(name.Pos()).errorf("constant %s is %v, expected a whole number", name.Name, c.Val())
		}
		comment := spec.Comment
		if spec.Doc != nil {
			comment = spec.Doc
		}
		if !name.IsExported() { // only functions use it
			out.Items = append(out.Items, Item{Source: fmt.Sprintf("const %s = %s", name.Name, c.Val().ExactString())})
			continue
		}
		out.Items = append(out.Items, Item{Constant: name.Name, Value: c.Val().ExactString(), Comment: oneLine(comment.Text()), Group: group})
		group = ""
	}
	return nil
}

func (d *declarations) typ(out *Declared, scope *types.Scope, decl *ast.GenDecl, spec *ast.TypeSpec) error {
	if !spec.Name.IsExported() {
		return nil
	}
	doc := spec.Doc
	if doc == nil {
		doc = decl.Doc
	}
	named := scope.Lookup(spec.Name.Name).(*types.TypeName)
	if layout, is := named.Type().Underlying().(*types.Struct); is && hostLayout(layout) {
		name, err := d.src.state(named, layout)
		if err == nil {
			s := *d.src.states[name]
			s.Name = spec.Name.Name
			out.Items = append(out.Items, Item{Struct: &s, Comment: strings.TrimSpace(doc.Text())})
		}
		return err
	}
	return d.source(out, doc, &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{&ast.TypeSpec{Name: spec.Name, Type: spec.Type}}})
}

// hostLayout reports whether a struct has the layout of the host, as
// structs.HostLayout says.
func hostLayout(s *types.Struct) bool {
	for f := range s.Fields() {
		if n, is := f.Type().(*types.Named); is && n.Obj().Name() == "HostLayout" && n.Obj().Pkg().Path() == "structs" {
			return true
		}
	}
	return false
}

// shortened is a function without its comment, and without a long body.
func shortened(set *token.FileSet, f *ast.FuncDecl) *ast.FuncDecl {
	short := &ast.FuncDecl{Recv: f.Recv, Name: f.Name, Type: f.Type}
	if f.Body != nil && set.Position(f.Body.End()).Line-set.Position(f.Body.Pos()).Line <= longBody {
		short.Body = f.Body
	}
	return short
}

func (d *declarations) source(out *Declared, doc *ast.CommentGroup, node ast.Node) error {
	var b bytes.Buffer
	if text := strings.TrimSpace(doc.Text()); text != "" {
		fmt.Fprintf(&b, "%s\n\n", text)
	}
	if err := format.Node(&b, d.src.set, node); err != nil {
		return err
	}
	out.Items = append(out.Items, Item{Source: b.String()})
	return nil
}
