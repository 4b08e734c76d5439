package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
)

// hostile are pieces of texts that terminals, spreadsheets and pages obey.
var hostile = []string{
	"\x1b[2J", "\u202e", "\n", "\r", "\t", "\xff", "|", `\`, "`", "<script>", "</td>", "<!--", "[a](javascript:b)", "![a](b)", "**", "__", "_", "*", "~~", "~~~", "&lt;",
	"&#x202e;", "https://a.b", "=1+1", "+1", "-1", "@A1", "'", `"`, ",", ";", "a", "é", " ", "# ", "- ", "1. ", "```", "$$", ":", "---", "{{.}}",
}

func hostileText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 6).Draw(t, "pieces"), "")
	})
}

// No format obeys a text: checkHostile looks at a table with it in every place.
func checkHostile(t require.TestingT, one string) {
	if one == "" || one == "n" || one == "other" {
		return // no name of a column, or that of another
	}
	table := New(Column{Name: one}, Column{Name: "other"}, Column{Name: "n", Kind: Count})
	table.Title, table.Answer, table.Notes = one, []string{one}, []string{one}
	table.Add(one, "b", -1)
	table.Add("a", one, 1)
	for _, f := range Formats {
		if f == ParquetFormat {
			continue // no text
		}
		var out bytes.Buffer
		require.NoError(t, table.Write(visible.NewWriter(&out), f))
		for line := range strings.SplitSeq(out.String(), "\n") {
			require.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }), "%s: %q", f, line)
		}
		switch f {
		case TextFormat:
			require.Equal(t, 10, strings.Count(out.String(), "\n"), out.String())
		case MarkdownFormat:
			checkPage(t, out.Bytes(), one)
		case CSVFormat:
			rows, err := csv.NewReader(&out).ReadAll()
			require.NoError(t, err)
			require.Len(t, rows, 3)
			require.Equal(t, []string{"b", "-1"}, rows[1][1:])
			checkField(t, rows[1][0], one)
			checkField(t, rows[2][1], one)
		}
	}
	// what the standard output makes visible was so when the seal was made
	table.Origin = origin{one}
	for _, f := range []Format{CSVFormat, JSONFormat, NDJSONFormat} {
		var out bytes.Buffer
		require.NoError(t, table.Write(visible.NewWriter(&out), f))
		v, err := seal.Check(&out)
		require.NoError(t, err)
		require.Equal(t, seal.Whole, v.State, "%s: %q: %s", f, one, v.Wrong)
	}
}

// checkField checks that a spreadsheet does not compute a field, and that the
// text can be had back from it.
func checkField(t require.TestingT, field, of string) {
	back, first := field, strings.TrimLeft(field, "'")
	if strings.HasPrefix(field, "'") && len(first) > 1 && strings.Contains("=+-@", first[:1]) {
		back = field[1:]
	}
	require.Equal(t, visible.Line(of), back)
	if len(field) > 1 && strings.Contains("=+-@\t\r", field[:1]) {
		require.Regexp(t, `^[+-][0-9]+$`, field)
	}
}

// checkPage reads Markdown as a page does: it has a table of two rows and three
// columns, and no element that a text could have made.
func checkPage(t require.TestingT, page []byte, of string) {
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(gtext.NewReader(page))
	cells := 0
	require.NoError(t, ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Link, *ast.Image, *ast.AutoLink, *ast.RawHTML, *ast.HTMLBlock, *ast.CodeSpan, *ast.FencedCodeBlock:
			require.Fail(t, "markup", "%q made a %s in\n%s", of, n.Kind(), page)
		case *ast.Emphasis: // the answer is bold
			require.IsType(t, &ast.Paragraph{}, n.Parent(), "%s", page)
			require.Equal(t, 2, n.Level, "%s", page)
		case *east.TableCell:
			if entering {
				cells++
			}
		}
		return ast.WalkContinue, nil
	}))
	require.Equal(t, 9, cells, "%q in\n%s", of, page)
}

func TestHostileTexts(t *testing.T) {
	for _, one := range hostile {
		checkHostile(t, one)
	}
	rapid.Check(t, func(t *rapid.T) { checkHostile(t, hostileText().Draw(t, "text")) })
}

func FuzzHostileTexts(f *testing.F) {
	for _, one := range hostile {
		f.Add(one)
	}
	f.Fuzz(func(t *testing.T, one string) { checkHostile(t, one) })
}
