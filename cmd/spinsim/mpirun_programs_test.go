//go:build programs

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/seal"
)

// A program's output stands alone on standard output, and its run has the tables,
// files and records of an experiment. What a document names runs only if the user
// says so, and only if it is the same program.
func TestProgramIsAnExperiment(t *testing.T) {
	source, err := filepath.Abs(filepath.Join("..", "..", "mpirun", "testdata", "pages.c"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	compile := func(level string) {
		out, err := exec.Command("mpicc.openmpi", level, "-o", "pages", source).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	compile("-O2")
	spinsim := func(status int, args ...string) (out, errs string) {
		var o, e bytes.Buffer
		require.Equal(t, status, run(args, &o, &e), "%q: %s%s", args, &e, &o)
		return o.String(), e.String()
	}

	out, errs := spinsim(0, "mpirun", "-np", "2", "--profile", "exanest", "--trace", "t.json", "--pcap", "p.pcapng", "--", "./pages", "3", "65536")
	require.Regexp(t, `^(\d+\.\d{3}\n){3}$`, out)
	require.Contains(t, errs, "exanest, 2 ranks on 2 nodes over exanet: ")
	for _, name := range []string{"t.json", "p.pcapng"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Greater(t, len(text), 1000, name)
		require.Equal(t, seal.Whole, checked(t, text).State, name)
	}

	out, errs = spinsim(0, "mpirun", "-np", "2", "--waterfall", "spin-int,spin-dis", "--", "./pages", "1", "8")
	require.Regexp(t, `\n\d+\.\d{3}\n`, errs, "the program's output")
	require.Contains(t, out, "what each group of parameters is worth")

	list := []string{"mpirun", "-np", "2", "--profile", "exanest", "--pages", "touch,pia", "--compute", "none", "--format", "json", "--", "./pages", "2", "65536"}
	document, errs := spinsim(0, list...)
	require.Regexp(t, `\n\d+\.\d{3}\n`, errs, "the program's output")
	require.NoError(t, os.WriteFile("r.json", []byte(document), 0o600))
	_, errs = spinsim(2, "rerun", "r.json")
	require.Contains(t, errs, "--allow-program runs it")
	out, _ = spinsim(0, "rerun", "--allow-program", "r.json")
	require.Contains(t, out, "the same")
	out, _ = spinsim(0, "report", "-o", "-", "r.json")
	require.Contains(t, out, "spinsim mpirun --profile exanest --ranks 2 --pages touch,pia -- ./pages 2 65536")
	edited := strings.Replace(document, `"--": "./pages\n`, `"--": "/bin/echo\n`, 1)
	require.NotEqual(t, document, edited)
	require.NoError(t, os.WriteFile("edited.json", []byte(edited), 0o600))
	_, errs = spinsim(2, "rerun", "--allow-program", "edited.json")
	require.Contains(t, errs, "/bin/echo is not the program whose digest is recorded")
	compile("-O0")
	_, errs = spinsim(2, "rerun", "--allow-program", "r.json")
	require.Contains(t, errs, "pages")

	require.NoError(t, os.WriteFile("tsc.c", []byte("#include <x86intrin.h>\nint main(void) { return (int)__rdtsc(); }\n"), 0o600))
	text, err := exec.Command("gcc", "-o", "tsc", "tsc.c").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.True(t, readsCounter(t.Context(), "tsc"))
	require.False(t, readsCounter(t.Context(), "pages"))
}

// The page of programs has what its commands print, on any computer: -update
// writes it.
func TestProgramsPage(t *testing.T) {
	page, err := filepath.Abs(filepath.Join("..", "..", "docs", "lammps.md"))
	require.NoError(t, err)
	t.Chdir(filepath.Join("..", "..", "mpirun", "testdata"))
	text := "<!-- go test -tags programs ./cmd/spinsim -run TestProgramsPage -update writes this page -->\n# LAMMPS\n\n" +
		"Its Lennard-Jones liquid, [in.lj](../mpirun/testdata/in.lj), unchanged on simulated nodes ([how](programs.md)).\n"
	for _, line := range []string{
		"mpirun -np 2,4,8 --pages present,touch,pia --profile exanest -- lmp -in in.lj -log none",
		"mpirun -np 2,4,8 --allreduce host,offload-doubling -- lmp -in in.lj -log none",
	} {
		var out, errs bytes.Buffer
		require.Zero(t, run(strings.Fields(line), &out, &errs), "%s: %s", line, &errs)
		seen := regexp.MustCompile(`(?m)^spinsim .*; profile .*\n`).ReplaceAllString(out.String(), "")
		text += "\n    spinsim " + line + "\n\n```\n" + seen + "```\n"
	}
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		return
	}
	old, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, string(old), text)
}
