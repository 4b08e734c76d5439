package ddtbench

import (
	"fmt"

	"github.com/spinsim/spinsim/datatype"
)

// wrf is a halo of WRF: the range of each dimension in memory and in the halo.
// i is the fastest dimension, k the height.
type wrf struct {
	processes              string // of the run with these ranges, em_b_wave
	ims, ime, jms, jme     int
	is, ie, js, je         int
	kms, kme               int
	flat, solid, scalar    int // 2D, 3D and 4D arrays
	scalars, firstOfScalar int // species of a 4D array, and the first to send
}

func newWRF(processes string, i, j, halfI, halfJ [2]int) wrf {
	return wrf{
		processes, i[0], i[1], j[0], j[1], halfI[0], halfI[1], halfJ[0], halfJ[1],
		1, 65, 4, 3, 2, 2, 2,
	}
}

// wrfY lists halos in the direction of y.
func wrfY() []wrf {
	return []wrf{
		newWRF("2x2", [2]int{-4, 27}, [2]int{34, 85}, [2]int{1, 23}, [2]int{41, 43}),
		newWRF("3x3", [2]int{8, 34}, [2]int{21, 61}, [2]int{12, 30}, [2]int{28, 30}),
		newWRF("4x4", [2]int{4, 27}, [2]int{14, 47}, [2]int{8, 23}, [2]int{21, 23}),
		newWRF("5x5", [2]int{10, 31}, [2]int{10, 39}, [2]int{14, 27}, [2]int{17, 19}),
		newWRF("8x8", [2]int{4, 22}, [2]int{4, 27}, [2]int{8, 18}, [2]int{11, 13}),
	}
}

// wrfX lists halos in the direction of x.
func wrfX() []wrf {
	return []wrf{
		newWRF("2x2", [2]int{-4, 27}, [2]int{34, 85}, [2]int{18, 20}, [2]int{38, 81}),
		newWRF("4x4", [2]int{4, 27}, [2]int{14, 47}, [2]int{18, 20}, [2]int{18, 43}),
		newWRF("8x8", [2]int{4, 22}, [2]int{4, 27}, [2]int{13, 15}, [2]int{8, 23}),
	}
}

func wrfInputs(all []wrf, parts func(*wrf) ([]*datatype.Type, error)) (list []Input) {
	for _, w := range all {
		list = append(list, Input{
			fmt.Sprintf("em_b_wave on %s: i %d:%d of %d:%d, k %d:%d, j %d:%d of %d:%d", w.processes, w.is, w.ie, w.ims, w.ime, w.kms, w.kme, w.js, w.je, w.jms, w.jme),
			func(uint64) (*datatype.Type, error) { return w.build(parts) },
		})
	}
	return list
}

// sizes returns the sizes of the arrays and of the halo in i, k and j, in
// elements.
func (w *wrf) sizes() (whole, part [3]int) {
	return [3]int{w.ime - w.ims + 1, w.kme - w.kms + 1, w.jme - w.jms + 1}, [3]int{w.ie - w.is + 1, w.kme - w.kms + 1, w.je - w.js + 1}
}

// build makes a struct from the parts of all arrays.
func (w *wrf) build(parts func(*wrf) ([]*datatype.Type, error)) (*datatype.Type, error) {
	types, err := parts(w)
	if err != nil {
		return nil, err
	}
	whole, _ := w.sizes()
	bytes := []int{whole[0] * whole[2], whole[0] * whole[1] * whole[2], whole[0] * whole[1] * whole[2] * w.scalars}
	var memory arrays
	var lengths []int
	var places []int64
	var of []*datatype.Type
	for kind, n := range []int{w.flat, w.solid, w.scalar} {
		for range n {
			lengths, places, of = append(lengths, 1), append(places, memory.place(floatBytes*int64(bytes[kind]))), append(of, types[kind])
		}
	}
	return datatype.Struct(lengths, places, of)
}

// wrfSubarray returns the parts of 2D, 3D and 4D arrays as subarrays.
func wrfSubarray(w *wrf) ([]*datatype.Type, error) {
	whole, part := w.sizes()
	sizes := []int{w.scalars, whole[2], whole[1], whole[0]}
	sub := []int{w.scalars - w.firstOfScalar + 1, part[2], part[1], part[0]}
	starts := []int{w.firstOfScalar - 1, w.js - w.jms, 0, w.is - w.ims}
	flat, err := datatype.Subarray([]int{sizes[1], sizes[3]}, []int{sub[1], sub[3]}, []int{starts[1], starts[3]}, datatype.OrderC, datatype.Float32)
	if err != nil {
		return nil, err
	}
	solid, err := datatype.Subarray(sizes[1:], sub[1:], starts[1:], datatype.OrderC, datatype.Float32)
	if err != nil {
		return nil, err
	}
	scalar, err := datatype.Subarray(sizes, sub, starts, datatype.OrderC, datatype.Float32)
	return []*datatype.Type{flat, solid, scalar}, err
}

