package sim

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if any test leaves a coroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
