package goal

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATLAHS compares with a simulator that is not in this repository:
// sim/LogGOPSim of spcl/atlahs (needs g++, gengetopt, libgraphviz-dev):
//
//	gengetopt < simulator.ggo
//	g++ -O2 -w -I/usr/include/graphviz LogGOPSim.cpp cmdline.c -o LogGOPSim -lcgraph
//	go test ./goal -run TestATLAHS -atlahs.simulator /path/LogGOPSim -atlahs.schedules 10000
//
// Without it, testdata/script/atlahs has what it gives for some of them.
var (
	atlahsSimulator = flag.String("atlahs.simulator", "", "LogGOPSim of ATLAHS, to compare with")
	atlahsSchedules = flag.Int("atlahs.schedules", 1000, "random schedules to compare with it")
	atlahsSeed      = flag.Uint64("atlahs.seed", 1, "seed of the schedules")
	atlahsWrite     = flag.String("atlahs.write", "", "file for the first 40 of them, with its answers")
)

// atlahsSchedule makes a schedule and parameters for which that simulator has an
// answer. It needs an operation, never matches a wildcard, frees a sender
// twice if only the receive is above the eager limit, and rounds G in doubles.
func atlahsSchedule(t testing.TB, rng *rand.Rand) (*Schedule, Params) {
	pick := func(of ...int64) int64 { return of[rng.IntN(len(of))] }
	p := Params{
		Model: ATLAHS, L: pick(0, 10, 250, 3700), Overhead: pick(0, 1, 10, 200, 1500), Gap: pick(0, 1, 5, 100, 1000),
		ByteOverhead: PerByte(pick(0, 0, 0, 1, 3)), Eager: uint64(pick(0, 100, 100, 1000, 65535)),
	}
	decimals := []string{"0", "0.04", "0.18", "0.0186264515", "0.5", "1", "6", fmt.Sprintf("%d.%06d", rng.IntN(3), rng.IntN(1e6))}
	var err error
	p.ByteGap, err = ParseByteTime(decimals[rng.IntN(len(decimals))])
	require.NoError(t, err)
	g := &randomizer{Rand: rng, tame: true, ranks: make([][]Op, 1+rng.IntN(8)), cpus: 1 + rng.IntN(4), nics: 1 + rng.IntN(3), tags: 1 + rng.IntN(3)}
	sizes := []uint64{0, 1, 2, 8, 99, 100, 101, 102, 500, uint64(rng.IntN(2000)), uint64(rng.IntN(200000))}
	gap, err := strconv.ParseFloat(p.ByteGap.String(), 64)
	require.NoError(t, err)
	large := make(map[[3]int]bool)
	for range rng.IntN(40) {
		size := sizes[rng.IntN(len(sizes))]
		from, to, tag := rng.IntN(len(g.ranks)), rng.IntN(len(g.ranks)), uint64(rng.IntN(g.tags))
		pair := [3]int{from, to, int(tag)}
		if is, known := large[pair]; known && is != (max(size, 1) > p.Eager) || int64(float64(max(size, 1)-1)*gap) != p.ByteGap.after(size) {
			continue
		}
		large[pair] = max(size, 1) > p.Eager
		send := g.lane(Op{Kind: Send, Size: size, Peer: uint32(to), Tag: tag})
		recv := g.lane(Op{Kind: Recv, Size: size, Peer: uint32(from), Tag: tag})
		g.ranks[from] = append(g.ranks[from], send)
		g.ranks[to] = append(g.ranks[to], recv)
	}
	b := NewBuilder()
	for r, ops := range g.ranks {
		for range 1 + rng.IntN(3) {
			calc := g.lane(Op{Kind: Calc, Size: uint64(pick(0, 1, 30, 400, rng.Int64N(5000)))})
			ops = slices.Insert(ops, rng.IntN(len(ops)+1), calc)
		}
		if rng.IntN(20) == 0 { // which often leaves it unfinished
			rng.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		}
		b.Rank(r)
		for _, op := range ops {
			b.Add(op)
		}
		for i := 1; i < len(ops); i++ {
			start := 4
			if ops[i].Kind == Recv {
				start = 60 // rare, because that simulator often aborts then
			}
			for _, often := range []int{3, 8, 8} {
				if (rng.IntN(often) > 0) == (often == 3) {
					b.depend(i, rng.IntN(i), rng.IntN(start) == 0)
				}
			}
		}
	}
	s, err := b.Schedule()
	require.NoError(t, err)
	return s, p
}

var hostTime = regexp.MustCompile(`(?m)^Host (\d+): (\d+)$`)

func TestATLAHS(t *testing.T) {
	t.Parallel()
	if *atlahsSimulator == "" {
		s, p := atlahsSchedule(t, rand.New(rand.NewPCG(*atlahsSeed, 0)))
		require.Equal(t, ATLAHS, p.Model)
		_, err := NewSimulator(s).Run(p)
		var e *UnfinishedError
		require.True(t, err == nil || errors.As(err, &e), "%v", err)
		return
	}
	file := filepath.Join(t.TempDir(), "schedule.bin")
	var kept bytes.Buffer
	aborted, unfinished, written := 0, 0, 0
	for n, compared := 0, 0; compared < *atlahsSchedules; n++ {
		s, p := atlahsSchedule(t, rand.New(rand.NewPCG(*atlahsSeed, uint64(n))))
		require.NoError(t, os.WriteFile(file, binaryOf(t, s), 0o600))
		args := []string{
			"-f", file, "-L", fmt.Sprint(p.L), "-o", fmt.Sprint(p.Overhead), "-g", fmt.Sprint(p.Gap),
			"-G", p.ByteGap.String(), "-O", p.ByteOverhead.String(), "-S", fmt.Sprint(p.Eager),
		}
		var stderr bytes.Buffer
		c := exec.Command(*atlahsSimulator, args...)
		c.Stderr = &stderr
		out, err := c.Output()
		if err != nil && bytes.Contains(stderr.Bytes(), []byte("elem.time >= matched_elem.starttime")) {
			aborted++ // a receive that a start has released is before its message
			continue
		}
		require.NoError(t, err, "schedule %d: %s", n, stderr.Bytes())
		var want []int64
		for _, m := range hostTime.FindAllSubmatch(out, -1) {
			ns, err := strconv.ParseInt(string(m[2]), 10, 64)
			require.NoError(t, err)
			want = append(want, ns)
		}
		compared++
		got, err := NewSimulator(s).Run(p)
		if err != nil {
			unfinished++
		}
		var text bytes.Buffer
		require.NoError(t, WriteText(&text, s))
		require.Equal(t, want, got.FinishNS, "schedule %d, %v\n%s", n, args, text.Bytes())
		if err == nil && s.Len() > 8 && s.Len() < 30 && written < 40 {
			written++
			fmt.Fprintf(&kept, "run atlahs L=%d o=%d g=%d G=%v O=%v S=%d\n%s----\n%v\n\n",
				p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager, bytes.ReplaceAll(text.Bytes(), []byte("\n\n"), []byte("\n")), want)
		}
	}
	t.Logf("%d schedules of seed %d are the same, %d of them do not finish; that simulator aborts %d more", *atlahsSchedules, *atlahsSeed, unfinished, aborted)
	require.Less(t, aborted, *atlahsSchedules/4)
	if *atlahsWrite != "" {
		require.NoError(t, os.WriteFile(*atlahsWrite, kept.Bytes(), 0o600))
	}
}
