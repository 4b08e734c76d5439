package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A command that goes on after its limit of real time is ended, later if it has
// results to show.
func TestLateCommandsEnd(t *testing.T) {
	for overtimes, shows := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began, ended, showing := time.Now(), make(chan struct{}), make(chan struct{})
			onLate(time.Second+overtime, showing, func() { close(ended) })
			if shows {
				close(showing)
			}
			<-ended
			require.Equal(t, time.Second+time.Duration(1+overtimes)*overtime, time.Since(began))
		})
	}
}
