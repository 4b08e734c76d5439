package mpi_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// pair runs two programs in both forms of matching.
func pair(t *testing.T, first, second func(r *mpi.Rank) error) {
	t.Helper()
	for _, form := range mpi.Forms() {
		t.Run(string(form), func(t *testing.T) {
			w := newWorld(t, 2, options(form), runtime.Config{})
			require.NoError(t, w.Spawn(0, first))
			require.NoError(t, w.Spawn(1, second))
			require.NoError(t, w.Run(context.Background()))
		})
	}
}

// message returns memory with n bytes made from seed.
func message(r *mpi.Rank, n, seed int) (runtime.View, error) {
	v, err := r.Alloc(n)
	if err == nil {
		fill(v.Write(), mpi.Status{Source: seed})
	}
	return v, err
}

// isMessage checks that v begins with the n bytes of message.
func isMessage(v runtime.View, n, seed int) error {
	want := make([]byte, n)
	fill(want, mpi.Status{Source: seed})
	if !bytes.Equal(v.Read()[:n], want) {
		return fmt.Errorf("the %d B are not those of message %d", n, seed)
	}
	return nil
}

const busy = 200 * sim.Microsecond

// A synchronous send of any size completes after its receive is posted. A
// standard send of an eager message completes before.
func TestSynchronousSend(t *testing.T) {
	for _, n := range []int{0, 500, 5000} {
		pair(t, func(r *mpi.Rank) error {
			v, err := message(r, n, 1)
			require.NoError(t, err)
			c := r.World()
			if n < 1000 {
				require.NoError(t, c.Send(v, 1, 1))
				require.Less(t, r.Now(), busy, "standard")
				require.NoError(t, c.Do(mpi.Send{Data: mpi.Data{Memory: v}, To: 1, Tag: 1, Mode: mpi.Ready}))
				require.Less(t, r.Now(), busy, "ready")
			}
			q, err := c.Start(mpi.Send{Data: mpi.Data{Memory: v}, To: 1, Tag: 2, Mode: mpi.Synchronous})
			require.NoError(t, err)
			later, err := c.Start(mpi.Send{Data: mpi.Data{Memory: v}, To: 1, Tag: 3, Mode: mpi.Synchronous})
			require.NoError(t, err)
			_, err = r.Wait(later)
			require.NoError(t, err)
			require.Greater(t, r.Now(), busy, "the first to be received")
			require.Less(t, r.Now(), 2*busy)
			if _, over, err := r.Tested(q); over || err != nil {
				return fmt.Errorf("a synchronous send is over without a receive: %w", err)
			}
			_, err = r.Wait(q)
			require.Greater(t, r.Now(), 2*busy)
			return err
		}, func(r *mpi.Rank) error {
			v, err := r.Alloc(n)
			if err != nil {
				return err
			}
			c := r.World()
			r.Compute(busy)
			if n < 1000 {
				for range 2 {
					if _, err := c.Recv(v, 0, 1); err != nil {
						return err
					}
				}
			}
			if _, err := c.Recv(v, 0, 3); err != nil {
				return err
			}
			r.Compute(busy)
			if _, err := c.Recv(v, 0, 2); err != nil {
				return err
			}
			return isMessage(v, n, 1)
		})
	}
}

// buffered sends the bytes of v to rank 1.
func buffered(v runtime.View, tag uint32) mpi.Send {
	return mpi.Send{Data: mpi.Data{Memory: v}, To: 1, Tag: tag, Mode: mpi.Buffered}
}

