package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// spinsim prepares the command spinsim with arguments in a folder.
func spinsim(t *testing.T, dir string, args ...string) *exec.Cmd {
	spinsim, err := exec.LookPath("spinsim") // this test binary, see TestMain
	require.NoError(t, err)
	c := exec.Command(spinsim, args...)
	c.Dir = dir
	return c
}

// ends waits for a command after a signal. The command promises to end within a
// fraction of a second; the test allows for a busy machine.
func ends(t *testing.T, c *exec.Cmd) (exit int, errs string) {
	watchdog := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
	err := c.Wait()
	require.True(t, watchdog.Stop(), "spinsim %v did not end on one signal", c.Args[1:])
	var status *exec.ExitError
	require.ErrorAs(t, err, &status)
	return status.ExitCode(), c.Stderr.(*bytes.Buffer).String()
}

// folder lists the files of a folder.
func folder(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The first signal ends a command that waits for input from a pipe. Old files
// stay as they were, and nothing else is left.
func TestSignalEndsReaders(t *testing.T) {
	for _, tc := range []struct {
		line, left string
	}{
		{"goal convert in -o out.goal", "-o out.goal"},
		{"goal stat in", ""},
		{"goal merge in in -o out.goal", "-o out.goal"},
		{"goal run in --trace out.json", "--trace out.json"},
		{"goal run in --on nodes", ""},
		{"explain in", ""},
		{"run in", ""},
		{"run in --pcap new.pcapng --links out.json", "--links out.json, --pcap new.pcapng"},
	} {
		args := strings.Fields(tc.line)
		if tc.left != "" {
			tc.left = ": not written, what older files of the names hold stays: " + tc.left
		}
		t.Run(tc.line, func(t *testing.T) {
			dir := t.TempDir()
			pipe := filepath.Join(dir, "in")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			for _, name := range []string{"out.goal", "out.json"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
			}
			c := spinsim(t, dir, args...)
			c.Stderr = new(bytes.Buffer)
			require.NoError(t, c.Start())
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the command has opened the other end
			require.NoError(t, err)
			_, err = io.WriteString(w, "num_ranks 2\n")
			require.NoError(t, err)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			exit, errs := ends(t, c)
			require.NoError(t, w.Close())
			require.Equal(t, exitStopped, exit)
			require.Equal(t, "spinsim: interrupted"+tc.left+"\n", errs)
			require.Equal(t, []string{"in", "out.goal", "out.json"}, folder(t, dir))
			for _, name := range []string{"out.goal", "out.json"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, "old", string(text))
			}
		})
	}
}

// Every command has a limit of real time and of memory. One that takes a file
// ends in time, even while nobody writes what it reads. One that takes a name
// (advise, topology) may refuse it before. A command that bounds
// simulations has more time: see TestLateCommandsEnd in package cli.
func TestTimeLimitEndsEveryReader(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "in"), 0o600))
	// opening it does not wait, reading does
	w, err := os.OpenFile(filepath.Join(dir, "in"), os.O_RDWR, 0)
	require.NoError(t, err)
	var late []string
	early := map[string]string{}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			each(sub)
		}
		require.NotNil(t, c.Flag("time-limit"), c.CommandPath())
		require.NotNil(t, c.Flag("memory-limit"), c.CommandPath())
		if c.Flags().Lookup("event-limit") != nil || c.Args == nil || c.Args(c, []string{"in"}) != nil {
			return
		}
		path := strings.TrimPrefix(c.CommandPath(), "spinsim ")
		args := append(strings.Fields(path), "in", "--time-limit", "1ns")
		for _, f := range outputsOf(c) {
			name := "out.json"
			if f.Name == "svg" {
				name = "out.svg"
			}
			args = append(args, "--"+f.Name, name)
		}
		reader := spinsim(t, dir, args...)
		reader.Stderr = new(bytes.Buffer)
		require.NoError(t, reader.Start())
		exit, errs := ends(t, reader)
		require.Equal(t, 1, strings.Count(errs, "\n"), "%q: %s", args, errs)
		require.Equal(t, []string{"in"}, folder(t, dir), "%q", args)
		if exit == exitFailed {
			require.Regexp(t, `^spinsim: incomplete: stopped by the limit of 1ns of real time(; not written, .*)?\n$`, errs, "%q", args)
			late = append(late, path)
		} else {
			early[path] = fmt.Sprint(exit, " ", errs)
		}
	}
	each(rootCommand())
	require.NoError(t, w.Close())
	require.Subset(t, late, []string{"explain", "goal convert", "goal stat", "goal viz", "report", "rerun", "scenario check"}, "%v", early)
}

