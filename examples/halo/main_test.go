package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/spinsim/spinsim/examples/internal/exampletest"
	"github.com/spinsim/spinsim/mpi"
)

func Example_run() {
	for _, matching := range mpi.Forms() {
		if err := run(context.Background(), os.Stdout, matching); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// matching: host
	//     72.141 µs  of rank 1 in the exchange of borders, of 5 steps
	//         30     borders packed by cores, 30 unpacked by cores, 0 by NICs
	//   8a3251a7     matrix of rank 1
	// matching: offload
	//     47.955 µs  of rank 1 in the exchange of borders, of 5 steps
	//         30     borders packed by cores, 6 unpacked by cores, 24 by NICs
	//   8a3251a7     matrix of rank 1
}

// docs/datatypes.md shows what the program prints.
func TestDocumentShowsTheOutput(t *testing.T) {
	exampletest.Documented(t, "datatypes.md", run, mpi.Forms())
}
