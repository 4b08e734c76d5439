package runtime_test

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/hpu"
)

// TestLongUserHeader puts with a user header as long as the memory: it is
// refused before its bytes are copied, even with the budget of the profiles,
// with which a loop of such puts would copy for minutes.
func TestLongUserHeader(t *testing.T) {
	allocated := func(length uint64) uint64 {
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		k := commit(t, scripted(nil, []rec{
			also(opStore, operations+104, length<<32), do(hpu.OpPutFromDevice, operations), end(hpu.Success),
		}, nil))
		goruntime.ReadMemStats(&after)
		errs, _ := k.c.HandlerErrors()
		require.Empty(t, errs)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(8) // what is allocated once
	short := allocated(8)
	require.Less(t, allocated(actionsMemory/2), short+actionsMemory/4)
}
