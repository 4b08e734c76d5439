package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// selector returns the package or variable and the name of x.name.
func selector(e ast.Expr) (x, name string) {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok {
			return id.Name, s.Sel.Name
		}
	}
	return "", ""
}

// imported returns the name under which a file knows a package, "" if it does not.
func (s *source) imported(path string) string {
	for _, spec := range s.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == path {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path[strings.LastIndexByte(path, '/')+1:]
		}
	}
	return ""
}

// clock keeps real time out: simulation packages do not use package time, and
// nothing sleeps, not even a test.
func clock(r *report) {
	for _, s := range r.tree.sources {
		if s.inSimulation() && s.imported("time") != "" {
			for _, spec := range s.ast.Imports {
				if spec.Path.Value == `"time"` {
					r.at(s, spec.Pos(), "virtual time is sim.Time; package time is the wall clock")
				}
			}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if x, name := selector(call.Fun); x == "time" && name == "Sleep" {
					r.at(s, call.Pos(), "wait for the thing, not for the clock")
				}
			}
			return true
		})
	}
}

// seeded are the functions of math/rand/v2 that make a separate generator.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf"}

// random finds random numbers that do not depend on the seed.
func random(r *report) {
	for _, s := range r.tree.sources {
		if !s.inSimulation() {
			continue
		}
		for _, spec := range s.ast.Imports {
			if spec.Path.Value == `"math/rand"` || spec.Path.Value == `"crypto/rand"` {
				r.at(s, spec.Pos(), "random numbers come from a seeded stream of package sim")
			}
		}
		name := s.imported("math/rand/v2")
		if name == "v2" {
			name = "rand"
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && name != "" {
				if x, f := selector(call.Fun); x == name && !slices.Contains(seeded, f) {
					r.at(s, call.Pos(), "rand.%s draws from the global source", f)
				}
			}
			return true
		})
	}
}

// mapOrder finds loops over maps, whose order differs from run to run.
func mapOrder(r *report) {
	checker := &checker{tree: r.tree, done: map[string]*types.Package{}}
	dirs := map[string][]*source{}
	var order []string
	for _, s := range r.tree.sources {
		if s.inSimulation() {
			if dirs[s.dir] == nil {
				order = append(order, s.dir)
			}
			dirs[s.dir] = append(dirs[s.dir], s)
		}
	}
	for _, dir := range order {
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		checker.check(dir, info)
		for _, s := range dirs[dir] {
			sorted := map[ast.Node]bool{}
			ast.Inspect(s.ast, func(n ast.Node) bool {
				mapLoop(r, s, info, sorted, n)
				return true
			})
		}
	}
}

// mapLoop reports n if it ranges over a map. sorted collects the calls whose
// results are sorted.
func mapLoop(r *report, s *source, info *types.Info, sorted map[ast.Node]bool, n ast.Node) {
	switch n := n.(type) {
	case *ast.RangeStmt:
		if t := info.TypeOf(n.X); t != nil {
			if _, isMap := t.Underlying().(*types.Map); isMap {
				r.at(s, n.Pos(), "the order of a map differs from run to run")
			}
		}
	case *ast.CallExpr:
		x, name := selector(n.Fun)
		if x == "slices" && strings.HasPrefix(name, "Sorted") {
			for _, arg := range n.Args {
				sorted[arg] = true
			}
		}
		if x == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, name) && !sorted[n] {
			r.at(s, n.Pos(), "the order of maps.%s differs from run to run; wrap it in slices.Sorted", name)
		}
	}
}

// checker finds the types of this module's packages from their source. Other
// packages stay unknown; it ignores the errors about them.
type checker struct {
	tree *tree
	done map[string]*types.Package
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if p := c.done[path]; p != nil {
		return p, nil
	}
	dir, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
		p.MarkComplete()
		c.done[path] = p
		return p, nil
	}
	p := c.check(dir, nil)
	c.done[path] = p
	return p, nil
}

func (c *checker) check(dir string, info *types.Info) *types.Package {
	var files []*ast.File
	for _, s := range c.tree.sources {
		if s.dir == dir && !s.test {
			files = append(files, s.ast)
		}
	}
	config := types.Config{
		Importer:         c,
		IgnoreFuncBodies: info == nil,
		Error:            func(error) {},
	}
	p, _ := config.Check(module+"/"+dir, c.tree.fset, files, info) // the errors are ignored
	return p
}

// timing finds durations in code: they belong in profiles.
func timing(r *report) {
	for _, s := range r.tree.sources {
		if !s.inSimulation() || s.top == "sim" {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if n.Op == token.MUL && (literal(n.X) && unit(n.Y) || unit(n.X) && literal(n.Y)) {
					r.at(s, n.Pos(), "a time in code: make it a named field of a profile")
				}
			case *ast.CallExpr:
				if x, name := selector(n.Fun); x == "sim" && name == "Time" && len(n.Args) == 1 && literal(n.Args[0]) {
					r.at(s, n.Pos(), "a time in code: make it a named field of a profile")
				}
			}
			return true
		})
	}
}

// unit reports whether e is one of sim's units of time.
func unit(e ast.Expr) bool {
	x, name := selector(e)
	return x == "sim" && slices.Contains([]string{"Picosecond", "Nanosecond", "Microsecond", "Millisecond", "Second"}, name)
}

// literal reports whether e is a number other than 0 and 1.
func literal(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && (l.Kind == token.INT || l.Kind == token.FLOAT) && l.Value != "0" && l.Value != "1"
}
