// Package guardtest guards the memory of simulated processes in the tests of a package.
package guardtest

import (
	"flag"
	"testing"

	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/memory"
)

// Few guards so few processes that tests take hardly longer. It is a prime, so
// that these are other ranks in each run.
const Few = 5

// Run runs the tests of a package with guarded memory for one in n processes
// (see package guard) and returns the exit status. Benchmarks use ordinary
// memory, as users do.
func Run(m *testing.M, n int) int {
	memory.CollectLate() // like programs that run experiments
	flag.Parse()
	if f := flag.Lookup("test.bench"); f == nil || f.Value.String() == "" {
		guard.Enable(n)
	}
	return m.Run()
}
