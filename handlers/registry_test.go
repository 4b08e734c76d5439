package handlers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
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
	"github.com/spinsim/spinsim/handlers/graph"
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/raid5"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/txlog"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/manifest"
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
				require.NotEmpty(t, s.Fields[i].Description, s.Fields[i].Name)
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
	require.ErrorContains(t, err, `no module "nix": expected a .wasm file or one of accumulate, `)
	_, err = handlers.Open(".")
	require.Error(t, err)
	require.Nil(t, handlers.New("x", []byte("no module")).Manifest(), "loading it says why")
}

// Every committed module passes the loader of the devices and is small. A
// handler that may not suspend costs no coroutine: sum and work promise that.
func TestModulesLoad(t *testing.T) {
	spec := &hpu.Spec{
		Cores: 4, Contexts: 4, PacketBytes: 4096, StackBytes: 4096, MaxCodeBytes: 1 << 16, MaxFunctions: 100,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100,
		Costs: hpu.CostTable{Branch: 1, Call: 1, CallIndirect: 1, Spill: 1, BulkBytesPerCycle: 1},
	}
	suspends := map[string]bool{"matching": false, "sum": false, "work": false}
	kinds := map[string]map[string]manifest.Kind{
		"accumulate": {accumulate.Payload: manifest.Payload},
		"allreduce":  {allreduce.Handler: manifest.Payload},
		"backupring": {backupring.Receive: manifest.Payload, backupring.Control: manifest.Header},
		"bcast": {
			bcast.StorePayload: manifest.Payload, bcast.StoreCompletion: manifest.Completion,
			bcast.StreamPayload: manifest.Payload, bcast.StreamCompletion: manifest.Completion,
		},
		"count": {count.Payload: manifest.Payload, count.Completion: manifest.Completion}, "count_c": {count.Payload: manifest.Payload, count.Completion: manifest.Completion},
		"datatype": {datatype.Unpack: manifest.Payload, datatype.Pack: manifest.Header},
		"ftbcast":  {ftbcast.Payload: manifest.Payload, ftbcast.Header: manifest.Header},
		"graph":    {graph.UpdateHandler: manifest.Payload, graph.ControlHandler: manifest.Header},
		"kv":       {kv.Header: manifest.Header, kv.Payload: manifest.Payload, kv.Completion: manifest.Completion},
		"mailbox":  {mailbox.Packetizer: manifest.Header, mailbox.Mailbox: manifest.Payload},
		"matching": {matching.Header: manifest.Header, matching.Payload: manifest.Payload},
		"pingpong": {
			pingpong.StorePayload: manifest.Payload, pingpong.StoreCompletion: manifest.Completion,
			pingpong.StreamPayload: manifest.Payload, pingpong.StreamCompletion: manifest.Completion,
		},
		"part": {rdma.Control: manifest.Header, rdma.Cells: manifest.Payload}, "rnr": {rnr.Firmware: manifest.Header, rnr.Hardware: manifest.Payload},
		"raid5": {
			raid5.Open: manifest.Header, raid5.Write: manifest.Payload, raid5.Apply: manifest.Payload, raid5.Done: manifest.Header,
			raid5.Gather: manifest.Header, raid5.Fold: manifest.Payload, raid5.Fill: manifest.Payload,
			raid5.Encode: manifest.Payload, raid5.Collect: manifest.Header, raid5.Blend: manifest.Payload,
		},
		"rdma":      {rdma.Control: manifest.Header, rdma.Cells: manifest.Payload},
		"replicate": {replicate.Open: manifest.Header, replicate.Store: manifest.Payload, replicate.Admit: manifest.Header, replicate.Send: manifest.Header},
		"scan":      {scan.Worker: manifest.Header, scan.Request: manifest.Payload},
		"sum":       {sum.Payload: manifest.Payload},
		"txlog":     {txlog.Header: manifest.Header, txlog.Completion: manifest.Completion},
		"work":      {work.Payload: manifest.Payload},
	}
	for _, name := range handlers.Names() {
		l := handlers.Must(name)
		code, err := manifest.Keep(l.Wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
		require.NoError(t, err)
		require.Less(t, len(code), map[string]int{"allreduce": 16384, "backupring": 4096, "datatype": 8192, "ftbcast": 2048, "graph": 8192, "kv": 16384, "mailbox": 4096, "part": 16384, "raid5": 8192, "rdma": 16384, "replicate": 6144, "rnr": 16384, "scan": 6144}[name]+2048)
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
			may, known := suspends[name]
			require.Equal(t, !known || may, f.MaySuspend(), "%s %s", name, f.Name())
		}
		require.Equal(t, kinds[name], described, name)
	}
}

// states are the Go types that hosts share with the sources of the libraries.
func states() map[string]any {
	return map[string]any{
		"accumulate": &accumulate.State{}, "allreduce": &allreduce.State{}, "backupring": &backupring.State{}, "bcast": &bcast.State{}, "count": &count.State{}, "count_c": &count.State{}, "datatype": &datatype.State{}, "ftbcast": &ftbcast.State{}, "graph": &graph.State{}, "kv": &kv.State{}, "mailbox": &mailbox.State{},
		"matching": &matching.State{}, "part": &part.State{}, "pingpong": &pingpong.State{}, "raid5": &raid5.State{}, "rdma": &rdma.State{}, "replicate": &replicate.State{}, "rnr": &rnr.State{}, "scan": &scan.State{}, "sum": &sum.State{}, "txlog": &txlog.State{}, "work": &work.State{},
	}
}

// The layout of a state is written once: what hosts take for a state has the
// fields of the manifest, where the manifest has them.
func TestStatesAreThoseOfManifests(t *testing.T) {
	device := &manifest.Device{MTU: 4096, HPUs: 4, Contexts: 2, Ranks: 4}
	for _, name := range handlers.Names() {
		v, known := states()[name]
		require.True(t, known, "%s has no state here", name)
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
			read := reflect.New(reflect.TypeOf(v).Elem()).Interface()
			require.NoError(r, s.Read(raw, read))
			got, err := s.Bytes(read, device)
			require.NoError(r, err)
			require.Equal(r, encoded(read), got, name)
		})
	}
}

// encoded is a state as handlers find it.
func encoded(state any) []byte {
	switch x := state.(type) {
	case *accumulate.State:
		return spin.EncodeState(x)
	case *allreduce.State:
		return spin.EncodeState(x)
	case *backupring.State:
		return spin.EncodeState(x)
	case *bcast.State:
		x.Ranks = max(x.Ranks%(1<<31), 1)
		return spin.EncodeState(x)
	case *count.State:
		return spin.EncodeState(x)
	case *datatype.State:
		return spin.EncodeState(x)
	case *ftbcast.State:
		return spin.EncodeState(x)
	case *graph.State:
		return spin.EncodeState(x)
	case *kv.State:
		return spin.EncodeState(x)
	case *mailbox.State:
		return spin.EncodeState(x)
	case *matching.State:
		return spin.EncodeState(x)
	case *pingpong.State:
		return spin.EncodeState(x)
	case *part.State:
		return spin.EncodeState(x)
	case *raid5.State:
		return spin.EncodeState(x)
	case *replicate.State:
		return spin.EncodeState(x)
	case *rdma.State:
		return spin.EncodeState(x)
	case *rnr.State:
		return spin.EncodeState(x)
	case *scan.State:
		return spin.EncodeState(x)
	case *sum.State:
		return spin.EncodeState(x)
	case *txlog.State:
		return spin.EncodeState(x)
	case *work.State:
		return spin.EncodeState(x)
	}
	return nil
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
