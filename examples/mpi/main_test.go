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
	//      408.810 µs  50 steps of 16 ranks, heat 1000.000
	//       57.080 µs  of rank 0 in the exchange of ends
	//      151.731 µs  in the sums
	// matching: offload
	//      406.370 µs  50 steps of 16 ranks, heat 1000.000
	//       54.333 µs  of rank 0 in the exchange of ends
	//      152.037 µs  in the sums
}

// docs/mpi.md shows what the program prints.
func TestDocumentShowsTheOutput(t *testing.T) {
	exampletest.Documented(t, "mpi.md", run, mpi.Forms())
}
