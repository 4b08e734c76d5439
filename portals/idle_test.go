package portals

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPTIdle checks the step of PtlPTDisable's wait and the hook that says when
// to look again: at the end of the last message of a disabled entry, when its
// events are there, and not before.
func TestPTIdle(t *testing.T) {
	idle, eventsAtIdle := 0, 0
	var q Handle
	ni, _, err := NewNI(NIConfig{
		Options: OptNIMatching | OptNIPhysical, Device: deviceLimits, Memory: make(flatMemory, 64),
		Hooks: Hooks{PTIdle: func(ni *NI, index uint32) {
			require.Equal(t, uint32(5), index)
			idle, eventsAtIdle = idle+1, ni.EQLen(q)
		}},
	})
	require.NoError(t, err)
	q, err = ni.EQAlloc(8)
	require.NoError(t, err)
	_, err = ni.PTAlloc(0, q, 5)
	require.NoError(t, err)
	_, err = ni.MEAppend(5, &ME{
		Length: 64, UID: UIDAny, MatchID: AnyID, Options: OptMEOpPut | OptMEOpGet | OptMEEventLinkDisable | OptMEManageLocal,
	}, PriorityList, 0)
	require.NoError(t, err)
	request := func(kind OpKind) *Delivery {
		return ni.Port().Receive(&Header{Kind: kind, NI: NIMatchingPhysical, PT: 5, RLength: 8})
	}
	require.NoError(t, ni.PTIdle(5))
	put, get, pending := request(OpPut), request(OpGet), request(OpPut)
	require.Equal(t, 3, ni.PTBusy(5))
	ni.Port().Finish(request(OpPut), Outcome{Delivered: 8})
	require.Zero(t, idle, "enabled")
	require.NoError(t, ni.PTDisable(5))
	require.ErrorIs(t, ni.PTIdle(5), ErrInUse)
	ni.Port().Finish(request(OpPut), Outcome{}) // refused: was never under way
	ni.Port().Finish(pending, Outcome{Pending: true})
	ni.Port().Finish(put, put.Done())
	require.ErrorIs(t, ni.PTIdle(5), ErrInUse)
	ni.Port().Finish(get, get.Done())
	require.ErrorIs(t, ni.PTIdle(5), ErrInUse, "the reply has not left")
	for op := ni.Port().NextOp(); op != nil; op = ni.Port().NextOp() {
		ni.Port().Sent(op, NIOK)
		ni.Port().Release(op)
	}
	require.ErrorIs(t, ni.PTIdle(5), ErrInUse, "one is pending")
	require.Zero(t, idle)
	ni.Port().Finish(pending, pending.Done())
	require.NoError(t, ni.PTIdle(5))
	require.Equal(t, []int{1, 4}, []int{idle, eventsAtIdle})

	require.ErrorIs(t, ni.PTIdle(6), ErrArgInvalid)
	require.NoError(t, ni.PTEnable(5))
	request(OpPut)
	require.NoError(t, ni.PTDisable(5))
	ni.Process().Abort()
	require.ErrorIs(t, ni.PTIdle(5), ErrAborted)
	require.NoError(t, ni.NIFini())
	require.ErrorIs(t, ni.PTIdle(5), ErrNoInit)
}

// TestTitles checks that queues and counters are named by the order of their
// allocation and by their label, and that a label names nothing else.
func TestTitles(t *testing.T) {
	ni, _, err := NewNI(NIConfig{Options: OptNIMatching | OptNIPhysical, Device: deviceLimits})
	require.NoError(t, err)
	var cts, eqs []Handle
	for range 3 {
		ct, err := ni.CTAlloc()
		require.NoError(t, err)
		eq, err := ni.EQAlloc(1)
		require.NoError(t, err)
		cts, eqs = append(cts, ct), append(eqs, eq)
	}
	require.NoError(t, ni.CTFree(cts[2]))
	again, err := ni.CTAlloc()
	require.NoError(t, err)
	ni.Label(again, "acks")
	ni.Label(eqs[1], "events")
	ni.Label(cts[2], "stale")
	ni.Label(ni.Handle(), "interface")
	require.Equal(t, "counter 0", ni.Title(cts[0]))
	require.Equal(t, `counter 3 "acks"`, ni.Title(again))
	require.Equal(t, `event queue 1 "events"`, ni.Title(eqs[1]))
	require.Equal(t, "event queue 2", ni.Title(eqs[2]))
	require.Contains(t, ni.Title(cts[2]), "names nothing")
}
