package rdma_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// What lies behind the state has the sizes that the engine reckons with, and the state no gaps.
func TestSizes(t *testing.T) {
	require.EqualValues(t, rdma.ContextSize, unsafe.Sizeof(rdma.Context{}))
	require.EqualValues(t, rdma.PeerSize, unsafe.Sizeof(rdma.Peer{}))
	require.EqualValues(t, 64, unsafe.Sizeof(rdma.Descriptor{}))
}

// cluster runs programs on the nodes of a profile.
type cluster struct {
	t *testing.T
	*runtime.Cluster
	engine *rdma.Engine
}

func newCluster(t *testing.T, nodes int, cfg func(*runtime.Config), set ...string) *cluster {
	t.Helper()
	// all memory is there
	p, err := profile.Load("exanest-qfdb", append([]string{"os.kind=none", "smmu.kind=none"}, set...)...)
	require.NoError(t, err)
	c := runtime.Config{Profile: p, Nodes: nodes}
	if cfg != nil {
		cfg(&c)
	}
	made, err := runtime.NewCluster(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	e, err := rdma.Load(made)
	require.NoError(t, err)
	return &cluster{t, made, e}
}

func (c *cluster) spawn(rank int, f func(p *runtime.Proc) error) {
	require.NoError(c.t, c.Spawn(rank, fmt.Sprintf("p%d", rank), f))
}

func (c *cluster) run() {
	require.NoError(c.t, c.Run(context.Background()))
	failures, n := c.Failures()
	require.Zero(c.t, n, "%v", failures)
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i) + byte(i>>8)*7 + byte(i>>16)*3 + seed
	}
}

func TestWriteAndRead(t *testing.T) {
	for _, n := range []int{0, 1, 16, 256, 1000, 4096, 16384, 16385, 100000, 4 << 20} {
		c := newCluster(t, 4, nil)
		var src, dst, flag runtime.View
		var at, acked, read sim.Time
		var sender, receiver *rdma.Page
		c.spawn(0, func(p *runtime.Proc) (err error) {
			src = p.Alloc(n + 100)
			fill(src.Raw(), 5)
			if sender, err = c.engine.Open(p, rdma.Options{PDID: 3}); err != nil {
				return err
			}
			p.Sleep(sim.Microsecond)
			w, err := sender.Write(rdma.Transfer{NID: 1, Source: src.Addr() + 7, Destination: dst.Addr() + 77, Length: uint64(n), Notify: flag.Addr(), Value: 9})
			if err != nil {
				return err
			}
			err = w.Wait()
			acked = p.Now()
			return err
		})
		c.spawn(1, func(p *runtime.Proc) (err error) {
			dst, flag = p.Alloc(n+200), p.Alloc(8)
			if receiver, err = c.engine.Open(p, rdma.Options{PDID: 3}); err != nil {
				return err
			}
			err = receiver.AwaitNotification(flag, 9)
			at = p.Now()
			return err
		})
		var back runtime.View
		c.spawn(2, func(p *runtime.Proc) (err error) {
			back = p.Alloc(n + 200)
			g, err := c.engine.Open(p, rdma.Options{PDID: 3})
			if err != nil {
				return err
			}
			p.Sleep(10 * sim.Millisecond)
			before := p.Now()
			r, err := g.Read(rdma.Transfer{NID: 1, Source: dst.Addr() + 77, Destination: back.Addr() + 1, Length: uint64(n)})
			if err != nil {
				return err
			}
			err = r.Wait()
			read = p.Now() - before
			return err
		})
		c.run()
		require.Equal(t, src.Snapshot()[7:7+n], dst.Snapshot()[77:77+n])
		require.Equal(t, src.Snapshot()[7:7+n], back.Snapshot()[1:1+n])
		require.EqualValues(t, 9, binary.LittleEndian.Uint64(flag.Snapshot()))
		t.Logf("%d B: notified after %v, acknowledged after %v, read in %v; %+v %+v", n, at-sim.Microsecond, acked-sim.Microsecond, read, sender.Counts().Sent, receiver.Counts().Received)
	}
}

