package main

import (
	"bytes"
	"errors"
	"flag"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/spinsim/spinsim/experiment"
)

var everyBound = flag.Bool("bounds", false, "run every smoke point and every command under every bound of memory, as .ci/run deep does at night")

// bounds are shell commands that bound the memory of what follows, and flags
// that do. Below 1.75 GiB of ulimit -v package floor refuses to run. At 1278529
// Go alone ends every program before its first line.
var bounds = []struct{ shell, flag string }{
	{"ulimit -v 1000000", ""},
	{"ulimit -v 1048576", ""},
	{"ulimit -v 1278529", ""},
	{"ulimit -v 1900000", ""},
	{"ulimit -v 2097152", ""},
	{"ulimit -v 4194304", ""},
	{"ulimit -v 8388608", ""},
	{"ulimit -d 250000", ""},
	{"ulimit -d 400000", ""},
	{"ulimit -d 1048576", ""},
	{"true", "--memory-limit=64MiB"},
	{"true", "--memory-limit=256MiB"},
	{"true", "--memory-limit=1GiB"},
}

// Under any bound of memory a command ends with an answer, or with status 1 and
// one line. It has status 2 only if a flag bounds it, and then nothing runs.
func TestEveryCommandIsBounded(t *testing.T) {
	dir := t.TempDir()
	writeInputs(t, dir)
	var lines [][]string
	has := func(line []string, flag string) bool {
		c, _, err := rootCommand(line...).Find(line)
		return err == nil && c.Flags().Lookup(flag) != nil
	}
	for path, args := range whole() {
		switch {
		case path == "spinsim goal proxies":
			args = []string{"--app", "milc", "--iterations", "1"}
		case path == "spinsim identify": // a publication takes minutes
			args = []string{"--profile", "spin-int", "--measured", "a.tsv", "--questions", "open.tsv"}
		case has(strings.Fields(path)[1:], "message-size"):
			args = []string{"--message-size", "64:64", "--iterations", "1"}
		case args == nil && strings.HasPrefix(path, "spinsim compare"):
			continue // no point is short
		}
		lines = append(lines, slices.Concat(strings.Fields(path)[1:], args))
	}
	for _, e := range experiment.All() {
		for i := range e.Smoke {
			if i > 0 {
				lines = append(lines, slices.Concat([]string{"compare", e.Name}, smoke(e, i)))
			}
		}
	}
	slices.SortFunc(lines, slices.Compare)
	work := make(chan func())
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for do := range work {
				do()
			}
		})
	}
	for i, line := range lines {
		for k, b := range bounds {
			if b.flag != "" && !has(line, "memory-limit") {
				continue
			}
			if *everyBound || (i/8+k)%len(bounds) == 0 && i%8 == 0 {
				work <- func() { bounded(t, dir, b.shell, append(slices.Clip(line), strings.Fields(b.flag)...)) }
			}
		}
	}
	close(work)
	all.Wait()
}

// bounded runs a command behind another of the shell, and requires an end in
// good order.
func bounded(t *testing.T, dir, shell string, args []string) {
	c := exec.Command("sh", append([]string{"-c", shell + `; exec spinsim "$@"`, "sh"}, args...)...)
	c.Dir = dir
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	watchdog := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	err := c.Run()
	assert.True(t, watchdog.Stop(), "%s: %q does not end", shell, args)
	var status *exec.ExitError
	said := errs.String()
	for _, trace := range []string{"goroutine ", "fatal error", "panic", "SIG", "runtime"} {
		assert.NotContains(t, said, trace, "%s: %q", shell, args)
	}
	if !errors.As(err, &status) {
		assert.NoError(t, err, "%s: %q", shell, args)
		return
	}
	want := exitFailed
	if strings.Contains(said, "--memory-limit is ") && !strings.Contains(said, ": ended: ") {
		want = exitInput
		assert.Empty(t, out.String(), "%s: %q", shell, args)
	}
	assert.Equal(t, want, status.ExitCode(), "%s: %q: %s", shell, args, said)
	assert.Equal(t, 1, strings.Count(said, "\n"), "%s: %q: %s", shell, args, said)
}
