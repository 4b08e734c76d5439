//go:build !tinygo

package datatype

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/spinsim/spinsim/datatype"
)

// Errors of Compile: why a type must be unpacked by the host.
var (
	ErrDeep    = errors.New("the type is too deep")
	ErrLarge   = errors.New("the type does not fit into HPU memory, or counts beyond 32 bits")
	ErrOverlap = errors.New("the type has a byte of memory twice, which a receive must not")
	ErrEmpty   = errors.New("the type has no data")
)

// Options choose how to unpack a type.
type Options struct {
	// Strategy is one of the constants; nil: the one with the fewest cycles in
	// the model (cost.go) among those that fit in memory.
	Strategy *uint32
	// Packet is the payload of all packets but the last, and the distance of
	// checkpoints, bytes.
	Packet int
	// Memory is the size of HPU memory, bytes.
	Memory int64
	// Pieces: each packet is a message of its own, as pack sends them. Its
	// remote offset is its place in the stream.
	Pieces bool
}

// Program is a type in the form for handlers.
type Program struct {
	State  State
	Behind []byte // contents behind the state
	Costs  [len(StrategyNames)]Cost
	Why    string // reason for the choice: a line for people
}

// Bytes returns the initial contents of HPU memory.
func (p *Program) Bytes() []byte {
	return slices.Concat(unsafe.Slice((*byte)(unsafe.Pointer(&p.State)), unsafe.Sizeof(p.State)), p.Behind)
}

// Compile compiles count elements of a type, received at displacement 0 of an
// entry, for handlers. It fails with one of the errors above if handlers cannot
// unpack them.
func Compile(t *datatype.Type, count int, o Options) (*Program, error) {
	if o.Packet < 1 || o.Packet > math.MaxUint32 || o.Strategy != nil && *o.Strategy > Progressing {
		return nil, fmt.Errorf("datatype: packets of %d bytes, strategy %s, expected at least 1 and one of the constants", o.Packet, named(o.Strategy))
	}
	p, root, err := write(t, count, o.Memory)
	if err != nil {
		return nil, err
	}
	switch overlaps, err := t.Overlaps(count); {
	case err != nil:
		return nil, err
	case overlaps:
		return nil, fmt.Errorf("%w: %d times %s", ErrOverlap, count, t)
	}
	if o.Pieces {
		p.State.Pieces = 1
	}
	if err := p.choose(root, &o); err != nil {
		return nil, fmt.Errorf("%w: %d times %s", err, count, t)
	}
	return p, nil
}

// CompileSend compiles count elements of a type, at displacement 0 of an entry,
// for the handler pack. send is the destination. memory is the size of HPU
// memory, bytes. It fails with one of the errors above if handlers cannot pack
// them.
func CompileSend(t *datatype.Type, count int, send Send, memory int64) (*Program, error) {
	if send.Packet == 0 || send.Batch == 0 || send.Workers == 0 || send.Workers > MaxWorkers {
		return nil, fmt.Errorf("datatype: %d workers that pack batches of %d packets of %d bytes, expected 1 to %d, at least 1 and at least 1",
			send.Workers, send.Batch, send.Packet, MaxWorkers)
	}
	p, _, err := write(t, count, memory)
	if err != nil {
		return nil, err
	}
	buffers := int64(send.Workers) * (8 + (int64(send.Packet)+7)&^7)
	if buffers > memory-int64(unsafe.Sizeof(State{}))-int64(len(p.Behind)) {
		return nil, fmt.Errorf("%w: %d times %s, with %d bytes of buffers", ErrLarge, count, t, buffers)
	}
	p.State.Send = send
	p.State.Send.Buffers = uint32(len(p.Behind))
	p.Behind = append(p.Behind, make([]byte, buffers)...)
	return p, nil
}

// write writes the tree of a type.
func write(t *datatype.Type, count int, memory int64) (*Program, *datatype.Node, error) {
	layout, err := t.Layout(count)
	if err != nil {
		return nil, nil, err
	}
	if layout.Root == nil {
		return nil, nil, fmt.Errorf("%w: %d times %s", ErrEmpty, count, t)
	}
	c := compiler{memory: memory - int64(unsafe.Sizeof(State{})), numbers: map[*datatype.Node]uint32{}}
	root, err := c.node(layout.Root, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %d times %s", err, count, t)
	}
	s := State{Size: uint64(layout.Root.Size), Origin: layout.At, Root: root, Depth: uint32(c.depth), Strategy: General}
	return &Program{State: s, Behind: c.bytes}, layout.Root, nil
}

