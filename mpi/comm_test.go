package mpi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

func every(t *testing.T, ranks int, program func(r *mpi.Rank) error) {
	t.Helper()
	for _, form := range mpi.Forms() {
		t.Run(string(form), func(t *testing.T) {
			w := newWorld(t, ranks, options(form), runtime.Config{})
			for rank := range ranks {
				require.NoError(t, w.Spawn(rank, program))
			}
			require.NoError(t, w.Run(context.Background()))
		})
	}
}

// A part is numbered by key, then by rank. A rank without color gets none.
// Parts of parts translate to ranks of the world, and a status names the rank
// in its communicator.
func TestSplit(t *testing.T) {
	every(t, 7, func(r *mpi.Rank) error {
		color, key := r.Rank()%2, []int{5, 0, -3, 0, 5, 7, 0}[r.Rank()]
		if r.Rank() == 5 {
			color = mpi.Undefined
		}
		part, err := r.World().Split(color, key)
		require.NoError(t, err)
		if part == nil {
			require.Equal(t, 5, r.Rank())
			return nil
		}
		want := [][]int{{2, 6, 0, 4}, {1, 3}}[color]
		var got []int
		for i := range part.Size() {
			got = append(got, part.Translate(i))
		}
		require.Equal(t, want, got)
		require.Equal(t, r.Rank(), want[part.Rank()])
		v, err := message(r, 40, r.Rank())
		require.NoError(t, err)
		in, err := r.Alloc(40)
		require.NoError(t, err)
		n := part.Size()
		s, err := part.Sendrecv(v, (part.Rank()+1)%n, 3, in, mpi.AnySource, 3)
		require.NoError(t, err)
		require.Equal(t, (part.Rank()+n-1)%n, s.Source)
		require.NoError(t, isMessage(in, 40, want[s.Source]))
		if color == 1 {
			return nil
		}
		half, err := part.Split(part.Rank()/2, -part.Rank())
		require.NoError(t, err)
		want = [][]int{{6, 2}, {4, 0}}[part.Rank()/2]
		require.Equal(t, want, []int{half.Translate(0), half.Translate(1)})
		return nil
	})
}

// With equal ranks and tags in several communicators, a receive takes a message
// of its own communicator, in any order of arrival, and never one of a
// collective operation.
func TestCommunicatorsDoNotMix(t *testing.T) {
	const comms = 6
	every(t, 3, func(r *mpi.Rank) error {
		all := []*mpi.Comm{r.World()}
		for len(all) < comms {
			c, err := all[len(all)/2].Dup()
			require.NoError(t, err)
			all = append(all, c)
		}
		in, err := r.Alloc(100)
		require.NoError(t, err)
		from, to := (r.Rank()+2)%3, (r.Rank()+1)%3
		anything, err := r.World().Irecv(in, mpi.AnySource, mpi.AnyTag)
		require.NoError(t, err)
		require.NoError(t, r.World().Barrier())
		require.NoError(t, r.World().Send(in.Slice(90, 99), to, 2))
		s, err := r.Wait(anything)
		require.NoError(t, err)
		require.Equal(t, []int{from, 9, 2}, []int{s.Source, s.Bytes, int(s.Tag)})
		var qs []*mpi.Request
		for i, c := range all {
			v, err := message(r, 30+i, 10*r.Rank()+i)
			require.NoError(t, err)
			q, err := c.Isend(v, to, 1)
			require.NoError(t, err)
			qs = append(qs, q)
		}
		for i := comms - 1; i >= 0; i-- {
			s, err := all[i].Recv(in, mpi.AnySource, mpi.AnyTag)
			require.NoError(t, err)
			require.Equal(t, []int{from, 30 + i}, []int{s.Source, s.Bytes})
			require.NoError(t, isMessage(in, 30+i, 10*from+i))
		}
		return r.WaitAll(qs, nil)
	})
}

// Free gives contexts back. When none is left, every rank gets an error.
func TestContexts(t *testing.T) {
	w := newWorld(t, 2, options(mpi.Host), runtime.Config{})
	program := func(r *mpi.Rank) error {
		var made []*mpi.Comm
		for {
			c, err := r.World().Dup()
			if err != nil {
				require.ErrorContains(t, err, "no context is free at all ranks of world for another communicator: a rank has at most 2048")
				break
			}
			made = append(made, c)
		}
		require.Len(t, made, 2047)
		require.NoError(t, made[1000].Free())
		require.ErrorContains(t, made[1000].Free(), "has been freed")
		require.ErrorContains(t, made[1000].Barrier(), "has been freed")
		_, err := made[1000].Isend(runtime.View{}, 0, 0)
		require.ErrorContains(t, err, "has been freed")
		again, err := made[5].Dup()
		require.NoError(t, err)
		require.NoError(t, again.Barrier())
		require.ErrorContains(t, r.World().Free(), "cannot be freed")
		return nil
	}
	require.NoError(t, w.Spawn(0, program))
	require.NoError(t, w.Spawn(1, program))
	require.NoError(t, w.Run(context.Background()))
}

