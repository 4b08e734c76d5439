//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// profiled are command lines, how they end, and what they say then.
var profiled = []struct {
	line   string
	signal bool
	exit   int
	errs   string
}{
	{"compare pingpong --size 8 --mode rdma --profile spin-int", false, exitOK, `^$`},
	{"compare pingpong --size 8 --mode rdma --profile spin-int --event-limit 3", false, exitFailed, `: incomplete: stopped by the limit of 3 events`},
	{"run long.yaml --trace t.json", true, exitStopped, `^spinsim: interrupted: 0 of 1 points were measured; not written, what older files of the names hold stays: --trace t.json\n$`},
	// blocked in a pipe: ended by force
	{"goal run in", true, exitStopped, `^spinsim: interrupted\n$`},
	{"compare pingpong --size 8x", false, exitInput, `^spinsim: --size: `},
	{"compare pingpong --size 8 --memprofile none/m", false, exitInput, `^spinsim: --memprofile: write none/m: no such file or directory\n$`},
	{"compare pingpong --size 8 --plot cpu.svg --cpuprofile cpu.svg", false, exitInput, `--cpuprofile both write cpu.svg`},
	{"compare pingpong --size 8 --cpuprofile -", false, exitInput, `^spinsim: --cpuprofile: -, expected the name of a file\n$`},
}

// Profiles of the program are whole after a run, after one that fails, and
// after a signal that ends a command in its own way or by force. Where nothing
// has run, nothing is written.
func TestProfiles(t *testing.T) {
	for _, tc := range profiled {
		t.Run(tc.line, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "long.yaml"), []byte(strings.ReplaceAll(ring, "{times: 100}", "{times: 1000000000}")), 0o600))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "in"), 0o600))
			files := folder(t, dir)
			args := strings.Fields(tc.line)
			for _, name := range []string{"cpu", "mem"} {
				if !strings.Contains(tc.line, name+"profile") {
					args = append(args, "--"+name+"profile", name)
				}
			}
			c := spinsim(t, dir, args...)
			c.Stderr = new(bytes.Buffer)
			require.NoError(t, c.Start())
			if tc.signal {
				if strings.HasSuffix(tc.line, " in") {
					// returns when the command reads
					w, err := os.OpenFile(filepath.Join(dir, "in"), os.O_WRONLY, 0)
					require.NoError(t, err)
					defer func() { require.NoError(t, w.Close()) }()
				}
				deadline := time.Now().Add(time.Minute)
				for strings.Contains(tc.line, "--trace") && len(folder(t, dir)) == len(files) {
					require.True(t, time.Now().Before(deadline), "no timeline is begun")
				}
				require.NoError(t, c.Process.Signal(os.Interrupt))
			}
			exit := exitOK
			if tc.exit == exitOK {
				require.NoError(t, c.Wait())
			} else {
				exit, _ = ends(t, c)
			}
			errs := c.Stderr.(*bytes.Buffer).String()
			require.Equal(t, tc.exit, exit, errs)
			require.Regexp(t, tc.errs, errs)
			if tc.exit == exitInput {
				require.Equal(t, files, folder(t, dir))
				return
			}
			require.NotNil(t, readProfile(t, filepath.Join(dir, "cpu"), "cpu"))
			require.NotEmpty(t, readProfile(t, filepath.Join(dir, "mem"), "alloc_space").Sample)
		})
	}
}

// readProfile reads a profile that has a type of samples.
func readProfile(t *testing.T, name, kind string) *pprof.Profile {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	p, err := pprof.Parse(f)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	for _, s := range p.SampleType {
		if s.Type == kind {
			return p
		}
	}
	require.Fail(t, "no "+kind)
	return nil
}
