package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// one runs a program as the only process of a node and returns what Run returns.
func one(t *testing.T, f func(p *runtime.Proc) error) error {
	profile, err := runtime.LoadProfile("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: profile, Nodes: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.NoError(t, c.Spawn(0, "program", f))
	return c.Run(context.Background())
}

// A poll that finds nothing gives up at its deadline, after one last look.
func TestPollsTimeOut(t *testing.T) {
	require.NoError(t, one(t, func(p *runtime.Proc) error {
		ni := p.NI()
		look := p.Cluster().Profile().Host.Poll
		eq, err := ni.EQAlloc(4)
		require.NoError(t, err)
		ct, err := ni.CTAlloc()
		require.NoError(t, err)

		_, _, err = ni.EQPoll([]portals.Handle{eq}, 3*sim.Microsecond)
		require.ErrorIs(t, err, portals.ErrEQEmpty)
		require.Equal(t, 3*sim.Microsecond+look, p.Now())

		_, _, err = ni.CTPoll([]portals.Handle{ct}, []uint64{1}, 0)
		require.ErrorIs(t, err, portals.ErrCTNoneReached)
		require.Equal(t, 3*sim.Microsecond+2*look, p.Now())

		require.NoError(t, ni.CTInc(ct, portals.CTEvent{Success: 2}))
		v, which, err := ni.CTPoll([]portals.Handle{ct}, []uint64{2}, runtime.Forever)
		require.NoError(t, err)
		require.Zero(t, which)
		require.Equal(t, uint64(2), v.Success)
		return nil
	}))
}

// An event on any of the queues ends a poll that waits for ever: here the event of the own put, which turns round at the NIC.
func TestPollWakesForAnyQueue(t *testing.T) {
	require.NoError(t, one(t, func(p *runtime.Proc) error {
		ni := p.NI()
		var eqs []portals.Handle
		for range 3 {
			eq, err := ni.EQAlloc(4)
			require.NoError(t, err)
			eqs = append(eqs, eq)
		}
		pt, err := ni.PTAlloc(0, eqs[2], portals.PTAny)
		require.NoError(t, err)
		addr, data := p.Alloc(16)
		copy(data, "to myself")
		_, err = ni.MEAppend(pt, &portals.ME{
			Start: addr + 8, Length: 8, UID: portals.UIDAny, MatchID: portals.AnyID,
			Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 7)
		require.NoError(t, err)
		md, err := ni.MDBind(&portals.MD{Start: addr, Length: 8, EQ: eqs[0], Options: portals.OptMDEventSendDisable})
		require.NoError(t, err)
		require.NoError(t, ni.Put(md, 0, 8, portals.NoAck, portals.PhysID(0, 0), pt, 0, 0, 0, 0))
		ev, which, err := ni.EQPoll(eqs, runtime.Forever)
		require.NoError(t, err)
		require.Equal(t, 2, which)
		require.Equal(t, portals.EventPut, ev.Type)
		require.Equal(t, uint64(7), ev.UserPtr)
		require.Equal(t, "to myselto mysel", string(data))
		return nil
	}))
}

// A run that ends with somebody waiting says who, since when and for what.
func TestStuckRunNamesTheCounter(t *testing.T) {
	err := one(t, func(p *runtime.Proc) error {
		ct, err := p.NI().CTAlloc()
		require.NoError(t, err)
		require.NoError(t, p.NI().CTInc(ct, portals.CTEvent{Success: 3}))
		p.Sleep(2 * sim.Microsecond)
		_, err = p.NI().CTWait(ct, 5)
		return err
	})
	var stuck *sim.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Len(t, stuck.Waiting, 2)
	require.ErrorContains(t, err, "rank 0 program waits since 2 µs for a count on counter")
	require.ErrorContains(t, err, "for 5 successes; it has 3, and 0 failures")
}