// wrfVector returns the same parts as vectors of vectors, each at the place of
// its first element.
func wrfVector(w *wrf) ([]*datatype.Type, error) {
	whole, part := w.sizes()
	row := int64(whole[0]) * floatBytes
	plane := row * int64(whole[1])
	flat, err := datatype.Vector(part[2], part[0], whole[0], datatype.Float32)
	if err != nil {
		return nil, err
	}
	rows, err := datatype.Vector(part[1], part[0], whole[0], datatype.Float32)
	if err != nil {
		return nil, err
	}
	solid, err := datatype.Hvector(part[2], 1, plane, rows)
	if err != nil {
		return nil, err
	}
	scalar, err := datatype.Hvector(w.scalars-w.firstOfScalar+1, 1, plane*int64(whole[2]), solid)
	if err != nil {
		return nil, err
	}
	i, j, m := int64(w.is-w.ims)*floatBytes, int64(w.js-w.jms), int64(w.firstOfScalar-1)
	all := []*datatype.Type{flat, solid, scalar}
	for kind, at := range []int64{i + j*row, i + j*plane, i + j*plane + m*plane*int64(whole[2])} {
		if all[kind], err = datatype.Hindexed([]int{1}, []int64{at}, all[kind]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func milcInputs() (list []Input) {
	for _, d := range [][4]int{{16, 16, 16, 16}, {8, 16, 16, 16}, {8, 8, 8, 16}, {8, 8, 8, 8}} {
		list = append(list, Input{fmt.Sprintf("lattice %dx%dx%dx%d", d[0], d[1], d[2], d[3]), func(uint64) (*datatype.Type, error) {
			su3, err := datatype.Contiguous(6, datatype.Float32)
			if err != nil {
				return nil, err
			}
			half, err := datatype.Vector(d[3], d[0]*d[1]/2, d[0]*d[1]*d[2]/2, su3) // even or odd points
			if err != nil {
				return nil, err
			}
			return datatype.Hvector(2, 1, su3.Size()*int64(d[0]*d[1]*d[2]*d[3]/2), half)
		}})
	}
	return list
}

func luInputs(build func(n int) (*datatype.Type, error)) (list []Input) {
	for _, n := range []int{1020, 408, 162, 102, 64, 33, 12} {
		list = append(list, Input{fmt.Sprintf("%dx%d points", n, n), func(uint64) (*datatype.Type, error) { return build(n) }})
	}
	return list
}

func luX(n int) (*datatype.Type, error) { return datatype.Contiguous(5*n, datatype.Float64) }

func luY(n int) (*datatype.Type, error) {
	point, err := datatype.Contiguous(5, datatype.Float64)
	if err != nil {
		return nil, err
	}
	return datatype.Vector(n, 1, n+2, point)
}

// mg is the size of an array of NAS MG, with its border.
type mg struct{ x, y, z int }

func mgInputs(build func(d mg) (*datatype.Type, error)) (list []Input) {
	for _, d := range []mg{{514, 258, 258}, {258, 130, 130}, {130, 66, 66}, {34, 18, 18}} {
		list = append(list, Input{fmt.Sprintf("%dx%dx%d", d.x, d.y, d.z), func(uint64) (*datatype.Type, error) { return build(d) }})
	}
	return list
}

func mgX(d mg) (*datatype.Type, error) {
	column, err := datatype.Vector(d.y-2, 1, d.x, datatype.Float64)
	if err != nil {
		return nil, err
	}
	return datatype.Hvector(d.z-2, 1, int64(d.x*d.y)*doubleBytes, column)
}

func mgY(d mg) (*datatype.Type, error) {
	return datatype.Vector(d.z-2, d.x-2, d.x*d.y, datatype.Float64)
}

func mgZ(d mg) (*datatype.Type, error) { return datatype.Vector(d.y-2, d.x-2, d.x, datatype.Float64) }

// fftRanks is the number of ranks that share the matrix.
const fftRanks = 16

func fftInputs() (list []Input) {
	for _, n := range []int{1536, 1024, 768, 512, 256} {
		list = append(list, Input{fmt.Sprintf("%dx%d on %d ranks", n, n, fftRanks), func(uint64) (*datatype.Type, error) {
			number, err := datatype.Contiguous(2, datatype.Float64)
			if err != nil {
				return nil, err
			}
			column, err := datatype.Vector(n/fftRanks, 1, n, number)
			if err != nil {
				return nil, err
			}
			if column, err = datatype.Resized(column, 0, number.Size()); err != nil {
				return nil, err
			}
			return datatype.Contiguous(n/fftRanks, column)
		}})
	}
	return list
}
