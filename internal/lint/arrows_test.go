package lint

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// layered are packages whose files call each other one way only, so that a
// reader can begin with the lowest file. Types may name each other in circles.
var layered = []string{"experiment"}

// arrows finds files of a layered package that use each other's functions,
// constants or variables in a circle.
func arrows(r *report) {
	for _, dir := range layered {
		uses := r.tree.uses(dir)
		var path []*source
		done := make(map[*source]bool)
		var visit func(s *source)
		visit = func(s *source) {
			if i := slices.Index(path, s); i >= 0 {
				var names []string
				for _, on := range append(path[i:], s) {
					names = append(names, filepath.Base(on.path))
				}
				last := path[len(path)-1]
				r.at(last, uses[last][s].Pos(), "%s uses %s, in a circle: %s", filepath.Base(last.path), uses[last][s].Name, strings.Join(names, " → "))
				return
			}
			if done[s] {
				return
			}
			path = append(path, s)
			for _, to := range r.tree.sources { // in order
				if uses[s][to] != nil {
					visit(to)
				}
			}
			path = path[:len(path)-1]
			done[s] = true
		}
		for _, s := range r.tree.sources {
			if uses[s] != nil {
				visit(s)
			}
		}
	}
}

// uses maps each file of a package to the files whose declarations it uses,
// with an example. It may miss uses through a value of another package, because
// it does not read other packages.
func (tr *tree) uses(dir string) map[*source]map[*source]*ast.Ident {
	var files []*ast.File
	of := make(map[string]*source)
	for _, s := range tr.sources {
		if s.dir == dir && !s.test {
			files = append(files, s.ast)
			of[tr.fset.Position(s.ast.Pos()).Filename] = s
		}
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: empty{}, Error: func(error) {}}
	// errors are expected: declarations of other packages are not there
	pkg, _ := config.Check(module+"/"+dir, tr.fset, files, &info)
	uses := make(map[*source]map[*source]*ast.Ident)
	for id, o := range info.Uses { //lint:maporder any example will do
		_, isType := o.(*types.TypeName)
		if v, ok := o.(*types.Var); o.Pkg() != pkg || isType || ok && v.IsField() {
			continue
		}
		from, to := of[tr.fset.Position(id.Pos()).Filename], of[tr.fset.Position(o.Pos()).Filename]
		if from == to || to == nil {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[*source]*ast.Ident)
		}
		if other := uses[from][to]; other == nil || id.Pos() < other.Pos() {
			uses[from][to] = id
		}
	}
	return uses
}

// empty imports packages as if they were empty.
type empty struct{}

func (empty) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}
