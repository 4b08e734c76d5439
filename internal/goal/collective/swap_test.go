package collective

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
)

func read(t *testing.T, text string) *goal.Schedule {
	s, err := goal.ReadText(strings.NewReader(text), goal.ReadOptions{File: "x"})
	require.NoError(t, err)
	return s
}

// naming makes a pattern one collective.
func naming(t *testing.T, pattern string, p goal.GenParams, collective string) *goal.Schedule {
	s, err := goal.Generate(pattern, p)
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, goal.WriteText(&text, s))
	return read(t, regexp.MustCompile(`rank \d+ \{\n`).ReplaceAllString(text.String(), "$0//coll "+collective+"\n"))
}

func finish(t *testing.T, s *goal.Schedule, eager uint64) []int64 {
	p := goal.DefaultParams()
	p.Eager = eager
	res, err := goal.NewSimulator(s).Run(p)
	require.NoError(t, err)
	require.Zero(t, res.Mismatched)
	return res.FinishNS
}

// A pattern of package goal has the times of the algorithm that it is, at every
// rank.
func TestAlgorithmsArePatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, collective, by string }{
		{"allreduce-ring", "c allreduce %db", "ring"},
		{"allreduce-recdoub", "c allreduce %db", "doubling"},
		{"bcast-binomial", "c broadcast %db root 0", "binomial"},
		{"reduce-binomial", "c reduce %db root 0", "binomial"},
		{"alltoall-pairwise", "c alltoall %db", "pairwise"},
		{"alltoall-linear", "c alltoall %db", "linear"},
	} {
		for _, n := range []int{2, 5, 8} {
			const size = 70000
			p, vector := goal.GenParams{Ranks: n, Size: size}, size
			if strings.HasPrefix(c.pattern, "alltoall") {
				vector *= n // a pattern has the size of a block
			}
			s := naming(t, c.pattern, p, fmt.Sprintf(c.collective, vector))
			other, err := Swap(s, []string{c.by})
			require.NoError(t, err)
			require.Equal(t, s.Collectives(), other.Collectives())
			require.Equal(t, finish(t, s, math.MaxUint64), finish(t, other, math.MaxUint64), "%s, %d ranks", c.pattern, n)
		}
	}
}

// around has computations before and behind two collectives of some ranks, and a
// message that has the tag 0.
const around = `num_ranks 4
rank 0 {
w: calc 1000
v: calc 10
//coll a allreduce 8b
l: send 8b to 2 tag 5
m: recv 8b from 2 tag 5
//coll b broadcast 100b root 2
x: recv 100b from 2 tag 6
//coll end
z: send 3b to 1
l requires w
m requires v
x requires m
z requires x
}
rank 1 {
recv 3b from 0
}
rank 2 {
//coll a allreduce 8b
l: send 8b to 0 tag 5
m: recv 8b from 0 tag 5
//coll b broadcast 100b root 2
x: send 100b to 0 tag 6
y: calc 7
//coll end
z: calc 100000
zz: calc 1
x requires m
y requires m
z requires x
zz requires y
}
rank 3 {
}
`

// Other operations stay where they were, between the same ones.
func TestSwapKeepsTheRest(t *testing.T) {
	t.Parallel()
	s, err := Swap(read(t, around), []string{"doubling", "ring:slices=2:copy=1"})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, goal.WriteText(&text, s))
	require.Equal(t, `num_ranks 4

rank 0 {
w: calc 1000
v: calc 10
//coll a allreduce 8b
l3: calc 0
l4: send 8b to 2 tag 1
l5: recv 8b from 2 tag 1
//coll b broadcast 100b root 2
l6: recv 50b from 2 tag 2
l7: calc 50
l8: recv 50b from 2 tag 3
l9: calc 50
//coll end
z: send 3b to 1
`, text.String()[:strings.Index(text.String(), "l3 requires")])
	for _, by := range [][]string{{"", ""}, {"tree", "binomial"}, {"", "ring"}, {Call, Call}, {"ring:ll:channels=3", Call}} {
		s, err := Swap(read(t, around), by)
		require.NoError(t, err)
		end := finish(t, s, 4)
		require.Greater(t, end[1], int64(1000), "behind the first computation")
		if by[0] != Call {
			require.Greater(t, end[2], int64(100000+1000), "%v", by)
		}
	}
	for text, by := range map[string]string{
		"a: no algorithm pairwise for allreduce, there are: ring, tree": "pairwise",
		`algorithm "rang", expected one of ring`:                        "rang",
		"4 bytes at 9000000000000000000 ns":                             "ring:reduce=9000000000000000000",
	} {
		_, err := Swap(read(t, around), []string{by, ""})
		require.ErrorContains(t, err, text)
	}
	_, err = Swap(read(t, strings.Replace(around, "recv 3b from 0", "recv 3b from 0 tag -1", 1)), []string{"ring", ""})
	require.ErrorContains(t, err, "rank 1 operation 0 (line 18): recv 3b from 0 tag -1: it would take messages")
	_, err = Swap(read(t, strings.Replace(around, "z requires x", "z irequires x", 1)), []string{"ring", "ring"})
	require.ErrorContains(t, err, "rank 0 x (line 9): recv 100b from 2 tag 6: collective b cannot have other operations")
	_, err = Swap(read(t, strings.ReplaceAll(around, "root 2", "root 3")), []string{"", "ring"})
	require.ErrorContains(t, err, "b: its root, rank 3, is no member")
}

