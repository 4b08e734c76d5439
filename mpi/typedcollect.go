package mpi

import (
	"cmp"
	"fmt"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/runtime"
)

// InPlaceTyped has the role of InPlace in collective operations with datatypes.
// It also stands for arguments that have no meaning at a rank.
var InPlaceTyped Typed

func (m Typed) inPlace() bool { return m.Type == nil && m.Memory.Proc() == nil }

// A collective operation with datatypes moves the bytes of the elements with
// the algorithms for bytes. The process's core packs elements that are not in
// one piece into temporary memory before, and unpacks them afterwards. Ranks
// may use different types of one signature: the same basic types in the same
// order.

// side is the data a rank sends, or receives, in such an operation: one block,
// or one block for each rank.
type side struct {
	each   []*typed           // empty if whole
	bounds []int              // bounds of the blocks in the stream of bytes
	types  datatype.Signature // of one block if all are alike, else of all blocks
	memory runtime.View       // of all blocks, if whole
	whole  bool               // the blocks are in one piece, one behind the other
}

func (p *side) bytes() int { return p.bounds[len(p.bounds)-1] }

// blocksAlike returns n blocks of the elements m, one behind the other.
func (c *Comm) blocksAlike(k callKind, m Typed, n int, receives bool) (*side, error) {
	if m.inPlace() {
		return nil, c.wrong(k, "InPlaceTyped, expected elements")
	}
	if m.Count > maxMessage { // possible for a type without data
		return nil, c.wrong(k, "%d elements, expected at most %d", m.Count, maxMessage)
	}
	all := m
	if m.Count > 0 {
		all.Count *= n
	}
	t, err := c.r.lay(all)
	if err == nil && receives {
		err = c.r.apart(all.Type, all.Count)
	}
	if err == nil && t.size > maxMessage {
		err = fmt.Errorf("%d B, expected at most %d B", t.size, maxMessage)
	}
	if err != nil {
		return nil, c.wrong(k, "%v", err)
	}
	p := &side{types: m.Type.Signature(m.Count), memory: t.memory, whole: t.whole, bounds: make([]int, n+1)}
	_, extent := m.Type.Extent()
	for i := range n {
		p.bounds[i+1] = (i + 1) * (t.size / n)
		if t.whole {
			continue
		}
		b := m
		b.At += i * m.Count * int(extent)
		one, err := c.r.lay(b)
		if err != nil {
			return nil, c.wrong(k, "%v", err)
		}
		p.each = append(p.each, one)
	}
	if t.size == 0 {
		return p, nil
	}
	return p, c.r.own(t.memory)
}

// various returns blocks of any elements, one for each rank.
func (c *Comm) various(k callKind, blocks []Typed, receives bool) (*side, error) {
	if len(blocks) != c.Size() {
		return nil, c.wrong(k, "elements for %d ranks, expected them for each of %d", len(blocks), c.Size())
	}
	p := &side{bounds: make([]int, len(blocks)+1), each: make([]*typed, len(blocks))}
	for i, m := range blocks {
		t, err := c.r.lay(m)
		if err != nil {
			return nil, c.wrong(k, "block of rank %d: %v", i, err)
		}
		if t.size > maxMessage-p.bounds[i] {
			return nil, c.wrong(k, "blocks of more than %d B", maxMessage)
		}
		if t.size > 0 {
			if err := c.r.own(t.memory); err != nil {
				return nil, err
			}
		}
		p.each[i], p.bounds[i+1] = t, p.bounds[i]+t.size
		p.types = p.types.Then(m.Type.Signature(m.Count))
	}
	if receives {
		return p, c.separate(k, blocks)
	}
	return p, nil
}

// separate returns an error if blocks share a byte.
func (c *Comm) separate(k callKind, blocks []Typed) error {
	lengths, places, types := make([]int, len(blocks)), make([]int64, len(blocks)), make([]*datatype.Type, len(blocks))
	for i, m := range blocks {
		lengths[i], types[i] = m.Count, m.Type
		if m.Memory.Proc() != nil {
			places[i] = int64(m.Memory.Addr()) + int64(m.At)
		}
	}
	all, err := datatype.Struct(lengths, places, types)
	if err != nil {
		return c.wrong(k, "%v", err)
	}
	twice, err := all.Overlaps(1)
	if err == nil && twice {
		err = fmt.Errorf("blocks of ranks have a byte of memory twice, which what is received must not")
	}
	if err != nil {
		return c.wrong(k, "%v", err)
	}
	return nil
}

