package part_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// An entry has the bits of the thesis, and comes back from them.
func TestEntry(t *testing.T) {
	f := part.FaultRecord{NID: 0x2abcde, PID: 5, Slot: 0x2345, Sequence: 0x3210, PDID: 0xbeef, Address: 0x7654321 << 12}
	e := f.Encode()
	require.Equal(t, [4]uint32{0x2abcde<<8 | 2<<4 | 1, 0x345<<20 | 0x3210<<4 | 1, 0xbeef<<16 | 0x076<<4 | 3, 0x54321<<12 | 5<<1 | 1}, e.Words)
	rapid.Check(t, func(r *rapid.T) {
		f := part.FaultRecord{
			NID: rapid.Uint32Max(1<<22-1).Draw(r, "nid"), PID: rapid.Uint32Max(1<<11-1).Draw(r, "pid"), Slot: rapid.Uint32Max(1<<14-1).Draw(r, "slot"),
			Sequence: rapid.Uint32Max(1<<14-1).Draw(r, "sequence"), PDID: rapid.Uint32Max(1<<16-1).Draw(r, "pdid"),
			Address: rapid.Uint64Max(1<<27-1).Draw(r, "page") << 12,
		}
		e := f.Encode()
		got, valid := e.Decode()
		require.True(r, valid)
		require.Equal(r, f, got)
	})
}

// world is a node that writes and one whose pages are absent until somebody brings them in.
type world struct {
	t       *testing.T
	c       *runtime.Cluster
	engine  *rdma.Engine
	present map[uint64]bool // pages of rank 1
	pages   [2]*rdma.Page
	dst     runtime.View
	flag    runtime.View
	arrived sim.Time
}

func newWorld(t *testing.T, n int, state map[string]any, driver func(w *world, p *runtime.Proc, q *part.Queue) error, set ...string) *world {
	// memory is absent for the translator below
	prof, err := profile.Load("exanest-qfdb", append(set, "os.kind=none", "smmu.kind=none")...)
	require.NoError(t, err)
	w := &world{t: t, present: map[uint64]bool{}}
	w.c, err = runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2, Translator: w.translator})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.c.Close()) })
	w.engine, err = part.LoadEngine(w.c)
	require.NoError(t, err)
	open := func(p *runtime.Proc) (err error) {
		w.pages[p.Rank()], err = w.engine.Open(p, rdma.Options{PDID: 9, State: state})
		return err
	}
	spawn := func(rank int, name string, f func(p *runtime.Proc) error) {
		require.NoError(t, w.c.Spawn(rank, name, f))
	}
	spawn(0, "writer", func(p *runtime.Proc) error {
		src := p.Alloc(n)
		for i, b := 0, src.Raw(); i < n; i++ {
			b[i] = byte(i*7 + i>>8)
		}
		if err := open(p); err != nil {
			return err
		}
		p.SleepUntil(sim.Microsecond)
		x, err := w.pages[0].Write(rdma.Transfer{NID: 1, Source: src.Addr(), Destination: w.dst.Addr(), Length: uint64(n), Notify: w.flag.Addr(), Value: 1})
		if err != nil {
			return err
		}
		return x.Wait()
	})
	spawn(1, "target", func(p *runtime.Proc) error {
		w.dst, w.flag = p.Alloc(n), p.Alloc(8)
		if err := open(p); err != nil {
			return err
		}
		q, err := part.OpenQueue(w.pages[1])
		if err != nil {
			return err
		}
		if err := driver(w, p, q); err != nil {
			return err
		}
		err = w.pages[1].AwaitNotification(w.flag, 1)
		w.arrived = p.Now() - sim.Microsecond
		return err
	})
	require.NoError(t, w.c.Run(context.Background()))
	failures, count := w.c.Failures()
	require.Zero(t, count, "%v", failures)
	for i, b := range w.dst.Snapshot() {
		require.Equal(t, byte(i*7+i>>8), b, "byte %d", i)
	}
	return w
}

// translator lets pages of the destination fault that are not present.
func (w *world) translator(_ *sim.Engine, rank int, _ *host.Bus) host.Translator {
	return hosttest.Func(func(a *host.Access, off, _ int) host.Status {
		addr, _ := a.At(off)
		from := w.dst.Addr()
		if rank == 1 && a.Direction() == host.ToMemory && w.dst.Len() > 0 && addr >= from && addr < from+uint64(w.dst.Len()) && !w.present[addr>>12] {
			return host.Fault
		}
		return host.OK
	})
}

func (w *world) faults(rank int) (f part.Faults) {
	for name, v := range map[string]*uint64{
		"pushed": &f.Pushed, "merged": &f.Merged, "full": &f.Full, "paused": &f.Paused, "resumed": &f.Resumed, "outdated": &f.Outdated, "foreign": &f.Foreign,
	} {
		n, err := w.pages[rank].Installed().Number("faults." + name)
		require.NoError(w.t, err)
		*v = n.(uint64)
	}
	return f
}

// resolve brings in the page of each fault, 19 µs for each (P), and asks for
// its block, until so many blocks were asked for.
func resolve(blocks int) func(w *world, p *runtime.Proc, q *part.Queue) error {
	return func(w *world, p *runtime.Proc, q *part.Queue) error {
		for range blocks {
			if err := q.Await(); err != nil {
				return err
			}
			f, found := q.Next(p.Thread())
			require.True(w.t, found)
			require.EqualValues(w.t, 0, f.NID)
			require.EqualValues(w.t, 9, f.PDID)
			p.Compute(19 * sim.Microsecond)
			w.present[f.Address>>12] = true
			if err := q.Resume(p.Thread(), &f); err != nil {
				return err
			}
		}
		return nil
	}
}

