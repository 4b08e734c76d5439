package ddtbench

import (
	"fmt"
	"math/rand/v2"

	"github.com/spinsim/spinsim/datatype"
)

// some returns n different numbers below a bound in random order, multiplied by
// times.
func some(random *rand.Rand, n, below, times int) []int {
	all := random.Perm(below)[:n]
	for i := range all {
		all[i] *= times
	}
	return all
}

// lammpsInputs makes inputs of atoms that a rank sends, out of all its atoms.
// An atom has three coordinates and some single properties.
func lammpsInputs(singles int, sizes [][2]int) (list []Input) {
	for _, size := range sizes {
		atoms, sent := size[0], size[1]
		list = append(list, Input{fmt.Sprintf("%d of %d atoms", sent, atoms), func(seed uint64) (*datatype.Type, error) {
			chosen := rand.New(rand.NewPCG(seed, uint64(atoms))).Perm(atoms)[:sent]
			triple := make([]int, sent)
			for i, atom := range chosen {
				triple[i] = 3 * atom
			}
			place, err := datatype.IndexedBlock(3, triple, datatype.Float64)
			if err != nil {
				return nil, err
			}
			single, err := datatype.IndexedBlock(1, chosen, datatype.Float64)
			if err != nil {
				return nil, err
			}
			room := int64(atoms+sent) * doubleBytes // atoms from neighbours lie behind
			var memory arrays
			lengths, places, types := []int{1}, []int64{memory.place(3 * room)}, []*datatype.Type{place}
			for range singles {
				lengths, places, types = append(lengths, 1), append(places, memory.place(room)), append(types, single)
			}
			return datatype.Struct(lengths, places, types)
		}})
	}
	return list
}

// oceanInputs makes inputs of points of the outer core on the border.
func oceanInputs() (list []Input) {
	for _, size := range [][2]int{{88881, 3225}, {38585, 1897}, {12857, 877}, {3697, 493}} {
		list = append(list, Input{fmt.Sprintf("%d of %d points", size[1], size[0]), func(seed uint64) (*datatype.Type, error) {
			return datatype.IndexedBlock(1, some(rand.New(rand.NewPCG(seed, 1)), size[1], size[0], 1), datatype.Float32)
		}})
	}
	return list
}

// mantleInputs makes inputs of points on the border, of the crust and mantle
// and of the inner core.
func mantleInputs() (list []Input) {
	for _, size := range [][4]int{{834917, 11797, 51153, 3009}, {396849, 7125, 22477, 1729}, {152001, 3801, 7209, 801}, {39929, 1957, 1225, 245}} {
		list = append(list, Input{fmt.Sprintf("%d of %d and %d of %d points", size[1], size[0], size[3], size[2]), func(seed uint64) (*datatype.Type, error) {
			random := rand.New(rand.NewPCG(seed, 2))
			mantle, err := datatype.IndexedBlock(3, some(random, size[1], size[0], 3), datatype.Float32)
			if err != nil {
				return nil, err
			}
			core, err := datatype.IndexedBlock(3, some(random, size[3], size[2], 3), datatype.Float32)
			if err != nil {
				return nil, err
			}
			var memory arrays
			first := memory.place(3 * floatBytes * int64(size[0]))
			return datatype.Struct([]int{1, 1}, []int64{first, memory.place(3 * floatBytes * int64(size[2]))}, []*datatype.Type{mantle, core})
		}})
	}
	return list
}

// surfaceInputs makes inputs of three floats of each second point.
func surfaceInputs() (list []Input) {
	for _, n := range []int{7600, 6400, 6200, 5600} {
		list = append(list, Input{fmt.Sprintf("3x2x%d", n), func(uint64) (*datatype.Type, error) {
			point, err := datatype.Contiguous(3, datatype.Float32)
			if err != nil {
				return nil, err
			}
			return datatype.Vector(n, 1, 2, point)
		}})
	}
	return list
}
