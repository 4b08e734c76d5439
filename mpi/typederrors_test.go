package mpi_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// column returns n doubles, every second one in memory.
func column(t require.TestingT, n int) *datatype.Type {
	d, err := datatype.Vector(n, 1, 2, datatype.Float64)
	require.NoError(t, err)
	return d
}

// badTyped is elements that cannot be sent or received, and the expected error.
type badTyped struct {
	m        mpi.Data
	expected string
	receive  string // expected error of a receive; "": the same
}

func badElements(t *testing.T, v runtime.View) []badTyped {
	twice, err := datatype.Vector(2, 2, 1, datatype.Int32)
	require.NoError(t, err)
	far, err := datatype.Hvector(2, 1, math.MaxInt64/8, datatype.Byte)
	require.NoError(t, err)
	comb, err := datatype.Vector(1<<24, 1, 2, datatype.Byte)
	require.NoError(t, err)
	combs, err := datatype.Hindexed([]int{1, 1}, []int64{0, 1}, comb)
	require.NoError(t, err)
	return []badTyped{
		{mpi.Data{Memory: v, Count: 1, Type: &datatype.Type{}}, "datatype: a type is missing", ""},
		{mpi.Data{Memory: v, Count: -1, Type: datatype.Int32}, "datatype: -1 times int32, expected at least 0", ""},
		{mpi.Data{Memory: v, Count: math.MaxInt, Type: datatype.Int32}, "size or bounds are beyond", ""},
		{mpi.Data{Memory: v, Count: 11, Type: column(t, 1)}, "", ""},
		{mpi.Data{Memory: v, Count: 1, Type: column(t, 11)}, "1 times vector at 0 lie in bytes 0 to 168 of a memory of 160", ""},
		{mpi.Data{Memory: v, At: 16, Count: 1, Type: column(t, 10)}, "1 times vector at 16 lie in bytes 16 to 168 of a memory of 160", ""},
		{mpi.Data{Memory: v, At: -8, Count: 1, Type: column(t, 2)}, "1 times vector at -8 lie in bytes -8 to 16 of a memory of 160", ""},
		{mpi.Data{Memory: v, At: math.MaxInt, Count: 1, Type: column(t, 2)}, "of a memory of 160", ""},
		{mpi.Data{Memory: v, Count: 1, Type: far}, "of a memory of 160", ""},
		{mpi.Data{Count: 1, Type: datatype.Int32}, "of a memory of 0", ""},
		{mpi.Data{Memory: v, Count: 1, Type: twice}, "", "typed receive: 1 times vector have a byte of memory twice, which a receive must not"},
		{mpi.Data{Memory: v, Count: 1, Type: combs}, "of a memory of 160", ""},
	}
}

// Invalid arguments are errors of the call that name the fault and what was
// expected. Nothing is sent.
func TestTypedArguments(t *testing.T) {
	for _, over := range carriers() {
		t.Run(over.name, func(t *testing.T) {
			w := over.world(t, t.Cleanup, 1, runtime.Config{})
			require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
				c := r.World()
				v, err := r.Alloc(160)
				require.NoError(t, err)
				for _, test := range badElements(t, v) {
					if test.expected != "" {
						_, err := c.Start(mpi.Send{Data: test.m, To: 0, Tag: 1})
						require.ErrorContains(t, err, "mpi: rank 0: typed send: ")
						require.ErrorContains(t, err, test.expected)
					}
					if test.receive == "" {
						test.receive = test.expected
					}
					if test.receive != "" {
						_, err = c.Start(mpi.Recv{Data: test.m, From: 0, Tag: 1})
						require.ErrorContains(t, err, "mpi: rank 0: typed receive: ")
						require.ErrorContains(t, err, test.receive)
					}
				}
				good := mpi.Data{Memory: v, Count: 1, Type: column(t, 3)}
				_, err = c.Start(mpi.Send{Data: good, To: 0, Tag: mpi.AnyTag})
				require.ErrorContains(t, err, "typed send of 24 B, rank 0 of world, tag 4294967295: expected")
				_, err = c.Start(mpi.Send{Data: good, To: 1, Tag: 0})
				require.ErrorContains(t, err, "a rank below 1")
				_, err = c.Start(mpi.Send{Data: good, To: mpi.AnySource, Tag: 0})
				require.ErrorContains(t, err, "a rank below 1")
				require.ErrorContains(t, c.Do(mpi.Send{Data: good, Mode: mpi.Buffered}), "typed buffered send: expected bytes in one piece, without a Type")
				require.ErrorContains(t, c.Do(mpi.Send{Data: good, Mode: 9}), "send of mode 9, expected Standard, Synchronous, Ready or Buffered")
				require.ErrorContains(t, c.Do(mpi.Send{Data: mpi.Data{Memory: v, At: 8}}), "send: 0 elements at 8 without a Type")
				require.ErrorContains(t, c.Do(mpi.Recv{Data: mpi.Data{Memory: v, Count: 2}}), "receive: 2 elements at 0 without a Type")
				require.Zero(t, r.Active())
				require.Equal(t, mpi.Stats{}, r.Stats())
				require.NoError(t, c.Do(mpi.Send{Data: good, To: mpi.ProcNull, Tag: 0}))
				s, err := receiveTyped(r, mpi.Recv{Data: good, From: mpi.ProcNull})
				require.Equal(t, mpi.ProcNull, s.Source)
				return err
			}))
			require.NoError(t, w.Run(context.Background()))
		})
	}
}

