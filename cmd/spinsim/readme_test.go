package main

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/provenance"
)

var update = flag.Bool("update", false, "write the outputs in README.md and docs anew")

const outputMark = "<!-- output: spinsim "

// In README.md and in docs, every block below a line "<!-- output: spinsim ...
// -->" is the output of that command.
func TestReadmeShowsWhatCommandsPrint(t *testing.T) {
	t.Chdir(filepath.Join("..", "..")) // where the files that commands name are
	documents, err := filepath.Glob(filepath.Join("docs", "*.md"))
	require.NoError(t, err)
	for _, name := range append(documents, "README.md") {
		showsWhatCommandsPrint(t, name)
	}
}

func showsWhatCommandsPrint(t *testing.T, name string) {
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	const fence = "```\n"
	parts := strings.Split(string(data), outputMark)
	for i, part := range parts[1:] {
		command, rest, ok := strings.Cut(part, " -->\n"+fence)
		require.True(t, ok)
		shows, after, ok := strings.Cut(rest, fence)
		require.True(t, ok)
		t.Run(command, func(t *testing.T) {
			printed := strings.TrimRight(string(output(t, strings.Fields(command)...)), "\n") + "\n"
			if *update {
				parts[i+1] = command + " -->\n" + fence + printed + fence + after
				return
			}
			require.Equal(t, printed, shows, "spinsim %s; go test ./cmd/spinsim -update writes it anew", command)
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(parts, outputMark)), 0o644))
	}
}

// The commands above the pictures of docs/exanest.md draw them.
func TestReadmeShowsPictures(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile(filepath.Join("docs", "exanest.md"))
	require.NoError(t, err)
	pictures := []string{"exanest.svg", "exanest-load.svg"}
	before, _, shown := strings.Cut(string(text), "(images/"+pictures[1]+")")
	require.True(t, shown)
	folder := t.TempDir()
	for _, command := range documentedCommands(before) {
		args := strings.Fields(command)[1:]
		for i := 1; i < len(args); i++ {
			switch args[i-1] {
			case "--links", "--load", "--svg":
				args[i] = filepath.Join(folder, args[i])
			}
		}
		output(t, args...)
	}
	for _, picture := range pictures {
		require.Contains(t, string(text), "(images/"+picture+")")
		samePicture(t, filepath.Join(folder, picture), filepath.Join("docs", "images", picture))
	}
}

// samePicture compares a plot with the one in the repository, which has no
// seal: it would change with every version.
func samePicture(t *testing.T, drawn, shown string) {
	picture, err := os.ReadFile(drawn)
	require.NoError(t, err)
	picture, _, sealed := bytes.Cut(picture, []byte("<!-- sealed by spinsim "))
	require.True(t, sealed)
	if *update {
		require.NoError(t, os.WriteFile(shown, picture, 0o644))
	}
	old, err := os.ReadFile(shown)
	require.NoError(t, err)
	require.Equal(t, provenance.Hash(old), provenance.Hash(picture), "%s differs; go test ./cmd/spinsim -update draws it anew", shown)
}

// The table of docs/goal.md agrees with goal proxies: for applications with
// short runs, or for all with -everything.
func TestGoalDocumentShowsTheProxies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "goal.md"))
	require.NoError(t, err)
	args := []string{"goal", "proxies", "--format", "csv"}
	if !*everything {
		args = append(args, "--app", "milc,pop")
	}
	r := csv.NewReader(bytes.NewReader(output(t, args...)))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(rows), 3)
	for _, row := range rows[1:] {
		share := func(column string) string {
			x, err := strconv.ParseFloat(row[slices.Index(rows[0], column)], 64)
			require.NoError(t, err)
			return fmt.Sprintf("%.1f", 100*x)
		}
		want := fmt.Sprintf("| %s | %s | %s%% | %s%% | %s%% | ", row[slices.Index(rows[0], "application")], row[slices.Index(rows[0], "ranks")],
			share("p2p_share"), share("gain"), share("gain_published"))
		// each application writes its name in its own way
		if !strings.Contains(strings.ToLower(string(text)), want) {
			t.Errorf("docs/goal.md has no row %q", want)
		}
	}
}
