package handlers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// onNode runs f as a process of node 1 of 3.
func onNode(t *testing.T, f func(p *runtime.Proc), overrides ...string) {
	t.Helper()
	device, err := profile.Load("spin-int", overrides...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 3})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(1, "test", func(p *runtime.Proc) error { f(p); return nil }))
	require.NoError(t, c.Run(t.Context()))
}

func load(t *testing.T, p *runtime.Proc, l *handlers.Library) *handlers.Module {
	t.Helper()
	m, err := l.Load(p.Cluster())
	require.NoError(t, err)
	return m
}

// A state may be given in every form that a host has it in; what is not said is
// what the manifest says on this device.
func TestInstallState(t *testing.T) {
	onNode(t, func(p *runtime.Proc) {
		m := load(t, p, handlers.Must("bcast"))
		read := func(o handlers.Options) (state bcast.State) {
			o.Payload = bcast.StreamPayload
			o.Shared = true
			in, err := m.Install(p, o)
			require.NoError(t, err)
			require.Nil(t, in.Spin.InitialState)
			require.NoError(t, in.Read(&state))
			return state
		}
		defaults := bcast.State{Rank: 1, Ranks: 3, MaxPayload: 4096}
		require.Equal(t, defaults, read(handlers.Options{}))
		want := defaults
		want.Root, want.MatchBits = 2, 7
		require.Equal(t, want, read(handlers.Options{State: map[string]any{"root": 2, "match_bits": uint64(7)}}))
		want = bcast.State{Ranks: 2, PT: 9}
		require.Equal(t, want, read(handlers.Options{State: want}))
		require.Equal(t, want, read(handlers.Options{State: &want}))
		require.Equal(t, bcast.State{MatchBits: 0x0201}, read(handlers.Options{State: []byte{1, 2}}))

		in, err := m.Install(p, handlers.Options{Payload: bcast.StreamPayload, State: map[string]any{"root": 2}})
		require.NoError(t, err)
		require.Len(t, in.Spin.InitialState, 32, "written when the entry is appended")
		require.NoError(t, in.Set("root", 1))
		got, err := in.Number("root")
		require.NoError(t, err)
		require.Equal(t, uint64(1), got)
		_, err = in.Number("nix")
		require.ErrorContains(t, err, "no field nix, expected one of match_bits, pt, ")
		require.EqualError(t, in.Set("ranks", 0), "ranks: 0, expected at least 1")
	})
}

// An installed library runs: what it needs of memory, user header and options
// comes from its manifest.
func TestInstallRuns(t *testing.T) {
	require.Equal(t, count.State{Messages: 1, Packets: 103, Bytes: 9000}, counted(t, handlers.Must("count"), handlers.Options{State: map[string]any{"packets": 100}}))
}

// A user header that a whole library needs, as all were once, is one of entries
// with a header handler: an entry without one has none, and its handlers see
// all bytes.
func TestNoUserHeaderForNobody(t *testing.T) {
	l := with(t, handlers.Must("count"), func(m *manifest.Manifest) { m.Needs.UserHeader = 64 })
	require.Equal(t, count.State{Messages: 1, Packets: 3, Bytes: 9000}, counted(t, l, handlers.Options{}))
	for _, l := range []*handlers.Library{l, handlers.Must("count")} {
		onNode(t, func(p *runtime.Proc) {
			_, err := load(t, p, l).Install(p, handlers.Options{UserHeader: 64})
			require.EqualError(t, err, "module count: user header of 64 bytes, but the entry has no header handler, and no other sees them")
		})
	}
	l = with(t, handlers.Must("count"), func(m *manifest.Manifest) {
		m.Handlers[0].Kind, m.Handlers[0].Needs.UserHeader = "", 64
	})
	onNode(t, func(p *runtime.Proc) {
		m := load(t, p, l)
		_, err := m.Install(p, handlers.Options{Payload: "payload"})
		require.EqualError(t, err, "module count: handler payload needs a user header of 64 bytes, which only a header handler sees: it cannot be the payload handler of an entry")
		in, err := m.Install(p, handlers.Options{Header: "payload"})
		require.NoError(t, err)
		require.Equal(t, uint64(64), in.Spin.UserHdrLen)
	})
}