// A buffered send does not wait, sends the bytes at the time of the call, and
// its buffer is used again. Without room it returns an error.
func TestBufferedSend(t *testing.T) {
	pair(t, func(r *mpi.Rank) error {
		c := r.World()
		v, err := message(r, large, 1)
		if err != nil {
			return err
		}
		require.ErrorContains(t, c.Do(buffered(v, 0)), "no room in the attached buffer of 0 B")
		room, err := r.Alloc(2*large + small)
		if err != nil {
			return err
		}
		require.NoError(t, r.AttachBuffer(room))
		require.ErrorContains(t, r.AttachBuffer(room), "while one of 10100 B is")
		require.NoError(t, c.Do(buffered(v, 0)))
		fill(v.Write(), mpi.Status{Source: 2})
		q, err := c.Start(buffered(v, 1))
		require.NoError(t, err)
		_, over, err := r.Tested(q)
		require.NoError(t, err)
		require.True(t, over)
		require.NoError(t, c.Do(buffered(v.Slice(0, small), 2)))
		require.ErrorContains(t, c.Do(buffered(v.Slice(0, 1), 3)), "buffered send of 1 B to rank 1 of world: no room in the attached buffer of 10100 B, which holds 3 messages")
		require.Less(t, r.Now(), busy)
		fill(v.Write(), mpi.Status{Source: 3})
		back, err := r.DetachBuffer()
		require.NoError(t, err)
		require.Equal(t, room.Addr(), back.Addr())
		require.Greater(t, r.Now(), busy, "the receiver is late")
		_, err = r.DetachBuffer()
		require.ErrorContains(t, err, "none is attached")
		require.NoError(t, r.AttachBuffer(room.Slice(0, large)))
		for range 5 { // one at a time
			if _, err := c.Recv(v.Slice(0, 0), 1, 9); err != nil {
				return err
			}
			if err := c.Do(buffered(v, 4)); err != nil {
				return err
			}
		}
		return nil
	}, receiveBuffered)
}

const large, small = 5000, 100

func receiveBuffered(r *mpi.Rank) error {
	c := r.World()
	r.Compute(busy)
	v, err := r.Alloc(large)
	if err != nil {
		return err
	}
	for _, m := range []struct{ tag, n, seed int }{{2, small, 2}, {0, large, 1}, {1, large, 2}} {
		if s, err := c.Recv(v, 0, uint32(m.tag)); err != nil || s.Bytes != m.n {
			return fmt.Errorf("%+v: %w", s, err)
		}
		if err := isMessage(v, m.n, m.seed); err != nil {
			return err
		}
	}
	for range 5 {
		if err := c.Send(v.Slice(0, 0), 0, 9); err != nil {
			return err
		}
		if _, err := c.Recv(v, 0, 4); err != nil {
			return err
		}
		if err := isMessage(v, large, 3); err != nil {
			return err
		}
	}
	return nil
}

// A probe finds the earliest message that a receive would take, leaves it
// there, and finds none of another communicator.
func TestProbe(t *testing.T) {
	for _, n := range []int{3, 900, 5000} {
		pair(t, func(r *mpi.Rank) error {
			c := r.World()
			other, err := c.Dup()
			if err != nil {
				return err
			}
			v, err := message(r, n, 1)
			if err != nil {
				return err
			}
			r.Compute(busy)
			if _, err := other.Isend(v.Slice(0, 1), 1, 7); err != nil {
				return err
			}
			r.Compute(busy)
			for i, tag := range []uint32{5, 7, 7} {
				if _, err := c.Isend(v.Slice(0, n-i), 1, tag); err != nil {
					return err
				}
			}
			r.Compute(4 * busy)
			return nil
		}, func(r *mpi.Rank) error {
			c := r.World()
			if _, err := c.Dup(); err != nil {
				return err
			}
			_, found, err := c.Iprobe(mpi.AnySource, mpi.AnyTag)
			require.NoError(t, err)
			require.False(t, found)
			s, err := c.Probe(0, 7)
			require.NoError(t, err)
			require.Equal(t, []int{0, 7, n - 1}, []int{s.Source, int(s.Tag), s.Bytes})
			require.Greater(t, r.Now(), 2*busy)
			r.Compute(busy)
			s, err = c.Probe(mpi.AnySource, mpi.AnyTag)
			require.NoError(t, err)
			require.Equal(t, []int{0, 5, n}, []int{s.Source, int(s.Tag), s.Bytes})
			_, found, err = c.Iprobe(1, mpi.AnyTag)
			require.NoError(t, err)
			require.False(t, found)
			v, err := r.Alloc(n)
			require.NoError(t, err)
			for _, bytes := range []int{n - 1, n - 2} {
				s, err := c.Recv(v, 0, 7)
				require.NoError(t, err)
				require.Equal(t, bytes, s.Bytes)
				require.NoError(t, isMessage(v, bytes, 1))
			}
			_, found, err = c.Iprobe(0, 7)
			require.NoError(t, err)
			require.False(t, found)
			_, err = c.Recv(v, mpi.AnySource, mpi.AnyTag)
			return err
		})
	}
}

