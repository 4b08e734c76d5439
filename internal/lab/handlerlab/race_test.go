package handlerlab

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

//go:generate go run ../../../internal/build/cmd -g -o testdata/races.wasm testdata/races

// TestRaces finds unordered accesses, with the names of both places. It finds
// nothing that atomics, locks, or the order of a message's handlers order.
func TestRaces(t *testing.T) {
	const payloads = "by the payload handler of message 1, packet 0, and %s at races.c:%d (payload) by the payload handler of message 1, packet 1, in no order"
	for _, x := range []struct {
		n        int
		messages int
		want     []string // beginnings of the races
	}{
		{0, 1, []string{
			"race on state.count: written at races.c:32 (payload) " + fmt.Sprintf(payloads, "read", 32),
			"race on state.count: written at races.c:32 (payload) " + fmt.Sprintf(payloads, "written", 32),
		}},
		{1, 2, nil},
		{2, 1, nil},
		{3, 1, nil},
		{4, 1, nil},
		{5, 1, nil},
		{6, 1, []string{"race on memory 0x1000: written at races.c:59 (payload) " + fmt.Sprintf(payloads, "written", 59)}},
		{7, 2, []string{
			"race on state.count: written at races.c:22 (header) by the header handler of message 1, and read at races.c:22 (header) by the header handler of message 2, in no order",
			"race on state.count: written at races.c:22 (header) by the header handler of message 1, and written at races.c:22 (header) by the header handler of message 2, in no order",
		}},
		{9, 1, []string{"race on state.total: written at dma_from_host by the payload handler of message 1, packet 0, and written at dma_from_host by the payload handler of message 1, packet 1, in no order"}},
		{10, 1, nil},
		{11, 9, nil},
		{12, 9, []string{
			"race on message memory 0+0: written at races.c:75 (payload) by the payload handler of message 1, packet 0, and written at races.c:75 (payload) by the payload handler of message 1, packet 1, in no order",
		}},
	} {
		t.Run(fmt.Sprint(x.n), func(t *testing.T) {
			cfg := module(t, "races")
			cfg.Race, cfg.Host = true, make([]byte, 1<<16)
			require.NoError(t, cfg.SetState(fmt.Sprintf("n=%d", x.n)))
			for range x.messages {
				cfg.Messages = append(cfg.Messages, Message{Source: AnySource, Data: make([]byte, 30_000)})
			}
			r := mustRun(t, cfg)
			var got []string
			for _, race := range r.Races {
				got = append(got, race.String())
			}
			require.Len(t, got, len(x.want), "%q", got)
			for i, want := range x.want {
				require.Contains(t, got[i], want)
			}
			require.Equal(t, len(x.want) == 0, r.Err() == nil, "%v", r.Err())
			var note []string // the note that it has searched, if there is no race
			if len(x.want) == 0 {
				note = []string{fmt.Sprintf("no race found: looked at %d handlers", len(r.Handlers))}
			}
			require.Equal(t, note, r.Notes)

			plain := *cfg
			plain.Race = false // observing changes nothing
			other := mustRun(t, &plain)
			require.Equal(t, other.Handlers, r.Handlers)
			require.Equal(t, other.End, r.End)
		})
	}
}

