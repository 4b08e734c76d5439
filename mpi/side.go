package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/runtime"
)

// A collective operation moves bytes. The process's core packs elements that
// are not in one piece into temporary memory before, and unpacks them
// afterwards.

// side is the data a rank sends, or receives, in such an operation: one block,
// or one block for each rank. The zero value is no data: MPI_IN_PLACE.
type side struct {
	there  bool
	bytes  int                // of all blocks
	block  int                // bytes of a block, if all are alike
	types  datatype.Signature // of one block if all are alike, else of all; zero: bytes
	memory runtime.View       // of all blocks, if they are in one piece
	blocks vector             // blocks of different lengths in memory
	each   []*typed           // blocks that are not in one piece
	bounds []int              // of each in the stream of bytes
}

// noBlock is the index of no block.
const noBlock = -1

// checks are the checks of the arguments of a collective operation.
type checks struct {
	c    *Comm
	kind callKind
}

func (k checks) wrong(format string, args ...any) error {
	return fmt.Errorf("mpi: rank %d: %s on %s: %s", k.c.r.rank, callNames[k.kind], k.c.name, fmt.Sprintf(format, args...))
}

// from checks the root, and what does not depend on the operation.
func (k checks) from(root int, a, b Data) error {
	if root < 0 || root >= k.c.Size() {
		return k.wrong("root %d, expected a rank below %d", root, k.c.Size())
	}
	return k.usable(a, b)
}

// usable checks what does not depend on the operation.
func (k checks) usable(a, b Data) error {
	if err := k.c.usable(); err != nil {
		return err
	}
	if v, w := a.Memory, b.Memory; a.Type == nil && b.Type == nil && overlap(v, w) {
		return k.wrong("%d B at %#x and %d B at %#x overlap, expected memory apart or InPlace", v.Len(), v.Addr(), w.Len(), w.Addr())
	}
	return nil
}

func overlap(a, b runtime.View) bool {
	return a.Len() > 0 && b.Len() > 0 && a.Addr() < b.Addr()+uint64(b.Len()) && b.Addr() < a.Addr()+uint64(a.Len())
}

// plain returns the bytes of data without a type.
func (k checks) plain(m Data) (runtime.View, error) {
	v := m.Memory
	if err := m.plain(); err != nil {
		return v, k.wrong("%v", err)
	}
	if v.Len() > maxMessage {
		return v, k.wrong("%d B, expected at most %d B", v.Len(), maxMessage)
	}
	return v, k.c.r.own(v)
}

// alike returns n blocks of one length: bytes of all of them, or elements of
// one, one behind the other.
func (k checks) alike(m Data, n int, receives bool) (side, error) {
	if m.none() {
		return side{}, k.wrong("InPlace, expected memory of Alloc")
	}
	if m.Type == nil {
		v, err := k.plain(m)
		if err == nil && v.Len()%n != 0 {
			err = k.wrong("%d B, expected %d blocks of the same length", v.Len(), n)
		}
		return side{there: true, memory: v, bytes: v.Len(), block: v.Len() / n}, err
	}
	if m.Count > maxMessage { // possible for a type without data
		return side{}, k.wrong("%d elements, expected at most %d", m.Count, maxMessage)
	}
	all := m
	if m.Count > 0 {
		all.Count *= n
	}
	r := k.c.r
	t, err := all.lay()
	if err == nil && receives {
		err = r.disjoint.check(all.Type, all.Count)
	}
	if err == nil && t.size > maxMessage {
		err = fmt.Errorf("%d B, expected at most %d B", t.size, maxMessage)
	}
	if err != nil {
		return side{}, k.wrong("%v", err)
	}
	p := side{there: true, types: plainTypes(m.Type.Signature(m.Count)), memory: t.memory, bytes: t.size, block: t.size / n}
	if !t.whole {
		_, extent := m.Type.Extent()
		p.bounds = make([]int, n+1)
		for i := range n {
			p.bounds[i+1] = (i + 1) * p.block
			b := m
			b.At += i * m.Count * int(extent)
			one, err := b.lay()
			if err != nil {
				return side{}, k.wrong("%v", err)
			}
			p.each = append(p.each, one)
		}
	}
	if t.size == 0 {
		return p, nil
	}
	return p, r.own(t.memory)
}