// A program may test in a loop, like MPI programs: every call that finds
// nothing takes time.
func TestAskingTakesTime(t *testing.T) {
	pair(t, func(r *mpi.Rank) error {
		r.Compute(busy)
		v, err := r.Alloc(8)
		if err != nil {
			return err
		}
		for tag := range uint32(4) {
			if err := r.World().Send(v, 1, tag); err != nil {
				return err
			}
			r.Compute(busy)
		}
		return nil
	}, func(r *mpi.Rank) error {
		v, err := r.Alloc(8)
		require.NoError(t, err)
		for over := false; !over; {
			_, over, err = r.World().Iprobe(0, 0)
			require.NoError(t, err)
		}
		require.Greater(t, r.Now(), busy)
		var qs []*mpi.Request
		for tag := range uint32(4) {
			q, err := r.Irecv(v, 0, tag)
			require.NoError(t, err)
			qs = append(qs, q)
		}
		for over := false; !over; {
			_, over, err = r.Tested(qs[1])
			require.NoError(t, err)
		}
		require.Greater(t, r.Now(), 2*busy)
		qs[1] = nil
		some, err := r.TestSome(qs, nil, nil)
		require.NoError(t, err)
		require.Equal(t, []int{0}, some)
		for i := mpi.Undefined; i < 0; {
			i, _, _, err = r.TestAny(qs)
			require.NoError(t, err)
		}
		for over := false; !over; {
			over, err = r.TestAll(qs, nil)
			require.NoError(t, err)
		}
		require.Greater(t, r.Now(), 4*busy)
		require.Equal(t, make([]*mpi.Request, 4), qs)
		i, _, active, err := r.TestAny(qs)
		require.Equal(t, mpi.Undefined, i)
		require.False(t, active)
		return err
	})
}

// Waits for any and for some of a list return completed requests in time, and
// leave the others.
func TestWaits(t *testing.T) {
	pair(t, func(r *mpi.Rank) error {
		v, err := message(r, 64, 1)
		if err != nil {
			return err
		}
		for _, tag := range []uint32{2, 0, 3, 1} {
			r.Compute(busy)
			if err := r.World().Send(v.Slice(0, 10*int(tag)), 1, tag); err != nil {
				return err
			}
		}
		return nil
	}, func(r *mpi.Rank) error {
		v, err := r.Alloc(400)
		require.NoError(t, err)
		qs := make([]*mpi.Request, 5)
		for i := range 4 {
			qs[i], err = r.Irecv(v.Slice(100*i, 100*i+100), mpi.AnySource, uint32(i))
			require.NoError(t, err)
		}
		i, s, err := r.WaitAny(qs)
		require.NoError(t, err)
		require.Equal(t, 2, i)
		require.Equal(t, 20, s.Bytes)
		require.Less(t, r.Now(), 2*busy)
		r.Compute(5 * busy / 2)
		statuses := make([]mpi.Status, 5)
		some, err := r.TestSome(qs, nil, statuses)
		require.NoError(t, err)
		require.Equal(t, []int{0, 3}, some)
		require.Equal(t, 30, statuses[3].Bytes)
		some, err = r.WaitSome(qs, some[:0], statuses)
		require.NoError(t, err)
		require.Equal(t, []int{1}, some)
		require.Greater(t, r.Now(), 4*busy)
		some, err = r.WaitSome(qs, some[:0], nil)
		require.NoError(t, err)
		require.Empty(t, some)
		i, _, err = r.WaitAny(qs)
		require.Equal(t, mpi.Undefined, i)
		return err
	})
}

