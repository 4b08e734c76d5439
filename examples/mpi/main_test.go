package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

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
	var output bytes.Buffer
	for _, matching := range mpi.Forms() {
		require.NoError(t, run(t.Context(), &output, matching))
	}
	document, err := os.ReadFile("../../docs/mpi.md")
	require.NoError(t, err)
	require.Contains(t, string(document), output.String())
}