// Handlers of another entry with the same HPU memory have needs of their own,
// and no more room than there is.
func TestShareNeeds(t *testing.T) {
	l := with(t, handlers.Must("matching"), func(m *manifest.Manifest) {
		m.Needs = manifest.Needs{Spaces: []manifest.Space{manifest.HandlerMemory}, HostMemory: manifest.Const(8), Scratchpad: manifest.Const(16)}
		m.Handlers[0].Needs.Packets = []manifest.Packet{manifest.FirstPacket}
		m.Handlers[0].Needs.MessageMemory = manifest.Const(32)
		m.Handlers[0].Needs.Memory = manifest.Const(64)
	})
	onNode(t, func(p *runtime.Proc) {
		m := load(t, p, l)
		all, err := m.Install(p, handlers.Options{})
		require.NoError(t, err)
		require.True(t, all.Spin.FirstPacket)
		require.NotZero(t, all.Spin.PerMessage)
		payload, err := m.Plan("", "payload", "")
		require.NoError(t, err)
		in, err := payload.Share(all)
		require.NoError(t, err)
		require.Zero(t, in.Spin.UserHdrLen)
		require.False(t, in.Spin.FirstPacket)
		require.Zero(t, in.Spin.PerMessage)
		require.Equal(t, all.Spin.Scratchpads, in.Spin.Scratchpads)
		header, err := m.Plan("header", "", "")
		require.NoError(t, err)
		in, err = header.Share(all)
		require.NoError(t, err)
		require.Equal(t, all.Spin.PerMessage, in.Spin.PerMessage)

		small, err := m.Install(p, handlers.Options{Payload: "payload"})
		require.NoError(t, err)
		_, err = header.Share(small)
		require.EqualError(t, err, "module matching: its handlers, header, need 72 bytes of HPU memory; the entry that they share with has 16")
	})
}

// counted is the state of handlers that have counted a message of 9000 bytes.
func counted(t *testing.T, l *handlers.Library, o handlers.Options) (state count.State) {
	t.Helper()
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	m, err := l.Load(c)
	require.NoError(t, err)
	var in *handlers.Installed
	require.NoError(t, c.Spawn(0, "target", func(p *runtime.Proc) error {
		var err error
		in, err = m.Install(p, o)
		require.NoError(t, err)
		me := portals.ME{Start: p.Alloc(9000).Addr(), Length: 9000, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}
		in.Attach(&me)
		_, err = p.NI().Objects().PTAlloc(0, portals.EQNone, 0)
		require.NoError(t, err)
		_, err = p.NI().MEAppend(0, &me, portals.PriorityList, 0)
		return err
	}))
	require.NoError(t, c.Spawn(1, "source", func(p *runtime.Proc) error {
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: p.Alloc(9000).Addr(), Length: 9000})
		require.NoError(t, err)
		return p.NI().Put(portals.Put{MD: md, Length: 9000, Target: portals.PhysID(0, 0)})
	}))
	require.NoError(t, c.Run(t.Context()))
	require.NoError(t, in.Read(&state))
	return state
}

func TestInstallNeeds(t *testing.T) {
	onNode(t, func(p *runtime.Proc) {
		in, err := load(t, p, handlers.Must("accumulate")).Install(p, handlers.Options{})
		require.NoError(t, err)
		require.Len(t, in.HPU.Bytes(), 16+6*4096)
		in, err = load(t, p, handlers.Must("matching")).Install(p, handlers.Options{})
		require.NoError(t, err)
		require.Equal(t, uint64(16), in.Spin.UserHdrLen)
		var me portals.ME
		in.Attach(&me)
		require.Equal(t, portals.OptMEOpPut, me.Options)
		require.Same(t, in.Spin, me.Spin)

		needy := with(t, handlers.Must("count"), func(m *manifest.Manifest) {
			m.Needs = manifest.Needs{
				Memory: manifest.Const(100), Spaces: []manifest.Space{manifest.HandlerMemory}, HostMemory: manifest.Const(64),
				EntryOptions: []string{"manage_local"}, PTOptions: []string{"flowctrl"},
			}
		})
		in, err = load(t, p, needy).Install(p, handlers.Options{})
		require.NoError(t, err)
		require.Len(t, in.HPU.Bytes(), 132)
		require.Equal(t, 64, in.Host.Len())
		require.Equal(t, uint64(64), in.Spin.HostMem.Length)
		require.Equal(t, portals.OptMEManageLocal, in.EntryOptions)
		require.Equal(t, portals.OptPTFlowCtrl, in.PTOptions)
		addr := p.Alloc(100).Addr()
		in, err = load(t, p, needy).Install(p, handlers.Options{HostMemory: portals.Region{Start: addr, Length: 100}, Memory: 500})
		require.NoError(t, err)
		require.Zero(t, in.Host.Len())
		require.Len(t, in.HPU.Bytes(), 500)
		_, err = load(t, p, needy).Install(p, handlers.Options{HostMemory: portals.Region{Start: addr, Length: 10}})
		require.EqualError(t, err, "module count: handler host memory of 10 bytes, its handlers need 64")
	}, "hpu.cores=3", "hpu.contexts=2")
}

