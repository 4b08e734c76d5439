package handlerlab

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
)

// planned lists the points of a module with values of axes.
func planned(t *testing.T, b *Bench, profiles []string, axes map[string]string) ([]*experiment.Point, error) {
	t.Helper()
	for name := range axes {
		b.Axes = append(b.Axes, name)
	}
	b.Module = handlers.Must("count")
	s, err := experiment.New(b.Experiment())
	require.NoError(t, err)
	s.Profiles = profiles
	for name, list := range axes {
		require.NoError(t, s.Choose(name, list))
	}
	return s.Points()
}

// TestPlanLoadsOnce: points of one device and choice of handlers share the
// loaded module.
func TestPlanLoadsOnce(t *testing.T) {
	var b Bench
	points, err := planned(t, &b, []string{"spin-dis", "spin-int"}, map[string]string{"size": "8..512+8", "completion": "completion,-", "nodes": "1,2"})
	require.NoError(t, err)
	require.Len(t, points, 2*64*2*2)
	loaded := 0
	b.modules.Range(func(_, _ any) bool {
		loaded++
		return true
	})
	require.Equal(t, 2*2, loaded, "two devices, two choices of handlers")
	for _, p := range points {
		require.Positive(t, p.Experiment().Memory(p))
	}
}

// A set of the manifest takes the place of the names of its handlers, and is an
// axis like them.
func TestHandlerSets(t *testing.T) {
	own := handlers.Must("pingpong")
	said := *own.Manifest()
	said.Handlers = slices.Clone(said.Handlers)
	for i := range said.Handlers {
		said.Handlers[i].Set, _, _ = strings.Cut(said.Handlers[i].Export, "_")
	}
	wasm, err := manifest.Write(own.Wasm, &said)
	require.NoError(t, err)
	run := func(axes map[string]string) ([]*experiment.Result, error) {
		b := Bench{Config: Config{Host: make([]byte, 64)}}
		b.Module = handlers.New("mine.wasm", wasm)
		for name := range axes {
			b.Axes = append(b.Axes, name)
		}
		e := b.Experiment()
		s, err := experiment.New(e)
		require.NoError(t, err)
		for name, list := range axes {
			require.NoError(t, s.Choose(name, list))
		}
		points, err := s.Points()
		var results []*experiment.Result
		for _, p := range points {
			r, err := e.Measure(t.Context(), p)
			require.NoError(t, err)
			results = append(results, r)
		}
		return results, err
	}
	sets, err := run(map[string]string{"size": "8", "handler-set": "stream,store"})
	require.NoError(t, err)
	named, err := run(map[string]string{"size": "8", "payload": "stream_payload,store_payload", "completion": "-"})
	require.NoError(t, err)
	for i := range sets {
		require.EqualValues(t, 2, sets[i].Values["handler_calls"], "completion handlers, too")
		require.EqualValues(t, 1, named[i].Values["handler_calls"])
	}
	_, err = run(map[string]string{"size": "8", "handler-set": "pong"})
	require.ErrorContains(t, err, "--handler-set: module mine.wasm: no set of handlers pong, expected one of stream, store")
	_, err = run(map[string]string{"size": "8", "handler-set": "store", "payload": "-"})
	require.ErrorContains(t, err, "--handler-set: set store, and handlers by their names: expected one of both")
}
