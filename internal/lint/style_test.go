package lint

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds for what a reader can take in at a time. In a file all lines count, in
// a function those with code: a comment makes it no harder to read.
const (
	maxFileLines     = 500
	maxFunctionLines = 60
	maxMethods       = 40 // of one type
)

// panics requires a reason for each panic: a comment at the call, a message
// that begins with the package's name and so states the mistake, or a doc
// comment about when the function panics.
func panics(r *report) {
	for _, s := range r.tree.sources {
		if s.test {
			continue
		}
		commented := map[int]bool{}
		for _, group := range s.ast.Comments {
			for line := r.tree.line(group.Pos()); line <= r.tree.line(group.End()); line++ {
				commented[line] = true
			}
		}
		for _, decl := range s.ast.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			if isFunc && f.Doc != nil && strings.Contains(f.Doc.Text(), "anic") {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isIdent(call.Fun, "panic") || statesMistake(s.ast.Name.Name, call) {
					return true
				}
				if line := r.tree.line(call.Pos()); !commented[line] && !commented[line-1] {
					r.at(s, call.Pos(), "a panic needs a reason: a comment, or a message that begins with %q", s.ast.Name.Name+": ")
				}
				return true
			})
		}
	}
}

func (tr *tree) line(pos token.Pos) int { return tr.fset.Position(pos).Line }

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// statesMistake reports whether the first string in the call begins with the name
// of the package.
func statesMistake(pkg string, call *ast.CallExpr) bool {
	found := false
	first := true
	ast.Inspect(call, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && first {
			first = false
			text, err := strconv.Unquote(l.Value)
			found = err == nil && strings.HasPrefix(text, pkg+": ")
		}
		return first
	})
	return found
}

// unfinished are the words of unfinished work, put together so that this file
// passes its own test.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK|[Ff]or no` + `w|[Pp]lace` + `holder|[Ss]impl` + `ified)\b`)

// words finds marks of unfinished work in comments.
func words(r *report) {
	for _, s := range r.tree.sources {
		for _, group := range s.ast.Comments {
			for _, comment := range group.List {
				if word := unfinished.FindString(comment.Text); word != "" {
					r.at(s, comment.Pos(), "%q: finish it, or say what it is", word)
				}
			}
		}
	}
}

// known are methods whose interface documents them.
var known = []string{
	"Error", "Is", "Unwrap", "String", "Read", "Write", "Close", "Len", "Less", "Swap", "MarshalText",
	"UnmarshalText", "MarshalJSON", "UnmarshalJSON", "UnmarshalYAML", "MarshalYAML",
}

// documented requires a doc comment on each declaration that other packages
// see.
func documented(r *report) {
	for _, s := range r.tree.sources {
		if s.test || s.generated() || s.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range s.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && (d.Recv == nil || !slices.Contains(known, d.Name.Name)) {
					r.at(s, d.Pos(), "%s has no doc comment", d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					documentedSpec(r, s, d, spec)
				}
			}
		}
	}
}

func exportedReceiver(f *ast.FuncDecl) bool { return f.Recv == nil || ast.IsExported(receiver(f)) }

// documentedSpec checks one name of a declaration. For constants and variables,
// a comment on their group or at the end of the line is enough.
func documentedSpec(r *report, s *source, d *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) && spec.Comment == nil {
			r.at(s, spec.Pos(), "%s has no doc comment", spec.Name.Name)
		}
		documentedFields(r, s, spec)
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil {
				r.at(s, name.Pos(), "%s has no doc comment", name.Name)
			}
		}
	}
}

// documentedFields requires a comment on the fields of a profile's section,
// because users write them. Fields of scenarios have help tags instead.
func documentedFields(r *report, s *source, spec *ast.TypeSpec) {
	fields, ok := spec.Type.(*ast.StructType)
	if !ok || !strings.HasSuffix(spec.Name.Name, "Spec") {
		return
	}
	for _, f := range fields.Fields.List {
		if f.Tag != nil && strings.Contains(f.Tag.Value, "yaml:") && !strings.Contains(f.Tag.Value, "help:") && f.Doc == nil && f.Comment == nil {
			r.at(s, f.Pos(), "%s.%s has no comment: unit, range, what it is", spec.Name.Name, f.Names[0].Name)
		}
	}
}

// sizes bounds files, functions and types.
func sizes(r *report) {
	methods := map[string]int{}
	for _, s := range r.tree.sources {
		if s.generated() {
			continue
		}
		if n := bytes.Count(s.text, []byte("\n")); n > maxFileLines {
			r.at(s, s.ast.Package, "%d lines, at most %d", n, maxFileLines)
		}
		for _, decl := range s.ast.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := r.tree.fset.Position(f.Pos()).Offset, r.tree.fset.Position(f.End()).Offset
			if n := codeLines(s.text[from:to]); n > maxFunctionLines {
				r.at(s, f.Pos(), "%s has %d lines of code, at most %d", f.Name.Name, n, maxFunctionLines)
			}
			if name := receiver(f); name != "" && !s.test {
				name = s.dir + "." + name
				if methods[name]++; methods[name] == maxMethods+1 {
					r.at(s, f.Pos(), "%s has more than %d methods", name, maxMethods)
				}
			}
		}
	}
}

// receiver returns the name of a method's type; "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	e := f.Recv.List[0].Type
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// skips finds tests that skip.
func skips(r *report) {
	for _, s := range r.tree.sources {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && s.test {
				if x, name := selector(call.Fun); (x == "t" || x == "b" || x == "f") && strings.HasPrefix(name, "Skip") {
					r.at(s, call.Pos(), "a test that is skipped finds nothing")
				}
			}
			return true
		})
	}
}

// machine matches paths that exist on one machine only. It is put together so
// that this file passes its own test.
var machine = regexp.MustCompile(`/wo` + `rk/|/ro` + `ot/|/ho` + `me/[a-z]|/Us` + `ers/`)

// paths finds such paths in any text file.
func paths(r *report) {
	err := filepath.WalkDir(r.tree.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		own := filepath.Join(r.tree.root, "internal", "lint", "testdata")
		notOurs := path != r.tree.root && (d.Name() == ".git" || d.Name() == ".tools" || path == own)
		switch {
		case d.IsDir() && notOurs:
			return filepath.SkipDir
		// in a work tree beside the clone .git is a file, and .tools may be a
		// link
		case d.IsDir() || notOurs:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		relative, err := filepath.Rel(r.tree.root, path)
		if err != nil {
			return err
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if found := machine.Find(line); found != nil {
				r.list = append(r.list, filepath.ToSlash(relative)+":"+strconv.Itoa(i+1)+": "+string(found)+" exists on one machine only")
			}
		}
		return nil
	})
	if err != nil {
		r.list = append(r.list, err.Error())
	}
}
