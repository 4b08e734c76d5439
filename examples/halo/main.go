// Command halo lets ranks swap the borders of a matrix that is divided among
// them by columns. A border is some columns of a matrix that lies in memory row
// by row: a block of a few bytes in each row, MPI_Type_vector. If the host
// matches, a core copies the received blocks to their places when the program
// waits. If the NIC matches, handlers do it while the core computes. The
// program prints the cost of the exchange in both cases. The resulting matrix
// is the same.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const (
	ranks   = 4
	rows    = 1000
	columns = 256 // of a rank
	border  = 2   // columns that the stencil needs from a neighbour
	steps   = 5

	width    = columns + 2*border
	cellTime = 400 * sim.Picosecond // of a core for a cell
)

func main() {
	for _, matching := range mpi.Forms() {
		if err := run(context.Background(), os.Stdout, matching); err != nil {
			fmt.Fprintln(os.Stderr, "halo:", err)
			os.Exit(1)
		}
	}
}

func run(ctx context.Context, out io.Writer, matching mpi.Matching) (err error) {
	device, err := profile.Load("spin-int")
	if err != nil {
		return err
	}
	cluster, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: ranks, Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	world, err := mpi.New(cluster, mpi.DefaultOptions(matching)) // a border of 16,000 B is eager
	if err != nil {
		return err
	}
	var exchange [ranks]sim.Time
	var matrix [ranks]uint32
	for rank := range ranks {
		if err := world.Spawn(rank, func(r *mpi.Rank) (err error) {
			exchange[rank], matrix[rank], err = program(r)
			return err
		}); err != nil {
			return err
		}
	}
	if err := world.Run(ctx); err != nil {
		return err
	}
	s := world.Stats()
	fmt.Fprintf(out, "matching: %s\n", matching)
	fmt.Fprintf(out, "%10.3f µs  of rank 1 in the exchange of borders, of %d steps\n", micro(exchange[1]), steps)
	fmt.Fprintf(out, "%10d     borders packed by cores, %d unpacked by cores, %d by NICs\n", s.PackedByCore, s.UnpackedByCore, s.UnpackedByNIC)
	fmt.Fprintf(out, "%10x     matrix of rank 1\n", matrix[1])
	return nil
}

// program is the program of a rank. It returns the time in the exchange, and a
// sum of the matrix.
func program(r *mpi.Rank) (exchange sim.Time, sum uint32, err error) {
	c := r.World()
	neighbours := [2]int{c.Rank() - 1, c.Rank() + 1}
	for i, n := range neighbours {
		if n < 0 || n == c.Size() {
			neighbours[i] = mpi.ProcNull
		}
	}
	cells, err := r.Alloc(8 * rows * width)
	if err != nil {
		return 0, 0, err
	}
	for i, b := 0, cells.Write(); i < rows*width; i++ {
		set(b, i, math.Sin(float64(i*(c.Rank()+1))))
	}
	columns2, err := datatype.Vector(rows, border, width, datatype.Float64)
	if err != nil {
		return 0, 0, err
	}
	at := func(column int) mpi.Data { return mpi.Data{Memory: cells, At: 8 * column, Count: 1, Type: columns2} }
	outer, inner := [2]int{0, border + columns}, [2]int{border, columns}
	for range steps {
		var requests []*mpi.Request
		start := r.Now()
		for side, n := range neighbours {
			q, err := c.Start(mpi.Recv{Data: at(outer[side]), From: n, Tag: uint32(1 - side)})
			if err != nil {
				return 0, 0, err
			}
			requests = append(requests, q)
		}
		for side, n := range neighbours {
			q, err := c.Start(mpi.Send{Data: at(inner[side]), To: n, Tag: uint32(side)})
			if err != nil {
				return 0, 0, err
			}
			requests = append(requests, q)
		}
		exchange += r.Now() - start
		r.Compute(rows * (columns - 2*border) * cellTime) // the part that needs no border
		start = r.Now()
		if err := r.WaitAll(requests, nil); err != nil {
			return 0, 0, err
		}
		exchange += r.Now() - start
		smooth(cells.Write())
		r.Compute(rows * 2 * border * cellTime)
	}
	return exchange, crc32.ChecksumIEEE(cells.Read()), nil
}

// smooth takes a step: each cell becomes the mean of the cells under the
// stencil in its row.
func smooth(b []byte) {
	var row [width]float64
	for y := range rows {
		for x := range row {
			row[x] = get(b, y*width+x)
		}
		for x := border; x < width-border; x++ {
			sum := 0.0
			for _, v := range row[x-border : x+border+1] {
				sum += v
			}
			set(b, y*width+x, sum/(2*border+1))
		}
	}
}

func get(b []byte, i int) float64    { return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])) }
func set(b []byte, i int, x float64) { binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x)) }

func micro(t sim.Time) float64 { return float64(t) / float64(sim.Microsecond) }
