package profile

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/smmutest"
)

// A number of HPUs like 1.5 or 010 is an error: nothing is silently truncated
// or read in another base.
func TestWholeNumbersOfProfiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(file, []byte("base: spin-int\nhpu:\n  cores: 1.5\n"), 0o600))
	_, err := Load(file)
	require.ErrorContains(t, err, `p.yaml:3: hpu.cores: "1.5", expected a whole number`)
	for setting, want := range map[string]string{
		"hpu.cores=2.5":         `hpu.cores: "2.5", expected a whole number`,
		"hpu.cores=010":         `hpu.cores: "010", expected a whole number`,
		"hpu.costs={move: 1.5}": `move: "1.5", expected a whole number`,
	} {
		_, err := Load("spin-int", setting)
		require.ErrorContains(t, err, want)
	}
	p, err := Load("spin-int", "hpu.max_cycles=2e6", "hpu.cores=0x10")
	require.NoError(t, err)
	require.Equal(t, int64(2_000_000), p.HPU.MaxCycles)
	require.Equal(t, 16, p.HPU.Cores)
}

// A device must have at least the limits that the standard requires of every
// interface (Portals 4.x §3.6.1).
func TestFloorsOfLimits(t *testing.T) {
	for setting, want := range map[string]string{
		"limits.max_pt_index=62":         "limits.max_pt_index: 62, expected 63 to 65535",
		"limits.max_waw_ordered_size=63": "limits.max_waw_ordered_size: 63, expected 64 to 1073741824",
		"limits.max_war_ordered_size=7":  "limits.max_war_ordered_size: 7, expected 8 to 1073741824",
	} {
		_, err := Load("spin-int", setting)
		require.ErrorContains(t, err, want)
	}
	_, err := Load("spin-int", "limits.max_pt_index=63", "limits.max_waw_ordered_size=64", "limits.max_war_ordered_size=8")
	require.NoError(t, err)
}

// An override may change one cost of a table that the profile names. A table in
// a file replaces the whole table of its base.
func TestOverridesOfCosts(t *testing.T) {
	want, err := Costs("a15")
	require.NoError(t, err)
	require.NotEqual(t, int64(77), want.IntDiv)
	want.IntDiv, want.Core.Latency.Load = 77, 9
	p, err := Load("spin-int", "hpu.costs.int_div=77", "hpu.costs.core.latency.load=9")
	require.NoError(t, err)
	require.Equal(t, *want, p.HPU.Costs)

	file := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(file, []byte("base: spin-int\nhpu:\n  costs: {branch: 1, call: 2, call_indirect: 3, bulk_bytes_per_cycle: 4, spill: 5, imports: {dma_to_host: 6}}\n"), 0o600))
	p, err = Load(file, "hpu.costs.int=7")
	require.NoError(t, err)
	require.Equal(t, hpu.CostTable{Int: 7, Branch: 1, Call: 2, CallIndirect: 3, BulkBytesPerCycle: 4, Spill: 5, Imports: map[string]int64{"dma_to_host": 6}}, p.HPU.Costs)
}

// The sections of the ExaNeSt node equal the values that the tests of their
// packages use.
func TestTheExaNeStNodeIsWhatItsRoomsAreTestedWith(t *testing.T) {
	p, err := Load("exanest-qfdb")
	require.NoError(t, err)
	system, err := hosttest.Spec()
	require.NoError(t, err)
	storage, err := hosttest.Storage()
	require.NoError(t, err)
	translation, err := smmutest.Spec("walk_step=90ns") // of another memory: docs/memory.md
	require.NoError(t, err)
	require.Equal(t, *system, p.OS)
	require.Equal(t, *storage, p.Storage)
	require.Equal(t, *translation, p.SMMU)
}

// Sections that contradict each other are an error.
func TestSystemsWithoutWhatTheyNeedAreRefused(t *testing.T) {
	for override, want := range map[string]string{
		"smmu.kind=none":       "os.kind: linux without an SMMU (smmu.kind): devices would reach for pages that are not there",
		"smmu.address_bits=48": "os.address_bits: 39, expected those of smmu.address_bits, 48: the SMMU walks the tables of the system",
		"os.bank_hold=0ns":     "os.bank_hold: 0 s, expected 1 µs to 1 s",
		"os.interrupt_core=4":  "os.interrupt_core: 4, expected 0 to 3",
		"os.clear_fault=never": `os.clear_fault: "never", expected handler or tasklet`,
		"os.memory=3MiB":       "os.memory: 3 MiB, expected a multiple of 2 MiB",
		"storage.kind=tape":    `storage.kind: "tape", expected `,
	} {
		_, err := Load("exanest-qfdb", override)
		require.ErrorContains(t, err, "profile exanest-qfdb: "+want)
	}
	_, err := Load("exanest-qfdb", "os.kind=none", "smmu.kind=none")
	require.NoError(t, err)
}

// The NIC of sPIN'17 with SIMD differs from its base in nothing else: its costs
// are written out, because a cost table is replaced as a whole.
func TestVectorsAreAllThatIsNew(t *testing.T) {
	p, err := Load("../docs/profiles/spin-int-simd.yaml")
	require.NoError(t, err)
	require.NotZero(t, p.HPU.Costs.SIMD.AccessBytes)
	p.HPU.Costs.SIMD = hpu.SIMD{}
	maps.DeleteFunc(p.HPU.Costs.Instructions, func(names string, _ hpu.InstrCost) bool {
		shape, _, _ := strings.Cut(names, ".")
		return strings.ContainsAny(shape, "x") || shape == "v128"
	})
	base, err := Load("spin-int")
	require.NoError(t, err)
	list, err := Diff(base, p)
	require.NoError(t, err)
	require.Empty(t, list)
}
