package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/spinsim/spinsim/examples/internal/exampletest"
)

func Example_run() {
	for _, faults := range []string{"{}", "{loss: 0.001, corrupt: 0.001}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// faults: {}
	//     594.962 µs  target  "ExaNeSt " is there: 4096 cells, 0 damaged
	//     598.201 µs  writer  all is acknowledged: 64 blocks, 0 sent again
	// faults: {loss: 0.001, corrupt: 0.001}
	//    2253.622 µs  target  "ExaNeSt " is there: 4096 cells, 9 damaged
	//    2259.798 µs  writer  all is acknowledged: 64 blocks, 12 sent again
}

// docs/rdma.md shows what the program prints.
func TestDocumentShowsTheOutput(t *testing.T) {
	exampletest.Documented(t, "rdma.md", run, []string{"{}", "{loss: 0.001, corrupt: 0.001}"})
}
