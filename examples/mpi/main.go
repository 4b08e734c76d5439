// Command mpi lets the ranks of an MPI program compute heat along a rod. Each
// rank has a part of the rod, swaps the ends with its neighbours in every step,
// and all ranks add up the heat. The command prints the result and how the time
// was spent, with both ways of matching.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	ranks   = 16
	perNode = 4 // ranks on an MPSoC, one for each core
	cells   = 1000
	steps   = 50

	cellTime = 4 * sim.Nanosecond // of a core for a cell
)

func main() {
	for _, matching := range mpi.Forms() {
		if err := run(context.Background(), os.Stdout, matching); err != nil {
			fmt.Fprintln(os.Stderr, "mpi:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, out io.Writer, matching mpi.Matching) (err error) {
	// all memory is present
	device, err := profile.Load("exanest-qfdb", "os.kind=none", "smmu.kind=none")
	if err != nil {
		return err
	}
	options := mpi.DefaultOptions(matching)
	options.Ranks, options.PerNode = ranks, perNode
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: options.Nodes(ranks), Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	world, err := mpi.New(cluster, options)
	if err != nil {
		return err
	}
	for rank := range ranks {
		if err := world.Spawn(rank, func(r *mpi.Rank) error { return rod(r, out) }); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "matching: %s\n", matching)
	return world.Run(ctx)
}

// rod is the program of a rank.
func rod(r *mpi.Rank, out io.Writer) error {
	c := r.World()
	left, right := c.Rank()-1, c.Rank()+1
	if left < 0 {
		left = mpi.ProcNull
	}
	if right == c.Size() {
		right = mpi.ProcNull
	}
	part, err := r.Alloc(8 * (cells + 2)) // and the ends of the neighbours' parts
	if err != nil {
		return err
	}
	heat, err := r.Alloc(8)
	if err != nil {
		return err
	}
	if c.Rank() == c.Size()/2 {
		set(part.Write(), cells/2, 1000)
	}
	at := func(i int) runtime.View { return part.Slice(8*i, 8*i+8) }
	var ends, sums, start sim.Time
	for range steps {
		start = r.Now()
		if _, err := c.Sendrecv(at(cells), right, 0, at(0), left, 0); err != nil {
			return err
		}
		if _, err := c.Sendrecv(at(1), left, 0, at(cells+1), right, 0); err != nil {
			return err
		}
		ends += r.Now() - start

		sum := conduct(part.Write(), left < 0, right < 0)
		r.Compute(cells * cellTime)

		set(heat.Write(), 0, sum)
		start = r.Now()
		if err := c.Allreduce(mpi.InPlace, heat, mpi.Float64, mpi.Sum); err != nil {
			return err
		}
		sums += r.Now() - start
	}
	if c.Rank() == 0 {
		fmt.Fprintf(out, "%12.3f µs  %d steps of %d ranks, heat %.3f\n", micro(r.Now()), steps, c.Size(), get(heat.Read(), 0))
		fmt.Fprintf(out, "%12.3f µs  of rank 0 in the exchange of ends\n", micro(ends))
		fmt.Fprintf(out, "%12.3f µs  in the sums\n", micro(sums))
	}
	return nil
}

// conduct takes a step: a quarter of a cell's heat goes to each side, except at
// the ends of the rod. It returns the heat of the part.
func conduct(b []byte, first, last bool) (sum float64) {
	before := get(b, 0)
	for i := 1; i <= cells; i++ {
		x, next := get(b, i), get(b, i+1)
		if first && i == 1 {
			before = x
		}
		if last && i == cells {
			next = x
		}
		y := x/2 + before/4 + next/4
		set(b, i, y)
		sum += y
		before = x
	}
	return sum
}

func get(b []byte, i int) float64    { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
func set(b []byte, i int, x float64) { binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x)) }

func micro(t sim.Time) float64 { return float64(t) / float64(sim.Microsecond) }
