package runtime_test

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
)

// TestMain guards the memory of simulated processes: a program that reaches
// into it without a touch is found.
func TestMain(m *testing.M) { os.Exit(guardtest.Run(m, 1)) }
