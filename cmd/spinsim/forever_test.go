package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// forever is a module whose payload handler does not return.
const forever = "\x00asm\x01\x00\x00\x00" +
	"\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f" + // (i32, i32) -> i32
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" + // a page of memory
	"\x07\x14\x02\x06memory\x02\x00\x07payload\x00\x00" +
	"\x0a\x0b\x01\x09\x00\x03\x40\x0c\x00\x0b\x41\x00\x0b" // loop br 0 end i32.const 0

const foreverScenario = `
profile: spin-dis
topology: {kind: crossbar}
ranks: 2
entries:
  - {name: e, ranks: 1, length: 900000, handlers: {module: forever.wasm, payload: payload}}
programs:
  - {name: p, ranks: 0, steps: [{put: {to: 1, entry: e, bytes: 900000}}]}
`

// endless returns commands whose handlers never return, one after the other,
// with the largest possible budget.
func endless(t *testing.T) (dir string, list [][]string) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "forever.wasm"), []byte(forever), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "forever.yaml"), []byte(foreverScenario), 0o600))
	const budget = "hpu.max_cycles=900000000"
	return dir, [][]string{
		{"run", "forever.yaml", "--set", budget},
		{"handler", "run", "./forever.wasm", "--hex", "00*900000", "--set", budget},
		{"compare", "hpus", "--hpus", "1", "--size", "64KiB", "--handler-time", "350ms", "--set", budget},
	}
}

// The first signal ends a handler that never returns, however large its budget.
func TestSignalEndsHandlers(t *testing.T) {
	dir, list := endless(t)
	for _, args := range list {
		t.Run(args[0], func(t *testing.T) {
			c := spinsim(t, dir, args...)
			c.Stderr = new(bytes.Buffer)
			require.NoError(t, c.Start())
			awaitBusy(t, c.Process.Pid)
			require.NoError(t, c.Process.Signal(os.Interrupt))
			exit, errs := ends(t, c)
			require.Equal(t, exitStopped, exit)
			require.Equal(t, "spinsim: interrupted\n", errs)
		})
	}
}

// awaitBusy returns when a process has computed for 0.4 s, so that its
// handler is at work. With the race detector this program takes less than a
// quarter of a second to start. On systems that do not report the time, the
// signal comes earlier and ends the command as well.
func awaitBusy(t *testing.T, pid int) {
	deadline := time.Now().Add(time.Minute)
	for {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			return
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		ticks, err := strconv.Atoi(fields[11])
		require.NoError(t, err)
		if ticks >= 40 { // of user time, hundredths of a second
			return
		}
		require.True(t, time.Now().Before(deadline), "the command does not compute")
	}
}
