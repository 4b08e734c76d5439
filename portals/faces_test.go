package portals

import (
	"go/ast"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// portMethods are what a transport may do with an interface, and all of it.
var portMethods = []string{
	"Acked", "Acknowledge", "Bundling", "Cancel", "Cookie", "DisableForFlowControl", "Finish", "ID", "Issue", "Kind", "Limits", "Lost", "NI", "NextOp",
	"QueuedOps", "Read", "Receive", "Release", "ReplyTo", "Sent", "WaitingEntries", "Write",
}

// TestFaces holds the two sides of an interface apart: what the transport calls
// is not the program's, and what the program calls is not the transport's. Only
// the names of the interface are on both.
func TestFaces(t *testing.T) {
	names := func(v any) (all []string) {
		for m := range reflect.TypeOf(v).Methods() {
			all = append(all, m.Name)
		}
		return all
	}
	require.ElementsMatch(t, portMethods, names(&Port{}))
	var both []string
	for _, m := range names(&NI{}) {
		if slices.Contains(portMethods, m) {
			both = append(both, m)
		}
	}
	require.ElementsMatch(t, []string{"ID", "Kind", "Limits"}, both)

	ni := testNI(t, OptNIMatching|OptNIPhysical)
	require.Same(t, ni, ni.Port().NI())
	require.Same(t, ni.Port(), ni.Port().NI().Port())
	require.Zero(t, testing.AllocsPerRun(100, func() { ni.Port().QueuedOps() }))
}

// TestOneReceiver keeps each file to one story: the methods of the interface in
// a file belong to one of its faces or to the state behind them. No type has
// grown into all of the package.
func TestOneReceiver(t *testing.T) {
	const most = 62 // the standard's own API is 58 calls
	count := map[string]int{}
	for _, f := range parsePackage(t) {
		owner := ""
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			typ := fn.Recv.List[0].Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			name, ok := typ.(*ast.Ident)
			if !ok {
				continue // generic
			}
			count[name.Name]++
			face := name.Name
			switch face {
			case "Objects":
				face = "NI"
			case "NI", "Port", "state":
			default:
				continue
			}
			require.Contains(t, []string{"", face}, owner, "%s is a method of %s among methods of %s", fn.Name.Name, face, owner)
			owner = face
		}
	}
	for name, n := range count {
		require.LessOrEqual(t, n, most, "%s has %d methods", name, n)
	}
	require.Greater(t, count["NI"]+count["Objects"], 50, "the methods are looked at")
}
