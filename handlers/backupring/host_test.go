package backupring

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// network is frames from some nodes to rings of another.
type network struct {
	users   []user
	slots   int
	senders int
	frames  int // of each sender
	longest int
	pause   sim.Time // at most, between two frames of a sender
	apart   sim.Time // at least, likewise
	// bytes that a process of the node of the rings uses all the time, so that
	// there is too little memory
	hog    int
	set    []string
	strays bool                  // frames come for a ring that is closed
	watch  func(p *runtime.Proc) // what else is done on the node of the rings; nil: nothing
	seed   uint64

	lib      *Loaded
	provider *Provider
	state    State    // in the end
	left     int      // senders that have not ended
	served   sim.Time // what tasklets of the node of the rings have taken
}

// user is an IOuser.
type user struct {
	RingOptions
	slow  sim.Time // at most, for each frame
	out   int      // one of so many frames has all of the ring written to storage; 0: none
	there int      // every so many buffers are in memory from the beginning; 0: none

	ring  *Ring
	sent  int         // frames for it
	lost  int         // of them, those that came as empty descriptors
	got   [][2]int    // sender, and number of the frame
	last  map[int]int // of each sender
	at    sim.Time
	stats Stats // in the end
	// instead is what the IOuser does in place of receiving; nil: it receives
	instead func(p *runtime.Proc, r *Ring) error
}

const (
	profileName = "../../docs/profiles/spin-int-os.yaml"
	headBytes   = 16
)

// fill writes the frame of a number.
func fill(b []byte, sender, number int) {
	binary.LittleEndian.PutUint64(b, uint64(sender))
	binary.LittleEndian.PutUint64(b[8:], uint64(number))
	for i := headBytes; i < len(b); i++ {
		b[i] = byte(sender*31 + number*7 + i)
	}
}

// run simulates until nothing is under way any more.
func (n *network) run(t *testing.T) {
	prof, err := profile.Load(profileName, append([]string{"hpu.dma_write=landed", "smmu.stale=poison"}, n.set...)...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1 + n.senders, Seed: n.seed})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	n.lib, err = Load(c)
	require.NoError(t, err)
	n.provider, err = n.lib.Serve(0, Options{Slots: n.slots})
	require.NoError(t, err)
	n.left = n.senders
	for i := range n.users {
		u := &n.users[i]
		require.NoError(t, c.SpawnService(0, fmt.Sprintf("IOuser %d", i), func(p *runtime.Proc) error { return n.receive(p, u) }))
	}
	if n.watch != nil {
		require.NoError(t, c.Spawn(0, "watch", func(p *runtime.Proc) error {
			n.watch(p)
			return nil
		}))
	}
	if n.hog > 0 {
		require.NoError(t, c.Spawn(0, "hog", n.hogs))
	}
	for i := range n.senders {
		require.NoError(t, c.Spawn(1+i, "sender", func(p *runtime.Proc) error { return n.send(p) }))
	}
	require.NoError(t, c.Run(context.Background()), "seed %d", n.seed)
	failures, count := c.Failures()
	require.Zero(t, count, "seed %d: %v", n.seed, failures)
	if k := c.Node(0).Kernel(); k != nil {
		require.NoError(t, k.Audit())
		require.Zero(t, k.Stats().PinsHeld, "seed %d: nothing is held that the IOprovider has written", n.seed)
	}
	n.served = c.Node(0).CPU().BusyAt(host.Softirq)
	n.check(t)
}

func (n *network) hogs(p *runtime.Proc) error {
	mine := p.Alloc(n.hog)
	rng := rand.New(rand.NewPCG(n.seed, 2))
	for n.left > 0 {
		at := rng.IntN(n.hog)
		clear(mine.Slice(at, min(at+(1+rng.IntN(16))<<12, n.hog)).Write())
		p.Sleep(sim.Time(1+rng.IntN(100)) * sim.Microsecond)
	}
	return nil
}