// Memory of another rank, or of two calls of Alloc, is an error, as in calls
// without types.
func TestTypedMemory(t *testing.T) {
	for _, over := range carriers() {
		w := over.world(t, t.Cleanup, 2, runtime.Config{})
		var other runtime.View
		for me := range 2 {
			require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
				v, err := r.Alloc(80)
				if me == 0 || err != nil {
					other = v
					return err
				}
				r.Compute(sim.Microsecond)
				m := mpi.Data{Memory: other, Count: 1, Type: column(t, 5)}
				require.ErrorContains(t, r.World().Do(mpi.Send{Data: m, To: 0, Tag: 0}), "are no memory of the rank")
				_, err = r.World().Start(mpi.Recv{Data: m, From: 0, Tag: 0})
				require.ErrorContains(t, err, "are no memory of the rank")
				return nil
			}))
		}
		require.NoError(t, w.Run(context.Background()))
	}
}

func receiveTyped(r *mpi.Rank, o mpi.Recv) (mpi.Status, error) {
	q, err := r.World().Start(o)
	if err != nil {
		return mpi.Status{}, err
	}
	return r.Wait(q)
}

// typedPair sends n doubles of a column from rank 0 to rank 1, which receives
// into a column of room doubles, late or not.
func typedPair(t *testing.T, w *mpi.World, n, room int, late bool, check func(r *mpi.Rank, s mpi.Status, b []byte)) error {
	require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
		v, err := message(r, 16*n, 1)
		if err != nil {
			return err
		}
		r.Compute(20 * sim.Microsecond)
		return r.World().Do(mpi.Send{Data: mpi.Data{Memory: v, Count: 1, Type: column(t, n)}, To: 1, Tag: 4})
	}))
	require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
		v, err := message(r, 16*room, 2)
		if err != nil {
			return err
		}
		if late {
			r.Compute(200 * sim.Microsecond)
			if _, err := r.Test(); err != nil {
				return err
			}
		}
		s, err := receiveTyped(r, mpi.Recv{Data: mpi.Data{Memory: v, Count: 1, Type: column(t, room)}, From: mpi.AnySource, Tag: mpi.AnyTag})
		if err == nil {
			check(r, s, v.Read())
		}
		return err
	}))
	return w.Run(context.Background())
}

// A message longer than its receive is MPI_ERR_TRUNCATE. A shorter one fills
// only its own elements.
func TestTypedLengths(t *testing.T) {
	for _, over := range carriers() {
		for _, late := range []bool{false, true} {
			// 24 B and 800 B; 960 B in three packets, and 5,600 B, which wait
			// for their receive
			for _, n := range []int{3, 100, 120, 700} {
				w := over.world(t, t.Cleanup, 2, runtime.Config{})
				err := typedPair(t, w, n, n-1, late, nil)
				require.ErrorIs(t, err, mpi.ErrTruncate, "%s %d %v", over.name, n, late)
				require.ErrorContains(t, err, "from rank 0 with tag 4 is longer than its receive of")

				w = over.world(t, t.Cleanup, 2, runtime.Config{})
				require.NoError(t, typedPair(t, w, n, n+60, late, func(r *mpi.Rank, s mpi.Status, b []byte) {
					require.Equal(t, mpi.Status{Tag: 4, Bytes: 8 * n}, s)
					require.Equal(t, n, s.Count(datatype.Float64))
					require.Equal(t, mpi.Undefined, s.Count(column(t, n+60)))
					require.Equal(t, mpi.Undefined, s.Count(nil))
					from, want := make([]byte, 16*n), make([]byte, len(b))
					fill(from, mpi.Status{Source: 1})
					fill(want, mpi.Status{Source: 2})
					for i := range n {
						copy(want[16*i:16*i+8], from[16*i:])
					}
					require.Equal(t, want, b)
				}), "%s %d %v", over.name, n, late)
			}
		}
	}
}