// TestLibrariesHaveNoRaces runs the handlers of all built-in libraries on their
// intended device, with messages of many packets at the same time.
func TestLibrariesHaveNoRaces(t *testing.T) {
	device := map[string]string{"mailbox": "exanest-qfdb", "rdma": "exanest-qfdb", "part": "exanest-qfdb", "allreduce": "exanest-qfdb", "gemm": "exanest-gemm", "rnr": "ib-npf", "backupring": "eth-npf"}
	for _, library := range handlers.Names() {
		t.Run(library, func(t *testing.T) {
			l := handlers.Must(library)
			name := device[l.Name]
			if name == "" {
				name = "spin-dis"
			}
			p, err := profile.Load(name)
			require.NoError(t, err)
			for _, set := range sets(t, l, p) {
				cfg := &Config{
					Module: l, Profile: p, Header: set[0], Payload: set[1], Completion: set[2], Race: true, Host: make([]byte, 1<<16),
					Watched: runtime.Config{Limits: sim.Limits{Until: 20 * sim.Microsecond, Events: 20_000}},
				}
				messages := 6
				if slices.ContainsFunc(l.Slots(), func(s *handlers.Slot) bool { return s.Kernel }) {
					messages = 1 // a kernel runs one handler at a time
				}
				for i := range messages {
					data := make([]byte, 9000)
					for k := range data {
						data[k] = byte(k * i)
					}
					cfg.Messages = append(cfg.Messages, Message{Source: AnySource, Data: data})
				}
				for _, cfg.history = range []int64{0, 4 << 10} { // what is forgotten is no race
					r := mustRun(t, cfg)
					for _, race := range r.Races {
						t.Error(set, cfg.history, race)
					}
				}
			}
		})
	}
}

// TestRacesAreForgotten keeps too little history for all handlers. It finds
// races of handlers that are close together, and notes that others may be missing.
func TestRacesAreForgotten(t *testing.T) {
	cfg := module(t, "races")
	cfg.Race, cfg.Host = true, make([]byte, 1<<16)
	require.NoError(t, cfg.SetState("n=0"))
	for range 50 {
		cfg.Messages = append(cfg.Messages, Message{Source: AnySource, Data: make([]byte, 30_000)})
	}
	all := mustRun(t, cfg)
	require.Empty(t, all.Notes)
	cfg.history = 8 << 10
	few := mustRun(t, cfg)
	require.Len(t, few.Races, len(all.Races))
	for i, r := range few.Races {
		require.Equal(t, all.Races[i].First, r.First)
		require.LessOrEqual(t, r.Times, all.Races[i].Times)
	}
	require.Len(t, few.Notes, 1)
	require.Regexp(t, `^races of the first \d+ handlers with later ones may be missing: their history took more than 8 KiB$`, few.Notes[0])

	require.NoError(t, cfg.SetState("n=1"))
	require.Empty(t, mustRun(t, cfg).Races, "atomics order what was not forgotten")
}

// TestExampleHasNoRaces runs the example of memories of clusters and messages.
// Many messages are handled at the same time and reuse the memory of earlier
// ones.
func TestExampleHasNoRaces(t *testing.T) {
	lib, err := handlers.Open("../../../examples/histogram/histogram.wasm")
	require.NoError(t, err)
	p, err := profile.Load("spin-dis", "hpu.cores=8", "hpu.clusters=2")
	require.NoError(t, err)
	cfg := &Config{Module: lib, Profile: p, Race: true, Host: make([]byte, 1<<16), Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}}}
	require.NoError(t, cfg.SetState("ready=1"))
	for range 12 {
		cfg.Messages = append(cfg.Messages, Message{Source: AnySource, Data: make([]byte, 200)})
	}
	require.NoError(t, mustRun(t, cfg).Err())
}

// sets lists the sets of a library's handlers that serve a message together.
// Each handler of a kind occurs once, with the first handlers of the other
// kinds.
func sets(t *testing.T, l *handlers.Library, p *profile.Profile) (list []handlers.Exports) {
	t.Helper()
	cfg := &Config{Module: l, Profile: p}
	said, err := manifest.Read(l.Wasm)
	require.NoError(t, err)
	for i, kind := range Kinds {
		for _, h := range said.Handlers {
			if string(h.Kind) == kind {
				e := handlers.Exports{"-", "-", "-"}
				e[i] = h.Export
				cfg.Header, cfg.Payload, cfg.Completion = e[0], e[1], e[2]
				if _, err := cfg.load(); err == nil {
					list = append(list, e)
				}
			}
		}
	}
	require.NotEmpty(t, list)
	return list
}