func (n *network) send(p *runtime.Proc) error {
	rng := rand.New(rand.NewPCG(n.seed, uint64(100+p.Rank())))
	memory := p.Alloc(n.frames * n.longest)
	memory.Raw()
	port, err := n.lib.Connect(p, memory)
	if err != nil {
		return err
	}
	p.Sleep(10 * sim.Microsecond)
	for number := range n.frames {
		length := headBytes + rng.IntN(n.longest-headBytes+1)
		at, to := number*n.longest, rng.IntN(len(n.users))
		fill(memory.Slice(at, at+length).Write(), p.Rank(), number)
		if err := port.Send(at, length, 0, n.users[to].ring.ID()); err != nil {
			return err
		}
		n.users[to].sent++
		p.Sleep(n.apart)
		if n.pause > 0 {
			p.Sleep(sim.Time(rng.Int64N(int64(n.pause))))
		}
	}
	p.Sleep(sim.Second)
	n.left--
	return nil
}

func (n *network) receive(p *runtime.Proc, u *user) (err error) {
	if u.ring, err = n.provider.Open(p, u.RingOptions); err != nil {
		return err
	}
	if u.instead != nil {
		return u.instead(p, u.ring)
	}
	u.last = map[int]int{}
	for i := 1; u.there > 0 && i < u.Size; i += u.there {
		u.ring.Memory().Slice(u.ring.Buffers()+i*n.longest, u.ring.Buffers()+(i+1)*n.longest).Raw()
	}
	rng := rand.New(rand.NewPCG(n.seed, uint64(10+u.ring.ID())))
	want := make([]byte, n.longest)
	for post := u.Size; ; post = 1 {
		if err := u.ring.Post(post); err != nil {
			return err
		}
		f, err := u.ring.Receive()
		if err != nil {
			return err
		}
		if u.Skip && errors.Is(f.Err, ErrAbsent) {
			u.lost++
			continue
		}
		if f.Err != nil {
			return f.Err
		}
		b := f.Memory.Read()
		sender, number := int(binary.LittleEndian.Uint64(b)), int(binary.LittleEndian.Uint64(b[8:]))
		fill(want[:len(b)], sender, number)
		if string(want[:len(b)]) != string(b) {
			return fmt.Errorf("frame %d of node %d has other bytes than were sent", number, sender)
		}
		if before, seen := u.last[sender]; seen && number <= before {
			return fmt.Errorf("frame %d of node %d comes behind frame %d", number, sender, before)
		}
		u.last[sender] = number
		u.got = append(u.got, [2]int{sender, number})
		u.at = p.Now()
		if u.out > 0 && rng.IntN(u.out) == 0 {
			if err := p.OS().PageOut(p.Thread(), u.ring.Memory().Addr(), uint64(u.ring.Memory().Len())); err != nil {
				return err
			}
		}
		if u.slow > 0 {
			p.Compute(sim.Time(rng.Int64N(int64(u.slow))))
		}
	}
}

// check looks whether all is at rest: what was accepted has arrived.
func (n *network) check(t *testing.T) {
	n.state = n.provider.State()
	state := &n.state
	require.Equal(t, state.Slots, state.Free, "seed %d: the backup ring is empty", n.seed)
	require.Equal(t, n.strays, state.Stray > 0, "seed %d", n.seed)
	for i := range n.users {
		u, r := &n.users[i], &state.Rings[i]
		if u.stats = r.Stats; u.instead != nil {
			continue
		}
		require.Equal(t, r.Ticket, r.Turn)
		require.Zero(t, r.HeadOffset(), "seed %d: ring %d has frames that nobody was told of", n.seed, i)
		require.Equal(t, r.Stats.Stored+r.Stats.Backed, uint64(len(u.got)), "seed %d: ring %d", n.seed, i)
		require.Equal(t, uint64(u.lost), r.Stats.Skipped, "seed %d: ring %d", n.seed, i)
		require.Equal(t, uint64(u.sent), r.Stats.Stored+r.Stats.Backed+r.Stats.Dropped, "seed %d: ring %d", n.seed, i)
	}
}

