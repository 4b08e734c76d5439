package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A packet of one tenant's host waits for packets of another's, not for 20 messages of
// 60 KB that have been posted before: their data is read, and leaves, in turn.
func TestHostsOfTenantsTakeTurns(t *testing.T) {
	const long, messages = 60_000, 20
	took := func(arbiter string) (d sim.Time) {
		prof, err := profile.Load("pspin", "tenants={a: {uid: 1, weight: 1}, b: {uid: 2, weight: 1}}", "hpu.cluster_tasks=0", "hpu.arbiter="+arbiter)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2, Engine: labEngine})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		sends := func(uid uint32, bytes, number int, begin sim.Time) {
			require.NoError(t, c.Spawn(0, "sender", func(p *runtime.Proc) error {
				p.SetUID(uid)
				ct, err := p.NI().Objects().CTAlloc()
				require.NoError(t, err)
				data := p.Alloc(bytes)
				md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(bytes), CT: ct, Options: portals.OptMDEventCTAck})
				require.NoError(t, err)
				p.Sleep(begin)
				for range number {
					require.NoError(t, p.NI().Put(portals.Put{MD: md, Length: uint64(bytes), Ack: portals.Ack, Target: portals.PhysID(1, 0)}))
				}
				_, err = p.NI().CTWait(ct, uint64(number))
				if uid == 2 {
					d = p.Now() - begin
				}
				return err
			}))
		}
		require.NoError(t, c.Spawn(1, "target", func(p *runtime.Proc) error {
			_, err := p.NI().Objects().PTAlloc(0, portals.EQNone, 0)
			require.NoError(t, err)
			_, err = p.NI().MEAppend(0, &portals.ME{
				Start: p.Alloc(long).Addr(), Length: long, UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: portals.SizeMax, Options: portals.OptMEOpPut,
			}, portals.PriorityList, 0)
			return err
		}))
		sends(1, long, messages, sim.Microsecond)
		sends(2, 256, 1, 2*sim.Microsecond)
		require.NoError(t, c.Run(context.Background()))
		return d
	}
	require.Greater(t, took("fifo"), 15*sim.Microsecond)
	for _, arbiter := range nic.Arbiters()[1:] {
		require.Less(t, took(arbiter), 300*sim.Nanosecond, arbiter)
	}
}
