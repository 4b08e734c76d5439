package handlerlab

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

//go:generate go run ../../../internal/build/cmd -g -o testdata/traps.wasm testdata/traps

// lineOfHeader matches a line of a file that grows.
var lineOfHeader = regexp.MustCompile(`spin\.h:\d+`)

// TestTrapsNameLines ends a handler with debugging information in every way.
// The error names file, line and function, and the functions into which the
// compiler has inlined it.
func TestTrapsNameLines(t *testing.T) {
	for _, x := range []struct {
		n    int
		want string
	}{
		{1, "module traps.wasm, traps.c:28 (payload): unreachable"},
		{2, "module traps.wasm, traps.c:12 (divide), called at traps.c:30 (payload): integer divide by zero"},
		{3, "module traps.wasm, traps.c:18 (forever), called at traps.c:32 (payload): killed: budget exceeded: "},
		{4, "module traps.wasm, traps.c:34 (payload): out of bounds memory access"},
		{5, "module traps.wasm, spin/spin.h (PtlHandlerFAdd), called at traps.c:36 (payload): fadd: misaligned address: 0x7d4 is not a multiple of 8"},
		{6, "module traps.wasm, traps.c:38 (payload): NULL pointer: an access to one of the first 1024 bytes"},
		{7, "module traps.wasm, traps.c:40 (payload): NULL pointer: an access to one of the first 1024 bytes"},
		{8, "module traps.wasm, spin/spin.h (PtlHandlerDMAToHostB), called at traps.c:43 (payload): dma_to_host: NULL pointer: local: 8 bytes at 0x0"},
	} {
		cfg := module(t, "traps")
		require.NoError(t, cfg.SetState(fmt.Sprintf("n=%d", x.n)))
		cfg.Messages = []Message{{Source: AnySource, Data: make([]byte, 8)}}
		err := mustRun(t, cfg).Err()
		require.Error(t, err)
		require.Contains(t, lineOfHeader.ReplaceAllString(err.Error(), "spin.h"), x.want)
	}
}

// TestSourceIsForPeople looks up every instruction, also with truncated or
// corrupt sections.
func TestSourceIsForPeople(t *testing.T) {
	lib, err := handlers.Open("testdata/traps.wasm")
	require.NoError(t, err)
	spec := module(t, "traps").Profile.Device()
	for cut := range 64 {
		wasm := append([]byte(nil), lib.Wasm...)
		for i := range cut {
			wasm[len(wasm)*2/3-i*len(wasm)/128] ^= byte(cut * 37)
		}
		m, err := hpu.Load("traps", wasm, spec)
		if err != nil {
			continue
		}
		lines := map[int]bool{}
		for offset := range wasm {
			lines[m.Source(offset).Line] = true
		}
		if cut == 0 {
			require.True(t, m.HasSource())
			for _, line := range []int{12, 18, 28, 34} {
				require.Contains(t, lines, line)
			}
		}
	}
}

// TestComputingAtTheEnd ends a run while a handler computes. That handler must
// not be shown as waiting for the same thing as an earlier handler.
func TestComputingAtTheEnd(t *testing.T) {
	cfg := module(t, "traps")
	require.NoError(t, cfg.SetState("n=3"))
	cfg.Messages, cfg.Watched.Limits.Until = []Message{{Source: AnySource, Data: make([]byte, 8)}}, 2*sim.Microsecond
	require.ErrorContains(t, mustRun(t, cfg).Err(), ": payload handler of traps.wasm waits since 712.076 ns for the end of its own cycles")
}

// TestWhoseWriteFailed is a write that fails after its handler has ended. The
// report cannot tell which write it was.
func TestWhoseWriteFailed(t *testing.T) {
	lib, err := handlers.Open("../../../examples/histogram/histogram.wasm")
	require.NoError(t, err)
	cfg := start(t, "")
	cfg.Module, cfg.Host, cfg.Faults = lib, make([]byte, 4096), map[int]int64{1: hpu.Fault}
	require.NoError(t, cfg.SetState("ready=1"))
	require.ErrorContains(t, mustRun(t, cfg).Err(), "a handler at 1")
}

// TestGrantedMemoryIsNamed is a module that needs memory of other processes,
// but no memory of its own beside the entry's.
func TestGrantedMemoryIsNamed(t *testing.T) {
	lib := handlers.Must("backupring")
	in := Inspect(lib, module(t, "traps").Profile, 0)
	var text strings.Builder
	require.NoError(t, in.Write(&text))
	require.Regexp(t, `host memory +that of the entry, what other processes have granted\n`, text.String())
}