// TestAggregatorHasNoRaces sends vectors of six children at once, of three
// blocks each, from children that come in any order, and results; then the same of
// a reduce, whose results come later.
func TestAggregatorHasNoRaces(t *testing.T) {
	p, err := profile.Load("spin-dis", "hpu.cores=16")
	require.NoError(t, err)
	for i, root := range []string{"0", "1", "0", "1"} {
		cfg := &Config{
			Module: handlers.Must("reduction"), Profile: p, Race: true, Host: make([]byte, 1<<16), HPUMemory: 1 << 20,
			Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
		}
		require.NoError(t, cfg.SetState("children=6,window=4,parent_nid=1,root="+root))
		for range 6 {
			child := reduction.Child{NID: 1} // that takes what comes
			cfg.State.Bytes = append(cfg.State.Bytes, spin.EncodeState(&child)...)
		}
		sign := uint64(reduction.Sign(12288, allreduce.Sum, allreduce.Float32)) << 32
		results := uint64(0)
		for _, place := range []uint64{3, 0, 5, 1, 2, 4} {
			m := Message{Source: AnySource, Data: make([]byte, 12288), MatchBits: reduction.KindVector | place<<reduction.PlaceShift, HdrData: sign}
			if i < 2 {
				cfg.Messages = append(cfg.Messages, m, Message{Source: AnySource, Data: make([]byte, 64), MatchBits: reduction.KindResult})
				results++
				continue
			}
			m.HdrData |= reduction.Reduce << 32
			if m.MatchBits |= reduction.Rooted; place == 2 {
				m.MatchBits |= reduction.RootBit << reduction.IndexShift
			}
			cfg.Messages = append(cfg.Messages, m)
		}
		r := mustRun(t, cfg)
		require.Empty(t, r.Races)
		var state reduction.State
		require.NoError(t, spin.DecodeState(r.State, &state))
		require.Equal(t, reduction.Counts{Vectors: 18, Early: state.Counts.Early, Blocks: 3, Results: results}, state.Counts)
		require.Positive(t, state.Counts.Early)
	}
}

// TestSparseAggregatorHasNoRaces sends two blocks of pairs of six children at
// once, two packets of each, which come in any order, and a result.
func TestSparseAggregatorHasNoRaces(t *testing.T) {
	p, err := profile.Load("spin-dis", "hpu.cores=16")
	require.NoError(t, err)
	const full = 4096
	for _, root := range []string{"0", "1"} {
		cfg := &Config{
			Module: handlers.Must("sparse"), Profile: p, Race: true, Host: make([]byte, 1<<16), HPUMemory: 1 << 20,
			Watched: runtime.Config{Limits: sim.Limits{Until: sim.Millisecond}},
		}
		require.NoError(t, cfg.SetState("children=6,window=1,parent_nid=1,results=2,kept=49536,root="+root))
		for i := range uint32(6) {
			child := sparse.Child{NID: 1, First: 2 * i * (sparse.KeptHead + full), Packets: 2, Bytes: full}
			cfg.State.Bytes = append(cfg.State.Bytes, spin.EncodeState(&child)...)
		}
		for run := range uint64(2) {
			for _, place := range []uint64{3, 0, 5, 1, 2, 4} {
				for _, last := range []uint64{1, 0} {
					cfg.Messages = append(cfg.Messages, Message{
						Source: AnySource, Data: make([]byte, 4096), HdrData: run | 2048<<32,
						MatchBits: sparse.KindPairs | last*sparse.Last | place<<sparse.PlaceShift | last<<sparse.PacketShift | run<<sparse.IndexShift,
					})
				}
			}
			cfg.Messages = append(cfg.Messages, Message{Source: AnySource, Data: make([]byte, 64), MatchBits: sparse.KindResult})
		}
		r := mustRun(t, cfg)
		require.Empty(t, r.Races)
		var state sparse.State
		require.NoError(t, spin.DecodeState(r.State, &state))
		require.EqualValues(t, 24, state.Counts.Packets)
		require.EqualValues(t, 2, state.Counts.Blocks)
		require.Positive(t, state.Counts.Early)
	}
}
