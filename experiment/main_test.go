package experiment

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
	"github.com/spinsim/spinsim/internal/lazy"
)

// TestMain guards the memory of some simulated processes. It finds a program
// that accesses this memory without a touch. The others share equal bytes.
func TestMain(m *testing.M) {
	lazy.Many = 1
	os.Exit(guardtest.Run(m, guardtest.Few))
}
