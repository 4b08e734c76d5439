package datatype

// Kind is the kind of a node.
type Kind uint8

// Kinds of nodes.
const (
	Leaf   Kind = iota // Size bytes in sequence
	Loop               // Child Count times, Stride bytes apart
	Blocks             // runs of bytes at Places
	List               // Parts at Places
)

// Node is part of the layout of a type's bytes, in packing order. Nodes form a
// tree, and types may share parts of it. Do not change a node. The user of a
// node gives the place where it begins.
type Node struct {
	Kind   Kind
	Size   int64   // bytes of data, at least 1
	Count  int64   // of a loop
	Stride int64   // of a loop, bytes
	Child  *Node   // of a loop
	Places []int64 // of blocks and lists, bytes
	Ends   []int64 // of blocks and lists: the end of each part in the stream
	Parts  []*Node // of a list
	data   span    // from the first byte to just behind the last
}

// Layout is a node at a displacement; nil: no data.
type Layout struct {
	At   int64
	Root *Node
}

func newLeaf(size int64) *Node { return &Node{Kind: Leaf, Size: size, data: span{0, size}} }

// dense reports whether a part is bytes in sequence.
func (p Layout) dense() bool { return p.Root != nil && p.Root.Kind == Leaf }

// repeated returns count copies of a part, stride apart. The caller has checked
// the range.
func repeated(count, stride int64, p Layout) Layout {
	switch {
	case count == 0 || p.Root == nil:
		return Layout{}
	case count == 1:
		return p
	case p.dense() && stride == p.Root.Size:
		return Layout{p.At, newLeaf(count * stride)}
	case p.Root.Kind == Loop && stride == p.Root.Count*p.Root.Stride:
		return Layout{p.At, newLoop(count*p.Root.Count, p.Root.Stride, p.Root.Child)}
	}
	return Layout{p.At, newLoop(count, stride, p.Root)}
}

func newLoop(count, stride int64, child *Node) *Node {
	n := &Node{Kind: Loop, Size: count * child.Size, Count: count, Stride: stride, Child: child}
	last := (count - 1) * stride
	n.data = child.data.covers(child.data.moved(last))
	return n
}

// listed returns parts one behind the other.
func listed(parts []Layout) Layout {
	parts = merged(parts)
	if len(parts) == 0 {
		return Layout{}
	}
	if p, ok := regular(parts); ok {
		return p
	}
	n := &Node{Kind: Blocks, Places: make([]int64, len(parts)), Ends: make([]int64, len(parts))}
	at := parts[0].At // relative to the first part, so that equal lists at other places are equal
	for i, p := range parts {
		n.Size += p.Root.Size
		n.Places[i], n.Ends[i] = p.At-at, n.Size
		if data := p.Root.data.moved(p.At - at); i == 0 {
			n.data = data
		} else {
			n.data = n.data.covers(data)
		}
		if !p.dense() {
			n.Kind = List
		}
	}
	if n.Kind == List {
		n.Parts = make([]*Node, len(parts))
		for i, p := range parts {
			n.Parts[i] = p.Root
		}
	}
	return Layout{at, n}
}

// merged drops parts without data and joins adjacent bytes.
func merged(parts []Layout) []Layout {
	kept := make([]Layout, 0, len(parts))
	for _, p := range parts {
		if p.Root == nil {
			continue
		}
		if n := len(kept); n > 0 && p.dense() && kept[n-1].dense() && kept[n-1].At+kept[n-1].Root.Size == p.At {
			kept[n-1].Root = newLeaf(kept[n-1].Root.Size + p.Root.Size)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// regular makes a loop of equal parts at equal distances; false: they are not.
func regular(parts []Layout) (Layout, bool) {
	if len(parts) == 1 {
		return parts[0], true
	}
	stride := parts[1].At - parts[0].At
	for i, p := range parts[1:] {
		if p.At-parts[i].At != stride || !p.Root.same(parts[0].Root) {
			return Layout{}, false
		}
	}
	return repeated(int64(len(parts)), stride, parts[0]), true
}

// same reports whether two nodes have the same layout. It may return false for
// some that do.
func (n *Node) same(m *Node) bool {
	switch {
	case n == m:
		return true
	case n.Kind != m.Kind || n.Size != m.Size:
		return false
	case n.Kind == Leaf:
		return true
	case n.Kind == Loop:
		return n.Count == m.Count && n.Stride == m.Stride && n.Child.same(m.Child)
	}
	return false
}
