package mpi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// newWorld returns a world of ranks on a small network with packets of 512 B.
func newWorld(t testing.TB, ranks int, o mpi.Options, cfg runtime.Config, overrides ...string) *mpi.World {
	return makeWorld(t, t.Cleanup, ranks, o, cfg, overrides...)
}

func makeWorld(t require.TestingT, cleanup func(func()), ranks int, o mpi.Options, cfg runtime.Config, overrides ...string) *mpi.World {
	return worldWith(t, cleanup, "spin-int", ranks, o, cfg, append(overrides, "fabric.mtu=512")...)
}

// worldWith returns a world of ranks on nodes of the named profile.
func worldWith(t require.TestingT, cleanup func(func()), name string, ranks int, o mpi.Options, cfg runtime.Config, overrides ...string) *mpi.World {
	p, err := profile.Load(name, overrides...)
	require.NoError(t, err)
	o.Ranks = ranks
	cfg.Profile, cfg.Nodes = p, o.Nodes(ranks)
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	cleanup(func() { require.NoError(t, c.Close()) })
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	return w
}

func options(m mpi.Matching) mpi.Options {
	return mpi.Options{Matching: m, Eager: 1000, Buffers: 3, BufferBytes: 4096}
}

// fill writes the payload of a message. Payloads of different messages differ
// in almost every byte.
func fill(b []byte, s mpi.Status) {
	x := uint64(s.Source)*0x9e3779b97f4a7c15 ^ uint64(s.Tag)*0xbf58476d1ce4e5b9 ^ uint64(s.Sequence)*0x94d049bb133111eb
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x >> 56)
	}
}

// The four cases of sPIN'17 §5.1, and who copies what in each case.
func TestCases(t *testing.T) {
	const small, large = 700, 5000
	first := 512 - 16 // bytes in the announcement
	for _, test := range []struct {
		form                mpi.Matching
		bytes               int
		late                bool
		copied, copiedBytes int
	}{
		{mpi.Offload, small, false, 0, 0},
		{mpi.Offload, small, true, 1, small},
		{mpi.Offload, large, false, 0, 0},
		{mpi.Offload, large, true, 1, first},
		{mpi.Host, small, false, 1, small},
		{mpi.Host, small, true, 1, small},
		{mpi.Host, large, false, 0, 0},
		{mpi.Host, large, true, 0, 0},
		{mpi.Offload, 0, false, 0, 0},
		{mpi.Host, 0, true, 0, 0},
	} {
		for _, source := range []int{0, mpi.AnySource} {
			for _, tag := range []uint32{7, mpi.AnyTag} {
				t.Run(fmt.Sprintf("%s/%d/%v/%d/%d", test.form, test.bytes, test.late, source, tag), func(t *testing.T) {
					w := newWorld(t, 2, options(test.form), runtime.Config{})
					exchange(t, w, test.bytes, test.late, source, tag)
					s := w.Stats()
					require.EqualValues(t, 1, s.Sent)
					require.EqualValues(t, 1, s.Received)
					require.EqualValues(t, test.bytes, s.SentBytes)
					require.Equal(t, []int{test.copied, test.copiedBytes}, []int{int(s.Copied), int(s.CopiedBytes)})
					require.Equal(t, test.late, s.Unexpected == 1)
					require.Equal(t, test.bytes == large, s.Large == 1)
				})
			}
		}
	}
}

