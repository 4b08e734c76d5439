package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// ways are a device and options for each transport and each form of matching,
// and one with a buffer that a message fills.
var ways = []struct {
	device string
	o      mpi.Options
}{
	{"spin-int", mpi.DefaultOptions(mpi.Host)},
	{"spin-int", mpi.DefaultOptions(mpi.Offload)},
	{"spin-int", mpi.Options{Matching: mpi.Offload, Eager: 16, Buffers: 1, BufferBytes: 64}},
	{"exanest", mpi.DefaultExaNetOptions()},
	{"ib-npf", mpi.DefaultInfiniBandOptions()},
}

// coresOf is a configuration with a number of cores for each node.
func coresOf(tb require.TestingT, way, cores int) Config {
	set := []string{fmt.Sprintf("host.cores=%d", cores)}
	if ways[way].device == "spin-int" {
		set = append(set, "fabric.radix=4") // so that there are domains
	}
	p, err := profile.Load(ways[way].device, set...)
	require.NoError(tb, err)
	return Config{Config: runtime.Config{Profile: p}, MPI: ways[way].o}
}

func text(tb require.TestingT, lines string) *goal.Schedule {
	s, err := goal.ReadText(strings.NewReader(lines), goal.ReadOptions{})
	require.NoError(tb, err)
	return s
}

func ran(tb require.TestingT, s *goal.Schedule, cfg Config) *Result {
	r, err := Run(context.Background(), s, cfg)
	require.NoError(tb, err)
	return r
}

// Computations of two cpu indices take place at the same time, and count once.
func TestSideBySide(t *testing.T) {
	s := text(t, "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 700 cpu 3\nc: calc 500 cpu 3\nd: calc 10\nd requires c\n}\n")
	r := ran(t, s, coresOf(t, 0, 2))
	require.Equal(t, 1210*sim.Nanosecond, r.Max)
	require.Equal(t, r.Max, r.Computing)
	require.Zero(t, r.Share())
	require.Equal(t, 2210*sim.Nanosecond, r.Nodes.CPUBusy)
	one := text(t, "num_ranks 1\nrank 0 {\ncalc 1000\ncalc 700\ncalc 500\ncalc 10\n}\n")
	require.Equal(t, int64(2*threadFootprint), Memory(s, coresOf(t, 0, 2))-Memory(one, coresOf(t, 0, 2)))
}

// pingpong has rounds of messages between two ranks, then a short computation
// that belongs to a collective, whose window shows when it took place, and a
// long one: a rank that leaves sends a message over InfiniBand.
func pingpong(tb require.TestingT, size int, beside string) *goal.Schedule {
	var b strings.Builder
	b.WriteString("num_ranks 2\n")
	for rank := range 2 {
		fmt.Fprintf(&b, "rank %d {\n%s", rank, beside)
		for i := range 8 {
			if (i+rank)%2 == 0 {
				fmt.Fprintf(&b, "m%d: send %db to %d\n", i, size, 1-rank)
			} else {
				fmt.Fprintf(&b, "m%d: recv %db from %d\n", i, size, 1-rank)
			}
			if i > 0 {
				fmt.Fprintf(&b, "m%d requires m%d\n", i, i-1)
			}
		}
		b.WriteString("//coll last barrier 0b\nlast: calc 5\nlast requires m7\n//coll end\ntail: calc 1000000\ntail requires last\n}\n")
	}
	return text(tb, b.String())
}

// A long computation changes nothing for sends and receives of another cpu
// index. Those of the same one wait for its end.
func TestMessagesPassComputations(t *testing.T) {
	for way := range ways {
		for _, size := range []int{8, 3000, 100_000} {
			name := fmt.Sprintf("%s %s %d B", ways[way].device, ways[way].o.Transport, size)
			free := ran(t, pingpong(t, size, ""), coresOf(t, way, 2))
			beside := ran(t, pingpong(t, size, "calc 1000000 cpu 1\n"), coresOf(t, way, 2))
			require.Equal(t, free.Windows, beside.Windows, name)
			behind := ran(t, pingpong(t, size, "calc 1000000\n"), coresOf(t, way, 2))
			require.Greater(t, behind.Windows[0].Start, sim.Millisecond, name)
		}
	}
}

// drawn is a random schedule: per rank computations in a random order, and
// messages in rounds. across: dependencies go from one cpu index to others.
func drawn(t *rapid.T, cpus, nics int, messages, across bool) (*goal.Schedule, [][]goal.Op, [][][]int) {
	b := goal.NewBuilder()
	ranks := rapid.IntRange(1, 3).Draw(t, "ranks")
	all, before := make([][]goal.Op, ranks), make([][][]int, ranks)
	for r := range ranks {
		for range rapid.IntRange(1, 12).Draw(t, "computations") {
			all[r] = append(all[r], goal.Op{Kind: goal.Calc, Size: rapid.Uint64Range(0, 9000).Draw(t, "ns")})
		}
	}
	if messages && ranks > 1 {
		for i := range rapid.IntRange(0, 10).Draw(t, "messages") {
			from := rapid.IntRange(0, ranks-1).Draw(t, "from")
			to := (from + rapid.IntRange(1, ranks-1).Draw(t, "to")) % ranks
			size := rapid.SampledFrom([]uint64{0, 8, 5000, 40_000}).Draw(t, "size")
			all[from] = append(all[from], goal.Op{Kind: goal.Send, Size: size, Peer: uint32(to), Tag: uint64(i)})
			all[to] = append(all[to], goal.Op{Kind: goal.Recv, Size: size, Peer: uint32(from), Tag: uint64(i)})
		}
	}
	for r, ops := range all {
		b.Rank(r)
		before[r] = make([][]int, len(ops))
		for i := range ops {
			ops[i].CPU = uint8(rapid.IntRange(0, cpus-1).Draw(t, "cpu"))
			if nics > 1 && ops[i].Kind != goal.Calc {
				ops[i].NIC = uint8(rapid.IntRange(0, nics-1).Draw(t, "nic"))
			}
			b.Add(ops[i])
			for y := range i {
				if (across || ops[y].CPU == ops[i].CPU) && rapid.IntRange(0, 3).Draw(t, "requires") == 0 {
					b.Requires(i, y)
					before[r][i] = append(before[r][i], y)
				}
			}
		}
	}
	s, err := b.Schedule()
	require.NoError(t, err)
	return s, all, before
}