// blocksOf returns the blocks of m with the given numbers of elements and
// places; places are in extents of the type.
func (c *Comm) blocksOf(k callKind, m Typed, counts, places []int, receives bool) (*side, error) {
	if m.inPlace() {
		return nil, c.wrong(k, "InPlaceTyped, expected elements")
	}
	if len(counts) != c.Size() || places != nil && len(places) != c.Size() {
		return nil, c.wrong(k, "%d numbers and %d places of elements, expected one for each of %d ranks", len(counts), len(places), c.Size())
	}
	if _, err := m.Type.Layout(0); err != nil {
		return nil, c.wrong(k, "%v", err)
	}
	_, extent := m.Type.Extent()
	blocks, next := make([]Typed, len(counts)), 0
	for i, n := range counts {
		at := next
		if places != nil {
			at = places[i]
		}
		if n > maxMessage || at > maxMessage || at < -maxMessage || extent > maxMessage || extent < -maxMessage {
			return nil, c.wrong(k, "block of rank %d: %d elements of %d B at %d, expected at most %d of each", i, n, extent, at, maxMessage)
		}
		blocks[i] = Typed{m.Memory, m.At + at*int(extent), n, m.Type}
		next = at + n
	}
	return c.various(k, blocks, receives)
}

// stream returns memory for the bytes of all blocks: their own, if they are in
// one piece, or temporary memory.
func (s *schedule) stream(p *side) runtime.View {
	if p.whole {
		return p.memory
	}
	v := s.temp(p.bytes())
	for i, t := range p.each {
		t.packed = v.Slice(p.bounds[i], p.bounds[i+1])
	}
	return v
}

// streams is stream with separate memory for each block.
func (s *schedule) streams(p *side) vector {
	b := vector{counts: make([]int, len(p.each)), each: make([]runtime.View, len(p.each))}
	for i, t := range p.each {
		if b.counts[i], b.each[i] = t.size, t.memory; !t.whole {
			t.packed = s.temp(t.size)
			b.each[i] = t.packed
		}
	}
	return b
}

// pack makes the core pack the blocks that are not in one piece, except block
// but.
func (s *schedule) pack(p *side, but int) { s.elements(stepPackElements, p, but) }

// unpack makes the core unpack the blocks, except block but, when all messages
// have come.
func (s *schedule) unpack(p *side, but int) {
	s.fence()
	s.elements(stepUnpackElements, p, but)
}

func (s *schedule) elements(kind stepKind, p *side, but int) {
	for i, t := range p.each {
		if i != but && t.size > 0 && t.packed.Proc() != nil {
			s.steps = append(s.steps, step{kind: kind, typed: t})
		}
	}
}

// agree returns an error if the rank sends itself other types than it expects
// from itself.
func (c *Comm) agree(k callKind, out, in datatype.Signature) error {
	if out != in {
		return c.wrong(k, "%v to send to the rank itself and %v to receive, expected the same", out, in)
	}
	return nil
}

// plain returns a zero signature for one of bytes, because calls without
// datatypes send bytes.
func plain(s datatype.Signature) datatype.Signature {
	if s == datatype.Byte.Signature(int(s.Elements)) {
		return datatype.Signature{}
	}
	return s
}

// noBlock is the index of no block.
const noBlock = -1

// BcastTyped is Bcast for elements of datatypes.
func (c *Comm) BcastTyped(m Typed, root int) error { return blocking(c.bcastTyped(m, root)) }

// IbcastTyped starts BcastTyped.
func (c *Comm) IbcastTyped(m Typed, root int) (*Request, error) {
	return started(c.bcastTyped(m, root))
}

func (c *Comm) bcastTyped(m Typed, root int) (*schedule, error) {
	if err := c.owned(callBcast, root); err != nil {
		return nil, err
	}
	p, err := c.blocksAlike(callBcast, m, 1, c.rank != root)
	if err != nil {
		return nil, err
	}
	s := c.begin(call{kind: callBcast, root: root, bytes: p.bytes(), types: plain(p.types)})
	v := s.stream(p)
	if c.rank == root {
		s.pack(p, noBlock)
	}
	s.bcast(v, root)
	if c.rank != root {
		s.unpack(p, noBlock)
	}
	return s, nil
}

