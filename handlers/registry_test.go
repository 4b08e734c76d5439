package handlers_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/handlers/gemm"
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/reduction"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/handlers/rules"
	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/handlers/sparse"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/spin"
)

// A library that is not listed could not be named, and one without a manifest
// not be used by the names of its fields.
func TestRegistry(t *testing.T) {
	files, err := filepath.Glob("*/*.wasm")
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wasm")
		names = append(names, name)
		l, err := handlers.Open(name)
		require.NoError(t, err)
		wasm, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, wasm, l.Wasm, name)
		require.Empty(t, l.Path)

		m := l.Manifest()
		require.NotNil(t, m, name)
		require.Equal(t, name, m.Name, "the name in the source")
		require.NotEmpty(t, m.Version)
		require.NotEmpty(t, m.Description)
		for _, h := range m.Handlers {
			require.NotEmpty(t, h.Kind, h.Export)
			require.NotEmpty(t, h.Description, h.Export)
			require.NotNil(t, m.State(h.State), h.Export)
		}
		for _, s := range m.States {
			require.NotEmpty(t, s.Description)
			for i := range s.Fields {
				require.NotEmpty(t, s.Fields[i].Description, "%s: a comment of field %s of its state", l.Name, s.Fields[i].Name)
			}
		}
	}
	require.ElementsMatch(t, names, handlers.Names())
	require.IsIncreasing(t, handlers.Names())
	_, err = handlers.Builtin("nix")
	require.EqualError(t, err, `no built-in library "nix", expected one of `+strings.Join(handlers.Names(), ", "))
	require.Panics(t, func() { handlers.Must("nix") })
}

func TestOpenFile(t *testing.T) {
	l, err := handlers.Open(filepath.Join("count", "count.wasm"))
	require.NoError(t, err)
	require.Equal(t, "count.wasm", l.Name)
	require.Equal(t, filepath.Join("count", "count.wasm"), l.Path)
	require.Equal(t, "count", l.Manifest().Name)
	_, err = handlers.Open("nix.wasm")
	require.ErrorContains(t, err, "open nix.wasm: no such file")
	_, err = handlers.Open("nix")
	require.ErrorContains(t, err, `no module "nix": expected a .wasm file or one of `+handlers.Names()[0]+", ")
	_, err = handlers.Open(".")
	require.Error(t, err)
	require.Nil(t, handlers.New("x", []byte("no module")).Manifest(), "loading it says why")
}

// claim is what hosts rely on in a library besides what its manifest says.
type claim struct {
	kinds    map[string]manifest.Kind // of its handlers, by the names that hosts use
	state    state
	code     int      // bytes of the module at most, without the manifest; 0: mostCode
	straight bool     // no handler may suspend, which would cost a coroutine
	quick    []string // handlers that may not suspend, though others may
}

// state is the Go type that hosts share with the source of a library.
type state struct {
	new    func() any
	encode func(state any) []byte // as handlers find it
}

func of[T any]() state {
	return state{func() any { return new(T) }, func(s any) []byte { return spin.EncodeState(s.(*T)) }}
}

const mostCode = 18432 // bytes of a module, without the manifest

