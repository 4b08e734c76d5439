package rnr

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// pair is two processes with a connection, on nodes 0 and 1.
type pair struct {
	o    Options
	set  []string
	seed uint64
	main [2]func(p *runtime.Proc, c *Conn) error

	lib   *Loaded
	conn  [2]*Conn
	end   [2]sim.Time
	state [2]State // in the end
}

func (r *pair) run(t testing.TB) {
	t.Helper()
	prof, err := profile.Load("ib-npf", append([]string{"smmu.stale=poison"}, r.set...)...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2, Seed: r.seed})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	r.lib, err = Load(c, r.o)
	require.NoError(t, err)
	for i := range r.main {
		require.NoError(t, c.Spawn(i, fmt.Sprintf("end %d", i), func(p *runtime.Proc) error {
			conn, err := r.lib.Connect(p, "pair")
			if err != nil {
				return err
			}
			r.conn[i] = conn
			defer func() { r.end[i] = p.Now() }()
			return r.main[i](p, conn)
		}))
	}
	err = c.Run(context.Background())
	for i := range 2 {
		if r.conn[i] != nil {
			r.state[i] = r.conn[i].State()
		}
		if err != nil {
			s := r.state[i]
			t.Logf("%v %+v\n%+v\n%+v\n%+v\n%b %b %v", r.set, r.o, s.Requester, s.Responder, s.Stats, s.InFlight, s.Missed, s.Report)
		}
	}
	require.NoError(t, err, "seed %d", r.seed)
	failures, count := c.Failures()
	require.Zero(t, count, "seed %d: %v", r.seed, failures)
	for i := range 2 {
		if k := c.Node(i).Kernel(); k != nil {
			require.NoError(t, k.Audit())
		}
	}
}

// fill writes the bytes of a number.
func fill(b []byte, number int) {
	for i := range b {
		b[i] = byte(number*31 + i + i>>8*7 + i>>16)
	}
}

func same(b []byte, number int) error {
	want := make([]byte, len(b))
	fill(want, number)
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d of message %d is %d, expected %d", i, number, b[i], want[i])
		}
	}
	return nil
}

// transfer sends a message and reports how long it took until it was there, and
// until its sender knew. side says whose memory is there.
func (r *pair) transfer(t testing.TB, n int, there func(side int) bool) (arrived, known sim.Time) {
	t.Helper()
	const start = 10 * sim.Millisecond
	memory := func(p *runtime.Proc, side int) runtime.View {
		v := p.Alloc(n)
		if there(side) {
			fill(v.Raw(), side)
		}
		p.SleepUntil(start)
		return v
	}
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			w, err := c.PostSend(memory(p, 0))
			if err != nil {
				return err
			}
			_, err = w.Wait()
			known = p.Now() - start
			return err
		},
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(n)
			if there(1) {
				v.Raw()
			}
			w, err := c.PostReceive(v)
			if err != nil {
				return err
			}
			got, err := w.Wait()
			if err != nil || got != n {
				return fmt.Errorf("%d bytes, %w", got, err)
			}
			arrived = p.Now() - start
			if there(0) {
				return same(v.Read(), 0)
			}
			return nil
		},
	}
	r.run(t)
	return arrived, known
}

func all(int) bool { return true }

func only(side int) func(int) bool { return func(i int) bool { return i == side } }

// A message of memory that is there takes what the slowest of link and bus
// needs, but for the way of a packet: nothing stops.
func TestTakesTheLink(t *testing.T) {
	var r pair
	const n = 4 << 20
	arrived, _ := r.transfer(t, n, all)
	link := float64(n/4096*(4096+26)) * 8 / 54.545 * float64(sim.Nanosecond)
	require.InDelta(t, link, float64(arrived), 0.02*link)
	require.Zero(t, r.state[0].Stats.Faults+r.state[1].Stats.Faults+r.state[0].Stats.Again)
}