// rootedTyped checks a call in which the root has n elements for each rank
// (many), and each rank has few. If scatters is set, few is received, else many
// is.
func (c *Comm) rootedTyped(k callKind, root int, many, few Typed, scatters bool) (whole, part *side, err error) {
	if err := c.owned(k, root); err != nil {
		return nil, nil, err
	}
	if c.rank == root {
		if whole, err = c.blocksAlike(k, many, c.Size(), !scatters); err != nil {
			return nil, nil, err
		}
	}
	if c.rank != root || !few.inPlace() {
		if part, err = c.blocksAlike(k, few, 1, scatters); err != nil {
			return nil, nil, err
		}
	}
	if whole != nil && part != nil {
		err = c.agree(k, whole.types, part.types)
	}
	return whole, part, err
}

// ofBlock returns the part of the call on which all ranks must agree.
func ofBlock(k callKind, root int, sides ...*side) call {
	for _, p := range sides {
		if p != nil {
			return call{kind: k, root: root, bytes: p.bounds[1], types: plain(p.types)}
		}
	}
	return call{kind: k, root: root}
}

// ScatterTyped is Scatter for elements of datatypes. At the root send describes
// the block for one rank; the blocks lie one behind the other (MPI's sendcount
// and sendtype). At the root recv may be InPlaceTyped. At other ranks send is
// ignored.
func (c *Comm) ScatterTyped(send, recv Typed, root int) error {
	return blocking(c.scatterTyped(send, recv, root))
}

// IscatterTyped starts ScatterTyped.
func (c *Comm) IscatterTyped(send, recv Typed, root int) (*Request, error) {
	return started(c.scatterTyped(send, recv, root))
}

func (c *Comm) scatterTyped(send, recv Typed, root int) (*schedule, error) {
	out, in, err := c.rootedTyped(callScatter, root, send, recv, true)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callScatter, root, in, out)
	s := c.begin(what)
	from, to := s.optional(out), s.optional(in)
	if out != nil {
		s.pack(out, s.skipped(in))
	}
	s.scatter(from, to, what.bytes, root)
	if in != nil {
		s.unpack(in, noBlock)
	}
	return s, nil
}

// optional returns the stream of a side, or InPlace if there is none.
func (s *schedule) optional(p *side) runtime.View {
	if p == nil {
		return InPlace
	}
	return s.stream(p)
}

// skipped returns the number of the rank's own block, which stays in place, if
// the rank has no other side; else noBlock.
func (s *schedule) skipped(other *side) int {
	if other == nil {
		return s.comm.rank
	}
	return noBlock
}

// GatherTyped is Gather for elements of datatypes. At the root recv describes
// the block from one rank; the blocks lie one behind the other (MPI's recvcount
// and recvtype). At the root send may be InPlaceTyped. At other ranks recv is
// ignored.
func (c *Comm) GatherTyped(send, recv Typed, root int) error {
	return blocking(c.gatherTyped(send, recv, root))
}

// IgatherTyped starts GatherTyped.
func (c *Comm) IgatherTyped(send, recv Typed, root int) (*Request, error) {
	return started(c.gatherTyped(send, recv, root))
}

func (c *Comm) gatherTyped(send, recv Typed, root int) (*schedule, error) {
	in, out, err := c.rootedTyped(callGather, root, recv, send, false)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callGather, root, out, in)
	s := c.begin(what)
	from, to := s.optional(out), s.optional(in)
	if out != nil {
		s.pack(out, noBlock)
	}
	s.gather(from, to, what.bytes, root)
	if in != nil {
		s.unpack(in, s.skipped(out))
	}
	return s, nil
}

// AllgatherTyped is GatherTyped with the result at every rank. send may be
// InPlaceTyped.
func (c *Comm) AllgatherTyped(send, recv Typed) error { return blocking(c.allgatherTyped(send, recv)) }

// IallgatherTyped starts AllgatherTyped.
func (c *Comm) IallgatherTyped(send, recv Typed) (*Request, error) {
	return started(c.allgatherTyped(send, recv))
}

func (c *Comm) allgatherTyped(send, recv Typed) (*schedule, error) {
	out, in, err := c.eachTyped(callAllgather, send, recv, 1)
	if err != nil {
		return nil, err
	}
	what := ofBlock(callAllgather, noRoot, in)
	s := c.begin(what)
	from, to := s.optional(out), s.stream(in)
	s.own(out, in)
	s.allgather(from, to, what.bytes)
	s.unpack(in, s.skipped(out))
	return s, nil
}

// own packs a rank's contribution: out or, in place, its own block of in.
func (s *schedule) own(out, in *side) {
	if out != nil {
		s.pack(out, noBlock)
		return
	}
	if me := s.comm.rank; !in.whole {
		s.elements(stepPackElements, &side{each: in.each[me : me+1]}, noBlock)
	}
}

