package inswitch

import (
	"os"
	"testing"

	"github.com/spinsim/spinsim/internal/memory/memorytest"
)

func TestMain(m *testing.M) { os.Exit(memorytest.Run(m)) }
