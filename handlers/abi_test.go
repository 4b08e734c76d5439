// Package handlers_test holds what handlers are compiled with against what runs them.
package handlers_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/spin"
)

// enumerators returns the names that spin.h lists from first to last, without PTL_ and _T.
func enumerators(t *testing.T, first, last string) []string {
	t.Helper()
	text := string(spin.CHeader)
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