// Computations of independent cpu indices end as in the endpoint model.
func TestIndependentComputationsAsInTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _, _ := drawn(t, 4, 1, false, false)
		model, err := goal.NewSimulator(s).Run(goal.DefaultParams())
		require.NoError(t, err)
		r := ran(t, s, coresOf(t, 0, 4))
		for rank, ns := range model.FinishNS {
			require.EqualValues(t, ns, r.Finish[rank]/sim.Nanosecond)
		}
	})
}

// A rank takes at least its longest chain of computations, and those of a cpu
// index take place one after the other. Whatever the indices, the run ends and
// all bytes arrive; with one it has the result of a run without threads.
func TestThreadsOnRandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		way, cpus := rapid.IntRange(0, len(ways)-1).Draw(t, "way"), rapid.IntRange(1, 4).Draw(t, "cpus")
		nics := rapid.IntRange(1, 3).Draw(t, "nics")
		s, all, before := drawn(t, cpus, nics, true, true)
		cfg := coresOf(t, way, 4)
		r := ran(t, s, cfg)
		for rank, ops := range all {
			ends, least, lanes := make([]uint64, len(ops)), uint64(0), make([]uint64, cpus)
			for i, op := range ops {
				for _, y := range before[rank][i] {
					ends[i] = max(ends[i], ends[y])
				}
				if op.Kind == goal.Calc {
					ends[i] += op.Size
					lanes[op.CPU] += op.Size
				}
				least = max(least, ends[i], lanes[op.CPU])
			}
			require.GreaterOrEqual(t, r.Finish[rank], sim.Time(least)*sim.Nanosecond)
		}
		cfg.Cores = 2
		require.Equal(t, r, ran(t, s, cfg))
		if cpus == 1 && !SeveralNICs(s) {
			cfg.threads = true
			with := ran(t, s, cfg)
			with.Events = r.Events
			require.Equal(t, r, with)
		}
	})
}

// While ranks wait for the last of them in an allreduce of the library, the end
// of a computation releases a message.
func TestMessagesPassCalls(t *testing.T) {
	for _, nic := range []string{"", " nic 1"} { // that of the call is the first
		messagesPassCalls(t, nic)
	}
}

func messagesPassCalls(t *testing.T, nic string) {
	var b strings.Builder
	b.WriteString("num_ranks 4\n")
	for r := range 4 {
		fmt.Fprintf(&b, "rank %d {\n//coll a allreduce 4096b\na: calc 0 cpu 2\n//coll end\nx: calc 9000 cpu 1\n", r)
		fmt.Fprintf(&b, "//coll b barrier 0b\ns: send 8b to %d cpu 1%s\nr: recv 8b from %d cpu 1\ns requires x\n//coll end\n", r^1, nic, r^1)
		if r == 3 {
			b.WriteString("late: calc 100000\na requires late\n")
		}
		b.WriteString("}\n")
	}
	s := text(t, b.String())
	for _, mode := range mpi.AllreduceChoices() {
		if mode == mpi.ModeAccelerator {
			continue // of another profile
		}
		for way := range ways[:4] {
			cfg := coresOf(t, way, 3)
			if mode == mpi.ModeSwitch {
				var err error
				cfg.Profile, err = profile.Load(ways[way].device, "host.cores=3", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")
				require.NoError(t, err)
			}
			cfg.MPI.Allreduce, cfg.Calls = mode, map[string]bool{"a": true}
			r := ran(t, s, cfg)
			require.Less(t, r.Windows[1].End, 20*sim.Microsecond, "%s %s", ways[way].device, mode)
			require.Less(t, 100*sim.Microsecond, r.Windows[0].End, mode)
		}
	}
}

// Ranks of a node have cores of their own. If there are too few, the error says
// how many the ranks use.
func TestTooFewCores(t *testing.T) {
	s := text(t, "num_ranks 2\nrank 0 {\ncalc 1000\ncalc 1000 cpu 7\ncalc 1000 cpu 9\n}\nrank 1 {\ncalc 1000 cpu 2\ncalc 1000 cpu 1\n}\n")
	for _, c := range []struct {
		perNode, cores int
		want           string
	}{
		{1, 3, ""},
		{1, 2, "nodes: rank 0 uses 3 cpu indices, expected at most 2, the cores of a node (host.cores of profile spin-int)"},
		{2, 5, ""},
		{2, 4, "nodes: ranks 0 to 1, of one node, use 5 cpu indices, expected at most 4, the cores of a node (host.cores of profile spin-int)"},
	} {
		cfg := coresOf(t, 0, c.cores)
		cfg.MPI.PerNode = c.perNode
		r, err := Run(context.Background(), s, cfg)
		if c.want == "" {
			require.NoError(t, err)
			require.Equal(t, sim.Microsecond, r.Max)
			continue
		}
		require.ErrorAs(t, err, &InputError{})
		require.EqualError(t, err, c.want)
	}
}
