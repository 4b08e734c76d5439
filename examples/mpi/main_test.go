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
	//      412.151 µs  50 steps of 16 ranks, heat 1000.000
	//       61.186 µs  of rank 0 in the exchange of ends
	//      150.965 µs  in the sums
	// matching: offload
	//      409.430 µs  50 steps of 16 ranks, heat 1000.000
	//       55.820 µs  of rank 0 in the exchange of ends
	//      153.610 µs  in the sums
}

// docs/mpi.md shows what the program prints.
func TestDocumentShowsTheOutput(t *testing.T) {
	exampletest.Documented(t, "mpi.md", run, mpi.Forms())
}
