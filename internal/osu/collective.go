package osu

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// root is the root in OSU's rooted benchmarks.
const root = 0

// measure times a call at each rank, with a barrier after it if behind is not
// nil, and combines the means of all ranks.
func (t *test) measure(call, behind func() error) (Row, error) {
	if err := t.c.Barrier(); err != nil {
		return Row{}, err
	}
	var total sim.Time
	for i := range t.Warmup + t.Iterations {
		begin := t.r.Now()
		if err := call(); err != nil {
			return Row{}, err
		}
		if i >= t.Warmup {
			total += t.r.Now() - begin
			t.timed(begin)
		}
		if behind != nil {
			if err := behind(); err != nil {
				return Row{}, err
			}
		}
	}
	own := divided(total, t.Iterations)
	least, err := t.reduced(own, mpi.Min)
	if err != nil {
		return Row{}, err
	}
	most, err := t.reduced(own, mpi.Max)
	if err != nil {
		return Row{}, err
	}
	sum, err := t.reduced(own, mpi.Sum)
	return Row{Latency: divided(sum, t.c.Size()), Least: least, Most: most}, err
}

// collective is measure with buffers, and with a barrier after the call unless
// NoBarrier is set. It also compares the received data.
func (t *test) collective(send, recv int, fill func(), call, check func() error) (Row, error) {
	if err := t.buffers(send, recv); err != nil {
		return Row{}, err
	}
	fill()
	behind := t.c.Barrier
	if t.NoBarrier {
		behind = nil
	}
	row, err := t.measure(call, behind)
	if err != nil {
		return Row{}, err
	}
	return row, check()
}

// atRoot returns n at the root and 0 at other ranks.
func (t *test) atRoot(n int) int {
	if t.c.Rank() == root {
		return n
	}
	return 0
}

// blocks calls f for each rank's part of a vector.
func (t *test) blocks(v runtime.View, f func(part runtime.View, rank int) error) error {
	if v.Len() == 0 {
		return nil
	}
	for rank := range t.c.Size() {
		if err := f(v.Slice(rank*t.Bytes, (rank+1)*t.Bytes), rank); err != nil {
			return err
		}
	}
	return nil
}

// fillBlocks fills a vector with a message for each rank.
func (t *test) fillBlocks() {
	_ = t.blocks(t.send, func(part runtime.View, rank int) error {
		t.fill(part, t.c.Rank(), rank)
		return nil
	})
}

func (t *test) barrier() (Row, error) { return t.measure(t.c.Barrier, nil) }

func (t *test) bcast() (Row, error) {
	return t.collective(t.Bytes, 0, func() {
		if t.c.Rank() == root {
			t.fill(t.send, root, 0)
		}
	}, func() error { return t.c.Bcast(t.send, root) }, func() error { return t.check(t.send, root, 0) })
}

func (t *test) scatter() (Row, error) {
	return t.collective(t.atRoot(t.Bytes*t.c.Size()), t.Bytes, t.fillBlocks,
		func() error { return t.c.Scatter(t.send, t.recv, root) }, func() error { return t.check(t.recv, root, t.c.Rank()) })
}

func (t *test) gather() (Row, error) {
	return t.collective(t.Bytes, t.atRoot(t.Bytes*t.c.Size()), func() { t.fill(t.send, t.c.Rank(), root) },
		func() error { return t.c.Gather(t.send, t.recv, root) },
		func() error {
			return t.blocks(t.recv, func(part runtime.View, rank int) error { return t.check(part, rank, root) })
		})
}

func (t *test) allgather() (Row, error) {
	return t.collective(t.Bytes, t.Bytes*t.c.Size(), func() { t.fill(t.send, t.c.Rank(), 0) },
		func() error { return t.c.Allgather(t.send, t.recv) },
		func() error {
			return t.blocks(t.recv, func(part runtime.View, rank int) error { return t.check(part, rank, 0) })
		})
}

func (t *test) alltoall() (Row, error) {
	return t.collective(t.Bytes*t.c.Size(), t.Bytes*t.c.Size(), t.fillBlocks,
		func() error { return t.c.Alltoall(t.send, t.recv) },
		func() error {
			return t.blocks(t.recv, func(part runtime.View, rank int) error { return t.check(part, rank, t.c.Rank()) })
		})
}

func (t *test) reduce() (Row, error) {
	return t.collective(t.Bytes, t.atRoot(t.Bytes), t.fillFloats,
		func() error { return t.c.Reduce(t.send, t.recv, mpi.Float32, mpi.Sum, root) }, func() error { return t.checkSums(0) })
}

func (t *test) allreduce() (Row, error) {
	return t.collective(t.Bytes, t.Bytes, t.fillFloats,
		func() error { return t.c.Allreduce(t.send, t.recv, mpi.Float32, mpi.Sum) }, func() error { return t.checkSums(0) })
}

// reduceScatter: Bytes is the length of the whole vector. If the ranks' parts
// cannot be equal, the first ones have one element more.
func (t *test) reduceScatter() (Row, error) {
	elements, ranks, before := t.Bytes/floatBytes, t.c.Size(), 0
	counts := make([]int, ranks)
	for i := range counts {
		n := elements / ranks
		if i < elements%ranks {
			n++
		}
		if i < t.c.Rank() {
			before += n
		}
		counts[i] = n * floatBytes
	}
	return t.collective(t.Bytes, counts[t.c.Rank()], t.fillFloats,
		func() error {
			return t.c.Do(mpi.ReduceScatter{Send: t.send, Recv: t.recv, Counts: counts, Type: mpi.Float32, Op: mpi.Sum})
		}, func() error { return t.checkSums(before) })
}

// Elements are whole numbers, so that every order of summation gives the same
// sum. Element i of rank r is common(i) + r mod 7.
const ownModulus = 7

func (t *test) common(i int) int { return (i + int(t.Seed%13)) % 13 }

func (t *test) fillFloats() {
	own := t.c.Rank() % ownModulus
	b := t.send.Write()
	for i := range len(b) / floatBytes {
		binary.LittleEndian.PutUint32(b[floatBytes*i:], math.Float32bits(float32(t.common(i)+own)))
	}
}

// checkSums compares the received sums; the first one is element first of the
// whole vector.
func (t *test) checkSums(first int) error {
	ranks, own := t.c.Size(), 0
	for r := range ranks {
		own += r % ownModulus
	}
	b := t.recv.Read()
	for i := range len(b) / floatBytes {
		want := float32(ranks*t.common(first+i) + own)
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b[floatBytes*i:])); got != want {
			return fmt.Errorf("osu: rank %d: element %d of the sum is %v, expected %v", t.c.Rank(), first+i, got, want)
		}
	}
	return nil
}