// What is chosen means collectives that are there.
func TestPick(t *testing.T) {
	t.Parallel()
	s := read(t, around)
	for text, want := range map[string]any{
		"allreduce=ring":     []string{"ring", ""},
		"b=x+allreduce=tree": []string{"tree", "x"},
		"broadcast=x+b=y":    []string{"", "y"},
		"b=y+broadcast=x":    []string{"", "y"},
		"c=x":                "c: the schedule names no such collective, expected one of allreduce, broadcast, a, b",
		"a":                  `"a", expected COLLECTIVE=ALGORITHM`,
		"a=x+a=y":            `"a=x+a=y": a twice`,
	} {
		list, err := Choices(text)
		var by []string
		if err == nil {
			by, err = Pick(s, list)
		}
		if message, wrong := want.(string); wrong {
			require.ErrorContains(t, err, message)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, by, text)
	}
	_, err := Pick(read(t, "num_ranks 1\nrank 0 {\n}\n"), []Chosen{{"a", "b"}})
	require.ErrorContains(t, err, "expected one of none: lines with //coll name them")
	_, err = Pick(read(t, strings.ReplaceAll(around, "//coll a allreduce", "//coll allreduce allreduce")), []Chosen{{"c", "x"}})
	require.ErrorContains(t, err, "expected one of allreduce, broadcast, b")
}

// sent returns messages and bytes that each member sends.
func sent(list []*member) (messages []int, wire []uint64) {
	for _, m := range list {
		n, sum := 0, uint64(0)
		for _, s := range m.steps {
			if s.kind == goal.Send {
				n++
				sum += s.size
			}
		}
		messages, wire = append(messages, n), append(wire, sum)
	}
	return messages, wire
}

// Messages and bytes of a member, by the formulas of the publications.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	const n = 8
	const size = 3840 * n // whole lines of each protocol
	for _, c := range []struct {
		kind     goal.CollectiveKind
		by       string
		messages int
		bytes    uint64
	}{
		{goal.AllReduce, "ring", 2 * (n - 1), 2 * (n - 1) * size / n},
		{goal.AllReduce, "ring:ll", 2 * (n - 1), 2 * 2 * (n - 1) * size / n},
		{goal.AllReduce, "ring:ll128", 2 * (n - 1), 2 * (n - 1) * size / n / 120 * 128},
		{goal.AllReduce, "ring:channels=4:slices=2", 4 * 2 * 2 * (n - 1), 2 * (n - 1) * size / n},
		{goal.AllReduce, "ring:chunk=480", size / n / 480 * 2 * (n - 1), 2 * (n - 1) * size / n},
		{goal.AllReduce, "doubling", 3, 3 * size},
		{goal.AllReduce, "halving-doubling", 2 * 3, 2 * (n - 1) * size / n},
		{goal.AllGather, "ring", n - 1, (n - 1) * size},
		{goal.AllGather, "pat", 3, (n - 1) * size},
		{goal.ReduceScatter, "ring", n - 1, (n - 1) * size / n},
		{goal.ReduceScatter, "pat", 3, (n - 1) * size / n},
		{goal.AllToAll, "pairwise", n - 1, (n - 1) * size / n},
		{goal.Barrier, "dissemination", 3, 0},
	} {
		messages, wire := sent(membersOf(t, c.kind, n, 0, size, c.by))
		for me := range n {
			require.Equal(t, c.messages, messages[me], "%s %s", c.kind, c.by)
			require.Equal(t, c.bytes, wire[me], "%s %s", c.kind, c.by)
		}
	}
	for _, members := range []int{8, 9, 12} {
		most := func(by string) (all, most uint64) {
			_, wire := sent(membersOf(t, goal.AllReduce, members, 0, size, by))
			for _, b := range wire {
				all, most = all+b, max(most, b)
			}
			return all, most
		}
		all, one := most("tree")
		require.Equal(t, uint64(2*(members-1)*size), all)
		require.Equal(t, uint64(3*size), one, "an inner member sends up once and down twice")
		if all, one = most("double-tree"); members%2 == 0 {
			require.Equal(t, uint64(2*size), one, "leaves of one tree are inner in the other")
		}
		require.Equal(t, uint64(2*(members-1)*size), all)
	}
}

