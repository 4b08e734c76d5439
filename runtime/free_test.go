package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// HPU memory cannot be freed under a handler's feet; afterwards entries that
// name it drop what they match, and say so.
func TestFreeHPUMemory(t *testing.T) {
	c, err := program(t, 2, map[int][]func(p *runtime.Proc) error{
		0: {sendTwice},
		1: {func(p *runtime.Proc) error { return freeBetween(t, p) }},
	})
	require.NoError(t, err)
	failed, n := c.HandlerErrors()
	require.Equal(t, 1, n)
	require.ErrorContains(t, failed[0], "rank 1")
	require.ErrorContains(t, failed[0], "its HPU memory was freed")
	require.Equal(t, int64(2), c.Node(1).Stats().HandlerCalls, "the payload and completion handlers of the first message")
}

// sendTwice puts a message now and one 10 µs later.
func sendTwice(p *runtime.Proc) error {
	addr := p.Alloc(64).Addr()
	md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: 64})
	for range 2 {
		if err == nil {
			err = p.NI().Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(1, 0)})
		}
		p.Sleep(10 * sim.Microsecond)
	}
	return err
}

// freeBetween frees the memory of the handlers as soon as it can after the first message has come.
func freeBetween(t *testing.T, p *runtime.Proc) error {
	ni := p.NI()
	module, err := p.Cluster().LoadModule("count", count.Library.Wasm)
	require.NoError(t, err)
	mem, err := p.HPUAllocMem(module, 64)
	require.NoError(t, err)
	handlers, err := mem.Spin("", count.Payload, count.Completion)
	require.NoError(t, err)
	eq, err := ni.Objects().EQAlloc(8)
	require.NoError(t, err)
	_, err = ni.Objects().PTAlloc(0, eq, 0)
	require.NoError(t, err)
	addr := p.Alloc(64).Addr()
	_, err = ni.MEAppend(0, &portals.ME{
		Start: addr, Length: 64, UID: portals.UIDAny, MatchID: portals.AnyID, Spin: handlers,
		Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0)
	require.NoError(t, err)

	for p.Node().Stats().HandlerCalls == 0 {
		p.Sleep(sim.Nanosecond)
	}
	require.ErrorIs(t, mem.Free(), portals.ErrInUse)
	ev, err := ni.EQWait(eq)
	require.NoError(t, err)
	require.Equal(t, portals.NIOK, ev.Fail)
	require.NoError(t, mem.Free())
	require.ErrorIs(t, mem.Free(), portals.ErrArgInvalid)
	require.Nil(t, mem.Bytes())
	_, err = ni.MEAppend(0, &portals.ME{UID: portals.UIDAny, Spin: handlers}, portals.PriorityList, 0)
	require.ErrorContains(t, err, "was not given out")

	ev, err = ni.EQWait(eq)
	require.NoError(t, err)
	require.Equal(t, portals.NIDropped, ev.Fail)
	require.Zero(t, ev.MLength)
	return nil
}
