package strictyaml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Aliases become copies: a change of one does not change others.
func TestAliasesBecomeCopies(t *testing.T) {
	n, err := Parse("", []byte("a: &x {b: 1}\nc: *x\nd: [*x, *x]\n"))
	require.NoError(t, err)
	n.Content[1].Content[1].Value = "2"
	out, err := yaml.Marshal(n)
	require.NoError(t, err)
	require.Equal(t, "a: {b: 2}\nc: {b: 1}\nd: [{b: 1}, {b: 1}]\n", string(out))
}

func TestTextsWithoutEnd(t *testing.T) {
	laughs := "a0: &a0 [1, 1]\n"
	for i := 1; i < 40; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	for text, want := range map[string]string{
		"a: &x [*x]":                    "line 1: *x stands within its own value &x, which would have no end",
		"a: &x {b: {c: 1,\n  d: [*x]}}": "line 2: *x stands within its own value &x, which would have no end",
		"&x a: &y [*y]":                 "line 1: *y stands within its own value &y",
		laughs:                          "more than 131072 values, aliases replaced by what they stand for",
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): "line 1: more than 64 values within each other",
		"[" + strings.Repeat("1,", MaxValues) + "1]":          "more than 131072 values",
		"":              "the text is empty",
		"# nothing\n":   "the text is empty",
		"a: 1\n---\n":   "line 2: a second document",
		"a: 1\n---\nb:": "line 2: a second document",
		"a: [":          "line 1: YAML: did not find expected node content",
		"a: *x":         "YAML: unknown anchor 'x' referenced",
	} {
		_, err := Parse("", []byte(text))
		require.ErrorContains(t, err, want, "%.60s", text)
	}
}

// The number of values is right after replacement of aliases: another reader
// agrees in the cases that it supports.
func FuzzParse(f *testing.F) {
	f.Add([]byte("a: &x {b: 1}\nc: *x\n"))
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("- &a a\n- &b {*a : *a}\n- *b"))
	f.Add([]byte("a: 1\n---\nb: 2"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		n, err := Parse("", text)
		if err != nil {
			var known *Error
			require.ErrorAs(t, err, &known)
			return
		}
		values := 0
		var count func(n *yaml.Node)
		count = func(n *yaml.Node) {
			values++
			require.NotEqual(t, yaml.AliasNode, n.Kind)
			for _, c := range n.Content {
				count(c)
			}
		}
		count(n)
		require.LessOrEqual(t, values, MaxValues)
		var plain, aliased any
		// it refuses keys that are not scalars, and some aliases
		if yaml.Unmarshal(text, &aliased) == nil {
			// the reader does not see a duplicate key if one of the two is
			// behind an alias
			if err := n.Decode(&plain); err != nil {
				require.ErrorContains(t, err, "already defined")
				return
			}
			require.Equal(t, fmt.Sprint(aliased), fmt.Sprint(plain))
		}
	})
}
