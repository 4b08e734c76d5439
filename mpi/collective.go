package mpi

import (
	"cmp"
	"slices"

	"github.com/spinsim/spinsim/runtime"
)

// InPlace is the zero View: see the zero [Data].
var InPlace runtime.View

// All ranks of a communicator must call its collective operations in the same
// order. Memory comes from Rank.Alloc. The data of a rank may be bytes or
// elements of a datatype. Ranks may use different types of one signature: the
// same basic types in the same order.
//
// Operations whose names end in v have counts and places, one for each rank.
// Both are in bytes, or in elements and in extents of the type (MPI's counts
// and displacements); the field Count of such elements must be 0. Places may be
// nil if the blocks follow each other.

// Barrier is complete when all ranks have called it.
type Barrier struct{}

// Bcast copies the data at the root to all ranks.
type Bcast struct {
	Data Data
	Root int
}

// Scatter sends each rank one block of the root's Send. Bytes of Send are a
// block as long as Recv for each rank. Elements of Send are the block for one
// rank; the blocks lie one behind the other (MPI's sendcount and sendtype). At
// the root Recv may be the zero Data. At other ranks Send is ignored.
type Scatter struct {
	Send, Recv Data
	Root       int
}

// Scatterv is Scatter with a count and a place in Send for each block. Only the
// root gives them. It sends to one rank after the other.
type Scatterv struct {
	Send, Recv     Data
	Counts, Places []int
	Root           int
}

// Gather collects every rank's Send in the root's Recv, which has a block for
// each rank, as in Scatter. At the root Send may be the zero Data. At other
// ranks Recv is ignored.
type Gather struct {
	Send, Recv Data
	Root       int
}

// Gatherv is Gather with a count and a place in Recv for each block. Only the
// root gives them. All ranks send directly to the root. With 32 ranks or more
// they send synchronously.
type Gatherv struct {
	Send, Recv     Data
	Counts, Places []int
	Root           int
}

// Allgather is Gather with the result at every rank.
type Allgather struct{ Send, Recv Data }

// Allgatherv is Gatherv with the result at every rank. All ranks must agree on
// the bytes of each block, and pass the same counts of bytes.
type Allgatherv struct {
	Send, Recv     Data
	Counts, Places []int
}

// Alltoall sends block j of each rank's Send to rank j. All blocks have the same
// length. Bytes are the blocks of all ranks; elements are the block to one rank
// and from one. Send may be the zero Data.
type Alltoall struct{ Send, Recv Data }

// Alltoallv is Alltoall with a count and a place for each block. A rank must
// send another exactly as much as the other expects from it. Send may be the
// zero Data: then RecvCounts and RecvPlaces count for both directions.
type Alltoallv struct {
	Send, Recv             Data
	Counts, Places         []int // of Send
	RecvCounts, RecvPlaces []int
}

// Alltoallw sends data to each rank and receives data from each
// (MPI_Alltoallw). Each of these has its own memory, number and type. If Send
// is nil, the data to send lies where the received data will go.
type Alltoallw struct{ Send, Recv []Data }

// Reduce combines the vectors of all ranks in the root's Recv. At the root Send
// may be the zero Data. At other ranks Recv is ignored. Elements of a datatype
// must consist of one basic type, which replaces Type, and Op must be
// predefined.
type Reduce struct {
	Send, Recv Data
	Type       Type
	Op         *Op
	Root       int
}

// Allreduce combines the vectors of all ranks in every rank's Recv. Send may be
// InPlace, as in Scan, Exscan and ReduceScatter.
type Allreduce struct {
	Send, Recv runtime.View
	Type       Type
	Op         *Op
}

// Scan combines, for each rank, the vectors of rank 0 up to this rank, this rank
// included.
type Scan Allreduce

// Exscan combines, for each rank, the vectors of all lower ranks. At rank 0 Recv
// is not changed.
type Exscan Allreduce

// ReduceScatter combines the vectors of all ranks and gives each rank one piece
// of the result, Counts[rank] bytes, in Recv. Without Counts the pieces have one
// length. If Send is InPlace, the vector lies in Recv, and the piece goes to the
// beginning of Recv.
type ReduceScatter struct {
	Send, Recv runtime.View
	Counts     []int
	Type       Type
	Op         *Op
}