// Host memory in pieces is as large as all of them.
func TestInstallPieces(t *testing.T) {
	needy := with(t, handlers.Must("count"), func(m *manifest.Manifest) {
		m.Needs = manifest.Needs{Spaces: []manifest.Space{manifest.HandlerMemory}, HostMemory: manifest.Const(64)}
	})
	onNode(t, func(p *runtime.Proc) {
		addr := p.Alloc(100).Addr()
		// beside the 40 of the first piece
		for room, want := range map[uint64]string{16: "module count: handler host memory of 56 bytes, its handlers need 64", 24: ""} {
			pieces := []portals.IOVec{{Base: addr, Length: 40}, {Base: addr + 50, Length: room}}
			in, err := load(t, p, needy).Install(p, handlers.Options{HostMemory: portals.Region{Length: 40 + room, IOVec: pieces}})
			if want != "" {
				require.EqualError(t, err, want)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, pieces, in.Spin.HostMem.IOVec)
		}
	})
}

// with is a library that says something else of itself.
func with(t *testing.T, l *handlers.Library, change func(*manifest.Manifest)) *handlers.Library {
	t.Helper()
	m, err := manifest.Read(l.Wasm)
	require.NoError(t, err)
	change(m)
	wasm, err := manifest.Write(l.Wasm, m)
	require.NoError(t, err)
	return handlers.New(l.Name, wasm)
}

