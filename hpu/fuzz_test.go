package hpu

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// FuzzLoad feeds the loader with anything: no panic; what it accepts, wazero
// accepts before and after rewriting, and it runs to an end within its budget.
func FuzzLoad(f *testing.F) {
	f.Add(handlersWasm)
	f.Add(importsWasm)
	f.Add(withManifest(handlersWasm, `{"manifest":1,"handlers":[{"export":"sum","kind":"payload"}]}`))
	for _, x := range rejected {
		if b := x.module(); len(b) < 1000 {
			f.Add(b)
		}
	}
	for chunk := range slices.Chunk(vectorCases, 20) {
		var bodies [][]byte
		for _, x := range chunk {
			bodies = append(bodies, x.body())
		}
		f.Add(vectorModule(bodies...))
	}
	spec := vectorSpec()
	spec.MaxCodeBytes, spec.MaxFunctions, spec.MaxMemoryBytes = 1<<13, 100, 1<<17
	e, err := NewEngine("wazero")
	require.NoError(f, err)
	ctx := context.Background()
	validator := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(
		api.CoreFeaturesV1|api.CoreFeatureMutableGlobal|api.CoreFeatureSignExtensionOps|
			api.CoreFeatureNonTrappingFloatToIntConversion|api.CoreFeatureBulkMemoryOperations|api.CoreFeatureSIMD))
	f.Cleanup(func() {
		require.NoError(f, validator.Close(ctx))
		require.NoError(f, e.Close())
	})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Load("fuzz", b, spec)
		if err != nil {
			var e *LoadError
			require.ErrorAs(t, err, &e)
			return
		}
		plain, err := validator.CompileModule(ctx, b)
		require.NoError(t, err, "accepted, but not valid")
		require.NoError(t, plain.Close(ctx))
		img, err := e.Compile(m, 16)
		require.NoError(t, err, "valid, but not after rewriting")
		defer func() { require.NoError(t, img.Close()) }()
		p, err := img.Instantiate("fuzz", answering)
		if err != nil {
			var trap *Trap
			require.ErrorAs(t, err, &trap)
			return
		}
		for _, h := range m.Exports() {
			c := p.Context(0)
			for s := c.Start(h, c.ArgsAddr(), 0, 10_000); s == Blocked; {
				s = c.Resume(0)
			}
			require.Equal(t, Done, c.Status())
		}
	})
}

// FuzzRewrite makes valid modules and inputs from the fuzzer's bytes and
// compares the rewritten module on wazero with the original on the reference.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte("spin"))
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f0123456789abcdefghijklmnopqrstuvwxyz"))
	e, err := NewEngine("wazero")
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, e.Close()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		pick := func(n int) int {
			at++
			if len(b) == 0 {
				return at % n
			}
			return (int(b[at%len(b)]) + at/len(b)*7) % n
		}
		g := &generator{pick: pick}
		x := newComparison(t, e, g.module(), 2, Watch{Accesses: true, Blocks: true}, pick)
		for range 6 {
			x.step()
		}
		x.close()
	})
}
