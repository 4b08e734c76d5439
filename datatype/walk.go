package datatype

import (
	"fmt"
	"sort"
)

// elements is the layout of count of them.
func (t *Type) elements(count int) (part, error) {
	if count < 0 {
		return part{}, fmt.Errorf("datatype: %d times %s, expected at least 0", count, t)
	}
	a := assemble(t.combiner, Contents{})
	a.add(block{0, count, t}, 1, 0)
	if a.over {
		return part{}, fmt.Errorf("datatype: %d times %s: size or bounds are beyond %d bytes", count, t, int64(most))
	}
	return listed(a.parts), nil
}

// Runs calls f for the bytes from `from` to `to` of the stream that count elements make: n bytes in sequence at a displacement, in the order of
// the stream. It takes O(depth · log) to find the first.
func (t *Type) Runs(count int, from, to int64, f func(at, n int64)) error {
	p, err := t.elements(count)
	if err != nil {
		return err
	}
	if size := t.size * int64(count); from < 0 || to < from || to > size {
		return fmt.Errorf("datatype: bytes %d to %d of %d of %d times %s", from, to, size, count, t)
	}
	if from < to {
		p.node.runs(p.at, from, to, f)
	}
	return nil
}

// runs gives out bytes of a node, at least one.
func (n *node) runs(at, from, to int64, f func(at, n int64)) {
	switch n.kind {
	case leaf:
		f(at+from, to-from)
	case loop:
		size := n.child.size
		for i := from / size; i*size < to; i++ {
			n.child.runs(at+i*n.stride, max(from-i*size, 0), min(to-i*size, size), f)
		}
	default:
		i := sort.Search(len(n.ends), func(i int) bool { return n.ends[i] > from })
		begin := int64(0)
		if i > 0 {
			begin = n.ends[i-1]
		}
		for ; begin < to; i++ {
			from, to := max(from-begin, 0), min(to, n.ends[i])-begin
			if n.kind == blocks {
				f(at+n.places[i]+from, to-from)
			} else {
				n.parts[i].runs(at+n.places[i], from, to, f)
			}
			begin = n.ends[i]
		}
	}
}

// Pack copies count elements, of which the first is at memory[at], into a stream of as many bytes as they have.
func (t *Type) Pack(stream, memory []byte, at, count int) error {
	return t.move(stream, memory, at, count, func(stream, memory []byte) { copy(stream, memory) })
}

// Unpack copies a stream into memory. Bytes that the type has several times are those that come last.
func (t *Type) Unpack(memory []byte, at int, stream []byte, count int) error {
	return t.move(stream, memory, at, count, func(stream, memory []byte) { copy(memory, stream) })
}

func (t *Type) move(stream, memory []byte, at, count int, move func(stream, memory []byte)) error {
	p, err := t.elements(count)
	if err != nil || p.node == nil {
		return err
	}
	if int64(len(stream)) != p.node.size {
		return fmt.Errorf("datatype: %d times %s in a stream of %d bytes, expected %d", count, t, len(stream), p.node.size)
	}
	if data := p.node.data.moved(p.at + int64(at)); data.from < 0 || data.to > int64(len(memory)) {
		return fmt.Errorf("datatype: %d times %s at %d lie in bytes %d to %d of a memory of %d", count, t, at, data.from, data.to, len(memory))
	}
	begin := int64(0)
	p.node.runs(p.at+int64(at), 0, p.node.size, func(at, n int64) {
		move(stream[begin:begin+n], memory[at:at+n])
		begin += n
	})
	return nil
}