// compiler writes nodes, parents first, so that only the root is at 0.
type compiler struct {
	bytes   []byte
	memory  int64
	depth   int
	numbers map[*datatype.Node]uint32
}

// room appends n bytes, a multiple of 8.
func (c *compiler) room(n int64) (uint32, error) {
	at := int64(len(c.bytes))
	if n > c.memory-at {
		return 0, ErrLarge
	}
	c.bytes = append(c.bytes, make([]byte, n)...)
	return uint32(at), nil
}

func (c *compiler) node(n *datatype.Node, depth int) (uint32, error) {
	if n.Kind != datatype.Leaf {
		if depth++; depth > MaxDepth {
			return 0, ErrDeep
		}
		c.depth = max(c.depth, depth)
	}
	if at, known := c.numbers[n]; known {
		return at, nil
	}
	if max(n.Count, int64(len(n.Places))) > math.MaxUint32 {
		return 0, ErrLarge
	}
	at, err := c.room(NodeSize)
	if err != nil {
		return 0, err
	}
	c.numbers[n] = at
	written := Node{Kind: uint32(n.Kind), Size: uint64(n.Size)}
	switch n.Kind {
	case datatype.Loop:
		written.Count, written.Stride = uint64(n.Count), n.Stride
		if written.Child, err = c.node(n.Child, depth); err != nil {
			return 0, err
		}
	case datatype.Blocks, datatype.List:
		written.Count = uint64(len(n.Places))
		if written.Child, err = c.table(n, depth); err != nil {
			return 0, err
		}
	}
	*(*Node)(unsafe.Pointer(&c.bytes[at])) = written
	return at, nil
}

func (c *compiler) table(n *datatype.Node, depth int) (uint32, error) {
	each := int64(EntrySize)
	if n.Kind == datatype.List {
		each += 8
	}
	at, err := c.room(int64(len(n.Places)) * each)
	if err != nil {
		return 0, err
	}
	for i, place := range n.Places {
		*(*Entry)(unsafe.Pointer(&c.bytes[int(at)+i*EntrySize])) = Entry{Place: place, End: uint64(n.Ends[i])}
	}
	for i, part := range n.Parts {
		child, err := c.node(part, depth)
		if err != nil {
			return 0, err
		}
		*(*uint64)(unsafe.Pointer(&c.bytes[int(at)+len(n.Places)*EntrySize+i*8])) = uint64(child)
	}
	return at, nil
}

// choose takes the cheapest possible strategy according to the model, and
// prepares it.
func (p *Program) choose(root *datatype.Node, o *Options) error {
	s := &p.State
	p.Costs = p.costs(root, o)
	if o.Strategy != nil {
		s.Strategy = *o.Strategy
	} else {
		s.Strategy = General
		for i := range p.Costs {
			if c := &p.Costs[i]; c.Err == nil && (c.Cycles < p.Costs[s.Strategy].Cycles || p.Costs[s.Strategy].Err != nil) {
				s.Strategy = c.Strategy
			}
		}
	}
	if err := p.Costs[s.Strategy].Err; err != nil {
		return fmt.Errorf("strategy %s: %w", StrategyNames[s.Strategy], err)
	}
	p.Why = p.why(o.Strategy != nil)
	switch s.Strategy {
	case Vector:
		s.Block, s.Stride = uint64(root.Size), root.Size
		if root.Kind == datatype.Loop {
			s.Block, s.Stride = uint64(root.Child.Size), root.Stride
		}
	case ReadOnly:
		p.checkpoints(int((s.Size+uint64(o.Packet)-1)/uint64(o.Packet)), p.record(), uint32(o.Packet))
	case Progressing:
		s.Interval, s.Checkpoints = uint32(o.Packet), uint32(len(p.Behind))
		p.Behind = append(p.Behind, make([]byte, Slots*SlotSize)...)
	}
	return nil
}

// checkpoints has the host walk over the stream once.
func (p *Program) checkpoints(packets int, record int64, interval uint32) {
	s := &p.State
	s.Interval, s.Checkpoints = interval, uint32(len(p.Behind))
	p.Behind = append(p.Behind, make([]byte, int64(packets)*record)...)
	t := TreeAt(unsafe.Pointer(&p.Behind[0]))
	var c Cursor
	c.Seek(t, s.Root, 0)
	for i := range packets {
		if i > 0 {
			c.Skip(t, uint64(interval))
		}
		c.Save(unsafe.Pointer(&p.Behind[int64(s.Checkpoints)+int64(i)*record]))
	}
}

// named returns a strategy's name for an error.
func named(s *uint32) string {
	if s == nil {
		return "none"
	}
	return strconv.Itoa(int(*s))
}