// A persistent operation carries the contents of its memory at each start.
func TestPersistent(t *testing.T) {
	const rounds = 6
	program := func(r *mpi.Rank) error {
		c, peer := r.World(), 1-r.Rank()
		out, err := r.Alloc(2000)
		if err != nil {
			return err
		}
		in, err := r.Alloc(2000)
		if err != nil {
			return err
		}
		send, err := c.Prepare(mpi.Send{Data: mpi.Data{Memory: out}, To: peer, Tag: 1})
		require.NoError(t, err)
		ssend, err := c.Prepare(mpi.Send{Data: mpi.Data{Memory: out.Slice(0, 10)}, To: peer, Tag: 2, Mode: mpi.Synchronous})
		require.NoError(t, err)
		receive, err := c.Prepare(mpi.Recv{Data: mpi.Data{Memory: in}, From: mpi.AnySource, Tag: mpi.AnyTag})
		require.NoError(t, err)
		nobody, err := c.Prepare(mpi.Send{Data: mpi.Data{Memory: out}, To: mpi.ProcNull, Tag: 2, Mode: mpi.Ready})
		require.NoError(t, err)
		for i := range rounds {
			fill(out.Write(), mpi.Status{Source: r.Rank(), Tag: uint32(i)})
			qs, err := mpi.StartAll(nil, receive, send, nobody)
			require.NoError(t, err)
			_, err = send.Start()
			require.ErrorContains(t, err, "is started while it is active")
			statuses := make([]mpi.Status, 3)
			require.NoError(t, r.WaitAll(qs, statuses))
			require.Equal(t, []int{peer, 1, 2000}, []int{statuses[0].Source, int(statuses[0].Tag), statuses[0].Bytes})
			want := make([]byte, 2000)
			fill(want, mpi.Status{Source: peer, Tag: uint32(i)})
			require.Equal(t, want, bytes.Clone(in.Read()))
			qs, err = mpi.StartAll(qs[:0], receive, ssend)
			require.NoError(t, err)
			require.NoError(t, r.WaitAll(qs, statuses))
			require.Equal(t, 10, statuses[0].Bytes)
		}
		return nil
	}
	pair(t, program, program)
}

// All ranks pass messages around a ring at once. In a line, the ends have no
// neighbour.
func TestSendrecv(t *testing.T) {
	for _, n := range []int{0, 100, 5000} {
		for _, form := range mpi.Forms() {
			const ranks = 5
			w := newWorld(t, ranks, options(form), runtime.Config{})
			for rank := range ranks {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					c := r.World()
					left, right := (rank+ranks-1)%ranks, (rank+1)%ranks
					out, err := message(r, n, rank)
					require.NoError(t, err)
					in, err := r.Alloc(n)
					require.NoError(t, err)
					s, err := c.Sendrecv(out, right, 1, in, left, mpi.AnyTag)
					require.NoError(t, err)
					require.Equal(t, left, s.Source)
					require.NoError(t, isMessage(in, n, left))
					for range 2 {
						_, err = c.SendrecvReplace(in, right, 2, left, 2)
						require.NoError(t, err)
					}
					require.NoError(t, isMessage(in, n, (rank+2*ranks-3)%ranks))
					if n > 0 {
						_, err = c.Sendrecv(out, right, 1, out.Slice(n-1, n), left, 1)
						require.ErrorContains(t, err, "overlap")
					}
					if rank == 0 {
						left = mpi.ProcNull
					}
					if rank == ranks-1 {
						right = mpi.ProcNull
					}
					s, err = c.Sendrecv(out, right, 1, in, left, 1)
					require.NoError(t, err)
					require.Equal(t, left, s.Source)
					if rank == 0 {
						require.Zero(t, s.Bytes)
						return isMessage(in, n, ranks-3)
					}
					return isMessage(in, n, left)
				}))
			}
			require.NoError(t, w.Run(context.Background()))
		}
	}
}
