package rdma_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// What a process writes into its channels does not change its protection
// domain: the engine's register goes with cells and requests, the target
// refuses them, counts them, and says so. Nor can it use the channels of
// others.
func TestForgedDomain(t *testing.T) {
	c := newCluster(t, 2, nil)
	const mine, theirs = 1, 7
	var secret runtime.View
	var forger, victim *rdma.Page
	c.spawn(1, func(p *runtime.Proc) (err error) {
		secret = p.Alloc(4096)
		fill(secret.Raw(), 3)
		victim, err = c.engine.Open(p, rdma.Options{PDID: theirs})
		return err
	})
	c.spawn(0, func(p *runtime.Proc) (err error) {
		loot, d := p.Alloc(4096), p.Alloc(64)
		if forger, err = c.engine.Open(p, rdma.Options{PDID: mine}); err != nil {
			return err
		}
		ni := forger.NI()
		md, err := ni.Objects().MDBind(&portals.MD{Start: d.Addr(), Length: 64})
		if err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
		put := func(to, pt uint32, h rdma.Header, from *rdma.Descriptor, remote uint64) {
			d.CopyFrom(spin.EncodeState(from))
			require.NoError(t, ni.Put(portals.Put{MD: md, Length: 64, Target: portals.PhysID(to, 0), PT: pt, MatchBits: h.Bits(), RemoteOffset: remote, HdrData: 1}))
			p.Sleep(100 * sim.Microsecond)
		}
		write := rdma.Descriptor{Source: loot.Addr(), Destination: secret.Addr(), Length: 4096, NID: 1}
		read := rdma.Descriptor{Source: secret.Addr(), Destination: loot.Addr(), Length: 4096, NID: 1}
		seen := func(foreign, strange uint64) {
			got := victim.Counts()
			require.Equal(t, []uint64{foreign, strange}, []uint64{got.Received.Foreign, got.Sent.Strange + got.Received.Strange})
		}
		// by its own channels
		put(0, rdma.PTControl, rdma.Header{Kind: rdma.KindWrite, PDID: theirs}, &write, 0)
		// 16 cells and the notification; that the forger gives up means nothing
		// to the victim
		seen(17, 1)
		put(0, rdma.PTCells, rdma.Header{Kind: rdma.KindAsk, PDID: theirs}, &read, 0)
		seen(18, 1)
		put(1, rdma.PTControl, rdma.Header{Kind: rdma.KindRead, PDID: mine}, &read, 0) // by hand
		seen(19, 1)
		put(1, rdma.PTCells, rdma.Header{Kind: rdma.KindData, PDID: mine, Last: true}, &write, secret.Addr())
		seen(20, 1)
		// by the victim's
		put(1, rdma.PTControl, rdma.Header{Kind: rdma.KindWrite, PDID: theirs}, &write, 0)
		put(1, rdma.PTCells, rdma.Header{Kind: rdma.KindAsk, PDID: theirs}, &read, 0)
		seen(20, 3)
		// by hand, with match bits of the victim's domain
		put(1, rdma.PTCells, rdma.Header{Kind: rdma.KindData, PDID: theirs, Last: true}, &write, secret.Addr())
		seen(21, 3)
		put(1, rdma.PTControl, rdma.Header{Kind: rdma.KindRead, PDID: theirs}, &read, 0)
		seen(22, 3)
		p.SetUID(1<<16 | theirs) // more bits than cells have for it
		put(1, rdma.PTCells, rdma.Header{Kind: rdma.KindData, PDID: theirs, Last: true}, &write, secret.Addr())
		require.Equal(t, make([]byte, 4096), loot.Snapshot())
		return nil
	})
	c.run()
	require.EqualValues(t, 1, forger.Counts().Sent.Failed)
	want := make([]byte, 4096)
	fill(want, 3)
	require.Equal(t, want, secret.Snapshot())
	require.Zero(t, victim.Counts().Received.Cells)
}

// A process that the system has put into one domain opens no page in another.
func TestPageInAnotherDomain(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.spawn(0, func(p *runtime.Proc) error {
		p.SetUID(4)
		_, err := c.engine.Open(p, rdma.Options{PDID: 5})
		require.ErrorContains(t, err, "is in protection domain 4, not 5")
		_, err = c.engine.Open(p, rdma.Options{PDID: 4})
		return err
	})
	c.run()
}

// A page that cannot be made leaves its process in no domain.
func TestPageThatFailsLeavesNoDomain(t *testing.T) {
	c := newCluster(t, 1, nil)
	c.spawn(0, func(p *runtime.Proc) error {
		_, err := c.engine.Open(p, rdma.Options{PDID: 4, State: map[string]any{"nosuch": 1}})
		require.ErrorContains(t, err, "nosuch")
		limits := c.Profile().PortalsLimits()
		ni, err := p.NIInit(portals.OptNINoMatching|portals.OptNIPhysical, &limits)
		require.NoError(t, err)
		uid, err := ni.Objects().UID()
		require.Zero(t, uid)
		return err
	})
	c.run()
}

// A process serves as many reads at once as its page has channels for them;
// more wait until one is free, and come again.
func TestReadsBeyondTheChannels(t *testing.T) {
	const readers, each, n = 3, rdma.Reads, 20000
	c := newCluster(t, 1+readers, nil)
	var data runtime.View
	var served *rdma.Page
	c.spawn(0, func(p *runtime.Proc) (err error) {
		data = p.Alloc(n)
		fill(data.Raw(), 9)
		served, err = c.engine.Open(p, rdma.Options{PDID: 1})
		return err
	})
	for rank := 1; rank <= readers; rank++ {
		c.spawn(rank, func(p *runtime.Proc) error {
			g, err := c.engine.Open(p, rdma.Options{PDID: 1})
			if err != nil {
				return err
			}
			p.Sleep(sim.Microsecond)
			var open []*rdma.Pending
			var into []runtime.View
			for range each {
				v := p.Alloc(n)
				r, err := g.Read(rdma.Transfer{Source: data.Addr(), Destination: v.Addr(), Length: n})
				if err != nil {
					return err
				}
				open, into = append(open, r), append(into, v)
			}
			_, err = g.Read(rdma.Transfer{Source: data.Addr(), Destination: data.Addr(), Length: n})
			require.ErrorIs(t, err, rdma.ErrNoChannel)
			for i, r := range open {
				require.NoError(t, r.Wait())
				require.Equal(t, data.Snapshot(), into[i].Snapshot())
			}
			return nil
		})
	}
	c.run()
	require.EqualValues(t, readers*each, served.Counts().Sent.Completed)
	require.Positive(t, served.Counts().Sent.Busy)
}
