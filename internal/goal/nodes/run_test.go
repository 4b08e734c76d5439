package nodes_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

func run(t *testing.T, text string, m mpi.Matching) *nodes.Result {
	r, err := nodes.Run(context.Background(), read(t, text), config(t, m))
	require.NoError(t, err)
	return r
}

// One message of 8 B on spin-int, in ps. The sender hands it to its NIC (o =
// 65,000). The NIC reads it (two DMA latencies of 50,000, and 50 for 8 B at 150
// GiB/s) and sends it: 8 B at 20 ps, two wires of 33,400 and a switch of
// 50,000. The target matches the header in 30,000 and writes the data in 50,000
// + 50. The receiver has posted its receive meanwhile and looks in 51,000.
func TestOneMessage(t *testing.T) {
	const text = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"
	const visible = 65_000 + 2*50_000 + 50 + 8*20 + 2*33_400 + 50_000 + 30_000 + 50_000 + 50
	r := run(t, text, mpi.Offload)
	require.EqualValues(t, visible+51_000, r.Finish[1])
	// The sender's SEND record leaves when the data is at the NIC.
	require.EqualValues(t, 65_000+2*50_000+50+50_000+51_000, r.Finish[0])
	require.Equal(t, r.Finish[1], r.Max)
	require.Equal(t, 1, r.MaxRank)

	// The host looks at one receive in its list (51,000) and copies: 8 B read
	// and 8 written, 16 cache lines of 64 B under way for 51,000 each.
	r = run(t, text, mpi.Host)
	require.Equal(t, visible+51_000+51_000+copyTime(t, 8), r.Finish[1])
}

// copyTime is how long a core copies n bytes, not more than a piece, with the memory to itself.
func copyTime(t *testing.T, n int64) sim.Time {
	h := config(t, mpi.Host).Profile.Host
	return max(h.StreamTime(2*n), h.MemoryBandwidth.Time(2*n))
}

// irequires waits for the start, requires for the end; computations of a rank
// come one after the other.
func TestDependencies(t *testing.T) {
	const text = `num_ranks 2
rank 0 {
a: calc 1000
b: calc 500
c: send 100000b to 1
d: calc 30
d irequires c
e: calc 7000
e requires c
}
rank 1 {
w: calc 20000
r: recv 100000b from 0
r requires w
}
`
	for _, m := range mpi.Forms() {
		r := run(t, text, m)
		require.Equal(t, 28530*sim.Nanosecond, r.Computing)
		// e begins when rank 1, after its 20 µs, has fetched the data.
		require.Greater(t, r.Finish[0], 27*sim.Microsecond)
		require.Less(t, r.Finish[0], 30*sim.Microsecond)
	}
}

// Wildcards of receives: both messages arrive, and the data of each comes from
// its source, which every run checks.
func TestWildcards(t *testing.T) {
	const text = `num_ranks 3
rank 0 {
recv 20000b from -1 tag -1
recv 20000b from -1 tag 4
}
rank 1 {
send 20000b to 0 tag 4
}
rank 2 {
send 100b to 0 tag 4
}
`
	for _, m := range mpi.Forms() {
		require.EqualValues(t, 2, run(t, text, m).Messages.Received)
	}
}

func TestFailures(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no receive", "num_ranks 2\nrank 0 {\nlost: send 8b to 1\n}\nrank 1 {\ncalc 1\n}\n", "no receive for rank 0 lost (line 3): send 8b to 1"},
		{"a cycle", "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}\n", "cycle: rank 0 a (line 3): calc 1"},
		{
			// Each rank waits for the other's receive before it posts its own.
			// With messages up to 65,535 B eager this ends well.
			"rendezvous", "num_ranks 2\nrank 0 {\ns: send 20000b to 1\nr: recv 20000b from 1\nr requires s\n}\n" +
				"rank 1 {\ns: send 20000b to 0\nr: recv 20000b from 0\nr requires s\n}\n", "waits for rank 1 r (line 9): recv 20000b from 0",
		},
	} {
		for _, m := range mpi.Forms() {
			_, err := nodes.Run(context.Background(), read(t, test.text), config(t, m))
			var unfinished *goal.UnfinishedError
			require.ErrorAs(t, err, &unfinished, test.name)
			require.ErrorContains(t, err, test.want, test.name)
		}
	}

	_, err := nodes.Run(context.Background(), read(t, "num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"), config(t, mpi.Host))
	require.ErrorContains(t, err, "message of 9 B from rank 0 with tag 0 is longer than its receive of 8 B")
}

func TestInputErrors(t *testing.T) {
	fine := "num_ranks 1\nrank 0 {\ncalc 1\n}\n"
	bad := config(t, mpi.Offload)
	bad.MPI.Eager = -1
	tiny := config(t, mpi.Offload)
	tiny.Profile.Fabric.MTU = 8
	for _, test := range []struct {
		text string
		cfg  nodes.Config
		want string
	}{
		{"num_ranks 2\nrank 0 {\na: send 8b to 1 tag -1\n}\nrank 1 {\nrecv 8b from 0\n}\n", config(t, mpi.Host), "rank 0 a (line 3)"},
		{"num_ranks 2\nrank 0 {\nsend 8000000000b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n", config(t, mpi.Host), "expected at most 2147483647 bytes"},
		{"num_ranks 1\nrank 0 {\ncalc 3000000000000000\n}\n", config(t, mpi.Host), "takes 3000000000000000 ns"},
		{fine, bad, "eager: -1 B"},
		{fine, tiny, "packets of 8 B do not hold an announcement"},
	} {
		_, err := nodes.Run(context.Background(), read(t, test.text), test.cfg)
		var input nodes.InputError
		require.ErrorAs(t, err, &input, test.want)
		require.ErrorContains(t, err, test.want)
	}
}

