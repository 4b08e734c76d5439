package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	pagefault "github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
)

// The README shows what the program prints, and the policy of the program.
func TestReadme(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fault-policy")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)<!-- output: (.*?) -->\n```\n(.*?)```\n").FindAllStringSubmatch(string(text), -1)
	require.Len(t, shown, 1)
	for _, s := range shown {
		out, err := exec.Command(program, strings.Fields(s[1])...).Output()
		require.NoError(t, err, s[1])
		// the origin changes with every commit and profile
		shown := regexp.MustCompile(`(?m)^spinsim .*\n`).ReplaceAllString(string(out), "")
		require.Equal(t, s[2], shown, s[1])
	}
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, function, found := strings.Cut(string(source), "// early is part.PIA in two steps.\n")
	require.True(t, found)
	require.Contains(t, string(text), "```go\n"+function+"```\n")
	source, err = os.ReadFile("main_test.go")
	require.NoError(t, err)
	_, function, found = strings.Cut(string(source), "// newTwice is README's policy with memory.\n")
	require.True(t, found)
	require.Contains(t, string(text), "```go\n"+function+"```\n")
	source, err = os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, len(regexp.MustCompile(`(?m)^\s*[^\s/]`).FindAllString(string(source), -1)), 20)
}

// README's policy with memory gives a point the same numbers twice.
func TestTwice(t *testing.T) {
	e, err := pagefault.PageFault(map[string]func() part.Policy{"twice": newTwice})
	require.NoError(t, err)
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	p, err := e.At(device, experiment.Values{"policy": "twice", "size": 64 << 10})
	require.NoError(t, err)
	first, err := e.Measure(t.Context(), p)
	require.NoError(t, err)
	second, err := e.Measure(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, first.Values, second.Values)
}

// newTwice is README's policy with memory.
func newTwice() part.Policy { // PIO; PIA for whoever faults once more
	met := map[*host.Process]bool{}
	return func(f part.Fault) part.Plan {
		again := met[f.Process]
		met[f.Process] = true
		if again {
			return part.PIA(f)
		}
		return part.PIO(f)
	}
}
