package datatype

// A layout is where the bytes of a type lie, in the order in which they are packed.

// kind of node.
type kind uint8

const (
	leaf   kind = iota // size bytes in sequence
	loop               // a part count times, stride apart
	blocks             // runs of bytes at places
	list               // parts at places
)

// node is part of a layout, whose offset is its user's. Nodes are never changed once they are there.
type node struct {
	kind   kind
	size   int64 // bytes of data
	count  int64
	stride int64
	child  *node   // of a loop
	places []int64 // of blocks and lists
	ends   []int64 // of those: behind each of them in the stream of bytes
	parts  []*node // of a list
	data   span    // from the first byte to behind the last
}

// part is a node at a place.
type part struct {
	at   int64
	node *node // nil: no data
}

func newLeaf(size int64) *node { return &node{kind: leaf, size: size, data: span{0, size}} }

// dense tells whether a part is bytes in sequence.
func (p part) dense() bool { return p.node != nil && p.node.kind == leaf }

// repeated is a part count times, stride apart. The caller has checked that all of it is in range.
func repeated(count, stride int64, p part) part {
	switch {
	case count == 0 || p.node == nil:
		return part{}
	case count == 1:
		return p
	case p.dense() && stride == p.node.size:
		return part{p.at, newLeaf(count * stride)}
	case p.node.kind == loop && stride == p.node.count*p.node.stride:
		return part{p.at, newLoop(count*p.node.count, p.node.stride, p.node.child)}
	}
	return part{p.at, newLoop(count, stride, p.node)}
}

func newLoop(count, stride int64, child *node) *node {
	n := &node{kind: loop, size: count * child.size, count: count, stride: stride, child: child}
	last := (count - 1) * stride
	n.data = child.data.covers(child.data.moved(last))
	return n
}

// listed is parts one behind the other.
func listed(parts []part) part {
	parts = merged(parts)
	if len(parts) == 0 {
		return part{}
	}
	if p, ok := regular(parts); ok {
		return p
	}
	n := &node{kind: blocks, places: make([]int64, len(parts)), ends: make([]int64, len(parts))}
	at := parts[0].at // places count from the first, so that lists at different places are alike
	for i, p := range parts {
		n.size += p.node.size
		n.places[i], n.ends[i] = p.at-at, n.size
		if data := p.node.data.moved(p.at - at); i == 0 {
			n.data = data
		} else {
			n.data = n.data.covers(data)
		}
		if !p.dense() {
			n.kind = list
		}
	}
	if n.kind == list {
		n.parts = make([]*node, len(parts))
		for i, p := range parts {
			n.parts[i] = p.node
		}
	}
	return part{at, n}
}

// merged leaves out parts without data and joins bytes that follow each other.
func merged(parts []part) []part {
	kept := make([]part, 0, len(parts))
	for _, p := range parts {
		if p.node == nil {
			continue
		}
		if n := len(kept); n > 0 && p.dense() && kept[n-1].dense() && kept[n-1].at+kept[n-1].node.size == p.at {
			kept[n-1].node = newLeaf(kept[n-1].node.size + p.node.size)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// regular makes a loop of parts that are alike and equally far apart.
func regular(parts []part) (part, bool) {
	if len(parts) == 1 {
		return parts[0], true
	}
	stride := parts[1].at - parts[0].at
	for i, p := range parts[1:] {
		if p.at-parts[i].at != stride || !p.node.same(parts[0].node) {
			return part{}, false
		}
	}
	return repeated(int64(len(parts)), stride, parts[0]), true
}

// same tells whether two nodes lay bytes out alike; it may say no where they do.
func (n *node) same(m *node) bool {
	switch {
	case n == m:
		return true
	case n.kind != m.kind || n.size != m.size:
		return false
	case n.kind == leaf:
		return true
	case n.kind == loop:
		return n.count == m.count && n.stride == m.stride && n.child.same(m.child)
	}
	return false
}
