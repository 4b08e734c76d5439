package cores

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/profile"
)

// Each cost table describes its core. A round of each loop costs as much as the
// reference, within the tolerance, or there is a reason. A reason that is not
// needed is an error, too.
func TestTablesAgreeWithReferences(t *testing.T) {
	require.Subset(t, Tables(), []string{"a15", "rv32-pspin", "scalar"})
	for _, table := range Tables() {
		t.Run(table, func(t *testing.T) {
			all, err := Compare(table)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(all), 10)
			explained := 0
			for _, c := range all {
				far := c.Reference == 0 || math.Abs(c.Deviation()) > Tolerance
				require.Equal(t, far, c.Reason != "", "%s: %.2f cycles a round, reference %.2f, reason %q", c.Loop.Name, c.Cycles, c.Reference, c.Reason)
				require.Positive(t, c.Instructions)
				if far {
					explained++
				}
			}
			require.LessOrEqual(t, explained, len(all)/3)
		})
	}
}

// Costs that can be counted by hand, in the disassembly of kernels.wasm
// (llvm-objdump -d).
func TestRoundsByHand(t *testing.T) {
	want := map[string]map[string]float64{
		// One instruction after the other: 2 loads, xor, store, 3 additions,
		// branch; 4 loads, 4 products, 2 sums, 2 stores, 2 + 3 additions,
		// branch.
		"scalar": {"xor32": 8, "cmul": 18},
		// Eight instructions, three at a time. The product has 15: a local
		// keeps one of its two additions of constants, and two of its products
		// are parts of others.
		"a15": {"xor32": 8. / 3, "cmul": 15. / 3, "chase": 3},
		// The branch back takes 3; an addition of 64 bits 4, its load 2.
		"rv32-pspin": {"xor32": 10, "sum64": 2 + 4 + 2 + 3},
	}
	for table, loops := range want {
		all, err := Compare(table)
		require.NoError(t, err)
		for _, c := range all {
			if cycles, ok := loops[c.Loop.Name]; ok {
				require.InDelta(t, cycles, c.Cycles, 1e-9, "%s on %s", c.Loop.Name, table)
			}
		}
	}
}

// Costs that depend on operands and memories, by hand: a divisor of 100 has 25
// leading zeros, one above 2^31 none; a load or store of the module's memory
// takes 19 more where that is far; an atomic is one instruction. Without the
// fields nothing depends on them.
func TestMoreByHand(t *testing.T) {
	table, err := profile.Costs("ri5cy")
	require.NoError(t, err)
	cycles := func(place Place) map[string]float64 {
		list, err := MeasureLoops(table, More(), place)
		require.NoError(t, err)
		byName := map[string]float64{}
		for i, l := range More() {
			byName[l.Name] = list[i]
		}
		return byName
	}
	near, far := cycles(Near), cycles(Far)
	require.InDelta(t, 25, near["divide_small"]-near["divide_large"], 1e-9)
	require.InDelta(t, 2+3, near["divide_large"]-near["multiply"]+3, 1e-9)
	require.InDelta(t, 6, near["sum_l1"], 1e-9)
	require.InDelta(t, 19, far["sum_l2"]-near["sum_l2"], 1e-9)
	require.InDelta(t, 19, far["copy_l2"]-near["copy_l2"], 1e-9)
	require.InDelta(t, 2*19, far["histogram_l2"]-near["histogram_l2"], 1e-9)
	require.InDelta(t, near["sum_l1"], far["sum_l1"], 1e-9, "a packet is near")
	atomic := near["atomic"]
	table.Atomic, table.IntDivBit, table.Levels = 0, 0, hpu.Levels{}
	plain := cycles(Far)
	require.InDelta(t, plain["divide_large"], plain["divide_small"], 1e-9)
	require.InDelta(t, near["sum_l1"], plain["sum_l2"], 1e-9)
	// less the cycle in which an atomic waits for its operand, a load
	require.InDelta(t, float64(table.Call+table.Import-3-1), plain["atomic"]-atomic, 1e-9)
}

func TestUnknownTable(t *testing.T) {
	_, err := Compare("a72")
	require.EqualError(t, err, `no cost table "a72", expected one of `+strings.Join(profile.CostNames(), ", ")+" or a mapping")
}
