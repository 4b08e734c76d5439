package runtime_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// TestInterfaceWraps checks that the interface of a process is the program's face and nothing else: it embeds nothing, has
// every call of portals.NI with the same signature (but for the waits, which take a time-out), and none of portals.Port's.
func TestInterfaceWraps(t *testing.T) {
	ni := reflect.TypeFor[*runtime.NI]()
	for i := range ni.Elem().NumField() {
		require.False(t, ni.Elem().Field(i).Anonymous, "%s is embedded", ni.Elem().Field(i).Name)
	}
	elsewhere := map[string]string{"Port": "the NIC's", "Process": "Proc", "PTIdle": "PTDisable waits", "SetCause": "the flow of the thread that calls"}
	waits := map[string]bool{"EQPoll": true, "CTPoll": true}
	core := reflect.TypeFor[*portals.NI]()
	for m := range core.Methods() {
		got, ok := ni.MethodByName(m.Name)
		require.NotEqual(t, ok, elsewhere[m.Name] != "", "%s", m.Name)
		if !ok || waits[m.Name] {
			continue
		}
		require.Equal(t, signature(m.Type), signature(got.Type), "%s", m.Name)
	}
	for m := range reflect.TypeFor[*portals.Port]().Methods() {
		if _, program := core.MethodByName(m.Name); !program {
			_, ok := ni.MethodByName(m.Name)
			require.False(t, ok, "%s is for the transport", m.Name)
		}
	}
}

// signature is the parameters and results of a method without its receiver.
func signature(m reflect.Type) (s []string) {
	for i := 1; i < m.NumIn(); i++ {
		s = append(s, m.In(i).String())
	}
	s = append(s, "->")
	for i := range m.NumOut() {
		s = append(s, m.Out(i).String())
	}
	return s
}

// TestForwards checks that every call that is handed on goes to the call of the same name with the same arguments in order.
func TestForwards(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "objects.go", nil, 0)
	require.NoError(t, err)
	forwarded := 0
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		require.Len(t, fn.Body.List, 1, fn.Name.Name)
		var call *ast.CallExpr
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				require.Nil(t, call, "%s calls more than one thing", fn.Name.Name)
				call = c
			}
			return true
		})
		require.Equal(t, fn.Name.Name, call.Fun.(*ast.SelectorExpr).Sel.Name)
		var params, args []string
		for _, p := range fn.Type.Params.List {
			for _, n := range p.Names {
				params = append(params, n.Name)
			}
		}
		for _, a := range call.Args {
			args = append(args, a.(*ast.Ident).Name)
		}
		require.Equal(t, params, args, fn.Name.Name)
		forwarded++
	}
	require.Greater(t, forwarded, 40)
}
