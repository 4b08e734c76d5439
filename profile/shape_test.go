package profile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const twoSwitches = "{switches: [{name: a}, {name: b}], nodes: [{at: a, count: 2}], links: [{from: a, to: b}]}"

// A field for another kind of network is an error in the text that sets it.
// Fields of the base are removed when the kind changes.
func TestShapeGoesWithItsKind(t *testing.T) {
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o666))
		return name
	}
	whole, err := Load("spin-int", "fabric.kind=torus", "fabric.dims=[4, 4]")
	require.NoError(t, err)
	content, err := whole.Content()
	require.NoError(t, err)

	for _, x := range []struct {
		name string // or, if it begins with {, the text of a file
		set  []string
		want string // expected error; "": none
	}{
		{"spin-int", []string{"fabric.dims=[4, 4]"}, "fabric.dims: [4 4] has no meaning with kind fat-tree, want kind torus"},
		{"spin-int", []string{"fabric.topology=" + twoSwitches}, "fabric.topology: has no meaning with kind fat-tree, want kind file"},
		{"spin-int", []string{"fabric.topology.switches=[{name: a}]"}, "fabric.topology: has no meaning"},
		{"spin-int", []string{"fabric.topology=" + twoSwitches, "fabric.kind=torus", "fabric.dims=[2]"}, "fabric.topology: has no meaning with kind torus"},
		{"spin-int", []string{"fabric.dims=[4, 4]", "fabric.kind=crossbar"}, "fabric.dims: [4 4] has no meaning with kind crossbar"},
		{"spin-int", []string{"fabric.dims=[4, 4]", "fabric.kind=tree"}, "fabric.kind: want fat-tree, crossbar, torus, exanest"},
		{"{base: spin-int, fabric: {dims: [4, 4]}}", nil, "fabric.dims: [4 4] has no meaning with kind fat-tree"},
		{"{base: spin-int, fabric: {kind: crossbar, topology: " + twoSwitches + "}}", nil, "fabric.topology: has no meaning with kind crossbar"},
		{string(content), []string{"fabric.kind=torus"}, ""},
		{string(content), []string{"fabric.kind=crossbar"}, ""},
		{string(content), []string{"fabric.kind=fat-tree"}, ""},
		{string(content), []string{"fabric.kind=file", "fabric.topology=" + twoSwitches}, ""},
		{string(content), []string{"fabric.kind=file", "fabric.topology=" + twoSwitches, "fabric.dims=[4]"}, "fabric.dims: [4] has no meaning with kind file"},
		{string(content), []string{"fabric.wire=1ns"}, ""},
	} {
		if x.name[0] == '{' {
			x.name = write(x.name)
		}
		p, err := Load(x.name, x.set...)
		if x.want != "" {
			require.ErrorContains(t, err, x.want, x.set)
			require.NotContains(t, err.Error(), "\n", "one error")
			continue
		}
		require.NoError(t, err, x.set)
		if p.Fabric.Kind != "torus" {
			require.Empty(t, p.Fabric.Dims)
		}
	}
}