// A page that is absent costs its cells' way there, the time of whoever brings
// it in, and another way, not a time-out. Its 16 cells are one entry.
func TestFaultIsResolved(t *testing.T) {
	w := newWorld(t, 4096, nil, resolve(1))
	require.Equal(t, part.Faults{Pushed: 1, Merged: 15}, w.faults(1))
	require.Equal(t, part.Faults{Paused: 1, Resumed: 1}, w.faults(0))
	sent := w.pages[0].Counts().Sent
	require.Zero(t, sent.Timeouts)
	require.EqualValues(t, 1, sent.Retransmitted)
	us := w.arrived.Seconds() * 1e6
	require.InDelta(t, 4+19+1+6, us, 1.5, "P: 4 to the first packet, 19 to bring the page in, 1 for the request, 6 for the page again")
}

// Without anybody who resolves, the time-out sends the block again: 1 ms after it began.
func TestTimeoutWithoutRequest(t *testing.T) {
	w := newWorld(t, 4096, nil, func(w *world, p *runtime.Proc, q *part.Queue) error {
		if err := q.Await(); err != nil {
			return err
		}
		w.present[w.dst.Addr()>>12] = true
		return nil
	})
	require.EqualValues(t, 1, w.pages[0].Counts().Sent.Timeouts)
	require.InDelta(t, 1000+3+6, w.arrived.Seconds()*1e6, 2.5)
}

// A request that comes after the time-out has sent the block again is void (T),
// and so is one for another protection domain.
func TestVoidRequests(t *testing.T) {
	w := newWorld(t, 4096, map[string]any{"rdma.timeout": 30000}, func(w *world, p *runtime.Proc, q *part.Queue) error {
		if err := q.Await(); err != nil {
			return err
		}
		f, _ := q.Next(p.Thread())
		foreign := f
		foreign.PDID++
		if err := q.Resume(p.Thread(), &foreign); err != nil {
			return err
		}
		p.Compute(40 * sim.Microsecond)
		w.present[f.Address>>12] = true
		return q.Resume(p.Thread(), &f)
	})
	got := w.faults(0)
	require.EqualValues(t, 1, got.Outdated)
	require.EqualValues(t, 1, got.Foreign)
	require.Zero(t, got.Resumed)
	require.NotZero(t, w.pages[0].Counts().Sent.Timeouts)
}

// With NTO only the request sends the block again; one that was lost makes up for by the guard.
func TestNoTimeout(t *testing.T) {
	state := map[string]any{"nto": 1, "guard": 5000000, "rdma.timeout": 100000}
	late := func(lost bool) func(w *world, p *runtime.Proc, q *part.Queue) error {
		return func(w *world, p *runtime.Proc, q *part.Queue) error {
			if err := q.Await(); err != nil {
				return err
			}
			f, _ := q.Next(p.Thread())
			p.Compute(2 * sim.Millisecond)
			w.present[f.Address>>12] = true
			if lost {
				return nil
			}
			return q.Resume(p.Thread(), &f)
		}
	}
	w := newWorld(t, 4096, state, late(false))
	require.Zero(t, w.pages[0].Counts().Sent.Timeouts)
	require.InDelta(t, 2012, w.arrived.Seconds()*1e6, 3)
	w = newWorld(t, 4096, state, late(true))
	require.EqualValues(t, 1, w.pages[0].Counts().Sent.Timeouts)
	require.InDelta(t, 5012, w.arrived.Seconds()*1e6, 5)
}

// Every page of a transfer is absent: each is asked for by itself, all bytes
// arrive, and no time-out is needed.
func TestEveryPageFaults(t *testing.T) {
	const pages = 16
	w := newWorld(t, pages*4096, nil, func(w *world, p *runtime.Proc, q *part.Queue) error {
		for idle := 0; idle < 10; {
			f, found := q.Next(p.Thread())
			if !found {
				p.Sleep(20 * sim.Microsecond)
				idle++
				continue
			}
			idle = 0
			if !w.present[f.Address>>12] {
				p.Compute(9 * sim.Microsecond)
				w.present[f.Address>>12] = true
			}
			if err := q.Resume(p.Thread(), &f); err != nil {
				return err
			}
		}
		return nil
	})
	require.Zero(t, w.pages[0].Counts().Sent.Timeouts)
	require.Zero(t, w.faults(1).Full)
	require.EqualValues(t, 4, w.pages[1].Counts().Received.Blocks)
}

// A FIFO that is full drops faults, which are counted; their blocks come again by themselves.
func TestFullFIFO(t *testing.T) {
	const n = 16 * 4096
	w := newWorld(t, n, map[string]any{"rdma.timeout": 40000, "rdma.back_off": 4095}, func(w *world, p *runtime.Proc, q *part.Queue) error {
		for w.faults(1).Full == 0 {
			p.Sleep(100 * sim.Microsecond)
		}
		for at := w.dst.Addr(); at < w.dst.Addr()+n; at += 4096 {
			w.present[at>>12] = true
		}
		return drain(w, p, q)
	})
	require.EqualValues(t, part.Entries, w.faults(1).Pushed)
	require.NotZero(t, w.faults(0).Outdated)
}

// drain asks for all blocks of the FIFO.
func drain(_ *world, p *runtime.Proc, q *part.Queue) error {
	for {
		f, found := q.Next(p.Thread())
		if !found {
			return nil
		}
		if err := q.Resume(p.Thread(), &f); err != nil {
			return err
		}
	}
}
