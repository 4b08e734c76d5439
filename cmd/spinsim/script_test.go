package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/provenance"
)

// peakFile is an environment variable. It names a file for the peak memory that
// the kernel reports to the process at its end. The number that its parent gets
// is no use: it is at least the parent's own.
const peakFile = "SPINSIM_TEST_PEAK"

// TestMain makes the test binary serve as the command spinsim of the scripts.
func TestMain(m *testing.M) {
	thisBuild = func() provenance.Build {
		return provenance.Build{Version: "devel", Go: "go1.26", Engines: []string{"wazero"}}
	}
	memory.Available = func() int64 { return 0 } // whatever the machine has free
	testscript.Main(m, map[string]func(){
		"spinsim": func() {
			status := run(os.Args[1:], os.Stdout, os.Stderr)
			if name := os.Getenv(peakFile); name != "" {
				if text, err := os.ReadFile("/proc/self/status"); err != nil || os.WriteFile(name, text, 0o600) != nil {
					status = -1
				}
			}
			os.Exit(status)
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds:  map[string]func(ts *testscript.TestScript, neg bool, args []string){"bad": badInputCommand},
		Setup: setRepository,
	})
}

// setRepository lets scripts find files of the repository in $REPO. $BIN is a
// folder with nothing but spinsim.
func setRepository(env *testscript.Env) error {
	repository, err := filepath.Abs("../..")
	env.Setenv("REPO", repository)
	env.Setenv("BIN", filepath.SplitList(os.Getenv("PATH"))[0])
	return err
}

// badInputCommand is the script command "bad PATTERN ARGUMENTS...". It requires
// that spinsim refuses the arguments with exit status 2, a message of one
// paragraph that matches, and nothing on standard output.
func badInputCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bad PATTERN ARGUMENTS...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	command := exec.Command("spinsim", args[1:]...)
	command.Dir = ts.Getenv("WORK")
	command.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := command.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitInput {
		ts.Fatalf("spinsim %q: %v, expected exit status %d\n%s%s", args[1:], err, exitInput, &out, &errs)
	}
	if !pattern.Match(errs.Bytes()) || out.Len() > 0 || bytes.Contains(errs.Bytes(), []byte("goroutine ")) {
		ts.Fatalf("spinsim %q: expected %q on standard error and nothing on standard output, got\n%s%s", args[1:], args[0], &errs, &out)
	}
}