// plainTypes returns a zero signature for one of bytes: calls without datatypes
// send bytes.
func plainTypes(s datatype.Signature) datatype.Signature {
	if s == datatype.Byte.Signature(int(s.Elements)) {
		return datatype.Signature{}
	}
	return s
}

// various returns blocks of any elements, one for each rank.
func (k checks) various(blocks []Data, receives bool) (side, error) {
	if len(blocks) != k.c.Size() {
		return side{}, k.wrong("elements for %d ranks, expected them for each of %d", len(blocks), k.c.Size())
	}
	p := side{there: true, bounds: make([]int, len(blocks)+1), each: make([]*typed, len(blocks))}
	for i, m := range blocks {
		t, err := m.lay()
		if err != nil {
			return side{}, k.wrong("block of rank %d: %v", i, err)
		}
		if t.size > maxMessage-p.bounds[i] {
			return side{}, k.wrong("blocks of more than %d B", maxMessage)
		}
		if t.size > 0 {
			if err := k.c.r.own(t.memory); err != nil {
				return side{}, err
			}
		}
		p.each[i], p.bounds[i+1] = t, p.bounds[i]+t.size
		p.types = p.types.Then(m.Type.Signature(m.Count))
	}
	p.bytes, p.types = p.bounds[len(blocks)], plainTypes(p.types)
	if receives {
		return p, k.separate(blocks)
	}
	return p, nil
}

// separate returns an error if blocks share a byte.
func (k checks) separate(blocks []Data) error {
	lengths, places, types := make([]int, len(blocks)), make([]int64, len(blocks)), make([]*datatype.Type, len(blocks))
	for i, m := range blocks {
		lengths[i], types[i] = m.Count, m.Type
		if m.Memory.Proc() != nil {
			places[i] = int64(m.Memory.Addr()) + int64(m.At)
		}
	}
	all, err := datatype.Struct(lengths, places, types)
	if err != nil {
		return k.wrong("%v", err)
	}
	twice, err := all.Overlaps(1)
	if err == nil && twice {
		err = fmt.Errorf("blocks of ranks have a byte of memory twice, which what is received must not")
	}
	if err != nil {
		return k.wrong("%v", err)
	}
	return nil
}

// blocksOf returns the blocks of m with the given counts and places, in bytes
// or in elements and extents of the type.
func (k checks) blocksOf(m Data, counts, places []int, receives bool) (side, error) {
	if m.none() {
		return side{}, k.wrong("InPlace, expected memory of Alloc")
	}
	if m.Type == nil {
		v, err := k.plain(m)
		p := side{there: true, memory: v}
		if err == nil {
			p.blocks, err = k.layout(v, counts, places)
		}
		for _, n := range p.blocks.counts {
			p.bytes += n
		}
		return p, err
	}
	if err := k.oneEach(counts, places); err != nil {
		return side{}, err
	}
	if _, err := m.Type.Layout(0); err != nil {
		return side{}, k.wrong("%v", err)
	}
	_, extent := m.Type.Extent()
	blocks, next := make([]Data, len(counts)), 0
	for i, n := range counts {
		at := next
		if places != nil {
			at = places[i]
		}
		if n > maxMessage || at > maxMessage || at < -maxMessage || extent > maxMessage || extent < -maxMessage {
			return side{}, k.wrong("block of rank %d: %d elements of %d B at %d, expected at most %d of each", i, n, extent, at, maxMessage)
		}
		blocks[i] = Data{m.Memory, m.At + at*int(extent), n, m.Type}
		next = at + n
	}
	return k.various(blocks, receives)
}

