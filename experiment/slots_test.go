package experiment

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// saying is a library with the code of a built-in one and a changed manifest.
func saying(t *testing.T, library string, change func(m *manifest.Manifest)) *handlers.Library {
	t.Helper()
	l := handlers.Must(library)
	m, err := manifest.Read(l.Wasm)
	require.NoError(t, err)
	change(m)
	wasm, err := manifest.Write(l.Wasm, m)
	require.NoError(t, err)
	return handlers.New("mine.wasm", wasm)
}

// silent is a library without a manifest.
func silent(t *testing.T, library string) *handlers.Library {
	t.Helper()
	wasm, err := manifest.Keep(handlers.Must(library).Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
	require.NoError(t, err)
	return handlers.New("mine.wasm", wasm)
}

// sweepOf is a small sweep of an experiment with a user's module.
func sweepOf(t *testing.T, e *Experiment, l *handlers.Library, choices ...string) *Sweep {
	t.Helper()
	s, err := New(e)
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	for i := 0; i < len(choices); i += 2 {
		require.NoError(t, s.Choose(choices[i], choices[i+1]))
	}
	for _, slot := range slotsAt(e, s.grid.values) {
		if l != nil {
			put(s, slot.Name, l)
		}
	}
	return s
}

// A user's module takes the role of the built-in one: with the same names, with
// handlers that only its manifest knows, or without a manifest. With the same
// code every measured value is the same.
func TestUsersModule(t *testing.T) {
	renamed := saying(t, "pingpong", func(m *manifest.Manifest) {
		for i := range m.Handlers {
			if strings.HasPrefix(m.Handlers[i].Export, "store_") {
				m.Handlers[i].Kind = "" // so that the other is the only one of its kind
			}
		}
	})
	renamed = handlers.New("mine.wasm", bytes.ReplaceAll(renamed.Wasm, []byte("stream_payload"), []byte("answer_packets")))
	for _, x := range []struct {
		e       *Experiment
		module  *handlers.Library
		choices []string
	}{
		{builtin("pingpong"), handlers.New("mine.wasm", handlers.Must("pingpong").Wasm), []string{"size", "8,8KiB", "mode", "spin-store,spin-stream"}},
		{builtin("pingpong"), silent(t, "pingpong"), []string{"size", "8,8KiB", "mode", "spin-store,spin-stream"}},
		{builtin("pingpong"), renamed, []string{"size", "8,8KiB", "mode", "spin-stream"}},
		{builtin("bcast"), handlers.New("mine.wasm", handlers.Must("bcast").Wasm), []string{"size", "8KiB", "ranks", "7", "mode", "spin-store,spin-stream"}},
		{builtin("bcast"), silent(t, "bcast"), []string{"size", "8KiB", "ranks", "7", "mode", "spin-store,spin-stream"}},
		{builtin("accumulate"), handlers.New("mine.wasm", handlers.Must("accumulate").Wasm), []string{"size", "16KiB", "mode", "spin-stream"}},
		{builtin("accumulate"), silent(t, "accumulate"), []string{"size", "16KiB", "mode", "spin-stream"}},
		{builtin("hpus"), silent(t, "work"), []string{"size", "512", "hpus", "2", "handler-time", "100ns"}},
	} {
		var values [2][]Values
		for i, module := range []*handlers.Library{nil, x.module} {
			s := sweepOf(t, x.e, module, x.choices...)
			points, err := s.Points()
			require.NoError(t, err)
			results, err := s.Run(t.Context(), points, nil)
			require.NoError(t, err)
			for _, r := range results {
				values[i] = append(values[i], r.Values)
			}
		}
		require.Equal(t, values[0], values[1], "%s %v", x.e.Name, x.choices)
	}
}

// The benchmark sets the numbers of a user's module where its manifest has
// them, and no others.
func TestUsersState(t *testing.T) {
	moved := saying(t, "pingpong", func(m *manifest.Manifest) {
		m.States[0].Size = 40
		m.States[0].Fields = []manifest.Field{
			{Name: "hits", Type: manifest.U64, Default: manifest.Const(5)},
			{Name: "pt", Type: manifest.U16, Offset: 10},
			{Name: "match_bits", Type: manifest.U64, Offset: 24},
		}
	})
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	p, err := builtin("pingpong").At(device, Values{"mode": ModeSpinStream})
	require.NoError(t, err)
	p.Handlers = map[string]*handlers.Library{"pingpong.stream": moved}
	_, err = p.Simulate(t.Context(), func(proc *runtime.Proc) error {
		h, err := p.Load(proc.Cluster())
		require.NoError(t, err)
		in, err := h.Install(proc, Values{"match_bits": 0x0102, "pt": 3, "max_payload": 4096})
		require.NoError(t, err)
		require.Equal(t, handlers.Exports{"", "stream_payload", "stream_completion"}, in.Exports)
		want := make([]byte, 40)
		want[0], want[10], want[24], want[25] = 5, 3, 2, 1
		require.Equal(t, want, in.Spin.InitialState)
		return nil
	})
	require.NoError(t, err)
}

// A module without the needs of a benchmark is refused before anything runs.
// The error lists its handlers.
func TestUsersModuleRefused(t *testing.T) {
	partly := saying(t, "pingpong", func(m *manifest.Manifest) {
		m.States[0].Fields = m.States[0].Fields[1:]
	})
	for want, s := range map[string]*Sweep{
		"module mine.wasm cannot run in slot pingpong.store: no completion handler, expected an export store_completion or completion," +
			" or the only one that its manifest calls a completion handler; it has payload (payload)": sweepOf(t, builtin("pingpong"), saying(t, "work", func(*manifest.Manifest) {}), "mode", "spin-store"),
		"slot pingpong.stream: handler stream_payload: no match_bits in its state State; it has pt, max_payload": sweepOf(t, builtin("pingpong"), partly),
		"slot pingpong.store: handler store_payload: no match_bits in its state State; it has pt, max_payload":   sweepOf(t, builtin("pingpong"), partly, "mode", "rdma,spin-store"),
		"slot bcast.stream: handler stream_payload: no rank, ranks, root in its state State; it has match_bits, pt, max_payload": sweepOf(
			t, builtin("bcast"), saying(t, "pingpong", func(*manifest.Manifest) {}), "ranks", "4"),
		"slot work.target: no payload handler, expected an export payload, or the only one that its manifest calls a payload handler; it has stream_payload (payload)," +
			" stream_completion (completion), store_payload (payload), store_completion (completion)": sweepOf(t, builtin("hpus"), saying(t, "pingpong", func(*manifest.Manifest) {})),
		"slot accumulate.target: no payload handler, expected an export payload, or the only one that its manifest calls a payload handler; it has stream_payload, stream_completion": sweepOf(
			t, builtin("accumulate"), silent(t, "pingpong")),
		"module bad.wasm, offset 0x0: not a WebAssembly module": sweepOf(t, builtin("pingpong"), handlers.New("bad.wasm", []byte("nothing"))),
	} {
		_, err := s.Points()
		require.ErrorContains(t, err, want)
		if joined, are := err.(interface{ Unwrap() []error }); are {
			require.LessOrEqual(t, len(joined.Unwrap()), 2, "one for each slot, not for each size")
		}
	}
}

// Where the user's handlers run, the names of the columns show it.
func TestUsersColumnsAreMarked(t *testing.T) {
	s := sweepOf(t, builtin("pingpong"), handlers.New("mine.wasm", handlers.Must("pingpong").Wasm), "size", "8", "mode", "rdma,spin-stream")
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	all, err := s.Table(results)
	require.NoError(t, err)
	require.Equal(t, "pingpong: half of a round trip between two ranks (sPIN'17 §4.4.1), handlers of mine.wasm", all.Title)
	summary, err := s.Summary(all)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, summary.Write(&out, report.TextFormat))
	require.Regexp(t, `profile +bytes +rdma \(ns\) +spin-stream \(yours\) \(ns\) +spin-stream vs rdma`, out.String())
	require.Equal(t, all.Title, s.Plot().Title)
}

