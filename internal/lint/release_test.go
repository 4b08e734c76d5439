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

// GoReleaser makes programs for the systems for which scripts/release.sh does.
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
