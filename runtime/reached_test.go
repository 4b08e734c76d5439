package runtime_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Where a limit ends a run between the moment at which a counter reaches what a
// program waits for and the moment at which the program sees it, the list of
// who waits says so: "threshold 2, at 2" would look like a wake-up that got
// lost.
func TestReachedButNotSeen(t *testing.T) {
	device, err := profile.Load("spin-dis", "fabric.kind=crossbar", "fabric.radix=0")
	require.NoError(t, err)
	reached := 0
	for events := uint64(1); ; events++ {
		c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 2, Engine: labEngine, Limits: sim.Limits{Events: events}})
		require.NoError(t, err)
		require.NoError(t, c.Spawn(0, "putter", func(p *runtime.Proc) error {
			data := p.Alloc(8)
			ct, err := p.NI().Objects().CTAlloc()
			if err != nil {
				return err
			}
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 8, CT: ct, Options: portals.OptMDEventCTAck})
			if err != nil {
				return err
			}
			for n := range uint64(3) {
				if err := p.NI().Put(portals.Put{MD: md, Length: 8, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: 5, UserPtr: 9}); err != nil {
					return err
				}
				if _, err := p.NI().CTWait(ct, n+1); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
			if _, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0); err != nil {
				return err
			}
			inbox := p.Alloc(8)
			_, err := p.NI().MEAppend(0, &portals.ME{Start: inbox.Addr(), Length: 8, MatchBits: 5, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut}, portals.PriorityList, 0)
			return err
		}))
		err = c.Run(context.Background())
		require.NoError(t, c.Close())
		var limit *sim.LimitError
		if !errors.As(err, &limit) {
			require.NoError(t, err)
			break
		}
		require.NotRegexp(t, `threshold 1, at 1\)|threshold 2, at 2\)|threshold 3, at 3\)`, err.Error())
		for _, w := range limit.Waiting {
			if strings.Contains(w.What, "reached") {
				reached++
			}
		}
	}
	require.Positive(t, reached)
}
