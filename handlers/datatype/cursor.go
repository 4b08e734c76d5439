package datatype

import (
	"structs"
	"unsafe"
)

// Frame is a place in a node above the present run.
type Frame struct {
	_     structs.HostLayout
	Node  uint32 // bytes behind the state; with flat: a loop over a leaf
	Index uint32 // iteration, or entry
	Place int64  // of the node
}

// FrameSize is the size of a Frame, bytes.
const FrameSize = 16

// flat is a bit of Frame.Node, which is a multiple of 8.
const flat = 1

// Cursor is a place in the stream: the rest of a run, and the path to it from
// the root. A checkpoint in memory has only Depth frames of it.
type Cursor struct {
	_ structs.HostLayout
	Head
	Frames [MaxDepth]Frame
}

// Head is a Cursor without frames.
type Head struct {
	_     structs.HostLayout
	Place int64  // of the next byte
	Left  uint64 // bytes of the run from there on
	Depth uint64 // frames in use
}

// HeadSize is the size of a Head, bytes.
const HeadSize = 24

// Tree is the address of nodes and tables: the byte behind the state.
type Tree struct{ base unsafe.Pointer }

// TreeAt returns the tree at an address.
func TreeAt(base unsafe.Pointer) Tree { return Tree{base} }

func (t Tree) node(at uint32) *Node { return (*Node)(unsafe.Add(t.base, at)) }

// entry returns an entry of a table, begin the end of the entry before it.
func (t Tree) entry(table uint32, i uint64) *Entry {
	return (*Entry)(unsafe.Add(t.base, uintptr(table)+uintptr(i)*EntrySize))
}

func (t Tree) part(n *Node, i uint64) uint32 {
	return uint32(*(*uint64)(unsafe.Add(t.base, uintptr(n.Child)+uintptr(n.Count)*EntrySize+uintptr(i)*8)))
}

// Seek puts the cursor at a byte of the stream, which must be less than the root's size.
func (c *Cursor) Seek(t Tree, root uint32, offset uint64) {
	c.Depth = 0
	c.descend(t, root, 0, offset)
}

// descend descends from a node to a byte of its stream.
func (c *Cursor) descend(t Tree, at uint32, place int64, offset uint64) {
	for {
		n := t.node(at)
		if n.Kind == Leaf {
			c.Place, c.Left = place+int64(offset), n.Size-offset
			return
		}
		f := &c.Frames[c.Depth]
		c.Depth++
		f.Node, f.Place = at, place
		switch n.Kind {
		case Loop:
			child := t.node(n.Child)
			i := uint64(0)
			if offset >= child.Size {
				i = offset / child.Size
				offset -= i * child.Size
			}
			if child.Kind == Leaf {
				f.Node |= flat
			}
			f.Index = uint32(i)
			place += int64(i) * n.Stride
			at = n.Child
		default:
			i := uint64(0)
			if offset > 0 {
				i = t.find(n, offset)
			}
			if i > 0 {
				offset -= t.entry(n.Child, i-1).End
			}
			e := t.entry(n.Child, i)
			f.Index = uint32(i)
			if n.Kind == Blocks {
				begin := uint64(0)
				if i > 0 {
					begin = t.entry(n.Child, i-1).End
				}
				c.Place, c.Left = place+e.Place+int64(offset), e.End-begin-offset
				return
			}
			place += e.Place
			at = t.part(n, i)
		}
	}
}

// find returns the entry of a table to which a byte of the node's stream
// belongs.
func (t Tree) find(n *Node, offset uint64) uint64 {
	low, high := uint64(0), n.Count-1
	for low < high {
		middle := (low + high) / 2
		if t.entry(n.Child, middle).End > offset {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// Next goes to the run behind the present one; there must be one.
func (c *Cursor) Next(t Tree) {
	for {
		f := &c.Frames[c.Depth-1]
		n := t.node(f.Node &^ flat)
		f.Index++
		i := uint64(f.Index)
		if i == n.Count {
			c.Depth--
			continue
		}
		switch {
		case f.Node&flat != 0:
			c.Place, c.Left = f.Place+int64(i)*n.Stride, t.node(n.Child).Size
		case n.Kind == Loop:
			c.descend(t, n.Child, f.Place+int64(i)*n.Stride, 0)
		case n.Kind == Blocks:
			e := t.entry(n.Child, i)
			c.Place, c.Left = f.Place+e.Place, e.End-t.entry(n.Child, i-1).End
		default:
			c.descend(t, t.part(n, i), f.Place+t.entry(n.Child, i).Place, 0)
		}
		return
	}
}

// Whole describes the loop of the present run, which is over: the length of its
// runs, their distance, and how many remain. It returns none if the run is not
// in a loop over runs.
func (c *Cursor) Whole(t Tree) (size uint64, stride int64, more uint64) {
	if c.Depth == 0 {
		return 0, 0, 0
	}
	f := &c.Frames[c.Depth-1]
	if f.Node&flat == 0 {
		return 0, 0, 0
	}
	n := t.node(f.Node &^ flat)
	return t.node(n.Child).Size, n.Stride, n.Count - 1 - uint64(f.Index)
}

// Pass moves to the end of the run that comes i runs later in the loop.
func (c *Cursor) Pass(i uint64, stride int64) {
	c.Frames[c.Depth-1].Index += uint32(i)
	c.Place += int64(i) * stride
}

// Table describes the table of bytes of the present run, which is over: its
// entry, the place from which entries count, and how many remain. It returns
// none if the run is not in such a table.
func (c *Cursor) Table(t Tree) (e *Entry, place int64, more uint64) {
	if c.Depth == 0 {
		return nil, 0, 0
	}
	f := &c.Frames[c.Depth-1]
	n := t.node(f.Node &^ flat)
	if n.Kind != Blocks {
		return nil, 0, 0
	}
	return t.entry(n.Child, uint64(f.Index)), f.Place, n.Count - 1 - uint64(f.Index)
}

// After returns the entry behind another one of a table.
func (e *Entry) After() *Entry { return (*Entry)(unsafe.Add(unsafe.Pointer(e), EntrySize)) }

// PassEntries moves to the end of the run that comes i entries later in the
// table.
func (c *Cursor) PassEntries(i uint64) { c.Frames[c.Depth-1].Index += uint32(i) }

// Skip moves n bytes on, fewer than are left in the stream.
func (c *Cursor) Skip(t Tree, n uint64) {
	for n >= c.Left {
		n -= c.Left
		c.Next(t)
	}
	c.Place += int64(n)
	c.Left -= n
}

// Load copies a checkpoint of at most depth frames.
func (c *Cursor) Load(from unsafe.Pointer) {
	c.Head = *(*Head)(from)
	for i := range c.Depth {
		c.Frames[i] = *(*Frame)(unsafe.Add(from, HeadSize+uintptr(i)*FrameSize))
	}
}

// Save is the opposite of Load.
func (c *Cursor) Save(into unsafe.Pointer) {
	*(*Head)(into) = c.Head
	for i := range c.Depth {
		*(*Frame)(unsafe.Add(into, HeadSize+uintptr(i)*FrameSize)) = c.Frames[i]
	}
}
