package cpphandler

import (
	"testing"

	"github.com/spinsim/spinsim/examples/internal/exampletest"
)

// The handler in C++ does what the one in Go does.
func TestSameAsGo(t *testing.T) { exampletest.SameAsGo(t, Module) }
