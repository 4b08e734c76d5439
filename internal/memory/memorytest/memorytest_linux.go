// Package memorytest tells tests how much memory their process has of the
// machine. Only Linux says it.
package memorytest

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Resident is the memory that this process has of the machine, bytes, after it
// has given back what it can.
func Resident(t *testing.T) int64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
