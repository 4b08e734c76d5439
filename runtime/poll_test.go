package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// one runs a program as the only process of a node and returns what Run returns.
func one(t *testing.T, f func(p *runtime.Proc) error) error {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: 1})
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
		eq, err := ni.Objects().EQAlloc(4)
		require.NoError(t, err)
		ct, err := ni.Objects().CTAlloc()
		require.NoError(t, err)

		_, _, err = ni.EQPoll([]portals.Handle{eq}, 3*sim.Microsecond)
		require.ErrorIs(t, err, portals.ErrEQEmpty)
		require.Equal(t, 3*sim.Microsecond+look, p.Now())

		_, _, err = ni.CTPoll([]portals.Handle{ct}, []uint64{1}, 0)
		require.ErrorIs(t, err, portals.ErrCTNoneReached)
		require.Equal(t, 3*sim.Microsecond+2*look, p.Now())

		require.NoError(t, ni.Objects().CTInc(ct, portals.CTEvent{Success: 2}))
		v, which, err := ni.CTPoll([]portals.Handle{ct}, []uint64{2}, runtime.Forever)
		require.NoError(t, err)
		require.Zero(t, which)
		require.Equal(t, uint64(2), v.Success)
		return nil
	}))
}

// An event on any of the queues ends a poll that waits for ever: here the event
// of the own put, which turns round at the NIC.
func TestPollWakesForAnyQueue(t *testing.T) {
	require.NoError(t, one(t, func(p *runtime.Proc) error {
		ni := p.NI()
		var eqs []portals.Handle
		for range 3 {
			eq, err := ni.Objects().EQAlloc(4)
			require.NoError(t, err)
			eqs = append(eqs, eq)
		}
		pt, err := ni.Objects().PTAlloc(0, eqs[2], portals.PTAny)
		require.NoError(t, err)
		data := p.Alloc(16)
		copy(data.Raw(), "to myself")
		_, err = ni.MEAppend(pt, &portals.ME{
			Start: data.Addr() + 8, Length: 8, UID: portals.UIDAny, MatchID: portals.AnyID,
			Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 7)
		require.NoError(t, err)
		md, err := ni.Objects().MDBind(&portals.MD{Start: data.Addr(), Length: 8, EQ: eqs[0], Options: portals.OptMDEventSendDisable})
		require.NoError(t, err)
		require.NoError(t, ni.Put(portals.Put{MD: md, Length: 8, Target: portals.PhysID(0, 0), PT: pt}))
		ev, which, err := ni.EQPoll(eqs, runtime.Forever)
		require.NoError(t, err)
		require.Equal(t, 2, which)
		require.Equal(t, portals.EventPut, ev.Type)
		require.Equal(t, uint64(7), ev.UserPtr)
		require.Equal(t, "to myselto mysel", string(data.Read()))
		return nil
	}))
}

// A run that ends with somebody waiting says who, since when and for what.
func TestStuckRunNamesTheCounter(t *testing.T) {
	err := one(t, func(p *runtime.Proc) error {
		ct, err := p.NI().Objects().CTAlloc()
		require.NoError(t, err)
		require.NoError(t, p.NI().Objects().CTInc(ct, portals.CTEvent{Success: 3}))
		p.Sleep(2 * sim.Microsecond)
		_, err = p.NI().CTWait(ct, 5)
		return err
	})
	var stuck *sim.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Equal(t, []sim.Waiting{{Who: "rank 0 program", Since: 2 * sim.Microsecond, What: "counter 0 of rank 0 (threshold 5, at 3)"}}, stuck.Waiting)
	require.ErrorContains(t, err, "rank 0 program waits since 2 µs for counter 0 of rank 0 (threshold 5, at 3)")
}

// The report names what is waited for as its owner knows it: by the order of
// allocation and by label, with process and interface where there are several;
// and it gives the count at the end of the run, not at the beginning of the
// wait.
func TestStuckRunNamesWhatIsWaitedFor(t *testing.T) {
	var late *runtime.NI
	var ct portals.Handle
	must := func(h portals.Handle, err error) portals.Handle {
		require.NoError(t, err)
		return h
	}
	_, err := program(t, 2, map[int][]func(p *runtime.Proc) error{
		0: {
			func(p *runtime.Proc) error {
				ni := p.NI()
				must(ni.Objects().CTAlloc())
				require.NoError(t, ni.Objects().CTFree(must(ni.Objects().CTAlloc())))
				ct, late = must(ni.Objects().CTAlloc()), ni
				ni.Objects().Label(ct, "halo")
				_, err := ni.CTWait(ct, 5)
				return err
			},
			func(p *runtime.Proc) error {
				ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, nil)
				require.NoError(t, err)
				var cts []portals.Handle
				for range 6 {
					cts = append(cts, must(ni.Objects().CTAlloc()))
				}
				ni.Objects().Label(cts[0], "in")
				_, _, err = ni.CTPoll(cts, []uint64{1, 2, 3, 4, 5, 6}, runtime.Forever)
				return err
			},
		},
		1: {
			func(p *runtime.Proc) error {
				eq := must(p.NI().Objects().EQAlloc(1))
				p.NI().Objects().Label(eq, "completions")
				_, err := p.NI().EQWait(eq)
				return err
			},
			func(p *runtime.Proc) error {
				p.Sleep(sim.Microsecond)
				require.NoError(t, late.Objects().CTInc(ct, portals.CTEvent{Success: 3}))
				_, _, err := p.NI().EQPoll([]portals.Handle{must(p.NI().Objects().EQAlloc(1)), must(p.NI().Objects().EQAlloc(1))}, runtime.Forever)
				return err
			},
		},
	})
	var stuck *sim.StuckError
	require.ErrorAs(t, err, &stuck)
	var what []string
	for _, w := range stuck.Waiting {
		what = append(what, w.What)
	}
	require.Equal(t, []string{
		`counter 2 "halo" of rank 0 program (threshold 5, at 3)`,
		`counter 0 "in" (threshold 1, at 0) or counter 1 (threshold 2, at 0) or counter 2 (threshold 3, at 0) or ` +
			`counter 3 (threshold 4, at 0) or 2 more of NO_MATCHING|PHYSICAL interface of rank 0 program`,
		`an event on event queue 0 "completions" of rank 1 program`,
		`an event on event queue 0 or event queue 1 of rank 1 program`,
	}, what)
}

