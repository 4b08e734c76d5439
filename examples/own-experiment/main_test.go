package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/internal/manifest"
)

// lines counts those of a Go file that are neither empty nor a comment.
func lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// An experiment of a user, imports and all, fits in 35 lines.
func TestFewLines(t *testing.T) {
	text, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, lines(string(text)), 35)
}

// ownModule is the file go.mod of a user's module: what this repository needs,
// with this repository in place of a release.
func ownModule(t *testing.T, repository string) string {
	text, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	require.NoError(t, err)
	own := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(text), "module example.com/own")
	return own + "\nrequire github.com/spinsim/spinsim v0.0.0\n\nreplace github.com/spinsim/spinsim => " + repository + "\n"
}

// build builds the example as the program own of a user's module, which needs no
// more than this repository, and testdata/outside as its program outside.
func build(t *testing.T) (folder string) {
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	folder = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "outside"), 0o700))
	for name, from := range map[string]string{
		"main.go": "main.go", "go.sum": filepath.Join(repository, "go.sum"),
		"outside/main.go": "testdata/outside/main.go", "outside/filter.wasm": "../first-handler/first-handler.wasm",
	} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(ownModule(t, repository)), 0o600))
	c := exec.Command("go", "build", "-mod=mod", "-ldflags=-s -w", "-o", "bin/", "./...")
	c.Dir = folder
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// runner runs a program in a folder, and expects a status.
func runner(t *testing.T, folder, program string) func(status int, args ...string) string {
	return func(status int, args ...string) string {
		c := exec.Command(filepath.Join(folder, "bin", program), args...)
		c.Dir = folder
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		_ = c.Run() // its status is looked at
		require.Equal(t, status, c.ProcessState.ExitCode(), "%v\n%s", args, &errs)
		return out.String() + errs.String()
	}
}

func TestProgramsOfAUser(t *testing.T) {
	folder := build(t)
	t.Run("own", func(t *testing.T) { own(t, folder, runner(t, folder, "own")) })
	t.Run("outside", func(t *testing.T) { outside(t, folder, runner(t, folder, "outside")) })
}

// A user's module can name all that it takes to have a handler, a network, a
// table, a timeline and kept results of its own.
func outside(t *testing.T, folder string, run func(status int, args ...string) string) {
	r := csv.NewReader(strings.NewReader(run(0, "--profile", "spin-int", "--format", "csv")))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, "benchmark,profile,size,network,latency_ns,passed", strings.Join(rows[0][:6], ","))
	latency := map[string]float64{}
	for _, row := range rows[1:] {
		latency[row[2]+" "+row[3]], err = strconv.ParseFloat(row[4], 64)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"8": "1", "65536": "16"}[row[2]], row[5])
	}
	for _, size := range []string{"8", "65536"} {
		require.Greater(t, latency[size+" dumbbell"], latency[size+" profile"], "a switch and a cable more")
	}
	require.Contains(t, run(2, "--handler", "outside/main.go"), "main.go")

	table := run(0, "library")
	require.Regexp(t, `^network,latency_ns\nprofile,[0-9.]+\nprofile,[0-9.]+\ndumbbell,[0-9.]+\ndumbbell,[0-9.]+\n# sealed by spinsim \S+ example.com/own@devel, CSV, record `, table)
	_, record, _ := strings.Cut(table, ", record ")
	record, _, _ = strings.Cut(record, ",")
	kept, err := os.ReadFile(filepath.Join(folder, "kept", "points.ndjson"))
	require.NoError(t, err)
	require.Equal(t, 4, bytes.Count(kept, []byte("\n")))
	timeline, err := os.ReadFile(filepath.Join(folder, "own.pftrace"))
	require.NoError(t, err)
	require.Contains(t, string(timeline), "Perfetto timeline, record "+record+", complete", "of the same run")
	require.Equal(t, table, run(0, "library"), "from what is kept")
}

// The program of a user's module has the table, CSV, plot, timeline, waterfall
// and provenance of spinsim compare, and can make a result again.
func own(t *testing.T, folder string, run func(status int, args ...string) string) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "The first command prints\n\n```\n")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```\n")
	require.True(t, strings.HasPrefix(run(0), shown), "README.md shows\n%s", shown)

	table := run(0, "--size", "8,64KiB", "--plot", "own.svg")
	require.Contains(t, table, "oneway: a message and its handlers, from the put to the host that knows of their end")
	require.Regexp(t, `(?m)^spin-int +64 KiB +[0-9]+$`, table)
	require.Regexp(t, `spinsim v[0-9.]+-devel example.com/own@devel; profile spin-dis [0-9a-f]{12}; profile spin-int [0-9a-f]{12}; seed 1; handler count [0-9a-f]{12}\n$`, table)
	picture, err := os.ReadFile(filepath.Join(folder, "own.svg"))
	require.NoError(t, err)
	require.Contains(t, string(picture), "example.com/own@devel")

	r := csv.NewReader(strings.NewReader(run(0, "--size", "8", "--profile", "spin-int", "--set", "hpu.cores=2", "--seed", "7", "--format", "csv")))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, "benchmark,profile,size,latency_ns,profile_hash,overrides,seed,handler,handler_hash,version", strings.Join(rows[0], ","))
	require.Equal(t, []string{"oneway", "spin-int", "8"}, rows[1][:3])
	require.Equal(t, []string{"hpu.cores=2", "7", "count"}, rows[1][5:8])
	require.Regexp(t, `^v[0-9.]+-devel example.com/own@devel$`, rows[1][9])

	document := run(0, "--size", "8", "--format", "json")
	var parsed struct {
		Provenance struct {
			Spinsim struct{ Program struct{ Module string } }
			Command string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(document), &parsed))
	require.Equal(t, "example.com/own", parsed.Provenance.Spinsim.Program.Module)
	require.Equal(t, "oneway", parsed.Provenance.Command)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "own.json"), []byte(document), 0o600))
	require.Regexp(t, `^own.json: the same [0-9]+ bytes\n$`, run(0, "rerun", "own.json"))

	require.Contains(t, run(0, "--size", "8", "--waterfall", "spin-dis,spin-int"), "dma.latency: 250 ns → 50 ns")
	run(0, "--size", "8", "--profile", "spin-int", "--trace", "t.json")
	require.FileExists(t, filepath.Join(folder, "t.json"))
	require.Contains(t, run(0, "columns"), "latency_ns  time   from the put to the host that knows the message has been handled")
	require.Equal(t, "oneway: --size: 2 MiB, expected 1 B to 1 MiB\n", run(2, "--size", "2MiB"))
	require.Contains(t, run(2, "nonsense"), `unknown command "nonsense"`)
	// Handlers that count nothing are no handlers of the slot.
	idle, err := manifest.Write([]byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f"+ // (i32, i32) -> i32
		"\x03\x03\x02\x00\x00"+"\x05\x03\x01\x00\x01"+ // two functions, a page
		"\x07\x21\x03\x06memory\x02\x00\x07payload\x00\x00\x0acompletion\x00\x01"+
		"\x0a\x0b\x02\x04\x00\x41\x00\x0b\x04\x00\x41\x00\x0b"), count.Library.Manifest())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "idle.wasm"), idle, 0o600))
	require.Contains(t, run(1, "--size", "8", "--handler", "idle.wasm"), "the handlers have counted 0 bytes, expected 8")
	require.Contains(t, run(1, "--size", "8", "--event-limit", "3"), "oneway, profile spin-dis, 8 B: incomplete: stopped by the limit of 3 events")
}
