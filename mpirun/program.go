// Package mpirun runs MPI programs as they are, compiled against Debian's Open
// MPI, on simulated nodes. A provider of libfabric hands the operations of each
// rank to the simulator; package mpi carries the messages over the NICs of a
// cluster, in virtual time. Computing takes no time.
//
// One process runs at a time: a rank goes on until it waits, looks at the clock
// or sleeps; then the simulator goes on until something has happened for a rank.
// So the order of all steps, and all times, are the same in each run.
package mpirun

import (
	"fmt"
	"io"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Program is a program to run.
type Program struct {
	Config  runtime.Config // the device, and what watches it; the ranks decide on the nodes
	MPI     mpi.Options    // with the number of ranks
	Command []string       // the program and its arguments
	// Absent: pages of the program's buffers that it has not touched are absent for
	// devices, too. Otherwise all are present, as if they were pinned.
	Absent bool
	// Compute is what the program's own computing costs.
	Compute  Compute
	Out, Err io.Writer
}

// Compute is what a program's own computing costs; the zero value: no time.
type Compute struct {
	// Factor is the virtual time for the time that the main thread runs on a
	// processor of this computer; 0: none. Results differ from run to run.
	Factor float64
	// Instruction is the time of an instruction of the main thread, outside the
	// kernel; 0: none. The machine needs a counter of them. Counts, and so results,
	// are almost the same in each run.
	Instruction sim.Time
	// Regions are the times of the levels of MPI_Pcontrol: each call takes the one of
	// its level. nil: calls take none.
	Regions map[int]sim.Time
}

// Result is what a run measured.
type Result struct {
	Took  sim.Time // from the end of MPI_Init to the last beginning of MPI_Finalize
	Stats mpi.Stats
	Nodes runtime.Stats
	// pages of buffers when they were posted, and how many of them were absent
	Pages, Absent int64
	// calls of collectives of all ranks in the NICs, and those that these did not take
	Reduced, Refused int64
	Onesided         int64 // puts, gets and atomic operations of all ranks
	Faults           int64 // pages that came while devices or MPI waited for them
}

// MissingError names Debian's packages that a machine lacks.
type MissingError struct {
	What, Packages string
}

// Error names the packages.
func (e *MissingError) Error() string {
	return fmt.Sprintf("no %s: MPI programs need Debian's packages %s", e.What, e.Packages)
}
