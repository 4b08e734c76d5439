package visible_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/visible"
)

// hostile are pieces of names that command a terminal, deceive a reader, or are
// no text.
var hostile = []string{
	"a", "Ω é 漢", "\x1b[2J", "\x1b]0;x\a", "\u202e", "\u2066", "\u200f", "\ufeff", "\u2028", "\u2029", "\u009b", "\x7f", "\x00", "\r", "\n", "\t",
	"\xff", "\xe2\x80", "\U000e0041", "\ufffd", `\x1b`, `"`, "\xf0",
}

func text() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(hostile), rapid.String()), 0, 8).Draw(t, "pieces"), "")
	})
}

// check holds for every text: nothing hidden is left, a visible text stays, and
// a Writer writes the same whatever the pieces.
func check(t require.TestingT, s string, cut int) {
	is := func(r rune) bool { return !unicode.IsGraphic(r) }
	line, all := visible.Line(s), visible.Text(s)
	require.True(t, utf8.ValidString(line))
	require.Equal(t, -1, strings.IndexFunc(line, is), "%q", line)
	require.Equal(t, -1, strings.IndexFunc(strings.NewReplacer("\n", "", "\t", "").Replace(all), is), "%q", all)
	require.Equal(t, line, visible.Line(line))
	require.Equal(t, line, visible.Line(all))
	if utf8.ValidString(s) && strings.IndexFunc(s, is) < 0 {
		require.Equal(t, s, line)
	}

	var out bytes.Buffer
	w := visible.NewWriter(&out)
	for rest := []byte(s); len(rest) > 0; {
		n := min(len(rest), cut)
		written, err := w.Write(rest[:n])
		require.NoError(t, err)
		require.Equal(t, n, written)
		rest = rest[n:]
	}
	require.NoError(t, w.Flush())
	require.Equal(t, all, out.String())

	document, err := json.Marshal([]string{s})
	require.NoError(t, err)
	var was, now []string
	require.NoError(t, json.Unmarshal(document, &was))
	require.NoError(t, json.Unmarshal([]byte(visible.Text(string(document))), &now))
	require.Equal(t, was, now)
}

func TestVisible(t *testing.T) {
	require.Equal(t, `a\x1b[2J\nb\u202e\x00\u009b\xff\ufeff\udb40\udc41é`, visible.Line("a\x1b[2J\nb\u202e\x00\u009b\xff\ufeff\U000e0041é"))
	require.Equal(t, "a\n\tb\\r", visible.Text("a\n\tb\r"))
	var out bytes.Buffer
	_, err := visible.NewWriter(&out, "a\nb", "plain", "\n").Write([]byte("open a\nb: plain\n"))
	require.NoError(t, err)
	require.Equal(t, "open a\\nb: plain\n", out.String())
	rapid.Check(t, func(t *rapid.T) { check(t, text().Draw(t, "text"), rapid.IntRange(1, 5).Draw(t, "cut")) })
}

func FuzzVisible(f *testing.F) {
	for i, s := range hostile {
		f.Add(s, i)
	}
	f.Fuzz(func(t *testing.T, s string, cut int) { check(t, s, max(1, cut)) })
}
