package main

import (
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const repository = "../.."

var (
	linked = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	named  = regexp.MustCompile(` id="([^"]*)"`)
)

// Every document of the repository is a page. Every link of every page leads to
// an existing page and heading, or to the source of an existing file. The same
// files make the same bytes.
func TestSite(t *testing.T) {
	folder, again := t.TempDir(), t.TempDir()
	pages, err := build(repository, folder)
	require.NoError(t, err)
	require.Greater(t, pages, 40)
	_, err = build(repository, again)
	require.NoError(t, err)
	anchors, checked := map[string]map[string]bool{}, 0
	content := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		at, err := filepath.Rel(folder, name)
		require.NoError(t, err)
		other, err := os.ReadFile(filepath.Join(again, at))
		require.NoError(t, err)
		require.Equal(t, string(b), string(other), at)
		anchors[at] = map[string]bool{}
		if filepath.Ext(name) == ".html" {
			content[at] = string(b)
			for _, m := range named.FindAllStringSubmatch(string(b), -1) {
				anchors[at][html.UnescapeString(m[1])] = true
			}
		}
		return nil
	}))
	for at, text := range content {
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			link, err := url.Parse(html.UnescapeString(m[1]))
			require.NoError(t, err, at)
			if file, ok := strings.CutPrefix(m[1], source); ok {
				_, err := os.Stat(filepath.Join(repository, file))
				require.NoError(t, err, at)
			}
			if link.Host != "" {
				continue
			}
			to := at
			if link.Path != "" {
				to = filepath.Join(filepath.Dir(at), link.Path)
			}
			require.Contains(t, anchors, to, "%s links %s", at, m[1])
			require.True(t, link.Fragment == "" || anchors[to][link.Fragment], "%s links %s", at, m[1])
			checked++
		}
	}
	require.Greater(t, checked, 2500)
	for _, e := range tutorial {
		require.Contains(t, content["docs/model.html"], `<a href="../`+e.Page()+`">`+e.Title+`</a>`)
	}
}

// A link to a missing file or heading is an error that names both.
func TestLinksThatLeadNowhere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"README.md":        "# Title\n\n[a](docs/a.md#two-words-é) [file](LICENSE) [gone](gone.md) [head](docs/a.md#three) ![picture](p.png) [web](https://x.y/z) [here](#title)\n",
		"docs/a.md":        "# A\n\n## Two *words*, é\n\n## Two words é\n\n[other](#two-words-é-1)\n",
		"docs/handlers.md": "# H\n",
		"docs/sweeps.md":   "# S\n",
		"docs/reports.md":  "# R\n",
		"LICENSE":          "free",
		"testdata/x.md":    "[no page](nothing)",
	} {
		require.NoError(t, writeFile(filepath.Join(dir, name), []byte(text)))
	}
	_, err := build(dir, t.TempDir())
	require.EqualError(t, err, "README.md: link gone.md: there is no gone.md\nREADME.md: link docs/a.md#three: docs/a.md has no heading three\nREADME.md: link p.png: there is no p.png")
}
