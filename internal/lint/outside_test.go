package lint

import (
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outside finds types of internal packages in what a public package exports.
// Users of the package cannot name such a type, unless a public package has an
// alias for it. The rule looks at parameters, results,
// fields, methods, variables, constants and aliases, also of the package's
// unexported types that users get hold of.
func outside(r *report) {
	checker := &checker{tree: r.tree, done: map[string]*types.Package{}}
	named := map[types.Type]bool{}
	var packages []*types.Package
	for _, s := range r.tree.sources {
		if s.test || !public(s) {
			continue
		}
		p, _ := checker.Import(module + "/" + s.dir) // there is no error
		if slices.Contains(packages, p) {
			continue
		}
		packages = append(packages, p)
		for _, name := range p.Scope().Names() {
			if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() && o.IsAlias() {
				named[types.Unalias(o.Type())] = true
			}
		}
	}
	for _, p := range packages {
		u := &user{report: r, pkg: p, named: named, done: map[types.Type]bool{}}
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				u.sees(o)
			}
		}
	}
}

// public reports whether users may import the package of a file.
func public(s *source) bool {
	return s.ast.Name.Name != "main" && !slices.Contains([]string{"cmd", "examples"}, s.top) && !isInternal("/"+s.dir)
}

func isInternal(path string) bool { return strings.Contains(path+"/", "/internal/") }

// publicPackages are what users may import besides handlers/NAME and
// experiment/NAME. exanet/gsas and exanet/ip stay apart from exanet: three
// protocols, each with its own Options, Counts and constructor.
// handlers/rdma/engine is for guests; its path is in the bytes of their modules.
var publicPackages = []string{
	"datatype", "exanet", "exanet/gsas", "exanet/ip", "experiment", "fabric", "goal", "handlers", "handlers/allreduce/combine", "handlers/rdma/engine", "host", "hpu",
	"inet", "laws", "ledger", "mpi", "mpirun", "nic", "portals", "profile", "report", "runtime", "sim", "smmu", "spin", "spin/spintest", "trace",
}

// A package for users is a promise. A new one belongs into internal, or its
// name into the list.
func TestPublicPackages(t *testing.T) {
	var found []string
	for _, s := range load(t).sources {
		above := path.Dir(s.dir)
		if !s.test && public(s) && above != "handlers" && above != "experiment" {
			found = append(found, s.dir)
		}
	}
	slices.Sort(found)
	require.Equal(t, publicPackages, slices.Compact(found))
}

// user is somebody who imports a package.
type user struct {
	report *report
	pkg    *types.Package
	named  map[types.Type]bool // types with an alias in a public package
	done   map[types.Type]bool
}

// sees looks at a declaration, a field or a method.
func (u *user) sees(o types.Object) {
	if named, ok := o.Type().(*types.Named); ok && named.Obj() == o {
		u.declared(named)
		return
	}
	u.of(o, o.Type())
}

// declared looks at a type of the package and its methods.
func (u *user) declared(t *types.Named) {
	if u.done[t] {
		return
	}
	u.done[t] = true
	u.constraints(t.Obj(), t.TypeParams())
	u.of(t.Obj(), t.Underlying())
	for m := range t.Methods() {
		if m.Exported() {
			u.sees(m)
		}
	}
}

func (u *user) constraints(o types.Object, list *types.TypeParamList) {
	for p := range list.TypeParams() {
		u.of(o, p.Constraint())
	}
}

// of looks at a type in the declaration of o.
func (u *user) of(o types.Object, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		u.of(o, t.Rhs())
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			u.of(o, arg)
		}
		switch home := t.Obj().Pkg(); {
		case home == u.pkg:
			u.declared(t.Origin())
		case home != nil && strings.HasPrefix(home.Path(), module+"/internal/") && !u.named[t.Origin()]:
			u.cannotName(o, t)
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				u.sees(f)
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				u.sees(m)
			}
		}
		for e := range t.EmbeddedTypes() {
			u.of(o, e)
		}
	case *types.Signature:
		u.constraints(o, t.TypeParams())
		u.of(o, t.Params())
		u.of(o, t.Results())
	case *types.Tuple:
		for p := range t.Variables() {
			u.of(o, p.Type())
		}
	case *types.Union:
		for term := range t.Terms() {
			u.of(o, term.Type())
		}
	case *types.Map:
		u.of(o, t.Key())
		u.of(o, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, list or channel
		u.of(o, t.Elem())
	}
}

// cannotName reports a type of an internal package.
func (u *user) cannotName(o types.Object, t types.Type) {
	tree := u.report.tree
	name := tree.fset.Position(o.Pos()).Filename
	s := tree.sources[slices.IndexFunc(tree.sources, func(s *source) bool { return s.path == name })]
	short := types.TypeString(t, (*types.Package).Name)
	u.report.at(s, o.Pos(), "%s has %s, which users cannot name: it is internal", o.Name(), short)
}
