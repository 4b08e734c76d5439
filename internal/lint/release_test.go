package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Scripts install packages of npm from a lock file, without running install
// scripts.
func TestPackagesAreLocked(t *testing.T) {
	root := filepath.Join("..", "..")
	scripts, err := filepath.Glob(filepath.Join(root, "scripts", "*.sh"))
	require.NoError(t, err)
	found := 0
	for _, name := range append(scripts, filepath.Join(root, ".ci", "run")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, line := range regexp.MustCompile(`\bnpm (ci|i|install|add|exec|update)\b.*|\bnpx .*`).FindAllString(string(text), -1) {
			found++
			require.Regexp(t, `^npm ci (.* )?--ignore-scripts\b`, line, name)
		}
	}
	require.Equal(t, 3, found, "the compiler of AssemblyScript, and twice the driver of the browser")
}

// The next version stands in the list of changes.
func TestChangesHaveTheVersion(t *testing.T) {
	version, err := os.ReadFile(filepath.Join("..", "..", "internal", "provenance", "version.txt"))
	require.NoError(t, err)
	changes, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	require.NoError(t, err)
	newest := regexp.MustCompile(`(?m)^## (.*)$`).FindSubmatch(changes)
	require.NotNil(t, newest)
	require.Equal(t, strings.TrimSpace(string(version)), string(newest[1]))
}

// GoReleaser makes programs for the same systems as scripts/release.sh.
func TestReleases(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "scripts", "release.sh"))
	require.NoError(t, err)
	list := regexp.MustCompile(`readonly all=\((.*)\)`).FindSubmatch(script)
	require.NotNil(t, list)
	text, err := os.ReadFile(filepath.Join("..", "..", ".goreleaser.yaml"))
	require.NoError(t, err)
	var config struct{ Builds []struct{ Targets []string } }
	require.NoError(t, yaml.Unmarshal(text, &config))
	var targets []string
	for _, build := range config.Builds {
		for _, target := range build.Targets {
			targets = append(targets, strings.Replace(target, "_", "/", 1))
		}
	}
	want := strings.Fields(string(list[1]))
	slices.Sort(want)
	slices.Sort(targets)
	require.Equal(t, want, targets)
}
