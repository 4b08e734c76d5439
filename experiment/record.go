package experiment

import (
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
)

// Record is what produced a result: the version of the program, profiles with
// their overrides, the seed, and the hash of each handler module. Sweep.Record
// returns it, a report.Table takes it as its origin.
type Record = provenance.Record

// Input is a file in a Record that an experiment was made from.
type Input = provenance.Input

// Build is a build of a program: version, commit, version of Go.
type Build = provenance.Build

// ReadBuild returns the build of the running program, as the Go tool wrote it
// into the program. It names the commit if go build ran in a git checkout.
func ReadBuild() Build { return provenance.ReadBuild() }

// Kept are the results in a folder. A sweep takes what is there, and adds what
// it measures: see Sweep.Checkpoint. Close it after the sweep.
type Kept = checkpoint.Folder

// OpenKept reads the results in a folder, and makes the folder if there is
// none. A line that was changed since it was written is an error with its place.
func OpenKept(folder string) (*Kept, error) { return checkpoint.Open(folder, checkpoint.Part{}) }