// once lets rank 0 write n bytes to rank 1 and returns when the notification
// was seen there, and when the sender saw its end, from the call on.
func once(t *testing.T, n int, set ...string) (notified, ended sim.Time, stats runtime.Stats) {
	c := newCluster(t, 2, nil, set...)
	var dst, flag runtime.View
	const begin = sim.Microsecond
	c.spawn(0, func(p *runtime.Proc) error {
		src := p.Alloc(n)
		g, err := c.engine.Open(p, rdma.Options{})
		if err != nil {
			return err
		}
		p.SleepUntil(begin)
		w, err := g.Write(rdma.Transfer{NID: 1, Source: src.Addr(), Destination: dst.Addr(), Length: uint64(n), Notify: flag.Addr(), Value: 1})
		if err != nil {
			return err
		}
		err = w.Wait()
		ended = p.Now() - begin
		return err
	})
	c.spawn(1, func(p *runtime.Proc) error {
		dst, flag = p.Alloc(n), p.Alloc(8)
		g, err := c.engine.Open(p, rdma.Options{})
		if err != nil {
			return err
		}
		err = g.AwaitNotification(flag, 1)
		notified = p.Now() - begin
		return err
	})
	c.run()
	require.Less(t, c.Engine().Now(), begin+notified+sim.Millisecond/2, "no time-out that was taken back makes the run longer")
	return notified, ended, c.Stats()
}

// The way of a write is the sum of its parts, to the picosecond but for
// rounding: 3 µs of firmware, and less than 1 µs of hardware (P).
func TestLatencyIsTheSumOfItsParts(t *testing.T) {
	const (
		axi    = 19.2 / 8 // bytes in a nanosecond
		link   = 16.0 / 8
		memory = 60.0
		cycles = 13.333 // two of them: switch, matching
	)
	for _, n := range []int{1, 16, 64, 256, 500, 1000, 4096} {
		cells := (n + 255) / 256
		last := float64(n - 256*(cells-1))
		first := min(256, float64(n))
		// posted stores, read by the interface, switch, matching
		descriptor := 120 + 2*memory + 64/axi + 2*cycles
		read := 2*memory + first/axi
		wire := float64(cells-1)*(256+32)/link + (last+32)/link + 2*6.667 + 106.667 + 2*cycles
		write := cycles + 100 + last/axi + memory // matching, the engine, memory
		notify := 8/axi + memory + 100            // and a look
		notified, ended, stats := once(t, n)
		require.InDelta(t, descriptor+3000+read+wire+write+notify, notified.Seconds()*1e9, 0.05, "%d bytes", n)
		if n == 16 {
			require.InDelta(t, 4000, notified.Seconds()*1e9, 200, "about 4 µs (P)")
			require.Less(t, notified, 4*sim.Microsecond, "hardware below 1 µs (P)")
		}
		// The acknowledgement: 32 bytes, 3 µs of firmware, the status and a
		// look; beside the look of the other side.
		require.InDelta(t, (notified.Seconds()*1e9-100)+32/link+2*6.667+106.667+3*cycles+3000+8/axi+memory+100, ended.Seconds()*1e9, 0.05)
		// Four invocations and no more: descriptor, cells, notification,
		// acknowledgement. The hosts have no part in it.
		require.EqualValues(t, 3+cells, stats.HandlerCalls)
	}
}

// Large transfers take the link: a cell of 256 bytes with 32 bytes around it
// after the other. Nothing was fitted to that.
func TestThroughputIsThatOfTheLink(t *testing.T) {
	const n = 4 << 20
	small, _, _ := once(t, 256)
	large, _, stats := once(t, n)
	const cells, blocks = n / 256, n / 16384 // the destination is at a multiple of 16 KiB
	require.InEpsilon(t, float64(cells-1)*288/2, (large-small).Seconds()*1e9, 0.001)
	gigabits := float64(n) * 8 / (large.Seconds() * 1e9)
	require.InDelta(t, 16*256.0/288, gigabits, 0.05, "TR-488 measures 12.475 Gb/s of MPI")
	require.EqualValues(t, 1+cells+blocks+1, stats.HandlerCalls, "descriptor, a cell each, an acknowledgement for each block, the notification")
	at17, _, _ := once(t, n, "fabric.switch_rate=17Gb/s")
	require.InEpsilon(t, 16.0/17, at17.Seconds()/large.Seconds(), 0.002)
}

// try is a transfer and how it is to end.
type try struct {
	read bool
	t    rdma.Transfer
	want error
}

