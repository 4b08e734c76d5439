package mpi_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The answers of host.library to what TR-488 leaves open.

// Copies of an eager message: each takes a memory latency and a line, or the
// line alone if the core has it already.
func TestLibraryEagerCopy(t *testing.T) {
	const latency, line = 100.0, 64 / 2.2
	of := func(n int, set ...string) float64 {
		return pingPong(t, n, 4, mpi.DefaultExaNetOptions(), append(set, allThere...)...).Seconds() * 1e9
	}
	today := of(32)
	for value, more := range map[string]float64{"receiver": 0, "cached": -latency, "none": -latency - line, "both": latency + line} {
		require.InDelta(t, today+more, of(32, "host.library.eager_copy="+value), 0.01, value)
		require.Equal(t, of(0), of(0, "host.library.eager_copy="+value), "%s: 0 B are not copied", value)
	}
}

// Who starts a large message can be said by the program or by the profile.
func TestLibraryStart(t *testing.T) {
	o := mpi.DefaultExaNetOptions()
	set := append([]string{"host.library.start=process"}, allThere...)
	profile := pingPong(t, 64, 2, o, set...)
	o.ExaNet.Start = mpi.StartByProcess
	require.Equal(t, pingPong(t, 64, 2, o, allThere...), profile)
	o.ExaNet.Start = mpi.StartByUnit
	require.Less(t, pingPong(t, 64, 2, o, set...), profile, "the program decides")
}

// collective returns the longest time of a call of any rank. All begin at the
// same time. The call checks the result.
func collective(t *testing.T, ranks int, call func(r *mpi.Rank) error, o mpi.Options, overrides ...string) sim.Time {
	w := exanetWorld(t, t.Cleanup, ranks, o, runtime.Config{}, append(overrides, allThere...)...)
	took := make([]sim.Time, ranks)
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			begin := r.Now()
			err := call(r)
			took[rank] = r.Now() - begin
			return err
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	return slices.Max(took)
}

// sums is an Allreduce of n bytes of ones.
func sums(t *testing.T, n int) func(r *mpi.Rank) error {
	return func(r *mpi.Rank) error {
		send, err := r.Alloc(n)
		if err != nil {
			return err
		}
		recv, err := r.Alloc(n)
		if err != nil {
			return err
		}
		for i := range n / 4 {
			send.Write()[4*i] = 1
		}
		err = r.World().Allreduce(send, recv, mpi.Int32, mpi.Sum)
		for i := range n / 4 {
			require.Equal(t, byte(r.Size()), recv.Read()[4*i])
		}
		return err
	}
}

// Allreduce with one rank allocates one buffer and copies twice; with two it
// allocates another and reduces once.
func TestLibraryTimesOfCollectives(t *testing.T) {
	o := mpi.DefaultExaNetOptions()
	for set, more := range map[string][2]sim.Time{
		"host.library.collective=1us":    {sim.Microsecond, sim.Microsecond},
		"host.library.copy=1us":          {2 * sim.Microsecond, 2 * sim.Microsecond},
		"host.library.reduce=1us":        {0, sim.Microsecond},
		"host.library.allocate=1us":      {sim.Microsecond, 2 * sim.Microsecond},
		"host.library.allocate_page=1us": {2 * sim.Microsecond, 4 * sim.Microsecond},
	} {
		for i, ranks := range []int{1, 2} {
			const n = 5000 // two pages
			today := collective(t, ranks, sums(t, n), o)
			require.Equal(t, today+more[i], collective(t, ranks, sums(t, n), o, set), "%s, %d ranks", set, ranks)
		}
	}
	// the algorithms of MPICH are another library's
	o.Algorithms = mpi.MPICH
	require.Equal(t, collective(t, 2, sums(t, 8), o), collective(t, 2, sums(t, 8), o, "host.library.copy=1us", "host.library.collective=1us", "host.library.exchange=ordered"))
}

// One direction of an exchange after the other takes longer, gives the same
// result on any number of ranks, and no two ranks wait for each other's receive.
func TestLibraryExchangeInOrder(t *testing.T) {
	o := mpi.DefaultExaNetOptions()
	for _, ranks := range []int{2, 3, 4, 7, 8} {
		for _, n := range []int{4, 64, 20000} {
			require.Greater(t, collective(t, ranks, sums(t, n), o, "host.library.exchange=ordered"), collective(t, ranks, sums(t, n), o), "%d ranks, %d B", ranks, n)
		}
	}
}

// A root that does not wait for its first large message begins the second
// earlier. Eager messages are complete at once, so nothing changes for them.
func TestLibraryFanout(t *testing.T) {
	bcast := func(n int, set ...string) sim.Time {
		return collective(t, 4, func(r *mpi.Rank) error {
			v, err := r.Alloc(n)
			if err != nil {
				return err
			}
			if r.Rank() == 0 {
				v.Write()[n-1] = 7
			}
			err = r.World().Bcast(v, 0)
			require.Equal(t, byte(7), v.Read()[n-1])
			return err
		}, mpi.DefaultExaNetOptions(), set...)
	}
	require.Equal(t, bcast(4), bcast(4, "host.library.fanout=together"))
	require.Less(t, bcast(64, "host.library.fanout=together"), bcast(64))
}

// The accelerator takes a whole vector at once if the process programs it once,
// and then has several runs under way. The mailbox is nearer than memory.
func TestLibraryAccelerator(t *testing.T) {
	o := mpi.DefaultExaNetOptions()
	o.Allreduce = mpi.ModeAccelerator
	of := func(n int, set ...string) sim.Time { return collective(t, 16, sums(t, n), o, set...) }
	const once = "host.library.vectors=once"
	require.Equal(t, of(256), of(256, once), "a vector of one run is programmed once")
	each, whole := of(2048), of(2048, once)
	require.Less(t, whole, each)
	require.Less(t, of(2048, once, "host.library.runs=4"), whole)
	const poll = 100_000 - 15_333 // ps
	require.Equal(t, of(256)-poll, of(256, "host.library.notice=mailbox"))
}

// A blocking send of an eager message that waits for the mailbox's answer takes
// a round trip of the interfaces and a look longer. A round trip of messages
// does not, because the answer comes while the other side works. Messages that
// a full mailbox refuses are complete when it takes them.
func TestLibraryEagerSend(t *testing.T) {
	const acknowledged = "host.library.eager_send=acknowledged"
	o := mpi.DefaultExaNetOptions()
	require.Equal(t, pingPong(t, 32, 4, o, allThere...), pingPong(t, 32, 4, o, append([]string{acknowledged}, allThere...)...))
	send := func(count int, o mpi.Options, set ...string) (took sim.Time) {
		all := collective(t, 2, func(r *mpi.Rank) error {
			v, err := r.Alloc(8)
			if err != nil {
				return err
			}
			for range count {
				begin := r.Now()
				if r.Rank() == 1 {
					_, err = r.World().Recv(v, 0, 1)
				} else if err = r.World().Send(v, 1, 1); err == nil {
					took = r.Now() - begin
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, o, set...)
		require.Positive(t, all)
		return took
	}
	stored, waited := send(1, o), send(1, o, acknowledged)
	const look = 120 * sim.Nanosecond
	require.Greater(t, waited, stored+2*106*sim.Nanosecond+look, "two wires and a load of the state")
	require.Less(t, waited, stored+sim.Microsecond)
	o.ExaNet.Depth = 1
	send(50, o, acknowledged)
}
