// Package guardtest guards the memory of simulated processes in the tests of a package.
package guardtest

import (
	"flag"
	"testing"

	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/memory"
)

// Run runs the tests of a package with guarded memory (see package guard) and
// returns the exit status. Benchmarks use ordinary memory, as users do.
func Run(m *testing.M) int {
	memory.CollectLate() // like programs that run experiments
	flag.Parse()
	if f := flag.Lookup("test.bench"); f == nil || f.Value.String() == "" {
		guard.Enable()
	}
	return m.Run()
}
