package spin17

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/ledger"
)

// The numbers beside those of experiments are rows of the ledger. Field
// Published is for experiments of users.
func TestPublishedNumbersAreInTheLedger(t *testing.T) {
	for _, e := range Publication.Experiments {
		require.Empty(t, e.Published, e.Name)
		for _, r := range e.Ledger {
			_, ok := ledger.Find(r.ID)
			require.True(t, ok, r.ID)
		}
	}
}
