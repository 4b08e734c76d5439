package ddtbench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/internal/ddtbench"
)

// bytes maps applications to the size that the suite's program prints for the
// first input, computed from its dimensions.
var bytes = map[string]int64{
	"WRF_y_vec":      4 * (4*23*3 + (3+2)*23*65*3),
	"WRF_y_sa":       4 * (4*23*3 + (3+2)*23*65*3),
	"WRF_x_vec":      4 * (4*3*44 + (3+2)*3*65*44),
	"WRF_x_sa":       4 * (4*3*44 + (3+2)*3*65*44),
	"MILC_su3_zdown": 4 * 6 * 16 * 16 / 2 * 16 * 2,
	"NAS_LU_x":       8 * 5 * 1020,
	"NAS_LU_y":       8 * 5 * 1020,
	"NAS_MG_x":       8 * 256 * 256,
	"NAS_MG_y":       8 * 512 * 256,
	"NAS_MG_z":       8 * 512 * 256,
	"LAMMPS_full":    8 * 8 * 3062,
	"LAMMPS_atomic":  8 * 6 * 243,
	"SPECFEM3D_oc":   4 * 3225,
	"SPECFEM3D_cm":   4 * 3 * (11797 + 3009),
	"SPECFEM3D_mt":   4 * 3 * 7600,
	"FFT2":           16 * 96 * 96,
}

// Every type has the length that the suite prints, can be received into, begins
// at displacement 0 or later, and shrinks from input to input.
func TestTypes(t *testing.T) {
	require.Len(t, ddtbench.All(), len(bytes))
	for _, a := range ddtbench.All() {
		require.LessOrEqual(t, len(a.Inputs), ddtbench.MostInputs)
		last := int64(0)
		for i := range a.Inputs {
			d, err := a.Inputs[i].Type(7)
			require.NoError(t, err)
			if i == 0 {
				require.Equal(t, bytes[a.Name], d.Size(), a.Name)
			} else {
				require.Less(t, d.Size(), last, "%s %s", a.Name, a.Inputs[i].Dimensions)
			}
			last = d.Size()
			overlaps, err := d.Overlaps(1)
			require.NoError(t, err)
			require.False(t, overlaps, "%s %s", a.Name, a.Inputs[i].Dimensions)
			from, _ := d.TrueExtent()
			require.GreaterOrEqual(t, from, int64(0))
		}
	}
}

// Vectors and subarrays of WRF are the same bytes in the same order.
func TestVectorsAreSubarrays(t *testing.T) {
	for _, direction := range []string{"WRF_x", "WRF_y"} {
		vec, err := ddtbench.Find(direction + "_vec")
		require.NoError(t, err)
		sa, err := ddtbench.Find(direction + "_sa")
		require.NoError(t, err)
		require.Len(t, vec.Inputs, len(sa.Inputs))
		for i := range vec.Inputs {
			a, err := vec.Inputs[i].Type(1)
			require.NoError(t, err)
			b, err := sa.Inputs[i].Type(1)
			require.NoError(t, err)
			require.Equal(t, places(t, a), places(t, b))
		}
	}
	_, err := ddtbench.Find("WRF")
	require.ErrorContains(t, err, `ddtbench: no application "WRF", expected one of WRF_y_vec, WRF_y_sa`)
}

// The seed decides the lists.
func TestSeeds(t *testing.T) {
	a, err := ddtbench.Find("LAMMPS_full")
	require.NoError(t, err)
	of := func(seed uint64) [][2]int64 {
		d, err := a.Inputs[2].Type(seed)
		require.NoError(t, err)
		return places(t, d)
	}
	one, again, other := of(1), of(1), of(2)
	require.Equal(t, one, again)
	require.NotEqual(t, one, other)
}

func places(t *testing.T, d *datatype.Type) (list [][2]int64) {
	require.NoError(t, d.Runs(1, 0, d.Size(), func(at, n int64) { list = append(list, [2]int64{at, n}) }))
	return list
}