func (o Barrier) begin(c *Comm) (running, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	s := c.schedule(call{kind: callBarrier, root: noRoot})
	if !s.offloads(InPlace, InPlace) {
		s.barrier()
	}
	return s, nil
}

func (o Bcast) begin(c *Comm) (running, error) {
	k := checks{c, callBcast}
	if err := k.from(o.Root, o.Data, Data{}); err != nil {
		return nil, err
	}
	p, err := k.alike(o.Data, 1, c.rank != o.Root)
	if err != nil {
		return nil, err
	}
	s := c.schedule(call{kind: callBcast, root: o.Root, bytes: p.bytes, types: p.types})
	v := p.stream(s)
	if c.rank == o.Root {
		p.pack(s, noBlock)
	}
	if !s.offloads(v, v) {
		s.bcast(v, o.Root)
	}
	if c.rank != o.Root {
		p.unpack(s, noBlock)
	}
	return s, nil
}

func (o Scatter) begin(c *Comm) (running, error) {
	out, in, err := checks{c, callScatter}.rooted(o.Root, o.Send, o.Recv, true)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callScatter, o.Root, &in, &out)
	s := c.schedule(what)
	from, to := out.stream(s), in.stream(s)
	out.pack(s, in.skipped(s))
	s.scatter(from, to, what.bytes, o.Root)
	in.unpack(s, noBlock)
	return s, nil
}

func (o Gather) begin(c *Comm) (running, error) {
	in, out, err := checks{c, callGather}.rooted(o.Root, o.Recv, o.Send, false)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callGather, o.Root, &out, &in)
	s := c.schedule(what)
	from, to := out.stream(s), in.stream(s)
	out.pack(s, noBlock)
	s.gather(from, to, what.bytes, o.Root)
	in.unpack(s, out.skipped(s))
	return s, nil
}

func (o Scatterv) begin(c *Comm) (running, error) {
	out, in, err := checks{c, callScatterv}.rootedBlocks(o.Root, o.Send, o.Counts, o.Places, o.Recv, true)
	if err != nil {
		return nil, err
	}
	s := c.schedule(call{kind: callScatterv, root: o.Root, bytes: -1})
	to, from := in.stream(s), out.streams(s)
	out.pack(s, in.skipped(s))
	s.scatterv(from, to, o.Root)
	in.unpack(s, noBlock)
	return s, nil
}

func (o Gatherv) begin(c *Comm) (running, error) {
	in, out, err := checks{c, callGatherv}.rootedBlocks(o.Root, o.Recv, o.Counts, o.Places, o.Send, false)
	if err != nil {
		return nil, err
	}
	s := c.schedule(call{kind: callGatherv, root: o.Root, bytes: -1})
	from := out.stream(s)
	out.pack(s, noBlock)
	s.gatherv(from, in.streams(s), o.Root)
	in.unpack(s, out.skipped(s))
	return s, nil
}

func (o Allgather) begin(c *Comm) (running, error) {
	out, in, err := checks{c, callAllgather}.each(o.Send, o.Recv, 1)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callAllgather, noRoot, &in)
	s := c.schedule(what)
	from, to := out.stream(s), in.stream(s)
	packOwn(s, &out, &in)
	own := block(to, c.rank, what.bytes)
	if out.there {
		own = from
	}
	if !s.offloads(own, to) {
		s.allgather(from, to, what.bytes)
	} else if out.there {
		s.copy(block(to, c.rank, what.bytes), from)
	}
	in.unpack(s, out.skipped(s))
	return s, nil
}

