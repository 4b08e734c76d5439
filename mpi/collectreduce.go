package mpi

import "github.com/spinsim/spinsim/runtime"

// reduction checks the arguments of a reduction of vectors of n bytes.
func (c *Comm) reduction(k callKind, root, n int, t Type, op *Op, send, recv runtime.View) error {
	if err := c.owned(k, root, send, recv); err != nil {
		return err
	}
	needed := recv
	if root != noRoot && c.rank != root {
		needed = send
	}
	if err := c.need(k, needed); err != nil {
		return err
	}
	if err := op.check(t); err != nil {
		return c.wrong(k, "%v", err)
	}
	if n%t.size != 0 {
		return c.wrong(k, "%d B, expected elements of %d B (%s)", n, t.size, t.name)
	}
	return nil
}

// operand returns a rank's contribution: send, or the contents of recv if send
// is InPlace.
func operand(send, recv runtime.View) runtime.View {
	if send.Proc() == nil {
		return recv
	}
	return send
}

// Reduce combines the vectors of all ranks in the root's recv. At the root send
// may be InPlace.
func (c *Comm) Reduce(send, recv runtime.View, t Type, op *Op, root int) error {
	return blocking(c.reduce(send, recv, t, op, root))
}

// Ireduce starts Reduce.
func (c *Comm) Ireduce(send, recv runtime.View, t Type, op *Op, root int) (*Request, error) {
	return started(c.reduce(send, recv, t, op, root))
}

func (c *Comm) reduce(send, recv runtime.View, t Type, op *Op, root int) (*schedule, error) {
	in := send
	if c.rank == root {
		in = operand(send, recv)
	}
	if err := c.reduction(callReduce, root, in.Len(), t, op, send, recv); err != nil {
		return nil, err
	}
	if c.rank == root && recv.Len() != in.Len() {
		return nil, c.wrong(callReduce, "%d B for the result, expected %d B", recv.Len(), in.Len())
	}
	s := c.begin(call{kind: callReduce, root: root, bytes: in.Len(), t: t, op: op})
	s.reduceTo(in, recv, root)
	return s, nil
}

// Allreduce combines the vectors of all ranks in every rank's recv. send may be
// InPlace.
func (c *Comm) Allreduce(send, recv runtime.View, t Type, op *Op) error {
	return blocking(c.alike(callAllreduce, send, recv, t, op))
}

// Iallreduce starts Allreduce.
func (c *Comm) Iallreduce(send, recv runtime.View, t Type, op *Op) (*Request, error) {
	return started(c.alike(callAllreduce, send, recv, t, op))
}

// Scan combines, for each rank, the vectors of rank 0 up to this rank, this
// rank included. send may be InPlace.
func (c *Comm) Scan(send, recv runtime.View, t Type, op *Op) error {
	return blocking(c.alike(callScan, send, recv, t, op))
}

// Iscan starts Scan.
func (c *Comm) Iscan(send, recv runtime.View, t Type, op *Op) (*Request, error) {
	return started(c.alike(callScan, send, recv, t, op))
}

// Exscan combines, for each rank, the vectors of all lower ranks. At rank 0
// recv is not changed. send may be InPlace.
func (c *Comm) Exscan(send, recv runtime.View, t Type, op *Op) error {
	return blocking(c.alike(callExscan, send, recv, t, op))
}

// Iexscan starts Exscan.
func (c *Comm) Iexscan(send, recv runtime.View, t Type, op *Op) (*Request, error) {
	return started(c.alike(callExscan, send, recv, t, op))
}

// alike checks and schedules a call with the arguments of Allreduce.
func (c *Comm) alike(k callKind, send, recv runtime.View, t Type, op *Op) (*schedule, error) {
	in := operand(send, recv)
	if err := c.reduction(k, noRoot, in.Len(), t, op, send, recv); err != nil {
		return nil, err
	}
	if recv.Len() != in.Len() {
		return nil, c.wrong(k, "%d B for the result, expected %d B", recv.Len(), in.Len())
	}
	s := c.begin(call{kind: k, root: noRoot, bytes: in.Len(), t: t, op: op})
	switch {
	case k == callAllreduce && s.offloads(in, recv):
	case k == callAllreduce:
		s.allreduce(in, recv)
	default:
		s.scan(in, recv, k == callExscan)
	}
	return s, nil
}

// ReduceScatter combines the vectors of all ranks and gives each rank one piece
// of the result, counts[rank] bytes, in recv. If send is InPlace, the vector
// lies in recv, and the piece goes to the beginning of recv.
func (c *Comm) ReduceScatter(send, recv runtime.View, counts []int, t Type, op *Op) error {
	return blocking(c.reduceScatter(send, recv, counts, t, op))
}

// IreduceScatter starts ReduceScatter.
func (c *Comm) IreduceScatter(send, recv runtime.View, counts []int, t Type, op *Op) (*Request, error) {
	return started(c.reduceScatter(send, recv, counts, t, op))
}

func (c *Comm) reduceScatter(send, recv runtime.View, counts []int, t Type, op *Op) (*schedule, error) {
	in := operand(send, recv)
	if err := c.reduction(callReduceScatter, noRoot, in.Len(), t, op, send, recv); err != nil {
		return nil, err
	}
	b, err := c.layout(callReduceScatter, in, counts, nil)
	if err != nil {
		return nil, err
	}
	bounds := append(b.places, in.Len())
	if last := bounds[len(counts)-1] + counts[len(counts)-1]; last != in.Len() {
		return nil, c.wrong(callReduceScatter, "%d B to reduce, expected the %d B of the pieces", in.Len(), last)
	}
	for i, n := range counts {
		if n%t.size != 0 {
			return nil, c.wrong(callReduceScatter, "piece of rank %d: %d B, expected elements of %d B (%s)", i, n, t.size, t.name)
		}
	}
	if mine := counts[c.rank]; send.Proc() == nil {
		recv = recv.Slice(0, mine)
	} else if recv.Len() != mine {
		return nil, c.wrong(callReduceScatter, "%d B for the result, expected %d B", recv.Len(), mine)
	}
	s := c.begin(call{kind: callReduceScatter, root: noRoot, bytes: in.Len(), t: t, op: op})
	s.reduceScatter(parts{in, bounds}, recv)
	return s, nil
}

// ReduceScatterBlock is ReduceScatter with pieces of one length.
func (c *Comm) ReduceScatterBlock(send, recv runtime.View, t Type, op *Op) error {
	in := operand(send, recv)
	counts := make([]int, c.Size())
	for i := range counts {
		counts[i] = in.Len() / c.Size()
	}
	return c.ReduceScatter(send, recv, counts, t, op)
}

// ReduceLocal computes acc = v op acc on the process's core.
func (r *Rank) ReduceLocal(v, acc runtime.View, t Type, op *Op) error {
	c := &r.world0
	if err := c.reduction(callReduce, noRoot, acc.Len(), t, op, v, acc); err != nil {
		return err
	}
	if v.Len() != acc.Len() {
		return c.wrong(callReduce, "%d B and %d B to combine", v.Len(), acc.Len())
	}
	r.combine(acc, v, true, t, op)
	return nil
}
