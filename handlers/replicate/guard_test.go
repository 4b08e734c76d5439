package replicate

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	guardedSize = 100_000
	both        = MayRead | MayWrite
)

var guardKey = &Key{0x0123456789abcdef, 42}

// guarded runs a client of three guarded servers that have sevens. part is 50,000 B to write.
func guarded(t *testing.T, f func(g *Group, client *Caller, p *runtime.Proc, part runtime.View) error) {
	c, g := cluster(t, t.Cleanup, "spin-int", 2, 3, Options{Bytes: guardedSize, Key: guardKey, Fill: func(_ int64, b []byte) {
		copy(b, sevens())
	}}, runtime.Config{Seed: 1})
	require.NoError(t, c.Spawn(1, "other", func(p *runtime.Proc) error { _, err := g.Open(p, 1); return err }))
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		client, err := g.Open(p, 0)
		if err != nil {
			return err
		}
		part := p.Alloc(50_000)
		for i, b := 0, part.Write(); i < len(b); i++ {
			b[i] = byte(i)
		}
		return f(g, client, p, part)
	}))
	require.NoError(t, c.Run(context.Background()))
	_, failures := c.Failures()
	require.Zero(t, failures)
}

func sevens() []byte { return bytes.Repeat([]byte{7}, guardedSize) }

// Another process's capability, one that was changed, that has expired, for
// another range or right, or none at all: requests are refused before anything
// is written or sent, and counted; however often, the client may go on.
func TestGuardRefuses(t *testing.T) {
	guarded(t, func(g *Group, client *Caller, p *runtime.Proc, part runtime.View) error {
		good := Grant(guardKey, client.ID(), 1000, 90_000, both, 3)
		refused := func(forged, expired, outside bool, spoil func(c *Capability)) {
			was, of := g.Counts(0), good
			spoil(&of)
			client.Use(of)
			for range 3 {
				require.ErrorIs(t, client.Write(2000, part), ErrDenied)
			}
			into := p.Alloc(5)
			require.ErrorIs(t, client.Read(2000, into), ErrDenied)
			require.Equal(t, make([]byte, 5), into.Read())
			is := g.Counts(0)
			require.Equal(t, []bool{forged, expired, outside}, []bool{is.Forged > was.Forged, is.Expired > was.Expired, is.Outside > was.Outside})
		}
		for _, spoil := range []func(c *Capability){
			func(c *Capability) { *c = Capability{High: guardedSize} },
			func(c *Capability) { c.MAC ^= 1 << 40 },
			func(c *Capability) { c.Low-- },
			func(c *Capability) { c.High++ },
			func(c *Capability) { c.Rights = 7 },
			func(c *Capability) { c.Expires++ },
			func(c *Capability) {
				*c = Grant(&Key{1, 42}, client.ID(), 0, guardedSize, both, 3)
			},
		} {
			refused(true, false, false, spoil)
		}
		for _, other := range []Capability{
			Grant(guardKey, portals.PhysID(1, 0), 0, guardedSize, both, 3),
			Grant(guardKey, client.ID(), 0, guardedSize, 0, 3),
			Grant(guardKey, client.ID(), 0, guardedSize+1, both, 3),
		} {
			refused(false, false, true, func(c *Capability) { *c = other })
		}
		g.SetEpoch(4)
		refused(false, true, false, func(*Capability) {})
		for i := range 3 {
			require.True(t, bytes.Equal(sevens(), g.Peek(i)), "nothing was written")
		}
		g.SetEpoch(3)
		client.Use(good)
		return client.Write(2000, part)
	})
}

// A process has what its capability says, to the last byte.
func TestGuardAllows(t *testing.T) {
	guarded(t, func(g *Group, client *Caller, p *runtime.Proc, part runtime.View) error {
		client.Use(Grant(guardKey, client.ID(), 1000, 90_000, both, 0))
		require.ErrorIs(t, client.Write(999, part), ErrDenied)
		require.ErrorIs(t, client.Read(40_001, part), ErrDenied)
		require.NoError(t, client.Write(40_000, part))
		require.NoError(t, client.Write(1000, part.Slice(0, 1)))
		all := p.Alloc(89_000)
		require.NoError(t, client.Read(1000, all))
		want := sevens()
		copy(want[40_000:], part.Read())
		want[1000] = 0
		require.True(t, bytes.Equal(want[1000:90_000], all.Read()))
		for i := range 3 {
			require.True(t, bytes.Equal(want, g.Peek(i)))
		}
		client.Use(Grant(guardKey, client.ID(), 0, guardedSize, MayRead, 0))
		require.ErrorIs(t, client.Write(0, part), ErrDenied)
		require.NoError(t, client.Read(0, part))
		client.Use(Grant(guardKey, client.ID(), 0, guardedSize, MayWrite, 0))
		require.ErrorIs(t, client.Read(0, part), ErrDenied)
		return client.Write(guardedSize-10, part.Slice(0, 10))
	})
}

// Nobody but the servers passes packets on, and nobody gets or puts past the handlers.
func TestGuardedServersHaveNoOtherWay(t *testing.T) {
	c, g := cluster(t, t.Cleanup, "spin-int", 1, 2, Options{Bytes: 5000, Key: &Key{1}}, runtime.Config{Seed: 1})
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		if _, err := g.Open(p, 0); err != nil {
			return err
		}
		ni := p.NI()
		v := p.Alloc(100)
		for i, b := 0, v.Write(); i < len(b); i++ {
			b[i] = 1
		}
		ct, err := ni.Objects().CTAlloc()
		if err != nil {
			return err
		}
		md, err := ni.Objects().MDBind(&portals.MD{Start: v.Addr(), Length: 100, CT: ct, Options: portals.OptMDEventCTAck | portals.OptMDEventCTReply})
		if err != nil {
			return err
		}
		tried := uint64(0)
		for _, bits := range []uint64{StoreBits, PassBits, 3<<LiveShift | PassBits, 3<<LiveShift | StoreBits} {
			if err := ni.Put(portals.Put{MD: md, Length: 100, Ack: portals.Ack, Target: portals.PhysID(1, 0), MatchBits: bits}); err != nil {
				return err
			}
			tried++
		}
		if err := ni.Get(portals.Get{MD: md, Length: 100, Target: portals.PhysID(1, 0), MatchBits: ReadBits}); err != nil {
			return err
		}
		p.Sleep(100 * sim.Microsecond)
		v2, err := ni.Objects().CTGet(ct)
		require.Zero(t, v2.Success)
		require.Equal(t, tried+1, v2.Failure)
		return err
	}))
	require.NoError(t, c.Run(context.Background()))
	require.Equal(t, make([]byte, 5000), g.Peek(0))
	require.Equal(t, make([]byte, 5000), g.Peek(1))
}