// exchange sends one message from rank 0 to rank 1. With late, rank 1 posts its
// receive long after the message has come.
func exchange(t *testing.T, w *mpi.World, n int, late bool, source int, tag uint32) {
	sent := mpi.Status{Source: 0, Tag: 7, Bytes: n}
	require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
		data, err := r.Alloc(n + 1)
		if err != nil {
			return err
		}
		fill(data.Slice(0, n).Write(), sent)
		if !late {
			r.Compute(sim.Microsecond)
		}
		q, err := r.Isend(data.Slice(0, n), 1, 7)
		if err != nil {
			return err
		}
		_, err = r.Wait(q)
		return err
	}))
	require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
		data, err := r.Alloc(8192)
		if err != nil {
			return err
		}
		if late {
			r.Compute(20 * sim.Microsecond)
			// with Host the message becomes unexpected here
			if q, err := r.Test(); q != nil || err != nil {
				return fmt.Errorf("something is over that never began: %v, %w", q, err)
			}
		}
		q, err := r.Irecv(data.Slice(16, 8016), source, tag)
		if err != nil {
			return err
		}
		got, err := r.Wait(q)
		if err != nil {
			return err
		}
		want := make([]byte, n)
		fill(want, sent)
		require.Equal(t, sent, got)
		b := data.Read()
		require.Equal(t, want, b[16:16+n])
		require.Equal(t, make([]byte, 16), b[:16])
		require.Equal(t, make([]byte, 16), b[16+n:32+n])
		return nil
	}))
	require.NoError(t, w.Run(context.Background()))
}

// Offloading exists for this: a large message arrives while the receiver
// computes.
func TestLargeMessageArrivesDuringComputation(t *testing.T) {
	const busy = 100 * sim.Microsecond
	waited := make(map[mpi.Matching]sim.Time)
	for _, form := range mpi.Forms() {
		w := newWorld(t, 2, options(form), runtime.Config{})
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
			data, err := r.Alloc(100_000)
			if err != nil {
				return err
			}
			r.Compute(sim.Microsecond)
			q, err := r.Isend(data, 1, 0)
			if err != nil {
				return err
			}
			_, err = r.Wait(q)
			return err
		}))
		require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
			data, err := r.Alloc(100_000)
			if err != nil {
				return err
			}
			q, err := r.Irecv(data, 0, 0)
			if err != nil {
				return err
			}
			r.Compute(busy)
			before := r.Now()
			_, err = r.Wait(q)
			waited[form] = r.Now() - before
			return err
		}))
		require.NoError(t, w.Run(context.Background()))
	}
	require.Equal(t, 51*sim.Nanosecond, waited[mpi.Offload], "a look at the completion")
	require.Greater(t, waited[mpi.Host], 2*sim.Microsecond, "100,000 B at 50 B/ns")
}

func TestErrors(t *testing.T) {
	for _, form := range mpi.Forms() {
		// The error for a message too long for its receive names both lengths.
		for _, sizes := range [][2]int{{8, 4}, {900, 800}, {5000, 900}, {5000, 4999}} {
			w := newWorld(t, 2, options(form), runtime.Config{})
			require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
				data, err := r.Alloc(8192)
				if err != nil {
					return err
				}
				_, err = r.Isend(data.Slice(0, sizes[0]), 1, 3)
				return err
			}))
			require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
				data, err := r.Alloc(8192)
				if err != nil {
					return err
				}
				q, err := r.Irecv(data.Slice(0, sizes[1]), 0, 3)
				if err != nil {
					return err
				}
				_, err = r.Wait(q)
				return err
			}))
			require.ErrorContains(t, w.Run(context.Background()),
				fmt.Sprintf("message of %d B from rank 0 with tag 3 is longer than its receive of %d B", sizes[0], sizes[1]))
		}

		// Messages without a receive fill the buffers; an error reports the
		// loss.
		w := newWorld(t, 2, options(form), runtime.Config{})
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
			data, err := r.Alloc(1000)
			if err != nil {
				return err
			}
			for range 20 {
				if _, err := r.Isend(data, 1, 0); err != nil {
					return err
				}
			}
			return nil
		}))
		require.NoError(t, w.Spawn(1, func(*mpi.Rank) error { return nil }))
		require.ErrorContains(t, w.Run(context.Background()), "rank 1 refused 8 messages for good: its program has ended, and its 3 buffers of 4096 B are full of messages")
	}
}

