package exanest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/gemm"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// multiplying is a running multiplication on a grid of q x q MPSoCs.
type multiplying struct {
	*experiment.Point
	q, side     int // of the grid, and of a block
	accelerator *gemm.Loaded
	mu          sync.Mutex // of what ranks write
	begun       sim.Time   // when the first rank began
	ended       sim.Time   // when the last rank was done
	products    uint64     // of tiles, of all ranks
}

func (m *multiplying) run(ctx context.Context, o mpi.Options) (values experiment.Values, err error) {
	c, err := runtime.NewCluster(m.Config(ctx, o.Nodes(o.Ranks)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if m.accelerator, err = gemm.Load(c); err != nil {
		return nil, err
	}
	w, err := mpi.New(c, o)
	if err != nil {
		return nil, err
	}
	for rank := range o.Ranks {
		if err := w.Spawn(rank, m.program); err != nil {
			return nil, err
		}
	}
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	stats := c.Stats()
	values = experiment.ClusterValues(&stats)
	carried := int64(0)
	for _, l := range c.Fabric().Links() {
		carried += l.Bytes
	}
	values["link_bytes"] = carried
	return values, nil
}

// place is where a rank stands in the grid: the four ranks of a board are
// adjacent in both directions.
func (m *multiplying) place(rank int) (i, j int) {
	if m.q == 1 {
		return 0, 0
	}
	board, boards := rank/4, m.q/2
	return board/boards*2 + rank%4/2, board%boards*2 + rank%2
}

// rankAt is the rank at a place, which may be beyond an edge.
func (m *multiplying) rankAt(i, j int) int {
	i, j = (i+m.q)%m.q, (j+m.q)%m.q
	if m.q == 1 {
		return 0
	}
	return (i/2*(m.q/2)+j/2)*4 + i%2*2 + j%2
}

// elementOf is an element of A (which 0), B (1) and, before, C (2). Its sums round.
func (m *multiplying) elementOf(which, i, j int) float32 {
	return float32((i*7+j*13+which*29+int(m.Seed%61))%61-20) / 7
}

// fill writes a block of a matrix, at place (i, j) of the grid.
func (m *multiplying) fill(v runtime.View, which, i, j int) {
	if m.Text("numbers") == numbersNone {
		return
	}
	b := v.Write()
	for y := range m.side {
		for x := range m.side {
			bits := math.Float32bits(m.elementOf(which, i*m.side+y, j*m.side+x))
			binary.LittleEndian.PutUint32(b[gemm.Place(m.side, y, x):], bits)
		}
	}
}

// program is the program of a rank: Cannon's algorithm.
func (m *multiplying) program(r *mpi.Rank) error {
	x, err := m.accelerator.Open(r.Proc(), gemm.Options{Times: m.Text("numbers") == numbersNone})
	if err != nil {
		return err
	}
	var blocks [5]runtime.View // C; then A and B, and those that come
	for i := range blocks {
		if blocks[i], err = r.Alloc(gemm.Bytes(m.side, m.side)); err != nil {
			return err
		}
	}
	for _, v := range blocks {
		v.Write() // a page that is absent would take its time during the multiplication
	}
	i, j := m.place(r.Rank())
	first := (i + j) % m.q
	m.fill(blocks[0], 2, i, j)
	m.fill(blocks[1], 0, i, first)
	m.fill(blocks[2], 1, first, j)
	if err := r.World().Barrier(); err != nil {
		return err
	}
	begun := r.Now()
	now, coming := blocks[1:3], blocks[3:5]
	for s := range m.q {
		if err := m.step(r, x, blocks[0], now, coming, s+1 == m.q); err != nil {
			return err
		}
		now, coming = coming, now
	}
	m.called(begun, r.Now(), x.Counts().Products)
	m.Operation(r.Proc(), begun)
	return m.compare(blocks[0], i, j)
}

// step multiplies two blocks, and exchanges them for the next ones.
func (m *multiplying) step(r *mpi.Rank, x *gemm.Accelerator, c runtime.View, now, coming []runtime.View, last bool) error {
	call := gemm.Call{A: now[0], B: now[1], C: c, Rows: m.side, Inner: m.side, Columns: m.side}
	if err := x.Begin(call); err != nil {
		return err
	}
	if m.Text("overlap") == overlapNone {
		if err := x.Wait(); err != nil || last {
			return err
		}
		return m.exchange(r, now, coming)
	}
	if !last {
		if err := m.exchange(r, now, coming); err != nil {
			return err
		}
	}
	return x.Wait()
}

// exchange sends a block of A to the left and a block of B up, and receives those
// from the right and from below.
func (m *multiplying) exchange(r *mpi.Rank, now, coming []runtime.View) error {
	i, j := m.place(r.Rank())
	requests := make([]*mpi.Request, 4)
	var errs [4]error
	requests[0], errs[0] = r.World().Irecv(coming[0], m.rankAt(i, j+1), 0)
	requests[1], errs[1] = r.World().Irecv(coming[1], m.rankAt(i+1, j), 1)
	requests[2], errs[2] = r.World().Isend(now[0], m.rankAt(i, j-1), 0)
	requests[3], errs[3] = r.World().Isend(now[1], m.rankAt(i-1, j), 1)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return r.WaitAll(requests, nil)
}

// called notes the times of a rank.
func (m *multiplying) called(begun, ended sim.Time, products uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended == 0 || begun < m.begun {
		m.begun = begun
	}
	m.ended = max(m.ended, ended)
	m.products += products
}

// compare compares a block of C with three loops over the blocks of A and B in
// the order in which they came.
func (m *multiplying) compare(c runtime.View, i, j int) error {
	if m.Text("numbers") == numbersNone {
		return nil
	}
	n, got := m.side, c.Read()
	want, b := memory.Make[float32](n*n), memory.Make[float32](n*n)
	for y := range n {
		for x := range n {
			want[y*n+x] = m.elementOf(2, i*n+y, j*n+x)
		}
	}
	for s := range m.q {
		at := (i + j + s) % m.q * n
		for y := range n {
			for x := range n {
				b[y*n+x] = m.elementOf(1, at+y, j*n+x)
			}
		}
		for y := range n {
			row := want[y*n : (y+1)*n]
			for k := range n {
				a := m.elementOf(0, i*n+y, at+k)
				for x, e := range b[k*n : (k+1)*n] {
					row[x] += float32(a * e)
				}
			}
		}
	}
	for y := range n {
		for x := range n {
			if e := math.Float32frombits(binary.LittleEndian.Uint32(got[gemm.Place(n, y, x):])); e != want[y*n+x] {
				return fmt.Errorf("element (%d, %d) of C is %v, expected %v", i*n+y, j*n+x, e, want[y*n+x])
			}
		}
	}
	return nil
}
