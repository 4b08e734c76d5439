package rnr

import (
	"errors"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const page = host.PageBytes

// Faults of a connection whose four wait for storage, 10 ms each, have no
// fifth. Another connection of the same two processes sends meanwhile what it
// sends without them in the same time, and reports a fault of its own, which is
// resolved while those four are not.
func TestOtherConnectionsAreNotHeldUp(t *testing.T) {
	without, _, _ := besideFaults(t, false)
	with, most, reported := besideFaults(t, true)
	require.Equal(t, Types, most, "four at a time")
	require.EqualValues(t, Types, reported, "until the first of them is resolved")
	require.Equal(t, without[0], with[0], "nothing absent: nothing is held up")
	require.InDelta(t, float64(without[1]), float64(with[1]), float64(sim.Microsecond), "a fault of its own")
	require.Greater(t, with[1], with[0]+220*sim.Microsecond)
	require.Less(t, with[1], sim.Millisecond)
}

// besideFaults measures messages of a connection, of memory that is there and
// of memory whose first page is not, with or without four faults of another one
// at each end. It returns how many those have outstanding then.
func besideFaults(t *testing.T, four bool) (took [2]sim.Time, most int, reported uint64) {
	t.Helper()
	const start, n = 50 * sim.Millisecond, 64 << 10
	var r pair
	var at [2]uint64
	for side := range r.main {
		r.main[side] = func(p *runtime.Proc, c *Conn) error {
			second, err := r.lib.Connect(p, "second")
			if err != nil {
				return err
			}
			v, mine := p.Alloc(6*page), p.Alloc(n)
			v.Raw()
			mine.Raw()
			// 0: memory for a read; 1: what is read; 2: what is written to; 3:
			// what is written; 4, 5 are there
			if at[side] = v.Addr(); four {
				if err := p.OS().PageOut(p.Thread(), v.Addr(), 4*page); err != nil {
					return err
				}
			}
			p.SleepUntil(start)
			works, err := meets(c, v, at[1-side])
			if err != nil {
				return err
			}
			p.SleepUntil(start + 2*sim.Millisecond)
			if took, err = speaks(p, second, mine, side == 0, took); err != nil {
				return err
			}
			s := c.State()
			if most, reported = bits.OnesCount64(s.InFlight), s.Stats.Reported; p.Now() > start+8*sim.Millisecond {
				return errors.New("storage has answered: this compares nothing")
			}
			for _, w := range works {
				if _, err := w.Wait(); err != nil {
					return err
				}
			}
			p.Sleep(100 * sim.Millisecond) // the other end's
			return nil
		}
	}
	r.run(t)
	return took, most, reported
}

// meets posts what meets all four absent pages, at this and at the other end, and some more.
func meets(c *Conn, v runtime.View, other uint64) (works []*Work, err error) {
	for _, post := range []func() (*Work, error){
		func() (*Work, error) { return c.PostRead(other+4*page, v.Slice(0, page)) },
		func() (*Work, error) { return c.PostRead(other+page, v.Slice(5*page, 6*page)) },
		func() (*Work, error) { return c.PostWrite(other+2*page, v.Slice(4*page, 5*page)) },
		func() (*Work, error) { return c.PostWrite(other+5*page, v.Slice(3*page, 4*page)) },
		func() (*Work, error) { return c.PostRead(other+page, v.Slice(0, page)) },
		func() (*Work, error) { return c.PostWrite(other+2*page, v.Slice(3*page, 4*page)) },
	} {
		w, err := post()
		if err != nil {
			return nil, err
		}
		works = append(works, w)
	}
	return works, nil
}

// speaks sends two messages, of the second of which the first page is absent,
// or receives them. It returns what sending them takes.
func speaks(p *runtime.Proc, c *Conn, v runtime.View, sender bool, took [2]sim.Time) ([2]sim.Time, error) {
	for i := range took {
		post := c.PostReceive
		if sender {
			if post = c.PostSend; i == 1 {
				if err := p.OS().Discard(p.Thread(), v.Addr(), page); err != nil {
					return took, err
				}
			}
			p.Sleep(100 * sim.Microsecond)
		}
		begin := p.Now()
		w, err := post(v)
		if err != nil {
			return took, err
		}
		if _, err := w.Wait(); err != nil {
			return took, err
		}
		if sender {
			took[i] = p.Now() - begin
		}
	}
	return took, nil
}

// NPF'17 §4: "after resolving the NPF, the driver first informs the hardware it
// can resume transmission (faster); the firmware still needs to be notified too
// (slower)". Each store of the driver takes nic.overhead: were the firmware
// told first, the message would come by one more of them later. With reports of
// one page nobody tells the firmware at all.
func TestHardwareIsToldFirst(t *testing.T) {
	late := func(o Options, set ...string) sim.Time {
		r, warm := pair{o: o, set: set}, pair{o: o, set: set}
		with, _ := r.transfer(t, page, only(1))
		without, _ := warm.transfer(t, page, all)
		return with - without
	}
	for _, o := range []Options{{}, {OnePage: true}} {
		const longer = 50 * sim.Microsecond
		require.Equal(t, longer, late(o, "nic.overhead=50.1us")-late(o), "one store, not two, comes before the hardware goes on: %+v", o)
	}
}

// Until the firmware has learned that a fault is resolved another one of its
// type is not reported, though the hardware has gone on: a message that follows
// at once waits for the firmware to be told, 198 us, and for its own report.
func TestFirmwareLearnsLater(t *testing.T) {
	second := func(pause sim.Time) sim.Time {
		var r pair
		var took sim.Time
		r.main = [2]func(p *runtime.Proc, c *Conn) error{
			func(p *runtime.Proc, c *Conn) error {
				v := p.Alloc(2 * page)
				p.SleepUntil(10 * sim.Millisecond)
				for i := range 2 {
					begin := p.Now()
					w, err := c.PostSend(v.Slice(i*page, (i+1)*page))
					if err != nil {
						return err
					}
					if _, err := w.Wait(); err != nil {
						return err
					}
					took = p.Now() - begin
					p.Sleep(pause)
				}
				return nil
			},
			func(p *runtime.Proc, c *Conn) error {
				v := p.Alloc(2 * page)
				v.Raw()
				for i := range 2 {
					w, err := c.PostReceive(v.Slice(i*page, (i+1)*page))
					if err != nil {
						return err
					}
					if _, err := w.Wait(); err != nil {
						return err
					}
				}
				return nil
			},
		}
		r.run(t)
		require.EqualValues(t, 2, r.state[0].Stats.Reported)
		return took
	}
	require.InDelta(t, float64(198*sim.Microsecond), float64(second(0)-second(sim.Millisecond)), float64(10*sim.Microsecond))
}

// A batch is a work request: one report brings in all that its ranges still
// need from the absent page on, and no page that is before it. As ATS and PRI
// have it each page is a report of its own, and brings itself in.
func TestBatchIsAWorkRequest(t *testing.T) {
	for _, c := range []struct {
		o        Options
		there    []int // pages
		reports  uint64
		pages    int64
		receiver bool
	}{
		{o: Options{}, reports: 1, pages: 12},
		// from the second page of the second range
		{o: Options{}, there: []int{0, 1, 2, 3}, reports: 1, pages: 8},
		{o: Options{OnePage: true}, reports: 12, pages: 12},
		{o: Options{OnePage: true}, there: []int{0, 5, 11}, reports: 9, pages: 9},
		{o: Options{Pause: 12}, reports: 1, pages: 12, receiver: true},
		{o: Options{Pause: 12}, there: []int{0, 1, 2, 3}, reports: 1, pages: 8, receiver: true},
		{o: Options{Pause: 12, OnePage: true}, reports: 12, pages: 12, receiver: true},
	} {
		r := pair{o: c.o}
		faulty := 0
		if c.receiver {
			faulty = 1
		}
		for side := range r.main {
			r.main[side] = func(p *runtime.Proc, conn *Conn) error {
				v := p.Alloc(15 * page)
				var list []runtime.View // of three pages each, with one that is not used between them
				for i := range 4 {      // the last page has a byte
					list = append(list, v.Slice(4*i*page, (4*i+2)*page+1))
				}
				for i := range 12 {
					if side != faulty {
						list[i/3].Slice(i%3*page, i%3*page+1).Raw()
					}
				}
				for _, i := range c.there {
					list[i/3].Slice(i%3*page, i%3*page+1).Raw()
				}
				p.SleepUntil(10 * sim.Millisecond)
				post := conn.PostSend
				if side == 1 {
					post = conn.PostReceive
				}
				w, err := post(list...)
				if err != nil {
					return err
				}
				_, err = w.Wait()
				return err
			}
		}
		r.run(t)
		require.Equal(t, c.reports, r.state[faulty].Stats.Reported, "%+v", c)
		require.Equal(t, c.pages, r.lib.Stats(faulty).Pages, "%+v", c)
		require.EqualValues(t, c.reports, r.lib.Stats(faulty).Faults, "%+v", c)
	}
}

// Memory that a process has, but not for what is done to it, is refused by the
// driver: the connection breaks instead of asking the other end to pause for
// ever.
func TestProtectedMemoryIsRefused(t *testing.T) {
	var r pair
	waits := func(p *runtime.Proc, w *Work, want error) error {
		for !w.Done() && p.Now() < 100*sim.Millisecond {
			p.Sleep(sim.Millisecond)
		}
		require.Less(t, p.Now(), 100*sim.Millisecond)
		_, err := w.Wait()
		require.ErrorIs(t, err, want)
		return nil
	}
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(page)
			v.Raw()
			w, err := c.PostSend(v)
			if err != nil {
				return err
			}
			return waits(p, w, ErrRemote)
		},
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(page)
			if err := p.OS().Protect(p.Thread(), v.Addr(), page, host.ProtRead); err != nil {
				return err
			}
			w, err := c.PostReceive(v)
			if err != nil {
				return err
			}
			return waits(p, w, ErrLocal)
		},
	}
	r.run(t)
	require.EqualValues(t, 1, r.lib.Stats(1).Refused)
}

