package experiment

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
)

// TestMain guards the memory of some simulated processes. It finds a program
// that accesses this memory without a touch. The others share equal bytes.
func TestMain(m *testing.M) {
	os.Exit(guardtest.Run(m, guardtest.Few))
}
