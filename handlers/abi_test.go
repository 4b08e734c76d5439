// Package handlers_test holds what handlers are compiled with against what runs them.
package handlers_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/c"
	"github.com/spinsim/spinsim/spin/manifest"
)

// enumerators returns the names that spin.h lists from first to last, without PTL_ and _T.
func enumerators(t *testing.T, first, last string) []string {
	t.Helper()
	text := string(c.Header)
	from := strings.Index(text, "\t"+first+", ")
	to := strings.Index(text, " "+last+",\n")
	require.Positive(t, from)
	require.Greater(t, to, from)
	var names []string
	for _, m := range regexp.MustCompile(`PTL_(\w+?)(?:_T)?,`).FindAllStringSubmatch(text[from:to+len(last)+2], -1) {
		names = append(names, m[1])
	}
	return names
}

// The ABI document leaves the values of atomic operations, types and acknowledgement requests to
// Portals: a handler that says sum of doubles must not get the minimum of integers.
func TestPortalsValues(t *testing.T) {
	require.Equal(t, portals.AtomicOpNames, enumerators(t, "PTL_MIN", "PTL_MSWAP"))
	ops := []spin.AtomicOp{
		spin.OpMin, spin.OpMax, spin.OpSum, spin.OpProd, spin.OpLOr, spin.OpLAnd, spin.OpBOr, spin.OpBAnd, spin.OpLXor, spin.OpBXor,
		spin.OpSwap, spin.OpCSwap, spin.OpCSwapNE, spin.OpCSwapLE, spin.OpCSwapLT, spin.OpCSwapGE, spin.OpCSwapGT, spin.OpMSwap,
	}
	require.Len(t, ops, len(portals.AtomicOpNames))
	for i, op := range ops {
		require.Equal(t, i, int(op))
	}

	var types []string
	for _, name := range portals.DatatypeNames {
		types = append(types, strings.TrimSuffix(name, "_T"))
	}
	require.Equal(t, types, enumerators(t, "PTL_INT8_T", "PTL_LONG_DOUBLE_COMPLEX"))
	for want, got := range map[portals.Datatype]spin.Datatype{
		portals.Int8: spin.TypeInt8, portals.Uint8: spin.TypeUint8, portals.Int16: spin.TypeInt16, portals.Uint16: spin.TypeUint16,
		portals.Int32: spin.TypeInt32, portals.Uint32: spin.TypeUint32, portals.Int64: spin.TypeInt64, portals.Uint64: spin.TypeUint64,
		portals.Float: spin.TypeFloat, portals.FloatComplex: spin.TypeFloatComplex,
		portals.Double: spin.TypeDouble, portals.DoubleComplex: spin.TypeDoubleComplex,
		portals.LongDouble: spin.TypeLongDouble, portals.LongDoubleComplex: spin.TypeLongDoubleComplex,
	} {
		require.Equal(t, int(want), int(got), want)
	}
	for want, got := range map[portals.AckReq]spin.AckReq{
		portals.NoAck: spin.NoAck, portals.Ack: spin.Ack, portals.CTAck: spin.CTAck, portals.OCAck: spin.OCAck,
	} {
		require.Equal(t, int(want), int(got), want)
	}
}

// A state with a gap would reach the handler shifted.
func TestStatesEncode(t *testing.T) {
	require.Len(t, spin.EncodeState(&accumulate.State{}), 16)
	require.Len(t, spin.EncodeState(&bcast.State{}), 32)
	require.Len(t, spin.EncodeState(&count.State{}), 32)
	require.Len(t, spin.EncodeState(&matching.State{}), 8)
	require.Len(t, spin.EncodeState(&matching.Announcement{}), matching.AnnouncementSize)
	require.Len(t, spin.EncodeState(&pingpong.State{}), 16)
	require.Len(t, spin.EncodeState(&sum.State{}), 8*sum.MaxHPUs)
	require.Len(t, spin.EncodeState(&work.State{}), 8+8*work.MaxHPUs)
}

// The guide quotes sources, which change, and claims to list every import.
func TestGuideIsTrue(t *testing.T) {
	guide := read(t, "../docs/handlers.md")
	quotes := regexp.MustCompile("(?s)```\\w+\n(?:// |/\\* )(handlers/\\S+)(?: \\*/)?\n(.*?)```").FindAllStringSubmatch(guide, -1)
	require.Len(t, quotes, 6)
	for _, q := range quotes {
		require.Contains(t, read(t, "../"+q[1]), q[2])
	}
	imports := regexp.MustCompile(`(?m)^\| (\w+) \| (?:same|\(.*?\) -> )`).FindAllStringSubmatch(read(t, "../docs/abi.md"), -1)
	require.NotEmpty(t, imports)
	for _, m := range imports {
		require.Contains(t, guide, "`"+m[1]+"`")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// Every committed module passes the loader of the devices and is small. A handler that may not
// suspend costs no coroutine: sum and work promise that.
func TestModulesLoad(t *testing.T) {
	spec := &hpu.Spec{
		Cores: 4, Contexts: 4, PacketBytes: 4096, StackBytes: 4096, MaxCodeBytes: 1 << 16, MaxFunctions: 100,
		MaxMemoryBytes: 1 << 20, MaxHPUMemoryBytes: 1 << 20, MaxCallDepth: 100,
		Costs: hpu.CostTable{Branch: 1, Call: 1, CallIndirect: 1, Spill: 1, BulkBytesPerCycle: 1},
	}
	const (
		neverSuspends = iota
		maySuspend
	)
	for name, m := range map[string]struct {
		wasm     []byte
		handlers map[string]int
	}{
		"accumulate": {accumulate.Module, map[string]int{accumulate.Payload: maySuspend}},
		"bcast": {bcast.Module, map[string]int{
			bcast.StorePayload: maySuspend, bcast.StoreCompletion: maySuspend,
			bcast.StreamPayload: maySuspend, bcast.StreamCompletion: maySuspend,
		}},
		"count":    {count.Module, map[string]int{count.Payload: maySuspend, count.Completion: maySuspend}},
		"count_c":  {count.ModuleC, map[string]int{count.Payload: maySuspend, count.Completion: maySuspend}},
		"matching": {matching.Module, map[string]int{matching.Header: neverSuspends, matching.Payload: neverSuspends}},
		"pingpong": {pingpong.Module, map[string]int{
			pingpong.StorePayload: maySuspend, pingpong.StoreCompletion: maySuspend,
			pingpong.StreamPayload: maySuspend, pingpong.StreamCompletion: maySuspend,
		}},
		"sum":  {sum.Module, map[string]int{sum.Payload: neverSuspends}},
		"work": {work.Module, map[string]int{work.Payload: neverSuspends}},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := manifest.Keep(m.wasm, func(s *manifest.Piece) bool { return s.Name != manifest.Section })
			require.NoError(t, err)
			require.Less(t, len(code), 2048)
			module, err := hpu.Load(name, m.wasm, spec)
			require.NoError(t, err)
			_, found := module.ShadowStack()
			require.True(t, found)
			require.Len(t, module.Exports(), len(m.handlers))
			for handler, suspends := range m.handlers {
				f, err := module.Export(handler)
				require.NoError(t, err)
				require.Equal(t, suspends == maySuspend, f.MaySuspend(), handler)
			}
		})
	}
}