// With a backup ring nothing is lost, whether or not the ring's memory is there.
func TestNothingIsLost(t *testing.T) {
	for _, o := range []RingOptions{{Size: 64, BitmapSize: 4096}, {Size: 64, BitmapSize: 64, Pinned: true}, {Size: 64, Pinned: true}} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			n := network{users: []user{{RingOptions: o}}, slots: 256, senders: 1, frames: 400, longest: 1500, pause: 8 * sim.Microsecond}
			n.run(t)
			u := &n.users[0]
			require.Len(t, u.got, n.frames)
			require.Equal(t, !o.Pinned, u.stats.Absent > 0)
			t.Logf("%+v %+v %v", u.stats, n.provider.Stats(), u.at)
		})
	}
}

// A page of a ring whose frames are kept is brought in once, by the thread: the
// fault of the device brings nothing. One that drops frames has nobody but
// that.
func TestAPageIsBroughtInOnce(t *testing.T) {
	const told = 200 * sim.Microsecond
	for _, o := range []RingOptions{{Size: 8, BitmapSize: 64, Buffer: 4096}, {Size: 8, Buffer: 4096}} {
		n := network{users: []user{{RingOptions: o}}, slots: 64, senders: 1, frames: 8, longest: 1500, pause: 8 * sim.Microsecond, set: []string{"os.gup_fault=200us"}}
		n.run(t)
		u := &n.users[0]
		if o.BitmapSize == 0 {
			require.GreaterOrEqual(t, n.served, told, "the tasklet does it")
			continue
		}
		require.Len(t, u.got, 8)
		require.Zero(t, n.served, "the tasklet does nothing")
		require.Greater(t, u.at, 8*told)
		require.Less(t, u.at, 9*told)
	}
}