// Whoever waits for a queue or counter that is freed meanwhile is told that the
// handle names nothing; Abort is something else, and so is the end of the
// interface.
func TestWaitingForWhatGoesAway(t *testing.T) {
	type wait func(ni *runtime.NI, eq, ct portals.Handle) error
	waits := []wait{
		func(ni *runtime.NI, eq, _ portals.Handle) error { _, err := ni.EQWait(eq); return err },
		func(ni *runtime.NI, _, ct portals.Handle) error { _, err := ni.CTWait(ct, 1); return err },
		func(ni *runtime.NI, eq, _ portals.Handle) error {
			_, _, err := ni.EQPoll([]portals.Handle{eq}, runtime.Forever)
			return err
		},
		func(ni *runtime.NI, _, ct portals.Handle) error {
			_, _, err := ni.CTPoll([]portals.Handle{ct}, []uint64{1}, 9*sim.Microsecond)
			return err
		},
	}
	for _, w := range waits {
		for _, c := range []struct {
			want  error
			cause func(ni *runtime.NI, eq, ct portals.Handle) error
		}{
			{portals.ErrArgInvalid, func(ni *runtime.NI, eq, ct portals.Handle) error {
				require.NoError(t, ni.Objects().EQFree(eq))
				return ni.Objects().CTFree(ct)
			}},
			{portals.ErrAborted, func(ni *runtime.NI, _, _ portals.Handle) error { ni.Proc().Abort(); return nil }},
			{portals.ErrNoInit, func(ni *runtime.NI, _, _ portals.Handle) error { return ni.Objects().NIFini() }},
		} {
			var ni *runtime.NI
			var eq, ct portals.Handle
			_, err := program(t, 1, map[int][]func(p *runtime.Proc) error{0: {
				func(p *runtime.Proc) (err error) {
					ni = p.NI()
					eq, err = ni.Objects().EQAlloc(1)
					require.NoError(t, err)
					ct, err = ni.Objects().CTAlloc()
					require.NoError(t, err)
					require.ErrorIs(t, w(ni, eq, ct), c.want)
					require.Equal(t, 2*sim.Microsecond+p.Cluster().Profile().Host.Poll, p.Now())
					return nil
				},
				func(p *runtime.Proc) error {
					p.Sleep(2 * sim.Microsecond)
					return c.cause(ni, eq, ct)
				},
			}})
			require.NoError(t, err)
		}
	}
}
