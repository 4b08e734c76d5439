package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/notebook.ipynb is a notebook, and its commands make the files that its cells read.
func TestNotebook(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "notebook.ipynb"))
	require.NoError(t, err)
	var notebook struct {
		Cells []struct {
			Kind   string `json:"cell_type"`
			Source []string
		}
		Format int `json:"nbformat"`
	}
	require.NoError(t, json.Unmarshal(text, &notebook))
	require.Equal(t, 4, notebook.Format)
	t.Chdir(t.TempDir())
	commands := 0
	for _, cell := range notebook.Cells {
		source := strings.Join(cell.Source, "")
		command, ok := strings.CutPrefix(source, "!spinsim ")
		if cell.Kind != "code" || !ok {
			for _, name := range []string{"pingpong.csv", "hpus.csv"} {
				if cell.Kind == "code" && strings.Contains(source, name) {
					require.FileExists(t, name)
				}
			}
			continue
		}
		commands++
		command, file, redirected := strings.Cut(command, " > ")
		out := output(t, strings.Fields(command)...)
		if redirected {
			require.NoError(t, os.WriteFile(file, out, 0o600))
		}
	}
	require.Equal(t, 5, commands)
	header, err := os.ReadFile("hpus.csv")
	require.NoError(t, err)
	for _, column := range []string{"handler_limit_ns", "handler_limit_published_ns", "handler_limit_deviation", "published_source"} {
		require.Contains(t, string(header), column)
	}
	parquet, err := os.ReadFile("hpus.parquet")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(parquet), "PAR1"))
}