// An interface that drops and stays at the descriptor loses one frame for a
// page, and has it there for the next; one that skips the descriptor comes to
// the next page and loses one there, too, until all are there: with a frame at
// a time and a page for each of eight buffers both lose eight, but one of them
// every other one, and the other one its first eight. The IOuser is told of
// each by an empty descriptor.
func TestDescriptorsAreSkipped(t *testing.T) {
	for _, skip := range []bool{false, true} {
		n := network{
			users: []user{{RingOptions: RingOptions{Size: 8, Buffer: host.PageBytes, Skip: skip}}}, slots: 64, senders: 1, frames: 32, longest: 1500, apart: 100 * sim.Microsecond,
			set: []string{"os.gup_fault=10us"},
		}
		n.run(t)
		u := &n.users[0]
		var got []int
		for _, f := range u.got {
			got = append(got, f[1])
		}
		var want []int
		for number := range n.frames {
			if number >= 16 || !skip && number%2 == 1 || skip && number >= 8 {
				want = append(want, number)
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, uint64(8), u.stats.Dropped)
		require.Equal(t, map[bool]int{true: 8}[skip], u.lost)
	}
}

// A frame that is in its buffer is not told of before one that is not yet in
// its own, in front of it: with every other buffer absent, frames of two nodes
// that come at once end at different times.
func TestFramesAreToldInOrder(t *testing.T) {
	var absent, stored uint64
	for seed := range uint64(40) {
		n := network{
			users: []user{{RingOptions: RingOptions{Size: 16, BitmapSize: 64, Buffer: 4096}, there: 2}}, slots: 64, senders: 2, frames: 8, longest: 4096,
			pause: sim.Time(seed+1) * 50 * sim.Nanosecond, seed: seed,
		}
		n.run(t)
		absent, stored = absent+n.users[0].stats.Absent, stored+n.users[0].stats.Stored
	}
	require.Greater(t, absent, uint64(200))
	require.Greater(t, stored, uint64(200))
}

var storms = flag.Int("rings.storms", 20, "random networks")

func TestStorm(t *testing.T) {
	var all Stats
	var provider ProviderStats
	for seed := range uint64(*storms) {
		n := storm(seed)
		n.run(t)
		for i := range n.users {
			s := &n.users[i].stats
			all.Stored += s.Stored
			all.Absent += s.Absent
			all.NoBuffer += s.NoBuffer
			all.Backed += s.Backed
			all.Dropped += s.Dropped
			all.Skipped += s.Skipped
		}
		provider.Waits += n.provider.Stats().Waits
		require.Zero(t, n.state.Foreign, "seed %d", n.seed)
	}
	t.Logf("%+v %+v", all, provider)
	for _, count := range []uint64{all.Stored, all.Absent, all.NoBuffer, all.Backed, all.Dropped, all.Skipped, uint64(provider.Waits)} {
		require.Positive(t, count, "the test meets everything: %+v %+v", all, provider)
	}
}

func storm(seed uint64) *network {
	rng := rand.New(rand.NewPCG(seed, 1))
	some := func(of ...int) int { return of[rng.IntN(len(of))] }
	n := &network{
		seed: seed, slots: some(1, 2, 7, 64, 256), senders: some(1, 2), frames: 60, longest: some(64, 300, 1500, 4000),
		pause: sim.Time(some(0, 1, 10, 100)) * sim.Microsecond,
	}
	for range 1 + rng.IntN(3) {
		n.users = append(n.users, user{
			RingOptions: RingOptions{Size: some(1, 2, 7, 16, 64, 1+rng.IntN(MaxSize), 4095, 4096), Pinned: rng.IntN(5) == 0},
			slow:        sim.Time(some(0, 0, 1, 20)) * sim.Microsecond,
			out:         some(0, 0, 4),
		})
		o := &n.users[len(n.users)-1].RingOptions
		o.BitmapSize = some(0, 1, 15, 16, 17, 64, 512, o.Size-1, o.Size, min(o.Size+1, MaxSize))
		o.Skip = o.BitmapSize == 0 && rng.IntN(2) == 0
	}
	if rng.IntN(2) == 0 {
		n.hog = 5 << 19
		for i := range n.users { // what is pinned has to fit
			if o := &n.users[i].RingOptions; o.Pinned {
				o.Size = min(o.Size, 64)
			}
		}
		n.set = append(n.set, "os.memory=4MiB", "os.watermark_min=128KiB", "os.watermark_low=256KiB", "os.watermark_high=512KiB")
	}
	return n
}

// bad is an IOuser that does something wrong, and what comes of it.
type bad struct {
	name  string
	do    func(t *testing.T, n *network, p *runtime.Proc, r *Ring) error
	state func(t *testing.T, s *State)
}

// An IOuser spoils no more than its own ring.
func TestHostileIOusers(t *testing.T) {
	for _, b := range []bad{
		{"buffers that are not its own", func(_ *testing.T, n *network, p *runtime.Proc, r *Ring) error {
			return lie(r, func(d *Descriptor) { d.Offset = 1 << 40 }, ErrIllegal)
		}, nil},
		{"buffers that wrap around", func(_ *testing.T, n *network, p *runtime.Proc, r *Ring) error {
			return lie(r, func(d *Descriptor) { d.Offset = ^uint64(0) - 10 }, ErrIllegal)
		}, nil},
		{"buffers that are too short", func(_ *testing.T, n *network, p *runtime.Proc, r *Ring) error {
			return lie(r, func(d *Descriptor) { d.Length = 8 }, ErrTooLong)
		}, nil},
		{"the end of the process", func(_ *testing.T, n *network, p *runtime.Proc, r *Ring) error {
			if err := r.Post(r.Room()); err != nil {
				return err
			}
			p.Sleep(30 * sim.Microsecond)
			return p.OS().Exit(p.Thread())
		}, nil},
		{"words that are not its to say", func(t *testing.T, n *network, p *runtime.Proc, r *Ring) error {
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: r.Memory().Addr(), Length: 8})
			require.NoError(t, err)
			for _, m := range [][3]uint64{
				{GivenBack, 0, 1000}, {Resolved, 0, 0}, {Watch, 0, 1}, {Posted, 1, 5}, {Posted, 0, 1 << 40}, {Posted, 0, 17}, {9, 0, 0}, {Posted, 200, 1},
			} {
				require.NoError(t, p.NI().Put(portals.Put{MD: md, Target: portals.ID{}, PT: 1, MatchBits: Bits(uint32(m[0]), m[1]), HdrData: m[2]}))
			}
			return nil
		}, func(t *testing.T, s *State) { require.Equal(t, uint64(8), s.Foreign) }},
	} {
		t.Run(b.name, func(t *testing.T) {
			n := network{users: []user{{RingOptions: RingOptions{Size: 16, BitmapSize: 64}}, {RingOptions: RingOptions{Size: 16, BitmapSize: 512}}}, slots: 64, senders: 1, frames: 100, longest: 300, pause: 10 * sim.Microsecond}
			n.users[0].instead = func(p *runtime.Proc, r *Ring) error { return b.do(t, &n, p, r) }
			n.run(t)
			require.Len(t, n.users[1].got, n.users[1].sent, "the other ring is as ever")
			if b.state != nil {
				b.state(t, &n.state)
			}
		})
	}
}