// claims are about libraries of spinsim. A library without one here is held to
// the rules for all; the tests of its folder do the rest.
var claims = map[string]claim{
	"accumulate": {
		state: of[accumulate.State](), code: 2048,
		kinds: map[string]manifest.Kind{accumulate.Payload: manifest.Payload},
	},
	"allreduce": {
		state: of[allreduce.State](),
		kinds: map[string]manifest.Kind{allreduce.Handler: manifest.Payload},
	},
	"backupring": {
		state: of[backupring.State](), code: 6144,
		kinds: map[string]manifest.Kind{backupring.Receive: manifest.Payload, backupring.Control: manifest.Header},
	},
	"bcast": {
		state: of[bcast.State](), code: 2048,
		kinds: map[string]manifest.Kind{
			bcast.StorePayload: manifest.Payload, bcast.StoreCompletion: manifest.Completion,
			bcast.StreamPayload: manifest.Payload, bcast.StreamCompletion: manifest.Completion,
		},
	},
	"count": {
		state: of[count.State](), code: 2048,
		kinds: map[string]manifest.Kind{count.Payload: manifest.Payload, count.Completion: manifest.Completion},
	},
	"count_c": {
		state: of[count.State](), code: 2048,
		kinds: map[string]manifest.Kind{count.Payload: manifest.Payload, count.Completion: manifest.Completion},
	},
	"datatype": {
		state: of[datatype.State](), code: 10240,
		kinds: map[string]manifest.Kind{datatype.Unpack: manifest.Payload, datatype.Pack: manifest.Header},
	},
	"ftbcast": {
		state: of[ftbcast.State](), code: 4096,
		kinds: map[string]manifest.Kind{ftbcast.Payload: manifest.Payload, ftbcast.Header: manifest.Header},
	},
	"gemm": {
		state: of[gemm.State](), code: 8192,
		kinds: map[string]manifest.Kind{gemm.LoadHandler: manifest.Header, gemm.MultiplyHandler: manifest.Payload, gemm.StoreHandler: manifest.Completion},
	},
	"graph": {
		state: of[graph.State](), code: 10240,
		kinds: map[string]manifest.Kind{graph.UpdateHandler: manifest.Payload, graph.ControlHandler: manifest.Header},
	},
	"kv": {
		state: of[kv.State](),
		kinds: map[string]manifest.Kind{kv.Header: manifest.Header, kv.Payload: manifest.Payload, kv.Completion: manifest.Completion},
	},
	"mailbox": {
		state: of[mailbox.State](), code: 6144,
		kinds: map[string]manifest.Kind{mailbox.Packetizer: manifest.Header, mailbox.Mailbox: manifest.Payload},
	},
	"matching": {
		state: of[matching.State](), code: 2048, straight: true,
		kinds: map[string]manifest.Kind{matching.Header: manifest.Header, matching.Payload: manifest.Payload},
	},
	"pagein": {
		state: of[pagein.State](), code: 1024, straight: true,
		kinds: map[string]manifest.Kind{pagein.Policy: manifest.Header},
	},
	"part": {
		state: of[part.State](),
		kinds: map[string]manifest.Kind{rdma.Control: manifest.Header, rdma.Cells: manifest.Payload},
	},
	"pingpong": {
		state: of[pingpong.State](), code: 2048,
		kinds: map[string]manifest.Kind{
			pingpong.StorePayload: manifest.Payload, pingpong.StoreCompletion: manifest.Completion,
			pingpong.StreamPayload: manifest.Payload, pingpong.StreamCompletion: manifest.Completion,
		},
	},
	"raid5": {
		state: of[raid5.State](), code: 10240,
		kinds: map[string]manifest.Kind{
			raid5.Open: manifest.Header, raid5.Write: manifest.Payload, raid5.Apply: manifest.Payload, raid5.Done: manifest.Header,
			raid5.Gather: manifest.Header, raid5.Fold: manifest.Payload, raid5.Fill: manifest.Payload,
			raid5.Encode: manifest.Payload, raid5.Collect: manifest.Header, raid5.Blend: manifest.Payload,
		},
	},
	"rdma": {
		state: of[rdma.State](),
		kinds: map[string]manifest.Kind{rdma.Control: manifest.Header, rdma.Cells: manifest.Payload},
	},
	"reduction": {
		state: of[reduction.State](), code: 8192,
		kinds: map[string]manifest.Kind{reduction.Handler: manifest.Payload},
	},
	"replicate": {
		state: of[replicate.State](), code: 8192,
		kinds: map[string]manifest.Kind{replicate.Open: manifest.Header, replicate.Store: manifest.Payload, replicate.Admit: manifest.Header, replicate.Send: manifest.Header},
	},
	"rnr": {
		state: of[rnr.State](),
		kinds: map[string]manifest.Kind{rnr.Firmware: manifest.Header, rnr.Hardware: manifest.Payload},
	},
	"rules": {
		state: of[rules.State](), code: 4096, quick: []string{rules.Header, rules.Completion},
		kinds: map[string]manifest.Kind{rules.Header: manifest.Header, rules.Payload: manifest.Payload, rules.Completion: manifest.Completion},
	},
	"scan": {
		state: of[scan.State](), code: 8192,
		kinds: map[string]manifest.Kind{scan.Worker: manifest.Header, scan.Request: manifest.Payload},
	},
	"sparse": {
		state: of[sparse.State](), code: 8192,
		kinds: map[string]manifest.Kind{sparse.Handler: manifest.Payload},
	},
	"sum": {
		state: of[sum.State](), code: 2048, straight: true,
		kinds: map[string]manifest.Kind{sum.Payload: manifest.Payload},
	},
	"txlog": {
		state: of[txlog.State](), code: 2048,
		kinds: map[string]manifest.Kind{txlog.Header: manifest.Header, txlog.Completion: manifest.Completion},
	},
	"work": {
		state: of[work.State](), code: 2048, straight: true,
		kinds: map[string]manifest.Kind{work.Payload: manifest.Payload},
	},
}

