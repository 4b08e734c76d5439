package smmu_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/smmutest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Every number has a least and a most, with an SMMU and without. Its type's
// extremes are refused by name.
func TestEveryFieldIsBounded(t *testing.T) {
	on, err := smmutest.Spec()
	require.NoError(t, err)
	off := &smmu.Spec{}
	require.NoError(t, off.Validate())
	require.False(t, off.On())
	off.Kind = smmu.None
	require.NoError(t, off.Validate())
	require.False(t, off.On())
	for _, spec := range []*smmu.Spec{on, off} {
		v := reflect.ValueOf(spec).Elem()
		checked := 0
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Tag.Get("yaml")
			if !f.CanInt() {
				continue
			}
			old := f.Int()
			for _, extreme := range []int64{math.MinInt64, -1, math.MaxInt64} {
				f.SetInt(extreme)
				require.ErrorContains(t, spec.Validate(), name+": ", "%d", extreme)
				checked++
			}
			f.SetInt(old)
		}
		require.NoError(t, spec.Validate())
		require.Equal(t, 48, checked)
	}
}

// Every wrong field is refused in one error, by name and with the expected
// values.
func TestErrors(t *testing.T) {
	for override, want := range map[string]string{
		"kind=smmu-v3":          `kind: "smmu-v3", expected none or mmu-500`,
		"l1_entries=96":         "l1_entries: 96, expected a power of two from 1 to 4096",
		"l2_entries=2000":       "l2_entries: 2000, expected a power of two from 4 to 1048576",
		"l2_entries=2":          "l2_entries: 2, expected a power of two from 4 to 1048576",
		"l2_ways=3":             "l2_ways: 3, expected a power of two from 1 to 16",
		"walk_cache=3":          "walk_cache: 3, expected a power of two from 4 to 1048576",
		"walk_cache_ways=0":     "walk_cache_ways: 0, expected a power of two from 1 to 16",
		"address_bits=40":       "address_bits: 40, expected 39 or 48",
		"address_bits=64":       "address_bits: 64, expected 39 to 48",
		"prefetch=8":            "prefetch: 8, expected 0 to 7",
		"walks=0":               "walks: 0, expected 1 to 256",
		"walks_full=wait":       `walks_full: "wait", expected block or queue`,
		"on_fault=ignore":       `on_fault: "ignore", expected terminate or stall`,
		"stale=panic":           `stale: "panic", expected ignore or poison`,
		"banks=129":             "banks: 129, expected 1 to 128",
		"l2_latency=2s":         "l2_latency: 2 s, expected 0 s to 1 s",
		"hit_under_fault=maybe": `hit_under_fault: "maybe", expected true or false`,
		"walk_bytes=4":          "walk_bytes: 4, expected 8 to 4096",
		"outstanding=1000000":   "outstanding: 1000000, expected 1 to 65536",
		"channels=3":            "channels: 3, expected 1 to 2",
		"stall_limit=0":         "stall_limit: 0, expected 1 to 65536",
		"page_bytes=4096":       `page_bytes: no field "page_bytes", expected one of kind, `,
		"l1_latency=-1ns":       "l1_latency: -1 ns, expected 0 s to 1 s",
		"walk_step=fast":        `walk_step: time "fast": want a number and a unit`,
		"walk_bytes=64GHz":      "walk_bytes: ",
		"walks=16 walks_full=":  "walks: ",
	} {
		_, err := smmutest.Spec(override)
		require.Error(t, err, override)
		require.True(t, strings.HasPrefix(err.Error(), want), "%s\nexpected\n%s", err, want)
		require.NotContains(t, err.Error(), "\n", override)
	}
	_, err := smmutest.Spec("walks=0", "banks=0", "stale=no")
	require.EqualError(t, err, "banks: 0, expected 1 to 128\nwalks: 0, expected 1 to 256\n"+`stale: "no", expected ignore or poison`)
}

// The closed form of a miss, in the unit tests' parameters: 30 + 3 x (150 + 40)
// and 30 + 150 + 40 ns.
func TestWalkTime(t *testing.T) {
	spec, err := smmutest.Spec()
	require.NoError(t, err)
	require.Equal(t, 3, spec.Levels())
	require.Equal(t, 600*sim.Nanosecond, spec.WalkTime(spec.Levels(), 150*sim.Nanosecond))
	require.Equal(t, 220*sim.Nanosecond, spec.WalkTime(1, 150*sim.Nanosecond))
}