// lie posts descriptors that are wrong, and looks what the frames are that come.
func lie(r *Ring, change func(d *Descriptor), want error) error {
	if err := r.Post(8); err != nil {
		return err
	}
	for i := range 8 {
		at := r.Memory().Slice(i*DescriptorSize, (i+1)*DescriptorSize)
		var d Descriptor
		if err := spin.DecodeState(at.Read(), &d); err != nil {
			return err
		}
		change(&d)
		copy(at.Write(), spin.EncodeState(&d))
	}
	for i := range 8 {
		if f, err := r.Receive(); err != nil || !errors.Is(f.Err, want) {
			return fmt.Errorf("frame %d: %w", i, errors.Join(f.Err, err))
		}
	}
	return nil
}

// What cannot be opened says so.
func TestOpenErrors(t *testing.T) {
	prof, err := profile.Load(profileName)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
	require.NoError(t, err)
	_, err = Load(c)
	require.EqualError(t, err, "backupring: profile spin-int-os has hpu.dma_write initiated, expected landed: a handler must know that a page was absent")
	require.NoError(t, c.Close())

	prof, err = profile.Load(profileName, "hpu.dma_write=landed")
	require.NoError(t, err)
	c, err = runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	lib, err := Load(c)
	require.NoError(t, err)
	_, err = lib.Serve(2, Options{})
	require.EqualError(t, err, "backupring: no node 2, expected 0 to 1")
	_, err = lib.Serve(0, Options{Slots: -1})
	require.EqualError(t, err, "backupring: backup ring of -1 slots, expected 1 to 65536")
	v, err := lib.Serve(0, Options{})
	require.NoError(t, err)
	_, err = lib.Serve(0, Options{})
	require.EqualError(t, err, "backupring: node 0 has an IOprovider")
	require.NoError(t, c.Spawn(1, "elsewhere", func(p *runtime.Proc) error {
		_, err := v.Open(p, RingOptions{Size: 1})
		require.EqualError(t, err, "backupring: process elsewhere is on node 1, its IOprovider on node 0")
		port, err := lib.Connect(p, p.Alloc(8192))
		require.NoError(t, err)
		require.EqualError(t, port.Send(0, 5000, 0, 0), "backupring: frame of 5000 bytes, expected 1 to 4096 (fabric.mtu)")
		require.EqualError(t, port.Send(0, 8, 1, 0), "backupring: node 1 has no IOprovider")
		return nil
	}))
	require.NoError(t, c.Spawn(0, "user", func(p *runtime.Proc) error {
		for _, o := range []struct {
			RingOptions
			says string
		}{
			{RingOptions{}, "backupring: ring of 0 descriptors, expected 1 to 4096"},
			{RingOptions{Size: 5000}, "backupring: ring of 5000 descriptors, expected 1 to 4096"},
			{RingOptions{Size: 1, BitmapSize: -1}, "backupring: bitmap of -1 bits, expected 0 to 4096"},
			{RingOptions{Size: 1, Buffer: -1}, "backupring: buffers of -1 bytes, expected 1 to 1 MiB"},
		} {
			_, err := v.Open(p, o.RingOptions)
			require.EqualError(t, err, o.says)
		}
		r, err := v.Open(p, RingOptions{Size: 4})
		require.NoError(t, err)
		require.EqualError(t, r.Post(5), "backupring: 5 descriptors more, expected at most 4")
		_, err = v.Open(p, RingOptions{Size: 4})
		require.EqualError(t, err, "backupring: process user has a ring")
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
