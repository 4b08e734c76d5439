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

// A put without data has nothing to wait for, but must not overtake earlier
// puts whose data is still being read: messages between two processes match in
// the order they were sent (Portals 4.x §2.2). The pauses put it into every
// stage of a read.
func TestPutWithoutDataKeepsItsPlace(t *testing.T) {
	for _, name := range []string{"spin-int", "spin-dis"} {
		p, err := profile.Load(name)
		require.NoError(t, err)
		for pause := sim.Time(0); pause < 2*sim.Microsecond; pause += 20 * sim.Nanosecond {
			c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
			require.NoError(t, err)
			var got []uint64
			require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
				return receiveInto(p, 3, func(ev portals.Event) { got = append(got, ev.HdrData) })
			}))
			require.NoError(t, c.Spawn(0, "source", func(p *runtime.Proc) error {
				addr := p.Alloc(9000).Addr()
				md, err := p.NI().Objects().MDBind(&portals.MD{Start: addr, Length: 9000})
				if err != nil {
					return err
				}
				for i, n := range []uint64{9000, 0, 8} {
					if err := p.NI().Put(portals.Put{MD: md, Length: n, Target: portals.PhysID(1, 0), HdrData: uint64(i)}); err != nil {
						return err
					}
					p.Compute(pause)
				}
				return nil
			}))
			require.NoError(t, c.Run(context.Background()))
			require.Equal(t, []uint64{0, 1, 2}, got, "%s, pause of %v", name, pause)
			require.NoError(t, c.Close())
		}
	}
}

// receiveInto waits for n puts into a persistent entry.
func receiveInto(p *runtime.Proc, n int, f func(portals.Event)) error {
	ni := p.NI()
	eq, err := ni.Objects().EQAlloc(16)
	if err != nil {
		return err
	}
	if _, err := ni.Objects().PTAlloc(0, eq, 0); err != nil {
		return err
	}
	addr := p.Alloc(1 << 16).Addr()
	_, err = ni.MEAppend(0, &portals.ME{
		Start: addr, Length: 1 << 16, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0)
	if err != nil {
		return err
	}
	for range n {
		ev, err := ni.EQWait(eq)
		if err != nil {
			return err
		}
		f(ev)
	}
	return nil
}