func (k checks) oneEach(counts, places []int) error {
	if len(counts) != k.c.Size() || places != nil && len(places) != k.c.Size() {
		return k.wrong("%d counts and %d places, expected one for each of %d ranks", len(counts), len(places), k.c.Size())
	}
	return nil
}

// layout returns blocks of bytes of v.
func (k checks) layout(v runtime.View, counts, places []int) (vector, error) {
	if err := k.oneEach(counts, places); err != nil {
		return vector{}, err
	}
	b := vector{v: v, counts: counts, places: places}
	if places == nil {
		b.places = make([]int, len(counts))
		at := 0
		for i, n := range counts {
			b.places[i] = at
			at += n
		}
	}
	for i, n := range counts {
		if at := b.places[i]; n < 0 || at < 0 || at > v.Len() || n > v.Len()-at {
			return vector{}, k.wrong("block of rank %d: %d B at %d, expected a part of %d B", i, n, at, v.Len())
		}
	}
	return b, nil
}

// block is a block of n bytes or elements, as far as same looks at it.
func (m Data) block(n int) *side {
	if m.Type == nil {
		return &side{block: n}
	}
	return &side{types: plainTypes(m.Type.Signature(n)), block: n * int(m.Type.Size())}
}

// same returns an error if the block that the rank sends itself differs from
// the one that it expects.
func (k checks) same(out, in *side) error {
	if out.types != in.types {
		return k.wrong("%v to send to the rank itself and %v to receive, expected the same", out.types, in.types)
	}
	if out.block != in.block {
		return k.wrong("%d B to send to the rank itself and %d B to receive, expected the same", out.block, in.block)
	}
	return nil
}

// rooted checks a call in which the root has a block for each rank (many), and
// each rank has one (few). If scatters is set, few is received, else many is.
func (k checks) rooted(root int, many, few Data, scatters bool) (whole, part side, err error) {
	if err := k.from(root, many, few); err != nil {
		return whole, part, err
	}
	whole, part, err = k.parts(root, many, k.c.Size(), few, scatters)
	if n := max(whole.block, part.block); err == nil && n > maxMessage/k.c.Size() {
		err = k.wrong("%d blocks of %d B, expected at most %d B in all", k.c.Size(), n, maxMessage)
	}
	return whole, part, err
}

// parts returns n blocks of many at the root, and one of few at all ranks that
// give it.
func (k checks) parts(root int, many Data, n int, few Data, scatters bool) (whole, part side, err error) {
	if k.c.rank == root {
		if whole, err = k.alike(many, n, !scatters); err != nil {
			return whole, part, err
		}
	}
	if k.c.rank != root || !few.none() {
		if part, err = k.alike(few, 1, scatters); err != nil {
			return whole, part, err
		}
	}
	if whole.there && part.there {
		out, in := &part, &whole
		if scatters {
			out, in = in, out
		}
		err = k.same(out, in)
	}
	return whole, part, err
}

// rootedBlocks is rooted for blocks of different lengths.
func (k checks) rootedBlocks(root int, many Data, counts, places []int, few Data, scatters bool) (whole, part side, err error) {
	if err := k.from(root, many, few); err != nil {
		return whole, part, err
	}
	if k.c.rank == root {
		if whole, err = k.blocksOf(many, counts, places, !scatters); err != nil {
			return whole, part, err
		}
	}
	if k.c.rank != root || !few.none() {
		if part, err = k.alike(few, 1, scatters); err != nil {
			return whole, part, err
		}
	}
	if whole.there && part.there {
		out, in := &part, many.block(counts[root])
		if scatters {
			out, in = in, out
		}
		err = k.same(out, in)
	}
	return whole, part, err
}