// A sweep of a scenario that a signal ends shows its finished runs, in the
// words of a comparison.
func TestSignalShowsRuns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(`
profile: spin-int
ranks: 2
parameters: {count: 1}
entries: [{name: counter, ranks: 1, length: 4KiB, handlers: {module: count}}]
programs: [{ranks: 0, steps: [put: {to: 1, entry: counter, bytes: 8, count: $count}]}]
`), 0o600))
	c := spinsim(t, dir, "run", "long.yaml", "--param", "count=1,1000000000", "--table", "stats", "--resume", "kept")
	c.Stdout, c.Stderr = new(bytes.Buffer), new(bytes.Buffer)
	require.NoError(t, c.Start())
	deadline := time.Now().Add(time.Minute)
	for kept := ""; kept == ""; {
		require.True(t, time.Now().Before(deadline), "no run is kept")
		text, _ := os.ReadFile(filepath.Join(dir, "kept", "points.ndjson"))
		kept = string(text)
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	exit, errs := ends(t, c)
	require.Equal(t, exitStopped, exit)
	require.Equal(t, "spinsim: interrupted: 1 of 2 points were measured\n", errs)
	out := c.Stdout.(*bytes.Buffer).String()
	require.Regexp(t, `^.*1 of 2 points`, out)
	require.Regexp(t, `\n +1 +0 .*\n +1 +1 `, out)
	require.NotContains(t, out, "1000000000")
}

// A run that a signal ends leaves old files of every kind as they were, and
// nothing else.
func TestSignalLeavesOldFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(strings.ReplaceAll(ring, "{times: 100}", "{times: 1000000000}")), 0o600))
	names := []string{"l.json", "long.yaml", "p.pcapng", "t.json"}
	for _, name := range names {
		if name != "long.yaml" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
		}
	}
	c := spinsim(t, dir, "run", "long.yaml", "--pcap", "p.pcapng", "--links", "l.json", "--trace", "t.json")
	c.Stderr = new(bytes.Buffer)
	require.NoError(t, c.Start())
	deadline := time.Now().Add(time.Minute)
	for len(folder(t, dir)) == len(names) {
		require.True(t, time.Now().Before(deadline), "no timeline is begun")
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	exit, errs := ends(t, c)
	require.Equal(t, exitStopped, exit)
	require.Regexp(t, `^spinsim: interrupted: 0 of 1 points were measured; not written, what older files of the names hold stays: (--\w+ [lpt]\S+(, |\n$)){3}`, errs)
	require.Equal(t, names, folder(t, dir))
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, name == "long.yaml" || string(text) == "old", name)
	}
}

// The first signal ends a command that makes or runs a large schedule, even
// while it writes to a reader that does not read.
func TestSignalEndsWriters(t *testing.T) {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXCPU} {
		if signal.Ignored(s) { // by nohup, for the tests and for what they start
			continue
		}
		dir := t.TempDir()
		c := spinsim(t, dir, "goal", "gen", "alltoall-linear", "--ranks", "600")
		c.Stderr = new(bytes.Buffer)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		_, err = io.ReadFull(out, make([]byte, 1000))
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(s))
		exit, errs := ends(t, c)
		require.Equal(t, exitStopped, exit, s)
		require.Equal(t, "spinsim: interrupted\n", errs)
		require.Empty(t, folder(t, dir))
	}
}

// A signal during the writing of a file removes the file.
func TestSignalLeavesNoPartOfAFile(t *testing.T) {
	dir := t.TempDir()
	c := spinsim(t, dir, "goal", "gen", "alltoall-linear", "--ranks", "1200", "-o", "out.goal.xz")
	c.Stderr = new(bytes.Buffer)
	require.NoError(t, c.Start())
	deadline := time.Now().Add(time.Minute)
	for len(folder(t, dir)) == 0 {
		require.True(t, time.Now().Before(deadline), "no file is begun")
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	exit, errs := ends(t, c)
	require.Equal(t, exitStopped, exit)
	require.Equal(t, "spinsim: interrupted: not written, what older files of the names hold stays: -o out.goal.xz\n", errs)
	require.Empty(t, folder(t, dir))
}