// The help of an experiment lists its slots, and their text has the contracts of
// the tests above, with types and descriptions from the library's manifest.
func TestSlotsHelp(t *testing.T) {
	require.Contains(t, slotsHelp(builtin("pingpong")), "\n  pingpong.store  the side of a ping-pong that answers when the message is there\n  pingpong.stream  ")
	text := slotsText(builtin("pingpong"))
	for _, want := range []string{
		"  payload     store_payload, optional: ", "  completion  store_completion: ",
		"\n  state       match_bits, u64: of the pong\n  state       pt, u32: portal table index of the pong\n",
		"\n  state       max_payload, u32 (bytes): largest payload of a packet of the device; optional\n",
	} {
		require.Contains(t, text, want)
	}
	require.Empty(t, slotsHelp(named("one")))
}

// An axis that a user's module cannot follow has one point, because its rows
// would be equal. It is an error to ask for several values.
func TestUsersModuleThatKnowsNoAxis(t *testing.T) {
	for module, points := range map[*handlers.Library]int{handlers.Must("count"): 1, silent(t, "work"): 3, handlers.Must("work"): 3} {
		s := sweepOf(t, builtin("hpus"), handlers.New("mine.wasm", module.Wasm), "size", "512", "hpus", "2")
		list, err := s.Points()
		require.NoError(t, err)
		require.Len(t, list, points, module.Name)
	}
	s := sweepOf(t, builtin("hpus"), handlers.New("mine.wasm", handlers.Must("count").Wasm), "handler-time", "50ns,100ns")
	_, err := s.Points()
	require.EqualError(t, err, "--handler-time: 2 values, but they make no difference to mine.wasm, whose state has no iterations: choose one")
}