// Every field of an operation in a schedule counts or is refused: another value
// gives another result, or an error.
func TestNothingOfAnOperationIsIgnored(t *testing.T) {
	build := func(change func(op *goal.Op)) (*nodes.Result, error) {
		b := goal.NewBuilder()
		for rank := range 3 {
			b.Rank(rank)
			ops := [3][]goal.Op{
				{{Kind: goal.Calc, Size: 1000}, {Kind: goal.Send, Size: 8, Peer: 1}, {Kind: goal.Send, Size: 8, Peer: 1}},
				{{Kind: goal.Recv, Size: 8, Peer: 0}, {Kind: goal.Recv, Size: 8, Peer: 0}},
				{{Kind: goal.Calc, Size: 5}},
			}[rank]
			for i := range ops {
				if rank == 0 && i == 2 {
					change(&ops[i])
				}
				b.Add(ops[i])
			}
		}
		s, err := b.Schedule()
		if err != nil {
			return nil, err
		}
		return nodes.Run(context.Background(), s, config(t, mpi.Offload))
	}
	want, err := build(func(*goal.Op) {})
	require.NoError(t, err)
	fields := reflect.TypeFor[goal.Op]()
	for i := range fields.NumField() {
		got, err := build(func(op *goal.Op) { reflect.ValueOf(op).Elem().Field(i).SetUint(2) })
		if err == nil {
			require.NotEqual(t, want, got, fields.Field(i).Name)
		}
	}
}

// The same run gives the same result, with a timeline or without.
func TestReproducible(t *testing.T) {
	s, err := goal.Generate("dissemination", goal.GenParams{Ranks: 12, Size: 20000, Ways: 2, CalcNS: 100})
	require.NoError(t, err)
	cfg := config(t, mpi.Offload)
	first, err := nodes.Run(context.Background(), s, cfg)
	require.NoError(t, err)
	var timeline bytes.Buffer
	w := trace.New(&timeline, trace.Perfetto, trace.Options{})
	cfg.Tracer = w
	second, err := nodes.Run(context.Background(), s, cfg)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NotZero(t, timeline.Len())
	require.Equal(t, first, second)
}

func TestShare(t *testing.T) {
	r := nodes.Result{Finish: []sim.Time{100, 300}, Computing: 300}
	require.InDelta(t, 0.25, r.Share(), 1e-9)
	require.Zero(t, (&nodes.Result{}).Share())
}

// If a run is stopped before it begins, the error does not blame the input.
func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	limit := &sim.LimitError{Limit: "1 ns of real time"}
	cancel(limit)
	_, err := nodes.Run(ctx, read(t, "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n"), config(t, mpi.Offload))
	require.ErrorIs(t, err, limit)
	var input nodes.InputError
	require.NotErrorAs(t, err, &input)
}

// A computation takes up to so much longer, at each rank otherwise, and from the
// seed.
func TestComputationsHaveJitter(t *testing.T) {
	const d = 1000 * sim.Nanosecond
	finish := func(jitter float64, seed uint64) []sim.Time {
		cfg := config(t, mpi.Host)
		own := *cfg.Profile
		own.Host.Jitter, cfg.Profile, cfg.Seed = jitter, &own, seed
		r, err := nodes.Run(context.Background(), read(t, "num_ranks 2\nrank 0 {\ncalc 1000\n}\nrank 1 {\ncalc 1000\n}\n"), cfg)
		require.NoError(t, err)
		return r.Finish
	}
	require.Equal(t, []sim.Time{d, d}, finish(0, 1))
	noisy := finish(0.1, 1)
	require.NotEqual(t, noisy[0], noisy[1])
	for _, at := range noisy {
		require.Greater(t, at, d)
		require.LessOrEqual(t, at, d*11/10)
	}
	require.Equal(t, noisy, finish(0.1, 1))
	require.NotEqual(t, noisy, finish(0.1, 2))
}

// Switches whose queues are full drop packets: a reliable transport sends them
// again, and every byte arrives, on one core or several. Without one the error
// names the loss.
func TestSwitchesDrop(t *testing.T) {
	s, err := goal.Generate("gather", goal.GenParams{Ranks: 16, Size: 16 << 10})
	require.NoError(t, err)
	run := func(set ...string) (*nodes.Result, error) {
		cfg := config(t, mpi.Host)
		cfg.Profile, err = profile.Load("spin-int", append([]string{"fabric.radix=4", "fabric.paths=flow"}, set...)...)
		require.NoError(t, err)
		var first *nodes.Result
		for _, cfg.Cores = range []int{1, 3} {
			r, err := nodes.Run(context.Background(), s, cfg)
			if err != nil {
				return nil, err
			}
			if first == nil {
				first = r
			}
			require.Equal(t, first, r)
		}
		return first, nil
	}
	free, err := run()
	require.NoError(t, err)
	full, err := run("fabric.queue=16KiB", "transport.kind=reliable")
	require.NoError(t, err)
	require.Greater(t, full.Max, free.Max)
	_, err = run("fabric.queue=16KiB")
	require.ErrorContains(t, err, "was lost on Switch[")
}