// tries are transfers of node 0 with node 1 and with node 2, which has another protection domain.
func tries(here, there, other runtime.View) []try {
	at := func(nid uint32, src, dst, n uint64) rdma.Transfer {
		return rdma.Transfer{NID: nid, Source: src, Destination: dst, Length: n}
	}
	const nowhere = 1 << 30
	return []try{
		{false, at(2, here.Addr(), other.Addr(), 5000), rdma.ErrForeign},
		{true, at(2, other.Addr(), here.Addr(), 5000), rdma.ErrForeign},
		{false, at(1, here.Addr(), nowhere, 40000), rdma.ErrDenied},
		{true, at(1, there.Addr(), nowhere, 10), rdma.ErrDenied},
		{false, at(1, nowhere, there.Addr(), 40000), rdma.ErrTimedOut}, // the blocks are never sent
		{true, at(1, nowhere, here.Addr(), 400), rdma.ErrTimedOut},
		{false, rdma.Transfer{NID: 1, Source: here.Addr(), Destination: there.Addr(), Length: 8, Notify: nowhere}, rdma.ErrDenied},
		{false, at(3, here.Addr(), there.Addr(), 8), rdma.ErrIllegal},
		{true, at(3, there.Addr(), here.Addr(), 8), rdma.ErrIllegal},
		{false, at(1, here.Addr(), 1<<rdma.AddressBits-7, 8), rdma.ErrIllegal},
		{true, at(1, 1<<rdma.AddressBits-7, here.Addr(), 8), rdma.ErrIllegal},
		{false, at(1, here.Addr(), there.Addr(), 50000), nil},
		{true, at(1, there.Addr(), here.Addr(), 50000), nil},
	}
}

// named requires that an error names the transfer, and memory that is not there.
func named(t *testing.T, x try, err string) {
	want := fmt.Sprintf("rdma: write of %d bytes at %#x to %#x of %d:0: ", x.t.Length, x.t.Source, x.t.Destination, x.t.NID)
	if x.read {
		want = fmt.Sprintf("rdma: read of %d bytes at %#x into %#x from %d:0: ", x.t.Length, x.t.Source, x.t.Destination, x.t.NID)
	}
	require.True(t, strings.HasPrefix(err, want), err)
	if errors.Is(x.want, rdma.ErrTimedOut) {
		require.Contains(t, err, "no memory at 0x40000000")
	}
}

// What cannot be ends with an error that says so, at the process that asked,
// and leaves the channel for others.
func TestFailures(t *testing.T) {
	c := newCluster(t, 3, nil)
	var there, other runtime.View
	var g [3]*rdma.Page
	fast := map[string]any{"timeout": 20000, "retries": 3}
	c.spawn(0, func(p *runtime.Proc) (err error) {
		here := p.Alloc(1 << 16)
		if g[0], err = c.engine.Open(p, rdma.Options{PDID: 1, State: fast}); err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
		for i, x := range tries(here, there, other) {
			begin := g[0].Write
			if x.read {
				begin = g[0].Read
			}
			w, err := begin(x.t)
			if err != nil {
				return err
			}
			if x.want == nil {
				require.NoError(t, w.Wait(), i)
			} else {
				err := w.Wait()
				require.ErrorIs(t, err, x.want, i)
				named(t, x, err.Error())
			}
		}
		return nil
	})
	serve := func(rank int, pdid uint16, v *runtime.View) {
		c.spawn(rank, func(p *runtime.Proc) (err error) {
			*v = p.Alloc(1 << 16)
			g[rank], err = c.engine.Open(p, rdma.Options{PDID: pdid, State: fast})
			return err
		})
	}
	serve(1, 1, &there)
	serve(2, 7, &other)
	c.run()
	require.Equal(t, make([]byte, 1<<16), other.Snapshot())
	require.Positive(t, g[2].Counts().Received.Foreign)
	require.Zero(t, g[0].Counts().Received.Strange+g[1].Counts().Received.Strange)
}

