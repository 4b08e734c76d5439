package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bounds for what somebody reads before he uses the program. A page that a test
// writes as a whole does not count.
const (
	maxDocumentWords = 45_000 // in README.md and docs
	maxPageWords     = 60_000 // in all Markdown
	maxReadme        = 8 << 10
)

// page is a file of Markdown.
type page struct {
	path   string // slash-separated, from the root of the repository
	words  int
	writer string // folder of the package whose tests write it as a whole; "": nobody
}

// written is the first line of a page that a test writes. For example:
//
//	<!-- go test ./cmd/spinsim -run TestFigurePages -update writes this page -->
var written = regexp.MustCompile(`\A<!-- go test (?:-tags \S+ )?\./(\S+) .*writes this page -->\n`)

// pages lists the Markdown below a folder.
func pages(root string) (list []page, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && skipped[d.Name()]:
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		p := page{path: filepath.ToSlash(name), words: len(bytes.Fields(text))}
		if m := written.FindSubmatch(text); m != nil {
			p.writer = string(m[1])
		}
		list = append(list, p)
		return nil
	})
	return list, err
}

// tooLong names the words beyond a limit and the longest pages; "": there are
// none.
func tooLong(list []page, limit int) string {
	words := 0
	for _, p := range list {
		words += p.words
	}
	if words <= limit {
		return ""
	}
	longest := slices.SortedStableFunc(slices.Values(list), func(a, b page) int { return b.words - a.words })
	text := fmt.Sprintf("%d words, %d more than %d. The longest pages:", words, words-limit, limit)
	for _, p := range longest[:min(8, len(longest))] {
		text += fmt.Sprintf("\n%7d %s", p.words, p.path)
	}
	return text
}

func TestPagesAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := pages(root)
	require.NoError(t, err)
	var all, documents []page
	for _, p := range list {
		if p.writer != "" {
			require.True(t, writes(t, filepath.Join(root, p.writer)), "%s: no test of ./%s writes such a page", p.path, p.writer)
			continue
		}
		all = append(all, p)
		if p.path == "README.md" || strings.HasPrefix(p.path, "docs/") {
			documents = append(documents, p)
		}
	}
	require.Less(t, len(all), len(list), "no page names the test that writes it")
	if text := tooLong(documents, maxDocumentWords); text != "" {
		t.Errorf("README.md and docs: %s", text)
	}
	if text := tooLong(all, maxPageWords); text != "" {
		t.Errorf("all Markdown: %s", text)
	}
	readme, err := os.Stat(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	require.LessOrEqual(t, readme.Size(), int64(maxReadme), "README.md: bytes")
}

// Pages are as plain as comments. The output of a command is the command's, and
// a generated page the test's.
func TestPagesArePlain(t *testing.T) {
	root := filepath.Join("..", "..")
	list, err := pages(root)
	require.NoError(t, err)
	for _, p := range list {
		if p.writer != "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, p.path))
		require.NoError(t, err)
		block := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				block = !block
			}
			for _, phrase := range banned {
				if found := phrase.FindString(line); found != "" && !block {
					t.Errorf("%s:%d: %q: say it plainly", p.path, i+1, found)
				}
			}
		}
	}
}

// writes reports whether the tests of a folder write the first line of
// generated pages. So a page cannot excuse itself.
func writes(t *testing.T, folder string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(text, []byte("writes this page -->")) {
			return true
		}
	}
	return false
}

func TestLongPagesAreNamed(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": "one two three", "docs/a.md": "four words are here", "docs/b.md": "<!-- go test ./x -update writes this page -->\nmany words",
		"docs/c.md": "text\n<!-- go test ./x -update writes this page -->", "testdata/d.md": "not ours", "e.txt": "no page",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o666))
	}
	list, err := pages(root)
	require.NoError(t, err)
	require.Equal(t, []page{{"README.md", 3, ""}, {"docs/a.md", 4, ""}, {"docs/b.md", 11, "x"}, {"docs/c.md", 10, ""}}, list)
	require.Empty(t, tooLong(list, 28))
	require.Equal(t, "28 words, 3 more than 25. The longest pages:\n     11 docs/b.md\n     10 docs/c.md\n      4 docs/a.md\n      3 README.md", tooLong(list, 25))
}