// A message for which a NIC has no room ends the run with an error that names
// it, even if the ranks wait for ever.
func TestLostMessagesAreNamed(t *testing.T) {
	const senders, large = 8, 5000
	w := newWorld(t, senders+1, options(mpi.Offload), runtime.Config{}, "hpu.cores=1", "hpu.contexts=1", "hpu.clock=10MHz", "hpu.waiting_handlers=1")
	for rank := 1; rank <= senders; rank++ {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			data, err := r.Alloc(large)
			if err != nil {
				return err
			}
			_, err = r.Isend(data, 0, 3)
			return err
		}))
	}
	require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
		for rank := 1; rank <= senders; rank++ {
			data, err := r.Alloc(large)
			if err != nil {
				return err
			}
			if _, err := r.Irecv(data, rank, 3); err != nil {
				return err
			}
		}
		r.Compute(sim.Millisecond) // never looks for messages
		return nil
	}))
	err := w.Run(context.Background())
	require.ErrorContains(t, err, "message was lost: rank 0 at")
	require.ErrorContains(t, err, "too many handlers waited for an HPU (hpu.waiting_handlers, 1)")
}

// Bound saves buffers, and the remaining ones suffice for the promised bytes:
// here for 9 messages, with 4 in a buffer.
func TestBound(t *testing.T) {
	for sent, dropped := range map[int]string{9: "", 12: "", 13: "refused 1 messages for good: its program has ended, and its 3 buffers"} {
		o := options(mpi.Offload)
		o.Buffers = 100
		w := newWorld(t, 2, o, runtime.Config{})
		w.Bound(1, 9*1000)
		require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
			data, err := r.Alloc(1000)
			for i := 0; i < sent && err == nil; i++ {
				_, err = r.Isend(data, 1, 0)
			}
			return err
		}))
		require.NoError(t, w.Spawn(1, func(*mpi.Rank) error { return nil }))
		if err := w.Run(context.Background()); dropped == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, dropped)
		}
	}
}

func TestArguments(t *testing.T) {
	w := newWorld(t, 2, options(mpi.Offload), runtime.Config{})
	var theirs runtime.View
	require.NoError(t, w.Spawn(1, func(r *mpi.Rank) (err error) {
		theirs, err = r.Alloc(100)
		return err
	}))
	require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
		data, err := r.Alloc(100)
		if err != nil {
			return err
		}
		r.Compute(sim.Microsecond)
		require.Equal(t, 100, theirs.Len())
		for _, send := range []func() (*mpi.Request, error){
			func() (*mpi.Request, error) { return r.Isend(data, 2, 0) },
			func() (*mpi.Request, error) { return r.Isend(data, -1, 0) },
			func() (*mpi.Request, error) { return r.Isend(runtime.View{}, 1, 0) },
			func() (*mpi.Request, error) { return r.Isend(data, 1, mpi.AnyTag) },
			func() (*mpi.Request, error) { return r.Isend(theirs, 1, 0) },
			func() (*mpi.Request, error) { return r.Isend(mpi.ProcOf(r).Alloc(8), 1, 0) },
			func() (*mpi.Request, error) { return r.Irecv(data, 2, 0) },
			func() (*mpi.Request, error) { return r.Irecv(runtime.View{}, 1, 0) },
			func() (*mpi.Request, error) { return r.Irecv(theirs, 1, 0) },
		} {
			_, err := send()
			require.Error(t, err)
		}
		require.Zero(t, r.Active())
		q, err := r.Next()
		require.Nil(t, q, "nothing to wait for")
		return err
	}))
	require.NoError(t, w.Run(context.Background()))

	require.NoError(t, mpi.DefaultOptions(mpi.Host).Validate())
	for _, o := range []mpi.Options{
		{Matching: "nic", Eager: 8, Buffers: 1, BufferBytes: 100},
		{Matching: mpi.Host, Eager: -1, Buffers: 1, BufferBytes: 100},
		{Matching: mpi.Host, Eager: 8, Buffers: 0, BufferBytes: 100},
		{Matching: mpi.Host, Eager: 8, Buffers: 1, BufferBytes: 23},
	} {
		require.Error(t, o.Validate(), o)
	}
}