func (o Allgatherv) begin(c *Comm) (running, error) {
	k := checks{c, callAllgatherv}
	if err := k.usable(o.Send, o.Recv); err != nil {
		return nil, err
	}
	in, err := k.blocksOf(o.Recv, o.Counts, o.Places, true)
	if err != nil {
		return nil, err
	}
	var out side
	if !o.Send.none() {
		if out, err = k.alike(o.Send, 1, false); err == nil {
			err = k.same(&out, o.Recv.block(o.Counts[c.rank]))
		}
		if err != nil {
			return nil, err
		}
	}
	s := c.schedule(call{kind: callAllgatherv, root: noRoot, bytes: in.bytes, types: in.types})
	from, to := out.stream(s), in.stream(s)
	packOwn(s, &out, &in)
	lengths, places := in.blocks.counts, in.blocks.places
	if in.each != nil {
		lengths, places = make([]int, c.Size()), in.bounds[:c.Size()]
		for i, t := range in.each {
			lengths[i] = t.size
		}
	}
	s.allgatherv(from, to, lengths, places)
	in.unpack(s, out.skipped(s))
	return s, nil
}

func (o Alltoall) begin(c *Comm) (running, error) {
	out, in, err := checks{c, callAlltoall}.each(o.Send, o.Recv, c.Size())
	if err != nil {
		return nil, err
	}
	what := ofBlock(callAlltoall, noRoot, &in)
	s := c.schedule(what)
	from, to := out.stream(s), in.stream(s)
	if out.there {
		out.pack(s, noBlock)
	} else {
		in.pack(s, noBlock)
	}
	s.alltoall(from, to, what.bytes)
	in.unpack(s, out.skipped(s))
	return s, nil
}

func (o Alltoallv) begin(c *Comm) (running, error) {
	k := checks{c, callAlltoallv}
	if err := k.usable(o.Send, o.Recv); err != nil {
		return nil, err
	}
	in, err := k.blocksOf(o.Recv, o.RecvCounts, o.RecvPlaces, true)
	if err != nil {
		return nil, err
	}
	var out side
	if !o.Send.none() {
		if out, err = k.blocksOf(o.Send, o.Counts, o.Places, false); err == nil {
			err = k.same(o.Send.block(o.Counts[c.rank]), o.Recv.block(o.RecvCounts[c.rank]))
		}
		if err != nil {
			return nil, err
		}
	}
	return k.exchangeBlocks(&out, &in), nil
}

func (o Alltoallw) begin(c *Comm) (running, error) {
	k := checks{c, callAlltoallw}
	if err := k.usable(Data{}, Data{}); err != nil {
		return nil, err
	}
	in, err := k.various(o.Recv, true)
	if err != nil {
		return nil, err
	}
	var out side
	if o.Send != nil {
		if out, err = k.various(o.Send, false); err == nil {
			mine, theirs := o.Send[c.rank], o.Recv[c.rank]
			err = k.same(mine.block(mine.Count), theirs.block(theirs.Count))
		}
		if err != nil {
			return nil, err
		}
	}
	return k.exchangeBlocks(&out, &in), nil
}

// exchangeBlocks sends the blocks of out, or of in if there is no out, and
// receives the blocks of in.
func (k checks) exchangeBlocks(out, in *side) builder {
	s := k.c.schedule(call{kind: k.kind, root: noRoot, bytes: -1})
	to := in.streams(s)
	if !out.there {
		in.pack(s, k.c.rank)
		s.replacingAlltoall(to)
	} else {
		from := out.streams(s)
		out.pack(s, noBlock)
		s.scatteredAlltoall(from, to)
	}
	in.unpack(s, out.skipped(s))
	return s
}

func (o Reduce) begin(c *Comm) (running, error) {
	k := checks{c, callReduce}
	if err := k.from(o.Root, o.Send, o.Recv); err != nil {
		return nil, err
	}
	in, out, err := k.parts(o.Root, o.Recv, 1, o.Send, false)
	if err != nil {
		return nil, err
	}
	operand, t := &out, o.Type
	if !out.there {
		operand = &in
	}
	if d := cmp.Or(o.Send.Type, o.Recv.Type); d != nil {
		t, err = operates(d, operand.bytes, o.Op)
	}
	if err == nil {
		err = vectors(operand.bytes, t, o.Op)
	}
	if err != nil {
		return nil, k.wrong("%v", err)
	}
	s := c.schedule(call{kind: callReduce, root: o.Root, bytes: operand.bytes, t: t, op: o.Op})
	from, to := out.stream(s), in.stream(s)
	operand.pack(s, noBlock)
	if !out.there {
		from = to
	}
	if !s.offloads(from, to) {
		s.reduceTo(from, to, o.Root)
	}
	in.unpack(s, noBlock)
	return s, nil
}