// Time-outs double up to 64 times, but to no more than a timer can wait: a node
// that is away for long is waited for.
func TestLongTimeouts(t *testing.T) {
	for _, timeout := range []uint64{20_000_000, spin.MaxTimer} {
		c := newCluster(t, 2, nil, "fabric.faults.down=[{node: 1, from: 0ns, to: 12s}]")
		var there runtime.View
		c.spawn(0, func(p *runtime.Proc) error {
			v := p.Alloc(64)
			fill(v.Raw(), 1)
			g, err := c.engine.Open(p, rdma.Options{State: map[string]any{"timeout": timeout}})
			if err != nil {
				return err
			}
			p.Sleep(sim.Microsecond)
			for i, begin := range []func(rdma.Transfer) (*rdma.Pending, error){g.Write, g.Read} {
				from, to := v.Addr(), there.Addr()
				if i == 1 {
					from, to = to, from
				}
				w, err := begin(rdma.Transfer{NID: 1, Source: from, Destination: to, Length: 64})
				require.NoError(t, err)
				require.NoError(t, w.Wait(), i)
			}
			require.Equal(t, v.Snapshot(), there.Snapshot())
			require.Greater(t, p.Now(), 12*sim.Second)
			require.Less(t, p.Now(), 15*sim.Second)
			return nil
		})
		c.spawn(1, func(p *runtime.Proc) (err error) {
			there = p.Alloc(64)
			_, err = c.engine.Open(p, rdma.Options{})
			return err
		})
		c.run()
	}
}

// A node that does not answer is given up, and limits are errors.
func TestLimits(t *testing.T) {
	c := newCluster(t, 2, nil, "fabric.faults.down=[{node: 1, from: 0ns, to: 1s}]")
	c.spawn(0, func(p *runtime.Proc) error {
		v := p.Alloc(64)
		g, err := c.engine.Open(p, rdma.Options{State: map[string]any{"timeout": 10000, "retries": 5}})
		if err != nil {
			return err
		}
		var open []*rdma.Pending
		for range rdma.Writes {
			w, err := g.Write(rdma.Transfer{NID: 1, Source: v.Addr(), Destination: v.Addr(), Length: 64})
			if err != nil {
				return err
			}
			open = append(open, w)
		}
		_, err = g.Write(rdma.Transfer{NID: 1, Source: v.Addr(), Destination: v.Addr(), Length: 64})
		require.ErrorIs(t, err, rdma.ErrNoChannel)
		r, err := g.Read(rdma.Transfer{NID: 1, Source: v.Addr(), Destination: v.Addr(), Length: 64})
		require.NoError(t, err)
		for _, w := range append(open, r) {
			require.ErrorIs(t, w.Wait(), rdma.ErrTimedOut)
		}
		return nil
	})
	c.run()
	for _, wrong := range []map[string]any{{"block": 3000}, {"contexts": 60000}, {"retries": 5000}, {"pdid": 3}, {"timeout": 0}, {"timeout": spin.MaxTimer + 1}, {"nonsense": 1}} {
		c := newCluster(t, 1, nil)
		c.spawn(0, func(p *runtime.Proc) error {
			_, err := c.engine.Open(p, rdma.Options{State: wrong})
			for name := range wrong {
				require.ErrorContains(t, err, name)
			}
			return nil
		})
		c.run()
	}
	c = newCluster(t, 1, nil)
	for i := range rdma.Pages + 1 {
		c.spawn(0, func(p *runtime.Proc) error {
			_, err := c.engine.Open(p, rdma.Options{})
			if i == rdma.Pages {
				require.ErrorIs(t, err, rdma.ErrNoPage)
				return nil
			}
			return err
		})
	}
	c.run()
}

// A process may get RDMA from many others, one after the other: it remembers
// the channel that each has used, not all that each could have.
func TestFromManyProcesses(t *testing.T) {
	const others, n = 1100, 64
	c := newCluster(t, 1+others, nil, "fabric.kind=crossbar", "fabric.radix=0")
	var data runtime.View
	var served *rdma.Page
	c.spawn(0, func(p *runtime.Proc) (err error) {
		data = p.Alloc(n * others)
		served, err = c.engine.Open(p, rdma.Options{PDID: 1})
		return err
	})
	for rank := 1; rank <= others; rank++ {
		c.spawn(rank, func(p *runtime.Proc) error {
			g, err := c.engine.Open(p, rdma.Options{PDID: 1})
			if err != nil {
				return err
			}
			v := p.Alloc(n)
			fill(v.Raw(), byte(rank))
			p.Sleep(sim.Time(rank) * 10 * sim.Microsecond)
			w, err := g.Write(rdma.Transfer{Source: v.Addr(), Destination: data.Addr() + uint64(n*(rank-1)), Length: n})
			if err != nil {
				return err
			}
			return w.Wait()
		})
	}
	c.run()
	require.EqualValues(t, others, served.Counts().Received.Transfers)
	want := make([]byte, n)
	for rank := 1; rank <= others; rank++ {
		fill(want, byte(rank))
		require.Equal(t, want, data.Snapshot()[n*(rank-1):n*rank], "of rank %d", rank)
	}
}