// eachTyped checks a call whose result all ranks have: n blocks to send, or
// none, and one block to receive from each rank.
func (c *Comm) eachTyped(k callKind, send, recv Typed, n int) (out, in *side, err error) {
	if err := c.owned(k, noRoot); err != nil {
		return nil, nil, err
	}
	if in, err = c.blocksAlike(k, recv, c.Size(), true); err != nil {
		return nil, nil, err
	}
	if send.inPlace() {
		return nil, in, nil
	}
	if out, err = c.blocksAlike(k, send, n, false); err == nil {
		err = c.agree(k, out.types, in.types)
	}
	return out, in, err
}

// AlltoallTyped is Alltoall for elements of datatypes. send describes the block
// to one rank, recv the block from one rank. send may be InPlaceTyped.
func (c *Comm) AlltoallTyped(send, recv Typed) error { return blocking(c.alltoallTyped(send, recv)) }

// IalltoallTyped starts AlltoallTyped.
func (c *Comm) IalltoallTyped(send, recv Typed) (*Request, error) {
	return started(c.alltoallTyped(send, recv))
}

func (c *Comm) alltoallTyped(send, recv Typed) (*schedule, error) {
	out, in, err := c.eachTyped(callAlltoall, send, recv, c.Size())
	if err != nil {
		return nil, err
	}
	what := ofBlock(callAlltoall, noRoot, in)
	s := c.begin(what)
	from, to := s.optional(out), s.stream(in)
	s.pack(cmp.Or(out, in), noBlock)
	s.alltoall(from, to, what.bytes)
	s.unpack(in, s.skipped(out))
	return s, nil
}

// ReduceTyped is Reduce for elements of a datatype. The datatype must consist
// of one basic type for which op is defined, and op must be predefined. At the
// root send may be InPlaceTyped. At other ranks recv is ignored.
func (c *Comm) ReduceTyped(send, recv Typed, op *Op, root int) error {
	return blocking(c.reduceTyped(send, recv, op, root))
}

// IreduceTyped starts ReduceTyped.
func (c *Comm) IreduceTyped(send, recv Typed, op *Op, root int) (*Request, error) {
	return started(c.reduceTyped(send, recv, op, root))
}

func (c *Comm) reduceTyped(send, recv Typed, op *Op, root int) (*schedule, error) {
	in, out, err := c.reducedTyped(send, recv, root)
	if err != nil {
		return nil, err
	}
	operand := cmp.Or(out, in)
	t, err := c.operates(cmp.Or(send.Type, recv.Type), operand.bytes(), op)
	if err != nil {
		return nil, c.wrong(callReduce, "%v", err)
	}
	s := c.begin(call{kind: callReduce, root: root, bytes: operand.bytes(), t: t, op: op})
	from, to := s.optional(out), s.optional(in)
	s.pack(operand, noBlock)
	if out == nil {
		from = to
	}
	s.reduceTo(from, to, root)
	if in != nil {
		s.unpack(in, noBlock)
	}
	return s, nil
}

func (c *Comm) reducedTyped(send, recv Typed, root int) (in, out *side, err error) {
	if err := c.owned(callReduce, root); err != nil {
		return nil, nil, err
	}
	if c.rank == root {
		if in, err = c.blocksAlike(callReduce, recv, 1, true); err != nil {
			return nil, nil, err
		}
	}
	if c.rank != root || !send.inPlace() {
		if out, err = c.blocksAlike(callReduce, send, 1, false); err != nil {
			return nil, nil, err
		}
	}
	if in != nil && out != nil {
		err = c.agree(callReduce, out.types, in.types)
	}
	return in, out, err
}

// operates returns the type of the elements that an operation combines.
func (c *Comm) operates(d *datatype.Type, bytes int, op *Op) (Type, error) {
	if op == nil {
		return Type{}, op.check(Type{})
	}
	if op.own != nil {
		return Type{}, fmt.Errorf("%s is an operation of the program's own, expected a predefined one", op.name)
	}
	if bytes == 0 {
		return Int32, nil
	}
	basic := d.Basic()
	for _, t := range []Type{Int32, Int64, Float32, Float64} {
		if basic != nil && basic.String() == t.name {
			return t, op.check(t)
		}
	}
	return Type{}, fmt.Errorf("%s of %s, expected a type made of one of int32, int64, float32 and float64", op.name, d)
}