// Other calls that cannot be right.
func TestWrongArguments(t *testing.T) {
	every(t, 2, func(r *mpi.Rank) error {
		c := r.World()
		_, err := mpi.NewType("none", 0)
		require.ErrorContains(t, err, "type none of 0 B, expected 1 to")
		_, err = r.Alloc(-1)
		require.ErrorContains(t, err, "-1 B of memory, expected 0 to")
		require.Equal(t, mpi.Undefined, c.Translate(2))
		_, err = c.SendrecvReplace(mpi.ProcOf(r).Alloc(8), 1, 0, 1, 0)
		require.ErrorContains(t, err, "are no memory that Alloc has returned")
		_, err = c.Split(-7, 0)
		require.ErrorContains(t, err, "color -7")
		require.ErrorContains(t, c.Do(nil), "no operation")
		_, err = c.Start(nil)
		require.ErrorContains(t, err, "no operation")
		_, err = c.Prepare(nil)
		require.ErrorContains(t, err, "no operation")
		_, err = mpi.StartAll(nil, nil)
		require.ErrorContains(t, err, "no operation")
		_, err = r.Wait(nil)
		require.ErrorContains(t, err, "no request to wait for")
		require.ErrorContains(t, r.WaitAll(make([]*mpi.Request, 2), make([]mpi.Status, 1)), "1 statuses for 2 requests")
		_, err = r.WaitSome(make([]*mpi.Request, 2), nil, make([]mpi.Status, 1))
		require.ErrorContains(t, err, "1 statuses for 2 requests")
		_, err = c.Prepare(&mpi.Send{To: 7})
		require.ErrorContains(t, err, "persistent send of 0 B, rank 7 of world")
		_, err = c.Prepare(mpi.Send{Mode: 9})
		require.ErrorContains(t, err, "send of mode 9")
		return nil
	})
}