// What a fault of a sender costs, which NPF'17 gives: 220 us with a page, 350
// us with 1,024 of a work request in one go, and 220 us for each of them if
// they are reported one by one.
func TestFaultOfASenderTakesItsTime(t *testing.T) {
	for _, c := range []struct {
		pages int
		o     Options
		want  sim.Time
	}{
		{1, Options{}, 220 * sim.Microsecond}, {1024, Options{}, 353 * sim.Microsecond}, {64, Options{OnePage: true}, 64 * 220 * sim.Microsecond},
	} {
		r, warm := pair{o: c.o}, pair{o: c.o}
		with, _ := r.transfer(t, c.pages*host.PageBytes, only(1))
		without, _ := warm.transfer(t, c.pages*host.PageBytes, all)
		faults := uint64(1)
		if c.o.OnePage {
			faults = uint64(c.pages)
		}
		require.Equal(t, faults, r.state[0].Stats.Reported)
		require.InDelta(t, float64(c.want), float64(with-without), 0.012*float64(c.want), "%d pages", c.pages)
		require.Zero(t, r.state[1].Stats.RNR)
	}
}

// A receiver's fault pauses the sender for t; what still arrives is dropped,
// and comes again from the number on that was refused. With a t that is over
// too early the sender is refused again, and nothing is reported twice.
func TestReceiverPauses(t *testing.T) {
	const n = 64 << 10
	var warm pair
	without, _ := warm.transfer(t, n, all)
	for code, times := range map[int]int{9: 1, 7: 2, 1: 18, 12: 1} { //lint:maporder each is a run by itself
		r := pair{o: Options{Pause: code}}
		with, _ := r.transfer(t, n, only(0))
		x := &r.state[1].Stats
		require.EqualValues(t, 1, x.Reported, "code %d", code)
		require.InDelta(t, times, int(x.RNR), 1, "code %d", code)
		require.Equal(t, x.RNR, x.Faults)
		pauses := sim.Time(x.RNR) * Pause(code)
		require.InDelta(t, float64(without+pauses), float64(with), float64(x.RNR)*float64(3*sim.Microsecond)+float64(12*sim.Microsecond), "code %d", code)
		require.Positive(t, x.Dropped)
		require.Positive(t, r.state[0].Stats.Again)
	}
}

// A reader has no way to ask the other end to wait: it drops what comes, and
// asks again from where memory was absent when that is there.
func TestReaderRewinds(t *testing.T) {
	const n = 64 << 10
	var took sim.Time
	source := make(chan uint64, 1)
	var r pair
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(n)
			v.Slice(0, 4096).Raw()
			p.SleepUntil(10 * sim.Millisecond)
			w, err := c.PostRead(<-source, v)
			if err != nil {
				return err
			}
			if got, err := w.Wait(); err != nil || got != n {
				return fmt.Errorf("%d bytes, %w", got, err)
			}
			took = p.Now() - 10*sim.Millisecond
			return same(v.Read(), 5)
		},
		func(p *runtime.Proc, _ *Conn) error {
			v := p.Alloc(n)
			fill(v.Raw(), 5)
			source <- v.Addr()
			p.Sleep(20 * sim.Millisecond)
			return nil
		},
	}
	r.run(t)
	x := &r.state[0].Stats
	require.EqualValues(t, 1, x.Rewinds)
	require.EqualValues(t, 1, x.Reported)
	require.EqualValues(t, 15, r.state[1].Stats.Packets-16, "all but the page that was there come twice")
	require.EqualValues(t, 31, x.Dropped+x.Arrived)
	require.InDelta(t, 13, float64(x.Dropped), 1, "behind the one that was refused, but for what was on its way into memory")
	require.Zero(t, r.state[1].Stats.RNR)
	require.InDelta(t, float64(220*sim.Microsecond), float64(took), float64(25*sim.Microsecond))
}

