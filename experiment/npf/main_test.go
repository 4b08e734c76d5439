package npf

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/memory"
)

// TestMain collects garbage as late as the command does: with Go's floor of 4
// MiB a quarter of the time goes there.
func TestMain(m *testing.M) {
	memory.CollectLate()
	os.Exit(m.Run())
}
