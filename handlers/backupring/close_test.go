package backupring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// renters open rings and close them again, while frames come for those that are
// there and for those that are no more.
type renters struct {
	t        *testing.T
	provider *Provider
	lib      *Loaded
	now      [2]*Ring // of each process, the latest
	opened   int
	left     int // processes that still open rings
	sent     uint64
	stats    Stats // of all rings that are closed
	got      int
}

const (
	rentals    = 500 // rings of each process
	rentalPort = 16  // bytes of a frame: the ID of its ring and its number
)

// rent opens a ring, takes some of its frames, and closes it.
func (r *renters) rent(p *runtime.Proc, which int, o RingOptions, frames int) error {
	ring, err := r.provider.Open(p, o)
	if err != nil {
		return err
	}
	r.now[which] = ring
	r.opened++
	state := r.provider.State()
	require.Less(r.t, state.Rings[ring.ID()%MaxRings].Space, uint32(2+len(r.now)), "grants are given out again")
	if err := ring.Post(o.Size); err != nil {
		return err
	}
	before := uint64(0)
	for range frames {
		f, err := ring.Receive()
		if err != nil {
			return err
		}
		if !o.Skip || !errors.Is(f.Err, ErrAbsent) {
			b := f.Memory.Read()
			require.EqualValues(r.t, ring.ID(), binary.LittleEndian.Uint64(b))
			number := binary.LittleEndian.Uint64(b[8:])
			require.Greater(r.t, number, before, "in order, each once")
			before = number
			r.got++
		}
		if err := ring.Post(1); err != nil {
			return err
		}
	}
	if err := ring.Close(); err != nil {
		return err
	}
	require.ErrorIs(r.t, ring.Close(), ErrClosed)
	require.ErrorIs(r.t, ring.Post(1), ErrClosed)
	_, err = ring.Receive()
	require.ErrorIs(r.t, err, ErrClosed)
	s := ring.Stats()
	r.stats.Stored, r.stats.Backed, r.stats.Dropped, r.stats.Absent = r.stats.Stored+s.Stored, r.stats.Backed+s.Backed, r.stats.Dropped+s.Dropped, r.stats.Absent+s.Absent
	return nil
}

func (r *renters) rents(p *runtime.Proc, which int) error {
	rng := rand.New(rand.NewPCG(7, uint64(which)))
	some := func(of ...int) int { return of[rng.IntN(len(of))] }
	resident := p.OS().Resident()
	for i := range rentals {
		o := RingOptions{Size: some(1, 2, 7, 16), BitmapSize: some(0, 1, 15, 64), Buffer: some(64, 4096), Pinned: rng.IntN(4) == 0}
		o.Skip = o.BitmapSize == 0 && rng.IntN(2) == 0
		if err := r.rent(p, which, o, some(0, 0, 1, 3)); err != nil {
			return fmt.Errorf("ring %d, %+v: %w", i, o, err)
		}
		require.LessOrEqual(r.t, p.OS().Resident(), resident, "its memory is given back")
		if rng.IntN(4) == 0 {
			p.Sleep(sim.Time(rng.IntN(20)) * sim.Microsecond)
		}
	}
	r.left--
	return nil
}

// sends sends a frame every few hundred nanoseconds to one of the rings of the
// moment, which may be closed before it gets there.
func (r *renters) sends(p *runtime.Proc) error {
	memory := p.Alloc(1 << 12)
	port, err := r.lib.Connect(p, memory)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(9, uint64(p.Rank())))
	for r.left > 0 {
		p.Sleep(sim.Time(500+rng.IntN(8000)) * sim.Nanosecond)
		ring := r.now[rng.IntN(len(r.now))]
		if ring == nil {
			continue
		}
		r.sent++
		at := int(r.sent) % 64 * 64
		b := memory.Slice(at, at+rentalPort).Write()
		binary.LittleEndian.PutUint64(b, uint64(ring.ID()))
		binary.LittleEndian.PutUint64(b[8:], r.sent)
		if err := port.Send(at, rentalPort, 0, ring.ID()); err != nil {
			return err
		}
	}
	return nil
}

