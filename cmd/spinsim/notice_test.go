package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotice checks that NOTICE names exactly the modules whose code is in the
// command.
func TestNotice(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	require.NoError(t, err)
	notice, err := os.ReadFile("../../NOTICE")
	require.NoError(t, err)
	linked := map[string]bool{
		"github.com/bytecodealliance/wasmtime-go": true, // with a tag
	}
	for _, path := range strings.Fields(string(out)) {
		if path != "github.com/spinsim/spinsim" {
			linked[path] = true
			require.Contains(t, string(notice), path)
		}
	}
	for _, line := range strings.Split(string(notice), "\n") {
		first, _, _ := strings.Cut(strings.Trim(line, " ("), " ")
		first = strings.TrimSuffix(first, ",")
		if strings.Contains(first, "/") && strings.Contains(first, ".") && strings.HasPrefix(line, "  ") {
			require.True(t, linked[first], "%s is named but not linked", first)
		}
	}
}