func (o Allreduce) begin(c *Comm) (running, error) {
	s, in, err := o.reduction(checks{c, callAllreduce})
	if err != nil {
		return nil, err
	}
	if !s.offloads(in, o.Recv) {
		s.allreduce(in, o.Recv)
	}
	return s, nil
}

func (o Scan) begin(c *Comm) (running, error) {
	s, in, err := Allreduce(o).reduction(checks{c, callScan})
	if err != nil {
		return nil, err
	}
	s.scan(in, o.Recv, false)
	return s, nil
}

func (o Exscan) begin(c *Comm) (running, error) {
	s, in, err := Allreduce(o).reduction(checks{c, callExscan})
	if err != nil {
		return nil, err
	}
	s.scan(in, o.Recv, true)
	return s, nil
}

// reduction checks the arguments of a reduction with a result for each rank. in
// is the rank's vector.
func (o Allreduce) reduction(k checks) (s builder, in runtime.View, err error) {
	in = operand(o.Send, o.Recv)
	if err := k.reduction(o.Send, o.Recv, in.Len(), o.Type, o.Op); err != nil {
		return s, in, err
	}
	if o.Recv.Len() != in.Len() {
		return s, in, k.wrong("%d B for the result, expected %d B", o.Recv.Len(), in.Len())
	}
	return k.c.schedule(call{kind: k.kind, root: noRoot, bytes: in.Len(), t: o.Type, op: o.Op}), in, nil
}

func (o ReduceScatter) begin(c *Comm) (running, error) {
	k := checks{c, callReduceScatter}
	in := operand(o.Send, o.Recv)
	if err := k.reduction(o.Send, o.Recv, in.Len(), o.Type, o.Op); err != nil {
		return nil, err
	}
	if o.Counts == nil {
		o.Counts = uniform(in, c.Size(), in.Len()/c.Size()).counts
	}
	b, err := k.layout(in, o.Counts, nil)
	if err != nil {
		return nil, err
	}
	bounds := append(b.places, in.Len())
	if last := bounds[len(o.Counts)-1] + o.Counts[len(o.Counts)-1]; last != in.Len() {
		return nil, k.wrong("%d B to reduce, expected the %d B of the pieces", in.Len(), last)
	}
	for i, n := range o.Counts {
		if n%o.Type.size != 0 {
			return nil, k.wrong("piece of rank %d: %d B, expected elements of %d B (%s)", i, n, o.Type.size, o.Type.name)
		}
	}
	if mine := o.Counts[c.rank]; o.Send.Proc() == nil {
		o.Recv = o.Recv.Slice(0, mine)
	} else if o.Recv.Len() != mine {
		return nil, k.wrong("%d B for the result, expected %d B", o.Recv.Len(), mine)
	}
	uneven := slices.ContainsFunc(o.Counts, func(n int) bool { return n != o.Counts[0] })
	s := c.schedule(call{kind: callReduceScatter, root: noRoot, bytes: in.Len(), t: o.Type, op: o.Op, uneven: uneven})
	p, to := parts{in, bounds}, o.Recv
	own := p.span(c.rank, c.rank+1)
	if o.Send.Proc() == nil {
		to = own
	}
	if !s.offloads(in, to) {
		s.reduceScatter(p, o.Recv)
	} else if to.Addr() != o.Recv.Addr() {
		s.fence()
		s.copy(o.Recv, own)
	}
	return s, nil
}

// operand returns a rank's contribution: send, or the contents of recv if send
// is InPlace.
func operand(send, recv runtime.View) runtime.View {
	if send.Proc() == nil {
		return recv
	}
	return send
}

// ReduceLocal computes acc = v op acc on the process's core.
func (r *Rank) ReduceLocal(v, acc runtime.View, t Type, op *Op) error {
	k := checks{&r.world0, callReduce}
	if err := k.reduction(v, acc, acc.Len(), t, op); err != nil {
		return err
	}
	if v.Len() != acc.Len() {
		return k.wrong("%d B and %d B to combine", v.Len(), acc.Len())
	}
	op.combine(r.p, acc, v, true, t)
	return nil
}
