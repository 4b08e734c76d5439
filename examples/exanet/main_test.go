package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/spinsim/spinsim/examples/internal/exampletest"
)

func Example_run() {
	for _, faults := range []string{"{}", "{loss: 0.3}"} {
		if err := run(context.Background(), os.Stdout, faults); err != nil {
			fmt.Println(err)
		}
	}
	// Output: faults: {}
	//        3.036 µs  receiver  "ExaNeSt" from node 0
	//        3.742 µs  receiver  "sends" from node 0
	//        4.449 µs  receiver  "words" from node 0
	//        5.156 µs  receiver  "." from node 0
	//        6.070 µs  sender    exanet: message of 5 bytes to 2:0:3: the mailbox belongs to another protection domain
	//   4 messages came, 0 were sent again; the stranger has refused 1 and has 0
	// faults: {loss: 0.3}
	//        3.036 µs  receiver  "ExaNeSt" from node 0
	//        3.742 µs  receiver  "sends" from node 0
	//      304.456 µs  receiver  "words" from node 0
	//      405.116 µs  receiver  "." from node 0
	//      506.056 µs  sender    exanet: message of 5 bytes to 2:0:3: the mailbox belongs to another protection domain
	//   4 messages came, 5 were sent again; the stranger has refused 1 and has 0
}

// docs/exanest.md shows the first half of what the program prints.
func TestDocumentShowsTheOutput(t *testing.T) {
	exampletest.Documented(t, "exanest.md", run, []string{"{}"})
}
