package scenario

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/manifest"
)

var listedTypes = []manifest.Type{manifest.U8, manifest.U16, manifest.U32, manifest.U64}

// someState has up to five numbers, f0 and so on, some of which are at most
// 102.
func someState(r *rapid.T) *manifest.State {
	s := &manifest.State{Name: "S"}
	for i := range rapid.IntRange(1, 5).Draw(r, "fields") {
		typ := rapid.SampledFrom(listedTypes).Draw(r, "type")
		s.Size = (s.Size + typ.Size() - 1) / typ.Size() * typ.Size()
		f := manifest.Field{Name: fmt.Sprintf("f%d", i), Type: typ, Offset: s.Size}
		if rapid.Bool().Draw(r, "bounded") {
			f.Max = manifest.Const(102)
		}
		s.Fields = append(s.Fields, f)
		s.Size += typ.Size()
	}
	require.NoError(r, (&manifest.Manifest{States: []*manifest.State{s}}).Check())
	return s
}

// TestListedNames tests lists with names in any order and of any type. Either
// the list is an error, or each named number is the number with that name in
// the module's state, and an expectation finds it there.
func TestListedNames(t *testing.T) {
	taken, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		s := someState(r)
		var list []string
		for i := range rapid.IntRange(1, 7).Draw(r, "listed") {
			name, typ := "", rapid.SampledFrom(listedTypes).Draw(r, "listed type")
			if rapid.Bool().Draw(r, "as it should be") && i < len(s.Fields) {
				name, typ = s.Fields[i].Name, s.Fields[i].Type
			} else if rapid.Bool().Draw(r, "named") {
				name = fmt.Sprintf("f%d", rapid.IntRange(0, 5).Draw(r, "name"))
			}
			field := fmt.Sprintf("{%s: %d", typ, 100+i)
			if name != "" {
				field += ", name: " + name
			}
			list = append(list, field+"}")
		}
		file := "profile: spin-int\nranks: 1\nentries: [{name: a, ranks: 0, handlers: {module: m, state: [" + strings.Join(list, ", ") + "]}}]\n"
		spec, err := parse("s.yaml", []byte(file), nil)
		require.NoError(r, err)
		require.NoError(r, spec.unread())
		c := &spec.Entries[0].Handlers.State
		l := stateLayout{described: s}
		if _, err := l.list(c.fields, 0, &env{}, &manifest.Device{}); err != nil {
			refused++
			return
		}
		b, err := c.make(&env{}, source{})
		require.NoError(r, err)
		b = append(b, make([]byte, s.Size)...)
		for i := range c.fields {
			name := c.fields[i].Name
			if name == "" {
				continue
			}
			taken++
			n, err := s.Lookup(name)
			require.NoError(r, err)
			require.EqualValues(r, 100+i, n.Get(b), "%s of %s", name, file)
			require.True(r, !n.Field.Max.IsSet() || i <= 2, "%s of %s: beyond its range", name, file)
			f, err := l.field(name)
			require.NoError(r, err)
			require.EqualValues(r, 100+i, f.Get(b))
		}
	})
	require.NotZero(t, taken)
	require.NotZero(t, refused)
}