// withoutManifest is a module that says nothing of itself.
func withoutManifest(t *testing.T, l *handlers.Library) *handlers.Library {
	t.Helper()
	wasm, err := manifest.Keep(l.Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
	require.NoError(t, err)
	return handlers.New(l.Name, wasm)
}

func TestInstallWithoutManifest(t *testing.T) {
	onNode(t, func(p *runtime.Proc) {
		m := load(t, p, withoutManifest(t, handlers.Must("count")))
		require.Equal(t, "count", m.Library.Name)
		in, err := m.Install(p, handlers.Options{State: make([]byte, 32)})
		require.NoError(t, err)
		require.Equal(t, handlers.Exports{"", "payload", "completion"}, in.Exports)
		require.Len(t, in.HPU.Bytes(), 32)
		for _, err := range []error{in.Read(&count.State{}), in.Set("bytes", 1)} {
			require.EqualError(t, err, "module count does not describe the state of its handlers")
		}
		_, err = m.Install(p, handlers.Options{State: count.State{}})
		require.EqualError(t, err, "module count does not describe the state of its handlers: give it as bytes")
	})
}

func TestInstallRefuses(t *testing.T) {
	two := with(t, handlers.Must("count"), func(m *manifest.Manifest) {
		m.States = append(m.States, &manifest.State{Name: "Other", Size: 8})
		m.Handlers[1].State = "Other"
	})
	for want, x := range map[string]struct {
		library *handlers.Library
		o       handlers.Options
	}{
		"no handler is given: module pingpong has 2 payload handlers, stream_payload, store_payload: name one, and 2 completion handlers, stream_completion, store_completion: name one": {handlers.Must("pingpong"), handlers.Options{}},
		"module count: completion is a completion handler, expected a payload handler":                                                                                                   {handlers.Must("count"), handlers.Options{Payload: "completion"}},
		"module count exports no handler nix; it exports payload, completion":                                                                                                            {handlers.Must("count"), handlers.Options{Header: "nix"}},
		"module count: the state of payload is State, that of completion is Other: they cannot be handlers of one entry":                                                                 {two, handlers.Options{}},
		"module count: state: no field pkts, expected one of messages, packets, bytes, dropped":                                                                                          {handlers.Must("count"), handlers.Options{State: map[string]int{"pkts": 1}}},
		"module count: state: bcast.State as state State: the state has no field match_bits, expected one of messages, packets, bytes, ":                                                 {handlers.Must("count"), handlers.Options{State: bcast.State{}}},
		"module count: HPU memory of 8 bytes, its handlers need 32":                                                                                                                      {handlers.Must("count"), handlers.Options{Memory: 8}},
		"module count: HPU memory of 1073741824 bytes, at most 16777216 on this device (hpu.max_hpu_memory)":                                                                             {handlers.Must("count"), handlers.Options{Memory: 1 << 30}},
		"module matching: user header of 8 bytes, its handlers read 16":                                                                                                                  {handlers.Must("matching"), handlers.Options{UserHeader: 8}},
		"module count: HPU memory behind the state: 1<<40 is 1099511627776, expected 0 to 4294967296": {with(t, handlers.Must("count"), func(m *manifest.Manifest) {
			m.Needs.Memory = expr(t, "1<<(40*hpus/hpus)")
		}), handlers.Options{}},
	} {
		onNode(t, func(p *runtime.Proc) {
			_, err := load(t, p, x.library).Install(p, x.o)
			require.Error(t, err, want)
			require.Contains(t, strings.ReplaceAll(err.Error(), "(40*hpus/hpus)", "40"), want)
		})
	}
	odd := with(t, handlers.Must("count"), func(m *manifest.Manifest) { m.Needs.EntryOptions = []string{"op_fly"} })
	onNode(t, func(p *runtime.Proc) {
		_, err := load(t, p, odd).Install(p, handlers.Options{})
		require.ErrorContains(t, err, "module count needs option op_fly, expected one of iovec, op_put, op_get, ")
	})
	for _, name := range []string{"iovec", "handler_iovec"} {
		vectors := with(t, handlers.Must("count"), func(m *manifest.Manifest) { m.Needs.EntryOptions = []string{"op_put", name} })
		onNode(t, func(p *runtime.Proc) {
			_, err := load(t, p, vectors).Install(p, handlers.Options{})
			require.EqualError(t, err, "module count needs entry option "+name+", which no module can ask for: whoever makes the entry decides whether its memory is in one piece")
		})
	}
}

func expr(t *testing.T, text string) manifest.Expr {
	t.Helper()
	e, err := manifest.ParseExpr(text)
	require.NoError(t, err)
	return e
}

// A set of the manifest stands for the names of its handlers.
func TestInstallsASet(t *testing.T) {
	said, err := manifest.Read(handlers.Must("pingpong").Wasm)
	require.NoError(t, err)
	for i := range said.Handlers {
		said.Handlers[i].Set, _, _ = strings.Cut(said.Handlers[i].Export, "_")
	}
	wasm, err := manifest.Write(handlers.Must("pingpong").Wasm, said)
	require.NoError(t, err)
	onNode(t, func(p *runtime.Proc) {
		m := load(t, p, handlers.New("sets", wasm))
		in, err := m.Install(p, handlers.Options{Set: "store"})
		require.NoError(t, err)
		require.Equal(t, handlers.Exports{"", "store_payload", "store_completion"}, in.Exports)
		_, err = m.Install(p, handlers.Options{Set: "keep"})
		require.EqualError(t, err, "module sets: no set of handlers keep, expected one of stream, store")
		_, err = m.Install(p, handlers.Options{Set: "store", Payload: "stream_payload"})
		require.EqualError(t, err, "module sets: set store, and handlers by their names: expected one of both")
	})
}

// Where neither the module in a slot nor the library's describes a state, one
// by names is an error, also of numbers that a module may lack.
func TestInstallInSlotWithoutState(t *testing.T) {
	bare, err := manifest.Keep(count.Library.Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
	require.NoError(t, err)
	slot := handlers.New("bare", bare).Slot(handlers.Slot{Name: "here", Handlers: []string{"payload"}, Fields: []string{}, May: []string{"rounds"}})
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{
		Profile: device, Nodes: 1, Slots: map[string]runtime.Module{slot.Name: {Name: "mine.wasm", Wasm: bare}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(0, "test", func(p *runtime.Proc) error {
		m, err := slot.Load(p.Cluster())
		require.NoError(t, err)
		_, err = m.Install(p, handlers.Options{Payload: "payload", State: map[string]any{"rounds": 1}})
		require.ErrorContains(t, err, "mine.wasm")
		_, err = m.Install(p, handlers.Options{Payload: "payload", State: []byte{1}})
		require.NoError(t, err)
		return nil
	}))
	require.NoError(t, c.Run(t.Context()))
}