// A thousand rings are opened and closed on a node while frames come for them:
// whatever a ring had is there again for the next, no frame gets to another
// ring than it was sent to, and each is accounted for.
func TestRingsAreGivenBack(t *testing.T) {
	prof, err := profile.Load(profileName, "hpu.dma_write=landed", "smmu.stale=poison", "limits.max_cts=4", "limits.max_mds=4", "limits.max_entries=8")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	r := &renters{t: t, left: 2}
	r.lib, err = Load(c)
	require.NoError(t, err)
	r.provider, err = r.lib.Serve(0, Options{Slots: 8})
	require.NoError(t, err)
	for i := range r.now {
		require.NoError(t, c.Spawn(0, fmt.Sprintf("IOuser %d", i), func(p *runtime.Proc) error { return r.rents(p, i) }))
	}
	require.NoError(t, c.Spawn(1, "sender", r.sends))
	require.NoError(t, c.Run(context.Background()))
	failures, count := c.Failures()
	require.Zero(t, count, "%v", failures)
	require.NoError(t, c.Node(0).Kernel().Audit())

	s := r.provider.State()
	t.Logf("%d rings, %d frames, %d received, %d for nobody: %+v %+v", r.opened, r.sent, r.got, s.Stray, r.stats, r.provider.Stats())
	require.Equal(t, 2*rentals, r.opened)
	require.Equal(t, s.Slots, s.Free, "the backup ring is empty")
	require.Zero(t, s.Foreign)
	require.Equal(t, r.sent, s.Stray+r.stats.Stored+r.stats.Backed+r.stats.Dropped, "every frame is accounted for")
	generations := uint64(0)
	for i := range s.Rings {
		generations += s.Rings[i].Generation
		s.Rings[i].Generation = 0
		require.Equal(t, RingState{}, s.Rings[i])
	}
	require.EqualValues(t, r.opened, generations)
	provider := r.provider.Stats()
	require.Equal(t, provider.Frames, provider.Resolved+provider.Closed)
	for _, n := range []uint64{s.Stray, r.stats.Stored, r.stats.Backed, r.stats.Dropped, r.stats.Absent, uint64(provider.Resolved), uint64(provider.Closed), uint64(r.got)} {
		require.Positive(t, n, "the test meets everything")
	}
}

// Frames that wait for their turn when their ring is closed are nobody's, and
// do not go into its memory one after the other before it is given back: one
// takes a microsecond.
func TestClosingDoesNotWaitForALine(t *testing.T) {
	n := network{
		users: []user{{RingOptions: RingOptions{Size: 256, Buffer: 64, Pinned: true}}}, slots: 4, senders: 4, frames: 40, longest: 64, strays: true,
		set: []string{"hpu.cores=64", "hpu.contexts=1", "dma.latency=250ns"},
	}
	var took sim.Time
	var stats Stats
	n.users[0].instead = func(p *runtime.Proc, r *Ring) error {
		if err := r.Post(r.Room()); err != nil {
			return err
		}
		p.Sleep(30 * sim.Microsecond)
		start := p.Now()
		err := r.Close()
		took = p.Now() - start
		stats = r.Stats()
		return err
	}
	n.run(t)
	t.Logf("%v, %+v, %d for nobody", took, stats, n.state.Stray)
	require.Positive(t, stats.Stored)
	require.Less(t, took, 40*sim.Microsecond, "a line of 63")
}

// A ring for which a limit leaves no room gives back what it has taken: when
// there is room again it can be opened.
func TestARingThatCannotBeOpened(t *testing.T) {
	prof, err := profile.Load(profileName, "hpu.dma_write=landed", "limits.max_cts=4", "limits.max_mds=4", "limits.max_entries=8")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	lib, err := Load(c)
	require.NoError(t, err)
	provider, err := lib.Serve(0, Options{Slots: 4})
	require.NoError(t, err)
	require.NoError(t, c.Spawn(0, "IOuser", func(p *runtime.Proc) error {
		ni, v := p.NI(), p.Alloc(8)
		pt, err := ni.Objects().PTAlloc(0, portals.EQNone, portals.PTAny)
		if err != nil {
			return err
		}
		me := portals.ME{Start: v.Addr(), Length: 8, UID: portals.UIDAny, Options: portals.OptMEOpPut}
		for what, limit := range map[string]struct {
			take func() (portals.Handle, error)
			give func(portals.Handle) error
		}{
			"counters":    {ni.Objects().CTAlloc, ni.Objects().CTFree},
			"descriptors": {func() (portals.Handle, error) { return ni.Objects().MDBind(&portals.MD{Start: v.Addr(), Length: 8}) }, ni.Objects().MDRelease},
			"entries":     {func() (portals.Handle, error) { return ni.MEAppend(pt, &me, portals.PriorityList, 0) }, ni.Objects().MEUnlink},
		} {
			var taken []portals.Handle
			h, err := limit.take()
			for ; err == nil; h, err = limit.take() {
				taken = append(taken, h)
			}
			require.ErrorIs(t, err, portals.ErrNoSpace, what)
			_, err = provider.Open(p, RingOptions{Size: 1, Pinned: true})
			require.ErrorIs(t, err, portals.ErrNoSpace, what)
			for _, h := range taken {
				require.NoError(t, limit.give(h), what)
			}
			ring, err := provider.Open(p, RingOptions{Size: 1, Pinned: true})
			require.NoError(t, err, what)
			require.NoError(t, ring.Close(), what)
		}
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