// A call that cannot be right returns one clear error before it does anything.
func TestWrongCalls(t *testing.T) {
	every(t, 2, func(r *mpi.Rank) error {
		c := r.World()
		v, err := r.Alloc(64)
		require.NoError(t, err)
		w, err := r.Alloc(64)
		require.NoError(t, err)
		odd := mpi.NewOp("own", true, func(_, _, _ []byte) {})
		for text, call := range map[string]func() error{
			"Bcast on world: root 2, expected a rank below 2":                         func() error { return c.Bcast(v, 2) },
			"Bcast on world: root -3, expected a rank below 2":                        func() error { return c.Bcast(v, -3) },
			"Bcast on world: root -1, expected a rank below 2":                        func() error { return c.Bcast(v, -1) },
			"Gather on world: root -1, expected a rank below 2":                       func() error { return c.Gather(v.Slice(0, 32), w, -1) },
			"Reduce on world: root -1, expected a rank below 2":                       func() error { return c.Reduce(v, w, mpi.Int32, mpi.Sum, -1) },
			"Bcast on world: InPlace, expected memory of Alloc":                       func() error { return c.Bcast(mpi.InPlace, 0) },
			"32 B to send to the rank itself and 30 B to receive":                     func() error { return c.Scatter(v, w.Slice(0, 30), r.Rank()) },
			"64 B to send to the rank itself and 30 B to receive":                     func() error { return c.Gather(v, w.Slice(0, 60), r.Rank()) },
			"Allgather on world: 64 B to send to the rank itself and 32 B to receive": func() error { return c.Allgather(v, w) },
			"31 B to send to the rank itself and 32 B to receive":                     func() error { return c.Alltoall(v.Slice(0, 62), w) },
			"overlap, expected memory apart or InPlace":                               func() error { return c.Alltoall(v, v) },
			"block of rank 1: 40 B at 32, expected a part of 64 B": func() error {
				return c.Do(mpi.Allgatherv{Send: mpi.Data{Memory: v.Slice(0, 32)}, Recv: mpi.Data{Memory: w}, Counts: []int{32, 40}})
			},
			"block of rank 0: -1 B at 0": func() error {
				return c.Do(mpi.Allgatherv{Send: mpi.Data{Memory: v.Slice(0, 32)}, Recv: mpi.Data{Memory: w}, Counts: []int{-1, 4}})
			},
			"block of rank 1: 4 B at -8": func() error {
				return c.Do(mpi.Gatherv{Send: mpi.Data{Memory: v}, Recv: mpi.Data{Memory: w}, Counts: []int{1, 4}, Places: []int{0, -8}, Root: r.Rank()})
			},
			"1 counts and 0 places, expected one for each of 2 ranks": func() error {
				return c.Do(mpi.Scatterv{Send: mpi.Data{Memory: v}, Counts: []int{1}, Recv: mpi.Data{Memory: w}, Root: r.Rank()})
			},
			"Allreduce on world: land is not defined for float64":        func() error { return c.Allreduce(v, w, mpi.Float64, mpi.LAnd) },
			"Allreduce on world: 63 B, expected elements of 4 B (int32)": func() error { return c.Allreduce(v.Slice(0, 63), w.Slice(0, 63), mpi.Int32, mpi.Sum) },
			"Allreduce on world: 60 B for the result, expected 64 B":     func() error { return c.Allreduce(v, w.Slice(0, 60), mpi.Int32, mpi.Sum) },
			"a reduction needs an operation and a type":                  func() error { return c.Allreduce(v, w, mpi.Type{}, odd) },
			"Reduce on world: a reduction needs":                         func() error { return c.Reduce(v, w, mpi.Int32, nil, 0) },
			"64 B to reduce, expected the 60 B of the pieces": func() error {
				return c.Do(mpi.ReduceScatter{Send: v, Recv: w.Slice(0, 28), Counts: []int{28, 32}, Type: mpi.Int32, Op: mpi.Sum})
			},
			"piece of rank 0: 2 B, expected elements of 4 B": func() error {
				return c.Do(mpi.ReduceScatter{Send: v, Recv: w, Counts: []int{2, 62}, Type: mpi.Int32, Op: mpi.Sum})
			},
			"8 B to send to the rank itself and 4 B to receive": func() error {
				return c.Do(mpi.Alltoallv{Send: mpi.Data{Memory: v}, Counts: []int{8, 8}, Recv: mpi.Data{Memory: w}, RecvCounts: []int{4, 4}})
			},
			"send of 64 B, rank 2 of world, tag 0: expected at most":                                   func() error { return c.Send(v, 2, 0) },
			"send of 64 B, rank -1 of world":                                                           func() error { return c.Send(v, mpi.AnySource, 0) },
			"a rank below 2 or -2 for none, and no wildcard":                                           func() error { return c.Send(v, 1, mpi.AnyTag) },
			"receive of 64 B, rank 5 of world, tag 0":                                                  func() error { _, err := c.Recv(v, 5, 0); return err },
			"probe of 0 B, rank 2 of world":                                                            func() error { _, err := c.Probe(2, 0); return err },
			fmt.Sprintf("mpi: rank %d: persistent receive of 64 B, rank -3 of world, tag 0", r.Rank()): func() error { _, err := c.Prepare(mpi.Recv{Data: mpi.Data{Memory: v}, From: -3}); return err },
		} {
			require.ErrorContains(t, call(), text)
		}
		require.Zero(t, r.Active())
		return c.Barrier() // no call has started anything
	})
}

// part is the program of a rank after a barrier, with two views of 64 B.
type part func(c *mpi.Comm, v, w runtime.View) error

// mismatch is two programs that do not match, and the expected error.
type mismatch struct {
	zero, one part
	want      []string
}

