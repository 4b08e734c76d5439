package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory"
)

// A process that may reserve too little ends with an error, before Go ends it.
func TestCramped(t *testing.T) {
	err := cramped([]memory.Bound{{Name: "ulimit -d", Limit: 8 << 30, Taken: 1 << 20}, {Name: "ulimit -v", Limit: 9 << 27, Taken: 1 << 30}})
	require.EqualError(t, err, "ulimit -v allows 1.12 GiB, and the program has reserved 1 GiB as it began: expected at least 1.25 GiB")
	require.NoError(t, cramped([]memory.Bound{{Name: "ulimit -v", Limit: 5 << 28, Taken: 1 << 30}}))
}
