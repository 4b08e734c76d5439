package hpu

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoAllocations holds for calls, calls of imports, suspension and
// resumption, with other contexts in between.
func TestNoAllocations(t *testing.T) {
	p := newProgramOf(t, handlersWasm, testSpec(), answering)
	c, other := p.Context(0), p.Context(1)
	payload(c, 256)
	vectors := newProgramOf(t, vectorModule((&vectorCase{0xFDE4, nil}).body()), vectorSpec(), answering).Context(0)
	add := handler(t, vectors.Program(), "h")
	sum, say, wait := handler(t, p, "sum"), handler(t, p, "say"), handler(t, p, "wait2")
	for name, f := range map[string]func(){
		"call":   func() { c.Start(sum, c.ArgsAddr(), 0, 1e6) },
		"import": func() { c.Start(say, c.ArgsAddr(), 8, 1e6) },
		"suspension": func() {
			c.Start(wait, 0, 0, 1e6)
			other.Start(wait, 0, 0, 1e6)
			c.Resume(1)
			other.Resume(1)
			other.Resume(2)
			c.Resume(2)
		},
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), name)
		require.Equal(t, Done, c.Status())
		require.Nil(t, c.Outcome().Err)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { vectors.Start(add, operandsAt, loadedAt, 1e6) }), "vectors")
	require.Nil(t, vectors.Outcome().Err)
}

// TestManyPrograms instantiates a module 16,384 times, as on as many nodes, and
// writes 200 bytes to each, where handlers find them. Their memories are 2 GiB
// together, of which a few pages are backed; what the engines keep for each
// stays below 768 bytes, the written ones included.
func TestManyPrograms(t *testing.T) {
	const programs = 16_384
	m, err := Load("test", handlersWasm, testSpec())
	require.NoError(t, err)
	e, err := NewEngine("wazero")
	require.NoError(t, err)
	img, err := e.Compile(m, 4096)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make([]*Program, programs)
	for i := range all {
		all[i], err = img.Instantiate("owner", answering)
		require.NoError(t, err)
		at, _ := all[i].HPUMemory()
		copy(all[i].Present()[at:], bytes.Repeat([]byte{byte(i)}, 200))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / programs
	t.Logf("%d programs of %d B each", programs, each)
	require.Less(t, each, uint64(768))
	for i := 0; i < programs; i += 1000 {
		require.Equal(t, Code(55), end(t, all[i].Context(0), "fib", 10, 0, 1e6).Code)
		at, _ := all[i].HPUMemory()
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 200), all[i].Present()[at:][:200])
	}
	space := img.(*image).residents.arena
	if space != nil { // otherwise the system does not tell
		backed := 0
		for _, piece := range space.all {
			pages, _ := touched(piece, nil)
			backed += len(pages)
		}
		require.Less(t, backed, 32)
	}
	require.NoError(t, e.Close())
}
