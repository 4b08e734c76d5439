package datatype

import (
	"errors"
	"fmt"
	"sort"
)

// Layout returns the places of the bytes of count elements, the first at
// displacement 0.
func (t *Type) Layout(count int) (Layout, error) {
	if t == nil || t.align == 0 {
		return Layout{}, errors.New("datatype: a type is missing")
	}
	if count < 0 {
		return Layout{}, fmt.Errorf("datatype: %d times %s, expected at least 0", count, t)
	}
	a := assemble(t.combiner, Contents{})
	a.add(block{0, count, t}, 1, 0)
	if a.over {
		return Layout{}, fmt.Errorf("datatype: %d times %s: size or bounds are beyond %d bytes", count, t, int64(most))
	}
	return listed(a.parts), nil
}

// Runs calls f for each run of the bytes from `from` to `to` in the stream of
// count elements. A run is n bytes in sequence at a displacement; runs come in
// stream order. It takes O(depth · log) to find the first.
func (t *Type) Runs(count int, from, to int64, f func(at, n int64)) error {
	p, err := t.Layout(count)
	if err != nil {
		return err
	}
	if size := t.size * int64(count); from < 0 || to < from || to > size {
		return fmt.Errorf("datatype: bytes %d to %d of %d of %d times %s", from, to, size, count, t)
	}
	if from < to {
		p.Root.runs(p.At, from, to, f)
	}
	return nil
}

// runs calls f for the bytes of a node from `from` to `to`, at least one.
func (n *Node) runs(at, from, to int64, f func(at, n int64)) {
	switch n.Kind {
	case Leaf:
		f(at+from, to-from)
	case Loop:
		size := n.Child.Size
		for i := from / size; i*size < to; i++ {
			n.Child.runs(at+i*n.Stride, max(from-i*size, 0), min(to-i*size, size), f)
		}
	default:
		i := sort.Search(len(n.Ends), func(i int) bool { return n.Ends[i] > from })
		begin := int64(0)
		if i > 0 {
			begin = n.Ends[i-1]
		}
		for ; begin < to; i++ {
			from, to := max(from-begin, 0), min(to, n.Ends[i])-begin
			if n.Kind == Blocks {
				f(at+n.Places[i]+from, to-from)
			} else {
				n.Parts[i].runs(at+n.Places[i], from, to, f)
			}
			begin = n.Ends[i]
		}
	}
}

// Pack copies count elements, the first at memory[at], into a stream of exactly
// their length.
func (t *Type) Pack(stream, memory []byte, at, count int) error {
	return t.move(stream, memory, at, count, func(stream, memory []byte) { copy(stream, memory) })
}

// Unpack copies a stream into memory. If the type has a byte several times, the
// last value stays.
func (t *Type) Unpack(memory []byte, at int, stream []byte, count int) error {
	return t.move(stream, memory, at, count, func(stream, memory []byte) { copy(memory, stream) })
}

func (t *Type) move(stream, memory []byte, at, count int, move func(stream, memory []byte)) error {
	p, err := t.Layout(count)
	if err != nil || p.Root == nil {
		return err
	}
	if int64(len(stream)) != p.Root.Size {
		return fmt.Errorf("datatype: %d times %s in a stream of %d bytes, expected %d", count, t, len(stream), p.Root.Size)
	}
	if at > most || at < -most {
		return fmt.Errorf("datatype: %d times %s at %d, outside of a memory of %d", count, t, at, len(memory))
	}
	if data := p.Root.data.moved(p.At + int64(at)); data.from < 0 || data.to > int64(len(memory)) {
		return fmt.Errorf("datatype: %d times %s at %d lie in bytes %d to %d of a memory of %d", count, t, at, data.from, data.to, len(memory))
	}
	begin := int64(0)
	p.Root.runs(p.At+int64(at), 0, p.Root.Size, func(at, n int64) {
		move(stream[begin:begin+n], memory[at:at+n])
		begin += n
	})
	return nil
}

// Lines returns the number of memory lines, of line bytes each, that a core
// visits to read or write count elements in stream order. The first element is
// at the beginning of a line. A line that the core visits again, after another
// line, counts again.
func (t *Type) Lines(count, line int) (lines int64, err error) {
	last := int64(0)
	err = t.Runs(count, 0, t.size*int64(count), func(at, n int64) {
		from, to := floor(at, int64(line)), floor(at+n-1, int64(line))
		if lines += to - from + 1; lines > to-from+1 && from == last {
			lines--
		}
		last = to
	})
	return lines, err
}

// floor returns a / b rounded down; b is at least 1.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Blocks returns the number of runs of bytes in sequence in count elements, as
// Runs gives them. The error comes from Layout.
func (t *Type) Blocks(count int) (int64, error) {
	p, err := t.Layout(count)
	if err != nil || p.Root == nil {
		return 0, err
	}
	return p.Root.blocks(map[*Node]int64{}), nil
}

// blocks returns the number of runs in a node. known caches the nodes that
// types share.
func (n *Node) blocks(known map[*Node]int64) int64 {
	switch n.Kind {
	case Leaf:
		return 1
	case Blocks:
		return int64(len(n.Places))
	}
	all, is := known[n]
	if is {
		return all
	}
	if n.Kind == Loop {
		all = n.Count * n.Child.blocks(known)
	}
	for _, p := range n.Parts {
		all += p.blocks(known)
	}
	known[n] = all
	return all
}