// Every committed module passes the loader of the devices and is small. A
// handler that may not suspend costs no coroutine: sum and work promise that.
func TestModulesLoad(t *testing.T) {
	spec := &hpu.Spec{
		Cores: 4, Contexts: 4, PacketBytes: 4096, StackBytes: 4096, MaxCodeBytes: 1 << 16, MaxFunctions: 100,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100,
		Costs: hpu.CostTable{Branch: 1, Call: 1, CallIndirect: 1, Spill: 1, BulkBytesPerCycle: 1},
	}
	for _, name := range handlers.Names() {
		l := handlers.Must(name)
		code, err := manifest.Keep(l.Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
		require.NoError(t, err)
		claim, claimed := claims[name]
		require.Less(t, len(code), cmp.Or(claim.code, mostCode), name)
		module, err := hpu.Load("any", l.Wasm, spec)
		require.NoError(t, err)
		require.Equal(t, name, module.Library())
		_, found := module.ShadowStack()
		require.True(t, found)
		described := map[string]manifest.Kind{}
		for _, f := range module.Exports() {
			h := module.Manifest().Handler(f.Name())
			require.NotNil(t, h, f.Name())
			described[f.Name()] = h.Kind
			if claimed {
				require.Equal(t, !claim.straight && !slices.Contains(claim.quick, f.Name()), f.MaySuspend(), "%s %s", name, f.Name())
			}
		}
		if claimed {
			require.Equal(t, claim.kinds, described, name)
		}
	}
}

// The layout of a state is written once: what hosts take for a state has the
// fields of the manifest, where the manifest has them.
func TestStatesAreThoseOfManifests(t *testing.T) {
	device := &manifest.Device{MTU: 4096, HPUs: 4, Contexts: 2, Ranks: 4}
	for name, claim := range claims { //lint:maporder each by itself
		s := handlers.Must(name).Manifest().States[0]
		rapid.Check(t, func(r *rapid.T) {
			drawn := rapid.SliceOfN(rapid.Byte(), 1, min(int(s.Size), 256)).Draw(r, "bytes")
			raw := bytes.Repeat(drawn, int(s.Size)/len(drawn)+1)[:s.Size]
			defaults, err := s.Bytes(nil, device)
			require.NoError(r, err)
			if name == "part" { // its first field is the state of rdma, which is drawn there
				copy(raw[:unsafe.Sizeof(rdma.State{})], defaults)
			}
			inRange(raw, defaults, s.Fields, 0)
			read := claim.state.new()
			require.NoError(r, s.Read(raw, read))
			got, err := s.Bytes(read, device)
			require.NoError(r, err)
			require.Equal(r, claim.state.encode(read), got, name)
		})
	}
}

// An announcement is what the library matching reads of a message.
func TestAnnouncementIsTheUserHeader(t *testing.T) {
	require.Len(t, spin.EncodeState(&matching.Announcement{}), matching.AnnouncementSize)
	require.Equal(t, int64(matching.AnnouncementSize), handlers.Must("matching").Manifest().Handler(matching.Header).Needs.UserHeader)
}

// What only handlers of one kind see is a need of those that read it, and not
// of the library: else each entry with one of its header handlers loses bytes.
func TestUserHeadersAreNeedsOfHandlers(t *testing.T) {
	reads := 0
	for _, name := range handlers.Names() {
		m := handlers.Must(name).Manifest()
		require.Zero(t, m.Needs.UserHeader, name)
		require.Empty(t, m.Needs.Packets, name)
		for _, h := range m.Handlers {
			if h.Needs.UserHeader > 0 {
				reads++
			}
			var entry [3]string
			entry[slices.Index(manifest.Kinds(), h.Kind)] = h.Export
			n, err := m.NeedsOf(entry)
			require.NoError(t, err, name)
			require.Equal(t, h.Needs.UserHeader, n.UserHeader, "%s of %s", h.Export, name)
		}
	}
	require.NotZero(t, reads)
}

// inRange sets numbers whose range does not allow everything to what they begin with.
func inRange(raw, defaults []byte, fields []manifest.Field, base int64) {
	for i := range fields {
		f := &fields[i]
		at := base + f.Offset
		if f.Max.String() != "" || f.Min.String() != "" {
			copy(raw[at:at+f.Type.Size()], defaults[at:])
		}
		if f.Dims == nil {
			inRange(raw, defaults, f.Fields, at)
		}
	}
}

// What accumulate begins with on a device is said in its source, and once more
// where its handlers are tested without one.
func TestAccumulateState(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := &manifest.Device{
			MTU: 16 * rapid.Int64Range(1, 1024).Draw(r, "mtu"), HPUs: rapid.Int64Range(1, 100).Draw(r, "hpus"), Contexts: rapid.Int64Range(1, 8).Draw(r, "contexts"),
		}
		m := handlers.Must("accumulate").Manifest()
		want, memory := accumulate.NewState(int(min(d.HPUs*d.Contexts, accumulate.MaxBuffers)), int(d.MTU))
		got, err := m.States[0].Initial(d)
		require.NoError(r, err)
		require.Equal(r, spin.EncodeState(&want), got)
		behind, err := m.Needs.Memory.Between(d, 0, 1<<40)
		require.NoError(r, err)
		require.Equal(r, memory, int(m.States[0].Size+behind))
	})
}
