//go:build wasmtime

package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
)

var (
	engineScenarios = flag.Int("engines.scenarios", 40, "generated scenarios that TestScenariosOnBothEngines runs; .ci/run has 40, every night 2,000")
	engineSeed      = flag.Uint64("engines.seed", 1, "what they are drawn from; 0: something new")
)

// TestScenariosOnBothEngines runs whole scenarios on both engines: the
// examples, the scenarios of package scenario's tests, and generated ones.
// Handlers of generated scenarios are ours with changed bytes of code, so that
// they trap in all ways. Exit status, tables, messages with the places of
// traps, timeline and capture are the same, byte by byte.
func TestScenariosOnBothEngines(t *testing.T) {
	all, err := scenarios.All()
	require.NoError(t, err)
	for _, e := range all {
		require.NotEqual(t, exitInput, sameOnBothEngines(t, e.Name, t.TempDir(), e.Text, nil))
	}
	ran := 0
	datadriven.Walk(t, "../../internal/lab/scenario/testdata/run", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var args []string
			for _, a := range d.CmdArgs {
				if a.Key == "set" {
					args = append(args, "--set", a.Vals[0])
				}
			}
			if sameOnBothEngines(t, d.Pos, t.TempDir(), []byte(d.Input), args) != exitInput {
				ran++
			}
			return d.Expected
		})
	})
	require.Greater(t, ran, 10)
	seed := *engineSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	g := newScenarioGenerator(t, seed)
	for i := range *engineScenarios {
		g.next(t, fmt.Sprintf("scenario %d of -engines.seed=%d", i, seed))
	}
	require.Greater(t, g.failed, *engineScenarios/8)
}

// engineName is where documents of two engines differ, and the digest of such a document.
var engineName = regexp.MustCompile(`wazero|wasmtime|"sha256": "[0-9a-f]{64}"`)

// sameOnBothEngines runs a scenario and returns its status.
func sameOnBothEngines(t *testing.T, name, dir string, text []byte, args []string) int {
	file := filepath.Join(dir, "s.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	var first []byte
	var status int
	for _, engine := range []string{"wazero", "wasmtime"} {
		var out, errs bytes.Buffer
		trace, capture := filepath.Join(dir, "t.json"), filepath.Join(dir, "c.pcapng")
		got := run(append([]string{"-q", "run", file, "--engine", engine, "--format", "json", "--trace", trace, "--pcap", capture}, args...), &out, &errs)
		everything := append(out.Bytes(), errs.Bytes()...)
		for _, made := range []string{trace, capture} {
			data, err := os.ReadFile(made)
			require.True(t, err == nil || got != exitOK, "%s: %v", name, err)
			everything = append(everything, data...)
		}
		// the build has both, the run one
		everything = engineName.ReplaceAll(everything, []byte("ENGINE"))
		if first == nil {
			first, status = everything, got
			if status == exitInput { // nothing has run
				return status
			}
			continue
		}
		require.Equal(t, status, got, name)
		for k := range min(len(first), len(everything)) {
			require.False(t, first[k] != everything[k], "%s:\n%s\n%q is not\n%q", name, text, around(first, k), around(everything, k))
		}
		require.Len(t, everything, len(first), name)
	}
	return status
}

// around returns the text near place k.
func around(b []byte, k int) []byte { return b[max(0, k-300):min(len(b), k+100)] }

// scenarioGenerator draws scenarios.
type scenarioGenerator struct {
	rng     *rand.Rand
	modules []*handlers.Library
	failed  int // scenarios whose handlers did
}

func newScenarioGenerator(t *testing.T, seed uint64) *scenarioGenerator {
	g := &scenarioGenerator{rng: rand.New(rand.NewPCG(seed, 1))}
	for _, name := range handlers.Names() {
		l, err := handlers.Builtin(name)
		require.NoError(t, err)
		g.modules = append(g.modules, l)
	}
	files, err := filepath.Glob("../../internal/lab/handlerlab/testdata/*.wasm")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		g.modules = append(g.modules, handlers.New(filepath.Base(f), b))
	}
	return g
}

// next runs a scenario that can be run.
func (g *scenarioGenerator) next(t *testing.T, name string) {
	for {
		dir := t.TempDir()
		l := g.modules[g.rng.IntN(len(g.modules))]
		require.NoError(t, os.WriteFile(filepath.Join(dir, "m.wasm"), g.changed(l.Wasm), 0o600))
		status := sameOnBothEngines(t, name, dir, g.scenario(l.Manifest()), nil)
		if status == exitInput {
			continue
		}
		if status != exitOK {
			g.failed++
		}
		return
	}
}

// changed changes bytes of the code section of a module.
func (g *scenarioGenerator) changed(module []byte) []byte {
	const code = 10
	out := bytes.Clone(module)
	for section := out[8:]; ; {
		size, n := binary.Uvarint(section[1:])
		contents := section[1+n:][:size]
		if section[0] == code {
			for range 1 + g.rng.IntN(3) {
				contents[g.rng.IntN(len(contents))] = byte(g.rng.Uint32())
			}
			return out
		}
		section = section[1+n+int(size):]
	}
}

func (g *scenarioGenerator) scenario(m *manifest.Manifest) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "profile: %s\nranks: 2\nseed: %d\nentries:\n", []string{"spin-int", "spin-dis"}[g.rng.IntN(2)], g.rng.Uint32())
	fmt.Fprintf(&b, "  - {name: e, ranks: 1, length: %d, handlers: {module: m.wasm", 64<<g.rng.IntN(10))
	for _, kind := range []manifest.Kind{manifest.Header, manifest.Payload, manifest.Completion} {
		if of := m.OfKind(kind); len(of) > 0 {
			fmt.Fprintf(&b, ", %s: %s", kind, of[g.rng.IntN(len(of))])
		}
	}
	b.WriteString("}}\nprograms:\n  - ranks: 0\n    steps:\n")
	for range 1 + g.rng.IntN(3) {
		n := g.rng.IntN(1 << g.rng.IntN(15))
		fmt.Fprintf(&b, "      - put: {to: 1, entry: e, bytes: %d, fill: pattern, hdr_data: %d, count: %d}\n", n, g.rng.Uint32(), 1+g.rng.IntN(4))
	}
	b.WriteString("output: {events: all, stats: all, state: [{of: e}], memory: [{of: e}]}\n")
	return []byte(b.String())
}