// The invalidation flow (NPF'17 §4, figure 2): the operating system asks the
// driver, which tells the interface; that acknowledges when nothing that it has
// fetched, or writes, of the pages is on its way any more; only then they are
// given away. Memory is given up in each half microsecond of a message to it,
// or of it: with stale translations poisoned no byte goes to a frame that is
// another's, what comes meets the pages as absent, and giving up takes what it
// takes at rest, or until the accesses that are on their way have ended.
func TestInvalidationRacesTheInterface(t *testing.T) {
	// unmap_call, unmap_page, invalidate and acknowledge
	const start, rest = 10 * sim.Millisecond, 3600 * sim.Nanosecond
	for _, side := range []int{0, 1} {
		most, faults := sim.Time(0), uint64(0)
		for after := sim.Time(0); after < 25*sim.Microsecond; after += 500 * sim.Nanosecond {
			r := pair{set: []string{"dma.latency=5us"}}
			var took sim.Time
			for i := range r.main {
				r.main[i] = func(p *runtime.Proc, c *Conn) error {
					v := p.Alloc(page)
					fill(v.Raw(), 0)
					p.SleepUntil(start)
					post := []func(...runtime.View) (*Work, error){c.PostSend, c.PostReceive}[i]
					w, err := post(v)
					if err != nil {
						return err
					}
					if i == side {
						p.Sleep(after)
						begin := p.Now()
						if err := p.OS().Discard(p.Thread(), v.Addr(), page); err != nil {
							return err
						}
						took = p.Now() - begin
					}
					if _, err := w.Wait(); err != nil {
						return err
					}
					if b := v.Read(); side == i {
						require.True(t, same(b, 0) == nil || string(b) == string(make([]byte, page)), "all or nothing of it")
					}
					return nil
				}
			}
			r.run(t)
			require.GreaterOrEqual(t, took, rest)
			most = max(most, took)
			faults += r.state[side].Stats.Reported
		}
		require.Greater(t, most, rest+2*sim.Microsecond, "side %d: something was on its way", side)
		require.Positive(t, faults, "side %d", side)
	}
}