// Errors break a connection, on both sides, and all that is outstanding ends with them.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct { //lint:maporder each is a run by itself
		post  func(p *runtime.Proc, c *Conn, v runtime.View) (*Work, error)
		here  error
		there error
	}{
		"write to nothing": {func(_ *runtime.Proc, c *Conn, v runtime.View) (*Work, error) {
			return c.PostWrite(1<<40, v)
		}, ErrRemote, ErrLocal},
		"read from nothing": {func(_ *runtime.Proc, c *Conn, v runtime.View) (*Work, error) {
			return c.PostRead(1<<40, v)
		}, ErrRemote, ErrLocal},
		"too long": {func(_ *runtime.Proc, c *Conn, v runtime.View) (*Work, error) {
			return c.PostSend(v, v.Slice(0, 1))
		}, ErrTooLong, ErrTooLong},
		"unmapped": {func(p *runtime.Proc, c *Conn, v runtime.View) (*Work, error) {
			w, err := c.PostSend(v)
			if err != nil {
				return nil, err
			}
			return w, p.OS().Unmap(p.Thread(), v.Addr(), uint64(v.Len()))
		}, ErrLocal, ErrRemote},
	} {
		var r pair
		r.main = [2]func(p *runtime.Proc, c *Conn) error{
			func(p *runtime.Proc, conn *Conn) error {
				w, err := c.post(p, conn, p.Alloc(8192))
				if err != nil {
					return err
				}
				_, err = w.Wait()
				require.ErrorIs(t, err, c.here, name)
				require.ErrorContains(t, err, `rnr: connection "pair" of process end 0: `)
				return nil
			},
			func(p *runtime.Proc, conn *Conn) error {
				w, err := conn.PostReceive(p.Alloc(8192))
				if err != nil {
					return err
				}
				_, err = w.Wait()
				require.ErrorIs(t, err, c.there, name)
				require.ErrorIs(t, conn.Err(), c.there, name)
				return nil
			},
		}
		r.run(t)
	}
}

// Nobody answers: after seven time-outs the connection is broken.
func TestTimesOut(t *testing.T) {
	r := pair{o: Options{Timeout: 100 * sim.Microsecond}, set: []string{"fabric.faults.loss=1"}}
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(100)
			v.Raw()
			w, err := c.PostSend(v)
			if err != nil {
				return err
			}
			_, err = w.Wait()
			require.ErrorIs(t, err, ErrTimedOut)
			require.InDelta(t, float64(800*sim.Microsecond), float64(p.Now()), float64(20*sim.Microsecond))
			return nil
		},
		func(p *runtime.Proc, _ *Conn) error { p.Sleep(sim.Millisecond); return nil },
	}
	r.run(t)
}

// What cannot be meant is an error at once.
func TestMisuse(t *testing.T) {
	var r pair
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(10)
			_, err := c.PostSend(v, v, v, v, v)
			require.EqualError(t, err, "rnr: 5 ranges of a work request, expected at most 4")
			_, err = c.PostWrite(1<<48-5, v)
			require.ErrorContains(t, err, "expected addresses below 2^48")
			for range MaxWork {
				_, err = c.PostReceive(v)
				require.NoError(t, err)
			}
			_, err = c.PostReceive(v)
			require.ErrorIs(t, err, ErrFull)
			_, err = r.lib.Connect(p, "late")
			require.Error(t, err)
			return nil
		},
		func(p *runtime.Proc, _ *Conn) error {
			_, err := r.lib.Connect(p, "pair")
			require.EqualError(t, err, `rnr: connection "pair" has two ends`)
			return nil
		},
	}
	r.run(t)
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for _, o := range []Options{{Pause: 32}, {Pause: -2}, {Timeout: -1}, {Timeout: 2 * sim.Second}} {
		_, err = Load(c, o)
		require.ErrorContains(t, err, "rnr: ")
	}
}

// The numbers of packets are 24 bits on the wire: a connection goes on behind 2^24 of them.
func TestNumbersWrap(t *testing.T) {
	for _, n := range []uint64{0, 5, 1<<24 - 3, 1 << 24, 1<<24 + 7, 1 << 40} {
		for d := int64(-1000); d <= 1000; d += 250 {
			if full := n + uint64(d); d >= 0 || n >= uint64(-d) {
				require.Equal(t, full, Full(uint32(full)&PSNMask, n))
			}
		}
	}
}
