package mpitrace

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/goal"
)

var schedgen = flag.String("schedgen", "", "path of Schedgen, of spcl/atlahs or LogGOPSim; random traces are compared with what it makes of them")

// random is a trace of calls that Schedgen understands, and its barriers.
func random(t *rapid.T) (files []string, barriers int) {
	ranks := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "ranks") // its recursive doubling
	clocks := make([]*clock, ranks)
	for r := range clocks {
		clocks[r] = newClock()
	}
	for range rapid.IntRange(0, 12).Draw(t, "calls") {
		what := rapid.IntRange(0, 7).Draw(t, "call")
		count, root, tag := rapid.IntRange(1, 3000).Draw(t, "count"), rapid.IntRange(0, ranks-1).Draw(t, "root"), rapid.IntRange(0, 99).Draw(t, "tag")
		if what == 0 {
			barriers++
		}
		for r, c := range clocks {
			c.now += rapid.IntRange(0, 9).Draw(t, "work")
			world, next, last := fmt.Sprintf("0,%d,%d", r, ranks), (r+1)%ranks, (r+ranks-1)%ranks
			switch what {
			case 0:
				c.call("MPI_Barrier", "%s", world)
			case 1:
				c.call("MPI_Bcast", "1:%d:13,1,1:%d:%s", count, root, world)
			case 2:
				c.call("MPI_Reduce", "1:2:%d:10,8,8:3:%d:%s", count, root, world)
			case 3:
				c.call("MPI_Allreduce", "1:2:%d:10,8,8:3:%s", count, world)
			case 4:
				c.call("MPI_Alltoall", "1:%d:10,8,8:1:%d:10,8,8:%s", count, count, world)
			case 5:
				c.call("MPI_Irecv", "1:%d:11,8,8:%d:%d:%s:5000", count, last, tag, world)
				c.call("MPI_Isend", "1:%d:11,8,8:%d:%d:%s:5004", count, next, tag, world).call("MPI_Waitall", "2:5000:0")
			case 6:
				c.call("MPI_Sendrecv", "1:%d:2,4,4:%d:%d:1:%d:2,4,4:%d:%d:%s:9", count, next, tag, count, last, tag, world)
			default:
				if r%2 == 0 {
					c.call("MPI_Send", "1:%d:13,1,1:%d:%d:%s", count, r+1, tag, world)
				} else {
					c.call("MPI_Recv", "1:%d:13,1,1:%d:%d:%s:4", count, r-1, tag, world)
				}
			}
		}
	}
	for _, c := range clocks {
		files = append(files, c.end())
	}
	return files, barriers
}

// Messages, bytes and computations agree with Schedgen, if its program is
// there, but for the byte of a message of its barriers. Either schedule finishes.
func TestRandomTracesAsSchedgen(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		files, barriers := random(t)
		s, _, err := imported("openmpi", files...)
		require.NoError(t, err)
		_, err = goal.NewSimulator(s).Run(goal.DefaultParams())
		require.NoError(t, err)
		if *schedgen == "" {
			return
		}
		old, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, name := range old {
			require.NoError(t, os.Remove(name))
		}
		for r, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("t-%d.txt", r)), []byte(text), 0o600))
		}
		run := exec.Command(*schedgen, "--ptrn", "trace", "--traces", "t-0.txt", "-o", "t.goal")
		run.Dir = dir
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s", out)
		want, err := goal.ReadFile(filepath.Join(dir, "t.goal"), goal.ReadOptions{})
		require.NoError(t, err)
		theirs, ours := goal.Stat(want), goal.Stat(s)
		rounds := 0
		for n := len(files); n > 1; n /= 2 {
			rounds++
		}
		require.Equal(t, theirs.Sends, ours.Sends)
		require.Equal(t, theirs.Bytes-uint64(barriers*rounds*len(files)), ours.Bytes)
		require.Equal(t, theirs.CalcNS, ours.CalcNS)
	})
}