// The NIC unpacks messages that it has matched, and long messages after the
// get. The core unpacks messages that came before their receive, and types that
// handlers cannot take.
func TestWhoUnpacks(t *testing.T) {
	for _, test := range []struct {
		name      string
		over      int // index into carriers
		n         int
		late      bool
		overrides []string
		byNIC     bool
	}{
		{"host", 2, 100, false, nil, false},
		{"host, long", 2, 700, false, nil, false},
		{"exanet", 0, 100, false, nil, false},
		{"infiniband, long", 4, 2000, false, nil, false},
		{"offload", 3, 100, false, nil, true},
		{"offload, unexpected", 3, 100, true, nil, false},
		{"offload, long", 3, 700, false, nil, true},
		{"offload, long, unexpected", 3, 700, true, nil, true},
		{"offload, no HPU memory", 3, 100, false, []string{"hpu.max_hpu_memory=4095"}, false},
		{"offload, long, no HPU memory", 3, 700, false, []string{"hpu.max_hpu_memory=4095"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := carriers()[test.over].world(t, t.Cleanup, 2, runtime.Config{}, test.overrides...)
			require.NoError(t, typedPair(t, w, test.n, test.n, test.late, func(*mpi.Rank, mpi.Status, []byte) {}))
			s, nic := w.Stats(), int64(0)
			if test.byNIC {
				nic = 1
			}
			require.Equal(t, [3]int64{1, 1 - nic, nic}, [3]int64{s.PackedByCore, s.UnpackedByCore, s.UnpackedByNIC})
		})
	}
}

// The core pays for the cache lines of all doubles, every second one in memory,
// and for the packed bytes. It pays nothing for messages that the NIC unpacks.
func TestTypedCosts(t *testing.T) {
	const n = 96 // doubles: 1,536 B of memory, 24 lines to read or write; 12 lines packed
	took := func(form mpi.Matching, typed bool) (send, receive sim.Time) {
		w := newWorld(t, 2, options(form), runtime.Config{})
		for me := range 2 {
			require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
				v, err := message(r, 16*n, me)
				if err != nil {
					return err
				}
				c, m := r.World(), mpi.Data{Memory: v, Count: 1, Type: column(t, n)}
				if !typed {
					m = mpi.Data{Memory: v, Count: n, Type: datatype.Float64}
				}
				if me == 0 {
					r.Compute(20 * sim.Microsecond)
					begin := r.Now()
					q, err := c.Start(mpi.Send{Data: m, To: 1, Tag: 1})
					send = r.Now() - begin
					if err != nil {
						return err
					}
					_, err = r.Wait(q)
					return err
				}
				q, err := c.Start(mpi.Recv{Data: m, From: 0, Tag: 1})
				if err != nil {
					return err
				}
				r.Compute(100 * sim.Microsecond)
				begin := r.Now()
				_, err = r.Wait(q)
				receive = r.Now() - begin
				return err
			}))
		}
		require.NoError(t, w.Run(context.Background()))
		return send, receive
	}
	const perByte = 1e12 / (21.44 * (1 << 30)) // ps, host.core_bandwidth of spin-int
	for _, form := range mpi.Forms() {
		send, receive := took(form, true)
		plainSend, plainReceive := took(form, false)
		require.InDelta(t, (24*64+8*n)*perByte, float64(send-plainSend), 100, "%s: packing", form)
		unpacking := (8*n + 24*64) * perByte
		if form == mpi.Host { // without types Host copies the bytes
			unpacking -= 2 * 8 * n * perByte
		} else {
			unpacking = 0
		}
		require.InDelta(t, unpacking, float64(receive-plainReceive), 100, "%s: unpacking", form)
	}
}

// A synchronous send of elements that are not in one piece is complete when it
// has a receive, with its bytes in their places.
func TestTypedSynchronousSend(t *testing.T) {
	for _, over := range carriers() {
		t.Run(over.name, func(t *testing.T) {
			w := over.world(t, t.Cleanup, 2, runtime.Config{})
			require.NoError(t, w.Spawn(0, func(r *mpi.Rank) error {
				v, err := message(r, 48, 1)
				if err != nil {
					return err
				}
				err = r.World().Do(mpi.Send{Data: mpi.Data{Memory: v, Count: 1, Type: column(t, 3)}, To: 1, Mode: mpi.Synchronous})
				require.Greater(t, r.Now(), busy)
				return err
			}))
			require.NoError(t, w.Spawn(1, func(r *mpi.Rank) error {
				v, err := r.Alloc(48)
				if err != nil {
					return err
				}
				r.Compute(busy)
				if err := r.World().Do(mpi.Recv{Data: mpi.Data{Memory: v, Count: 1, Type: column(t, 3)}}); err != nil {
					return err
				}
				want := make([]byte, 48)
				fill(want, mpi.Status{Source: 1, Bytes: 48})
				for i := range 3 {
					clear(want[16*i+8 : 16*i+16])
				}
				require.Equal(t, want, v.Read())
				return nil
			}))
			require.NoError(t, w.Run(context.Background()))
		})
	}
}
