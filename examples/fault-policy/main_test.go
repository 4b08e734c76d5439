package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README shows what the program prints, and the policy of the program.
func TestReadme(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fault-policy")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)<!-- output: (.*?) -->\n```\n(.*?)```\n").FindAllStringSubmatch(string(text), -1)
	require.Len(t, shown, 2)
	for _, s := range shown {
		out, err := exec.Command(program, strings.Fields(s[1])...).Output()
		require.NoError(t, err, s[1])
		shown := regexp.MustCompile(`(?m)^spinsim .*\n`).ReplaceAllString(string(out), "") // what made it changes with every commit and profile
		require.Equal(t, s[2], shown, s[1])
	}
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, function, found := strings.Cut(string(source), "// early is driver.PIA in two steps.\n")
	require.True(t, found)
	require.Contains(t, string(text), "```go\n"+function+"```\n")
	require.LessOrEqual(t, len(regexp.MustCompile(`(?m)^\s*[^\s/]`).FindAllString(string(source), -1)), 20)
}
