// Package memorytest runs the tests of packages that measure experiments.
package memorytest

import (
	"testing"

	"github.com/spinsim/spinsim/internal/memory"
)

// Run runs the tests of a package and returns the exit status. They collect
// garbage as late as the command does: with Go's floor of 4 MiB a quarter of
// their time goes there.
func Run(m *testing.M) int {
	memory.CollectLate()
	return m.Run()
}
