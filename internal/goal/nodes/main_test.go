package nodes_test

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
)

// TestMain guards the memory of simulated processes, which finds a program that
// accesses it without a touch.
func TestMain(m *testing.M) { os.Exit(guardtest.Run(m)) }