// ASTRA-sim's ring of 8 NPUs and 1 MiB, written there as messages and computations
// of 7,000 ns, takes what ASTRA-sim prints: 14 x 2,941 + 7 x 7,000 ns.
func TestRingOfASTRA(t *testing.T) {
	t.Parallel()
	s, err := Generate(fmt.Sprintf("allreduce=ring:reduce=%v", 7000.0/(1<<17)), goal.GenParams{Ranks: 8, Size: 1 << 20})
	require.NoError(t, err)
	perByte, err := goal.ParseByteTime("0.0186264515") // 50 GB/s, GB of 2^30
	require.NoError(t, err)
	res, err := goal.NewSimulator(s).Run(goal.Params{Model: goal.ATLAHS, L: 500, ByteGap: perByte, Eager: math.MaxUint64})
	require.NoError(t, err)
	require.Equal(t, int64(90174), res.MaxNS)
}

// Every algorithm ends in both models, with messages of any length as a rendezvous
// or not, and each message meets the receive that was made for it.
func TestGeneratedEnd(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		for _, by := range specs(kind) {
			for _, n := range []int{1, 2, 3, 8, 11} {
				p := goal.GenParams{Ranks: n, Size: 100}
				if kind.Rooted() {
					p.Root = n / 2
				}
				name := string(kind) + "=" + by
				s, err := Generate(name, p)
				require.NoError(t, err)
				operations, err := Operations(name, p)
				require.NoError(t, err)
				require.GreaterOrEqual(t, operations, s.Len(), "%s: %d ranks", name, n)
				for _, eager := range []uint64{0, 9, math.MaxUint64} {
					for _, model := range []goal.Model{goal.LogGOPS, goal.ATLAHS} {
						q := goal.DefaultParams()
						q.Eager, q.Model, q.ByteOverhead = eager, model, goal.PerByte(9)
						res, err := goal.NewSimulator(s).Run(q)
						require.NoError(t, err, "%s: %d ranks, S %d", name, n, eager)
						require.Zero(t, res.Mismatched)
					}
				}
			}
		}
	}
	_, err := Generate("allreduce=ring", goal.GenParams{Ranks: 1 << 20, Size: 8})
	require.ErrorIs(t, err, goal.ErrTooLarge)
}

// Lines hold 8 bytes of 16, and 120 of 128.
func TestWire(t *testing.T) {
	t.Parallel()
	for n, want := range map[uint64][3]uint64{0: {0, 0, 0}, 1: {1, 16, 128}, 8: {8, 16, 128}, 9: {9, 32, 128}, 121: {121, 256, 256}} {
		require.Equal(t, want, [3]uint64{Simple.Wire(n), LL.Wire(n), LL128.Wire(n)})
	}
}

// A wrong option is one error.
func TestParse(t *testing.T) {
	t.Parallel()
	o, err := Parse("ring:ll128:channels=4:chunk=2MiB:slices=2:reduce=0.02:copy=1")
	require.NoError(t, err)
	reduce, err := goal.ParseByteTime("0.02")
	require.NoError(t, err)
	require.Equal(t, Options{"ring", LL128, 4, 2 << 20, 2, reduce, goal.PerByte(1)}, o)
	for text, want := range map[string]string{
		"":                     `algorithm "", expected one of`,
		"rings":                "(did you mean ring?)",
		"ring:ll:simple":       "protocol twice",
		"ring:LL":              `"LL", expected simple, ll, ll128, or NAME=VALUE`,
		"ring:channels=0":      `channels: "0", expected 1 to 64`,
		"ring:slices=x":        `slices: "x", expected 1 to 64`,
		"ring:chunk=0":         `chunk: "0", expected a size from 1`,
		"ring:reduce=-1":       "expected nanoseconds",
		"ring:speed=3":         `"speed", expected channels, chunk, slices, reduce or copy`,
		"doubling:channels=2":  "doubling has no channels",
		"ring:copy=1:copy=1":   "copy twice",
		"doubling:ll:slices=2": "doubling has no slices",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}
