package build

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A set that no module can have is refused before a compiler runs.
func TestSetsRefused(t *testing.T) {
	dir := handler(t, "a.c", "#include <stdint.h>\n", "builds")
	one := func(name string) Set { return Set{Name: name, Handlers: [3]string{"", "f", ""}} }
	for want, sets := range map[string][]Set{
		`set "a b": expected an identifier of C that no other set has`: {one("a b")},
		`set "a": expected an identifier of C that no other set has`:   {one("a"), one("a")},
		`set a has no handlers`:                        {{Name: "a"}},
		`set a: "f;", expected the name of a function`: {{Name: "a", Handlers: [3]string{"f;", "", ""}}},
	} {
		o := Options{Lang: C, Sets: sets}
		require.ErrorContains(t, o.Build(dir, filepath.Join(dir, "out.wasm")), want)
	}
	o := Options{Lang: Rust, Sets: []Set{one("a")}}
	require.ErrorContains(t, o.Build(dir, filepath.Join(dir, "out.wasm")), "are for C and C++")
}
