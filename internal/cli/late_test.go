package cli

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// A command that goes on after its limit of real time is ended, later if it has
// results to show. A command that has finished is not.
func TestLateCommandsEnd(t *testing.T) {
	for _, tc := range []struct {
		shows, finishes bool
		after           time.Duration
	}{{false, false, time.Second + overtime}, {true, false, time.Second + 2*overtime}, {false, true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			began, codes := time.Now(), make(chan int, 1)
			e := &ending{over: make(chan struct{}), showing: make(chan struct{}), exit: func(code int) { codes <- code }}
			c := &cobra.Command{Use: "x"}
			(&LimitFlags{}).Register(c, "the run", false)
			require.NoError(t, c.Flags().Set("time-limit", "1s"))
			c.SetContext(context.WithValue(t.Context(), endingKey{}, e))
			var errs bytes.Buffer
			c.SetErr(&errs)
			endLate(c)
			if tc.shows {
				e.shows()
			}
			if tc.finishes {
				e.finish()
				time.Sleep(time.Hour) // of the bubble
				require.Empty(t, codes)
				return
			}
			require.Equal(t, ExitFailed, <-codes)
			require.Equal(t, tc.after, time.Since(began))
			require.Equal(t, "x: incomplete: stopped by the limit of 1s of real time\n", errs.String())
		})
	}
}