// each checks a call whose result all ranks have: n blocks to send, or none,
// and one block to receive from each rank.
func (k checks) each(send, recv Data, n int) (out, in side, err error) {
	if err := k.usable(send, recv); err != nil {
		return out, in, err
	}
	if in, err = k.alike(recv, k.c.Size(), true); err != nil || send.none() {
		return out, in, err
	}
	if out, err = k.alike(send, n, false); err == nil {
		err = k.same(&out, &in)
	}
	return out, in, err
}

// reduction checks the arguments of a reduction of vectors of n bytes whose
// result is recv.
func (k checks) reduction(send, recv runtime.View, n int, t Type, op *Op) error {
	if err := k.usable(Data{Memory: send}, Data{Memory: recv}); err != nil {
		return err
	}
	if recv.Proc() == nil {
		return k.wrong("InPlace, expected memory of Alloc")
	}
	for _, v := range []runtime.View{send, recv} {
		if v.Proc() == nil {
			continue
		}
		if _, err := k.plain(Data{Memory: v}); err != nil {
			return err
		}
	}
	if err := vectors(n, t, op); err != nil {
		return k.wrong("%v", err)
	}
	return nil
}

// vectors checks a reduction of vectors of n bytes.
func vectors(n int, t Type, op *Op) error {
	if err := op.check(t); err != nil {
		return err
	}
	if n%t.size != 0 {
		return fmt.Errorf("%d B, expected elements of %d B (%s)", n, t.size, t.name)
	}
	return nil
}

// operates returns the type of the elements that an operation combines.
func operates(d *datatype.Type, bytes int, op *Op) (Type, error) {
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
			return t, nil
		}
	}
	return Type{}, fmt.Errorf("%s of %s, expected a type made of one of int32, int64, float32 and float64", op.name, d)
}

// ofBlock returns the part of the call on which all ranks must agree: the block
// of the first side that is there.
func ofBlock(k callKind, root int, sides ...*side) call {
	for _, p := range sides {
		if p.there {
			return call{kind: k, root: root, bytes: p.block, types: p.types}
		}
	}
	return call{kind: k, root: root}
}

// stream returns memory for the bytes of all blocks: their own, if they are in
// one piece, or temporary memory. Without data it is InPlace.
func (p *side) stream(s builder) runtime.View {
	if p.each == nil {
		return p.memory
	}
	v := s.temp(p.bytes)
	for i, t := range p.each {
		t.packed = v.Slice(p.bounds[i], p.bounds[i+1])
	}
	return v
}

// streams is stream with separate memory for each block.
func (p *side) streams(s builder) vector {
	if p.each == nil {
		return p.blocks
	}
	b := vector{counts: make([]int, len(p.each)), each: make([]runtime.View, len(p.each))}
	for i, t := range p.each {
		if b.counts[i], b.each[i] = t.size, t.memory; !t.whole {
			t.packed = s.temp(t.size)
			b.each[i] = t.packed
		}
	}
	return b
}

// skipped returns the number of the rank's own block, which stays in place, if
// the rank has no other side; else noBlock.
func (p *side) skipped(s builder) int {
	if !p.there {
		return s.comm.rank
	}
	return noBlock
}

// pack makes the core pack the blocks that are not in one piece, except block
// but.
func (p *side) pack(s builder, but int) { s.elements(stepPackElements, p.each, but) }

// packOwn packs a rank's contribution: out or, in place, its own block of in.
func packOwn(s builder, out, in *side) {
	if out.there {
		out.pack(s, noBlock)
		return
	}
	if me := s.comm.rank; in.each != nil {
		s.elements(stepPackElements, in.each[me:me+1], noBlock)
	}
}

// unpack makes the core unpack the blocks, except block but, when all messages
// have come.
func (p *side) unpack(s builder, but int) {
	if p.each != nil {
		s.fence()
		s.elements(stepUnpackElements, p.each, but)
	}
}

func (s builder) elements(kind stepKind, each []*typed, but int) {
	for i, t := range each {
		if i != but && t.size > 0 && t.packed.Proc() != nil {
			s.steps = append(s.steps, step{kind: kind, typed: t})
		}
	}
}
