//go:build wasmtime

package hpu

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { engines = append(engines, "wasmtime") }

// The differential tests run generated modules, of each 20 handlers or parts of
// handlers, on wasmtime and on the reference, with which TestDifferential
// compares wazero: same results, actions, memory and cycles on both engines.
// They are 2,000 by day and 10,000 at night.

func TestWasmtimeDifferential(t *testing.T) { differential(t, "wasmtime", *differentialModules, 20, 2) }

// TestHandlersOnBothEngines runs every handler of the repository on random
// records: the engines agree in everything.
func TestHandlersOnBothEngines(t *testing.T) {
	files, err := filepath.Glob("../handlers/*/*.wasm")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			wasm, err := os.ReadFile(file)
			require.NoError(t, err)
			var pair [2]*Program
			var logs [2]*recorder
			for i, name := range []string{"wazero", "wasmtime"} {
				e, err := NewEngine(name)
				require.NoError(t, err)
				defer func() { require.NoError(t, e.Close()) }()
				logs[i] = &recorder{}
				spec := testSpec()
				spec.StackBytes = 4096
				pair[i] = programOn(t, e, wasm, spec, logs[i])
			}
			compareEngines(t, pair, logs)
		})
	}
}

func compareEngines(t *testing.T, pair [2]*Program, logs [2]*recorder) {
	rng := rand.New(rand.NewPCG(1, 2))
	exports := pair[0].Module().Exports()
	ended := 0
	for range 2000 {
		i, h := rng.IntN(4), exports[rng.IntN(len(exports))].Name()
		record := make([]byte, recordBytes)
		for k := range record {
			if rng.IntN(3) == 0 {
				record[k] = byte(rng.Uint32())
			}
		}
		c := pair[0].Context(i)
		if rng.IntN(4) > 0 { // a plausible payload
			le.PutUint32(record, c.PacketAddr(1024))
			le.PutUint32(record[4:], rng.Uint32N(1024))
		}
		addr, _ := pair[0].HPUMemory()
		for k, p := range pair {
			c := p.Context(i)
			if c.Status() == Blocked {
				c.Resume(logs[k].next[i])
				continue
			}
			copy(p.Memory()[c.ArgsAddr():], record)
			c.Start(handler(t, p, h), c.ArgsAddr(), addr, 20_000)
		}
		a, b := c, pair[1].Context(i)
		require.Equal(t, a.Status(), b.Status())
		require.Equal(t, a.Cycles(), b.Cycles())
		require.Equal(t, a.Outcome().Code, b.Outcome().Code)
		require.Equal(t, a.Outcome().Err, b.Outcome().Err) // its place, too
		if a.Outcome().Err == nil && a.Status() == Done {
			ended++
		}
		require.Equal(t, logs[0].log, logs[1].log)
		require.True(t, bytes.Equal(pair[0].Memory(), pair[1].Memory()), "memory differs")
		logs[0].log, logs[1].log = nil, nil
	}
	require.NotZero(t, ended)
}
