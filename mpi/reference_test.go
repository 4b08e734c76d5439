package mpi_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

func word(b []byte) uint32       { return binary.LittleEndian.Uint32(b) }
func setWord(b []byte, x uint32) { binary.LittleEndian.PutUint32(b, x) }

// expectation is every rank's contribution and its expected memory afterwards.
// One program without messages computes it.
type expectation struct {
	// inPlace is the initial memory for the result when a call is in place
	in, out, inPlace [][]byte
}

type known map[[2]int]*expectation

func newKnown() known { return known{} }

func (k known) of(group, i, size int, t trial) *expectation {
	at := [2]int{group, i}
	if k[at] == nil {
		k[at] = expect(t, size)
	}
	return k[at]
}

// mayReplace reports whether a rank may send from the memory for the result.
func (*expectation) mayReplace(t trial, rank int) bool {
	switch t.what {
	case "barrier", "bcast", "scatter", "scatterv":
		return false
	case "gather", "gatherv", "reduce":
		return rank == t.root
	}
	return true
}

func expect(t trial, size int) *expectation {
	e := &expectation{in: make([][]byte, size), out: make([][]byte, size), inPlace: make([][]byte, size)}
	for rank := range size {
		e.in[rank] = contents(t, rank, size)
	}
	for rank := range size {
		e.move(t, rank, size)
	}
	return e
}