func mismatches(bcast func(root int) part, reduce func(op *mpi.Op, t mpi.Type, n int) part) map[string]mismatch {
	return map[string]mismatch{
		"root":  {bcast(0), bcast(1), []string{"call 2 is Bcast of 64 B, root 0, on world at rank 0 and Bcast of 64 B, root 1, on world at rank 1"}},
		"other": {bcast(1), reduce(mpi.Sum, mpi.Int32, 8), []string{"call 2 is Bcast of 64 B, root 1, on world at rank 0 and Allreduce of 8 B (sum of int32) on world at rank 1"}},
		"op":    {reduce(mpi.Sum, mpi.Int32, 8), reduce(mpi.Max, mpi.Int32, 8), []string{"Allreduce of 8 B (sum of int32) on world at rank 0 and Allreduce of 8 B (max of int32)", "mpi: rank 0 waits in Allreduce of 8 B (sum of int32) on world, its call 2 there", "mpi: rank 1 waits in Allreduce"}},
		"type":  {reduce(mpi.Sum, mpi.Int32, 8), reduce(mpi.Sum, mpi.Float32, 8), []string{"(sum of int32) on world at rank 0 and Allreduce of 8 B (sum of float32)"}},
		"size":  {reduce(mpi.Sum, mpi.Int32, 8), reduce(mpi.Sum, mpi.Int32, 16), []string{"Allreduce of 8 B (sum of int32) on world at rank 0 and Allreduce of 16 B"}},
		"lengths": {
			func(c *mpi.Comm, v, w runtime.View) error {
				return c.Do(mpi.Gatherv{Send: mpi.Data{Memory: v}, Recv: mpi.Data{Memory: w}, Counts: []int{64, 0}, Root: 1})
			},
			func(c *mpi.Comm, v, w runtime.View) error {
				return c.Do(mpi.Gatherv{Send: mpi.Data{Memory: v.Slice(0, 4)}, Recv: mpi.Data{Memory: w}, Counts: []int{60, 4}, Root: 1})
			},
			[]string{"message of 64 B from rank 0", "is longer than its receive of 60 B in Gatherv, root 1, on world"},
		},
		"short": {
			func(c *mpi.Comm, v, w runtime.View) error {
				return c.Do(mpi.Gatherv{Send: mpi.Data{Memory: v.Slice(0, 7)}, Recv: mpi.Data{Memory: w}, Root: 1})
			},
			func(c *mpi.Comm, v, w runtime.View) error {
				return c.Do(mpi.Gatherv{Send: mpi.Data{Memory: v.Slice(0, 4)}, Recv: mpi.Data{Memory: w}, Counts: []int{60, 4}, Root: 1})
			},
			[]string{"mpi: rank 1: message of 7 B from rank 0 of world, expected 60 B, in Gatherv, root 1, on world"},
		},
		"absent": {func(*mpi.Comm, runtime.View, runtime.View) error { return nil }, bcast(0), []string{"mpi: rank 1 waits in Bcast of 64 B, root 0, on world"}},
		"receive": {
			func(*mpi.Comm, runtime.View, runtime.View) error { return nil },
			func(c *mpi.Comm, v, _ runtime.View) error { _, err := c.Recv(v, 0, 9); return err },
			[]string{"mpi: rank 1 waits in receive from rank 0, 64 B, tag 9"},
		},
		"probe": {func(*mpi.Comm, runtime.View, runtime.View) error { return nil }, func(c *mpi.Comm, _, _ runtime.View) error { _, err := c.Probe(0, 9); return err }, []string{"mpi: rank 1 waits in Probe"}},
		"no wait": {
			func(c *mpi.Comm, v, _ runtime.View) error { return c.Bcast(v, 1) },
			func(c *mpi.Comm, v, _ runtime.View) error { _, err := c.Start(mpi.Barrier{}); return err },
			[]string{"mpi: rank 1: the program has ended, but Barrier on world has not been waited for"},
		},
	}
}

// A message of a collective operation that is too long for the device is an
// error of the call.
func TestLongMessages(t *testing.T) {
	w := newWorld(t, 2, options(mpi.Offload), runtime.Config{}, "limits.max_msg_size=64KiB")
	for rank := range 2 {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			v, err := r.Alloc(1<<16 + 1)
			if err != nil {
				return err
			}
			if err := r.World().Bcast(v.Slice(0, 1<<16), 0); err != nil {
				return err
			}
			return r.World().Bcast(v, 0)
		}))
	}
	require.ErrorContains(t, w.Run(context.Background()), "mpi: rank 0: Bcast of 65537 B, root 0, on world: a message of 65537 B, expected at most 65536 B (limits.max_msg_size)")
}

// If ranks do not agree on a call, the error names both calls, whether or not
// the run would hang.
func TestMismatch(t *testing.T) {
	bcast := func(root int) part { return func(c *mpi.Comm, v, _ runtime.View) error { return c.Bcast(v, root) } }
	reduce := func(op *mpi.Op, t mpi.Type, n int) part {
		return func(c *mpi.Comm, v, w runtime.View) error { return c.Allreduce(v.Slice(0, n), w.Slice(0, n), t, op) }
	}
	for name, test := range mismatches(bcast, reduce) {
		for _, form := range mpi.Forms() {
			t.Run(name+"/"+string(form), func(t *testing.T) {
				w := newWorld(t, 2, options(form), runtime.Config{})
				for i, program := range []part{test.zero, test.one} {
					require.NoError(t, w.Spawn(i, func(r *mpi.Rank) error {
						v, err := r.Alloc(64)
						if err != nil {
							return err
						}
						u, err := r.Alloc(64)
						if err != nil {
							return err
						}
						if err := r.World().Barrier(); err != nil {
							return err
						}
						return program(r.World(), v, u)
					}))
				}
				err := w.Run(context.Background())
				for _, text := range test.want {
					require.ErrorContains(t, err, text)
				}
			})
		}
	}
}