// What is sent need not be memory that may be written: the driver asks for what
// the device does to it. And of a receive only what a message needs is to be
// there: the rest, which the driver brings in with it, may be refused.
func TestDriverAsksForWhatIsDone(t *testing.T) {
	var r pair
	r.main = [2]func(p *runtime.Proc, c *Conn) error{
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(page)
			fill(v.Raw(), 0)
			err := p.OS().PageOut(p.Thread(), v.Addr(), page)
			if err = errors.Join(err, p.OS().Protect(p.Thread(), v.Addr(), page, host.ProtRead)); err != nil {
				return err
			}
			w, err := c.PostSend(v)
			if err != nil {
				return err
			}
			_, err = w.Wait()
			return err
		},
		func(p *runtime.Proc, c *Conn) error {
			v := p.Alloc(3 * page)
			if err := p.OS().Protect(p.Thread(), v.Addr()+page, 2*page, host.ProtRead); err != nil {
				return err
			}
			w, err := c.PostReceive(v)
			if err != nil {
				return err
			}
			if _, err := w.Wait(); err != nil {
				return err
			}
			return same(v.Slice(0, page).Read(), 0)
		},
	}
	r.run(t)
	for side, s := range r.state {
		require.EqualValues(t, 1, s.Stats.Reported)
		require.Zero(t, r.lib.Stats(side).Refused)
	}
}