func contents(t trial, rank, size int) []byte {
	n := t.n
	switch t.what {
	case "barrier":
		n = 0
	case "bcast":
		if rank != t.root {
			return nil
		}
	case "scatter":
		if n *= size; rank != t.root {
			return nil
		}
	case "scatterv":
		if n = end(t.counts, t.places); rank != t.root {
			return nil
		}
	case "gatherv", "allgatherv":
		n = t.counts[rank]
	case "alltoall":
		n *= size
	case "alltoallv":
		n = 0
		for _, c := range t.matrix[rank] {
			n += c
		}
	}
	rng := rand.New(rand.NewPCG(t.seed, uint64(rank)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	switch t.t { // sums and products are exact in every order
	case mpi.Float32:
		for i := 0; i+4 <= n; i += 4 {
			setWord(b[i:], math.Float32bits(float32(number(t.op, rng))))
		}
	case mpi.Float64:
		for i := 0; i+8 <= n; i += 8 {
			binary.LittleEndian.PutUint64(b[i:], math.Float64bits(number(t.op, rng)))
		}
	}
	return b
}

func number(op *mpi.Op, rng *rand.Rand) float64 {
	if op == mpi.Prod {
		return []float64{1, -1}[rng.IntN(2)]
	}
	return float64(rng.IntN(2001) - 1000)
}

func end(counts, places []int) (n int) {
	for i := range counts {
		n = max(n, places[i]+counts[i])
	}
	return n
}

func (e *expectation) move(t trial, rank, size int) {
	switch t.what {
	case "bcast":
		e.out[rank] = e.in[t.root]
	case "scatter":
		e.out[rank] = e.in[t.root][rank*t.n:][:t.n]
	case "scatterv":
		e.out[rank] = e.in[t.root][t.places[rank]:][:t.counts[rank]]
	case "gather", "allgather":
		if t.what == "allgather" || rank == t.root {
			for i := range size {
				e.out[rank] = append(e.out[rank], e.in[i]...)
			}
			e.inPlace[rank] = make([]byte, t.n*size)
			copy(e.inPlace[rank][rank*t.n:], e.in[rank])
		}
	case "gatherv", "allgatherv":
		if t.what == "allgatherv" || rank == t.root {
			e.vector(t, rank, size)
		}
	case "alltoall":
		for i := range size {
			e.out[rank] = append(e.out[rank], e.in[i][rank*t.n:][:t.n]...)
		}
		e.inPlace[rank] = e.in[rank]
	case "alltoallv":
		for i := range size {
			e.out[rank] = append(e.out[rank], e.in[i][before(t.matrix[i], rank):][:t.matrix[i][rank]]...)
		}
		e.inPlace[rank] = e.in[rank]
	case "reduce", "allreduce", "scan", "exscan", "reducescatter":
		e.combine(t, rank, size)
	}
}

// vector fills memory with blocks at places. The holes between them do not
// change.
func (e *expectation) vector(t trial, rank, size int) {
	n := end(t.counts, t.places)
	out, inPlace := make([]byte, n), make([]byte, n)
	for i := range out {
		out[i] = 0x5a
		inPlace[i] = 0x5a
	}
	for i := range size {
		copy(out[t.places[i]:], e.in[i])
	}
	copy(inPlace[t.places[rank]:], e.in[rank])
	e.out[rank], e.inPlace[rank] = out, inPlace
}

func before(counts []int, i int) (n int) {
	for _, c := range counts[:i] {
		n += c
	}
	return n
}

func (e *expectation) combine(t trial, rank, size int) {
	from, to := 0, size
	switch t.what {
	case "reduce":
		if rank != t.root {
			return
		}
	case "scan":
		to = rank + 1
	case "exscan":
		to = rank
	}
	e.inPlace[rank] = e.in[rank]
	if to == 0 {
		e.out[rank] = make([]byte, len(e.in[rank]))
		return
	}
	acc := append([]byte(nil), e.in[from]...)
	for i := from + 1; i < to; i++ {
		together(t, acc, e.in[i])
	}
	if t.what != "reducescatter" {
		e.out[rank] = acc
		return
	}
	at := before(t.counts, rank)
	if e.out[rank] = acc[at:][:t.counts[rank]]; t.inPlace {
		// The piece goes to the beginning of the vector; the rest is undefined:
		// see attempt.
		e.out[rank] = append(append([]byte(nil), e.out[rank]...), make([]byte, len(acc)-t.counts[rank])...)
	}
}

// together computes acc = acc op b element by element, with its own arithmetic.
func together(t trial, acc, b []byte) {
	n := t.t.Size()
	for i := 0; i+n <= len(acc); i += n {
		x, y := acc[i:i+n], b[i:i+n]
		switch t.t {
		case mpi.Int32:
			setWord(x, uint32(whole(t.op, int64(int32(word(x))), int64(int32(word(y))))))
		case mpi.Int64:
			binary.LittleEndian.PutUint64(x, uint64(whole(t.op, int64(binary.LittleEndian.Uint64(x)), int64(binary.LittleEndian.Uint64(y)))))
		case mpi.Float32:
			setWord(x, math.Float32bits(float32(real64(t.op, float64(math.Float32frombits(word(x))), float64(math.Float32frombits(word(y)))))))
		case mpi.Float64:
			z := real64(t.op, math.Float64frombits(binary.LittleEndian.Uint64(x)), math.Float64frombits(binary.LittleEndian.Uint64(y)))
			binary.LittleEndian.PutUint64(x, math.Float64bits(z))
		default:
			own(t.op, x, y)
		}
	}
}

func own(op *mpi.Op, x, y []byte) {
	if op == compose {
		a, b, c, d := word(x), word(x[4:]), word(y), word(y[4:])
		setWord(x, c*a)
		setWord(x[4:], c*b+d)
		return
	}
	for i := range x {
		if x[i] != y[i] {
			if x[i] < y[i] {
				copy(x, y)
			}
			return
		}
	}
}

func whole(op *mpi.Op, a, b int64) int64 {
	truth := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	switch op {
	case mpi.Sum:
		return a + b
	case mpi.Prod:
		return a * b
	case mpi.Min:
		if a < b {
			return a
		}
		return b
	case mpi.Max:
		if a > b {
			return a
		}
		return b
	case mpi.LAnd:
		return truth(a != 0 && b != 0)
	case mpi.LOr:
		return truth(a != 0 || b != 0)
	case mpi.BAnd:
		return a & b
	case mpi.BOr:
		return a | b
	}
	return a ^ b
}

func real64(op *mpi.Op, a, b float64) float64 {
	switch op {
	case mpi.Sum:
		return a + b
	case mpi.Prod:
		return a * b
	case mpi.Min:
		return math.Min(a, b)
	}
	return math.Max(a, b)
}

// invoke makes the call of a trial. send may be InPlace. The request is nil for
// the blocking form.
func invoke(c *mpi.Comm, t trial, send, recv runtime.View) (*mpi.Request, error) {
	me := c.Rank()
	var counts []int
	if t.matrix != nil {
		for i := range c.Size() {
			counts = append(counts, t.matrix[i][me])
		}
	}
	if t.what == "bcast" && me == t.root {
		recv.CopyFrom(send.Read())
	}
	o := t.operation(me, send, recv, counts)
	if t.later {
		return c.Start(o)
	}
	return nil, c.Do(o)
}

func (t *trial) operation(me int, send, recv runtime.View, counts []int) mpi.Operation {
	from, to, root := mpi.Data{Memory: send}, mpi.Data{Memory: recv}, t.root
	reduction := mpi.Allreduce{Send: send, Recv: recv, Type: t.t, Op: t.op}
	switch t.what {
	case "barrier":
		return mpi.Barrier{}
	case "bcast":
		return mpi.Bcast{Data: to, Root: root}
	case "scatter":
		return mpi.Scatter{Send: from, Recv: to, Root: root}
	case "scatterv":
		return mpi.Scatterv{Send: from, Counts: t.counts, Places: t.places, Recv: to, Root: root}
	case "gather":
		return mpi.Gather{Send: from, Recv: to, Root: root}
	case "gatherv":
		return mpi.Gatherv{Send: from, Recv: to, Counts: t.counts, Places: t.places, Root: root}
	case "allgather":
		return mpi.Allgather{Send: from, Recv: to}
	case "allgatherv":
		return mpi.Allgatherv{Send: from, Recv: to, Counts: t.counts, Places: t.places}
	case "alltoall":
		return mpi.Alltoall{Send: from, Recv: to}
	case "alltoallv":
		return mpi.Alltoallv{Send: from, Counts: t.matrix[me], Recv: to, RecvCounts: counts}
	case "reduce":
		return mpi.Reduce{Send: from, Recv: to, Type: t.t, Op: t.op, Root: root}
	case "allreduce":
		return reduction
	case "reducescatter":
		return mpi.ReduceScatter{Send: send, Recv: recv, Counts: t.counts, Type: t.t, Op: t.op}
	case "scan":
		return mpi.Scan(reduction)
	}
	return mpi.Exscan(reduction)
}
