// Package ddtbench has the datatypes of applications that DDTBench collects
// (Schneider, Gerstenberger, Hoefler, "Micro-applications for communication
// data access patterns and MPI datatypes", EuroMPI 2012). They describe the
// messages of WRF, MILC, NAS LU and MG, LAMMPS, SPECFEM3D and an FFT to
// neighbours, with the dimensions of the suite's program.
//
// The constructors, their arguments and the names come from the suite. Three
// choices are ours. Arrays that the suite allocates one by one lie one behind
// the other, each at a multiple of 64 B. Lists of atoms and points have a seed
// as argument; the suite shuffles them with the time of day as seed. The type
// of FFT2 depends on the number of ranks, which is 16 here.
//
// Some applications send with one type and receive with another. Here their
// type is the one that is not contiguous: the sender's for LAMMPS and
// SPECFEM3D_mt, the receiver's for FFT2.
package ddtbench

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/datatype"
)

// Application is a communication of the suite.
type Application struct {
	Name   string  // as in the suite's output
	Does   string  // what the messages carry, as part of a line
	Inputs []Input // in the order of the suite, the largest first
}

// Input is a size for which the suite measures an application.
type Input struct {
	Dimensions string // in the suite's program
	make       func(seed uint64) (*datatype.Type, error)
}

// Type makes the type. seed shuffles its lists, if it has some.
func (i *Input) Type(seed uint64) (*datatype.Type, error) { return i.make(seed) }

// MostInputs is the largest number of inputs of an application.
const MostInputs = 7

// All lists the applications, in the order of the suite's program.
func All() []Application {
	return []Application{
		{"WRF_y_vec", "four 2D, three 3D and two 4D arrays of floats, halo in y, as struct of vectors", wrfInputs(wrfY(), wrfVector)},
		{"WRF_y_sa", "the same as struct of subarrays", wrfInputs(wrfY(), wrfSubarray)},
		{"WRF_x_vec", "four 2D, three 3D and two 4D arrays of floats, halo in x, as struct of vectors", wrfInputs(wrfX(), wrfVector)},
		{"WRF_x_sa", "the same as struct of subarrays", wrfInputs(wrfX(), wrfSubarray)},
		{"MILC_su3_zdown", "su3 vectors of 6 floats, halo in -z of a 4D lattice, as vector of a vector", milcInputs()},
		{"NAS_LU_x", "5 doubles of each point of a row, contiguous", luInputs(luX)},
		{"NAS_LU_y", "5 doubles of each point of a column, as vector", luInputs(luY)},
		{"NAS_MG_x", "face of a 3D array of doubles, x fixed, as vector of a vector", mgInputs(mgX)},
		{"NAS_MG_y", "face of a 3D array of doubles, y fixed, as vector", mgInputs(mgY)},
		{"NAS_MG_z", "face of a 3D array of doubles, z fixed, as vector", mgInputs(mgZ)},
		{"LAMMPS_full", "six properties of atoms of a list, as struct of indexed blocks", lammpsInputs(5, [][2]int{{3534, 3062}, {2597, 2243}, {1907, 1662}})},
		{"LAMMPS_atomic", "four properties of atoms of a list, as struct of indexed blocks", lammpsInputs(3, [][2]int{{4084, 243}, {2157, 145}, {1217, 114}})},
		{"SPECFEM3D_oc", "a float of each point of a list, as indexed blocks", oceanInputs()},
		{"SPECFEM3D_cm", "three floats of each point of two lists, as struct of indexed blocks", mantleInputs()},
		{"SPECFEM3D_mt", "three floats of each second point, as vector", surfaceInputs()},
		{"FFT2", "columns of a matrix of complex numbers, as resized vector", fftInputs()},
	}
}

// Names lists the names of the applications.
func Names() (list []string) {
	for _, a := range All() {
		list = append(list, a.Name)
	}
	return list
}

// Find returns the application of that name.
func Find(name string) (*Application, error) {
	for _, a := range All() {
		if a.Name == name {
			return &a, nil
		}
	}
	return nil, fmt.Errorf("ddtbench: no application %q, expected one of %s", name, strings.Join(Names(), ", "))
}

const (
	floatBytes  = 4
	doubleBytes = 8
)

// arrays places arrays one behind the other.
type arrays struct{ end int64 }

// place returns the offset of the next array, which has this many bytes.
func (a *arrays) place(bytes int64) int64 {
	at := a.end
	a.end += (bytes + 63) &^ 63
	return at
}
