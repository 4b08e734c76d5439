package experiment

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
)

// TestMain guards the memory of simulated processes. It finds programs that
// reach into it without a touch.
func TestMain(m *testing.M) { os.Exit(guardtest.Run(m)) }
