package handlerlab

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

// stackOf returns the stack in bytes that inspect reports for a handler.
func stackOf(t *testing.T, cfg *Config, export string) int64 {
	t.Helper()
	in := Inspect(cfg.Module, cfg.Profile, DefaultHPUMemory)
	i := slices.IndexFunc(in.Exports, func(x ExportInfo) bool { return x.Name == export })
	require.GreaterOrEqual(t, i, 0)
	require.True(t, in.Exports[i].Bounded)
	return in.Exports[i].Stack
}

// The stack that inspect reports is enough. A handler that takes the longest
// chain of calls needs every byte of it.
func TestStackNeeded(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		data          []byte
	}{
		{"clibrary", "wide", append([]byte{9, 31: 0}, words(3)...)}, {"clibrary", "format", make([]byte, 8)}, {"clibrary", "bytes", []byte("123456789")},
	} {
		run := func(stack int64) []hpu.Code {
			cfg := module(t, c.name, fmt.Sprintf("hpu.stack_bytes=%d", stack))
			cfg.Payload, cfg.Messages = c.payload, []Message{{Source: 1, Data: append([]byte{}, c.data...)}}
			if c.payload == "wide" {
				cfg.Messages[0].Data[16] = 1 // the divisor
			}
			return returns(mustRun(t, cfg), "payload")
		}
		needed := stackOf(t, module(t, c.name), c.payload)
		require.Positive(t, needed)
		require.Equal(t, []hpu.Code{hpu.Success}, run(needed), "%s with %d B", c.payload, needed)
		require.Equal(t, []hpu.Code{hpu.Segv}, run(needed-16), "%s with %d B", c.payload, needed-16)
	}
}

// Inspect refuses the same modules as a run, in the same words. It marks a
// stack that is too small for the longest chain of calls.
func TestInspectRefusesWhatRunRefuses(t *testing.T) {
	for _, c := range []struct{ override, run, inspect string }{
		{"limits.max_initial_state=256", "initial state of 480 bytes, largest is 256", "state pspin_state_t of 480 bytes, at most 256 (limits.max_initial_state)"},
		{"hpu.max_hpu_memory=512", "HPU memory of 512 bytes, its handlers need 992", "at most 512 on this device (hpu.max_hpu_memory)"},
	} {
		cfg := module(t, "pspin", c.override)
		cfg.Messages = []Message{{Source: 1, Data: ipv4(1)}}
		_, err := Run(t.Context(), cfg)
		require.ErrorContains(t, err, c.run)
		in := Inspect(cfg.Module, cfg.Profile, 0)
		require.Error(t, in.Err())
		require.Contains(t, in.Reasons[0].Cause, c.inspect)
	}
}

// The stack of a recursive handler has no bound.
func TestStackWithoutBound(t *testing.T) {
	p, err := profile.Load("spin-dis")
	require.NoError(t, err)
	m, err := handlers.Open("testdata/clibrary.wasm")
	require.NoError(t, err)
	in := Inspect(m, p, DefaultHPUMemory)
	require.NotEmpty(t, in.Exports)
	for _, x := range in.Exports {
		require.Equal(t, x.Name != "recurse", x.Bounded, x.Name)
	}
}
