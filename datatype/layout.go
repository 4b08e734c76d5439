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

// Node is part of where the bytes of a type lie, in the order in which they are
// packed: a tree, of which types may share parts. It is not to be changed.
// Where it begins its user says.
type Node struct {
	Kind   Kind
	Size   int64   // bytes of data, at least 1
	Count  int64   // of a loop
	Stride int64   // of a loop, bytes
	Child  *Node   // of a loop
	Places []int64 // of blocks and lists, bytes
	Ends   []int64 // of those: behind each of them in the stream of bytes
	Parts  []*Node // of a list
	data   span    // from the first byte to behind the last
}

// Layout is a node at a displacement; nil: no data.
type Layout struct {
	At   int64
	Root *Node
}

func newLeaf(size int64) *Node { return &Node{Kind: Leaf, Size: size, data: span{0, size}} }

// dense tells whether a part is bytes in sequence.
func (p Layout) dense() bool { return p.Root != nil && p.Root.Kind == Leaf }

// repeated is a part count times, stride apart. The caller has checked that all of it is in range.
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

// listed is parts one behind the other.
func listed(parts []Layout) Layout {
	parts = merged(parts)
	if len(parts) == 0 {
		return Layout{}
	}
	if p, ok := regular(parts); ok {
		return p
	}
	n := &Node{Kind: Blocks, Places: make([]int64, len(parts)), Ends: make([]int64, len(parts))}
	at := parts[0].At // places count from the first, so that lists at different places are alike
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

// merged leaves out parts without data and joins bytes that follow each other.
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

// regular makes a loop of parts that are alike and equally far apart.
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

// same tells whether two nodes lay bytes out alike; it may say no where they do.
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
