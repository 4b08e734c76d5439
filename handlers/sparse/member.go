//go:build !tinygo

package sparse

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// ErrDiffers means that the group is broken.
var ErrDiffers = errors.New("another member gave a vector of another length")

// Member is a process's part of a group. It needs no handlers. A block's result
// has any number of packets, which no triggered operation can count, so the
// process looks at each and sends the block a window later itself.
type Member struct {
	group  *Group
	ni     *runtime.NI
	rank   int
	target portals.ID
	bits   uint64
	memory portals.Handle // descriptor of all memory
	none   runtime.View   // the pair of a block of zeros
	events portals.Handle
	inbox  runtime.View // packets of results, by block modulo the window
	list   []Pair       // of the last packet
	first  uint32       // number of the next call's first block
	broken error
}

// call is a call under way.
type call struct {
	elements uint64 // of the vector
	at       uint64 // address of the pairs
	starts   []int  // of blocks in the pairs, and where the last one ends
	results  []arrived
	sum      func(list []Pair)
}

// arrived is what has come of a block's result.
type arrived struct{ packets, of uint32 }

// Open makes a process a member. It takes no time.
func (g *Group) Open(p *runtime.Proc, rank int) (*Member, error) {
	u := handlers.NewSetup("sparse", p)
	if rank < 0 || rank >= len(g.o.Members) || u.Self != g.o.Members[rank] {
		return nil, fmt.Errorf("sparse: process %s is %v, not rank %d of the group's %d", p, u.Self, rank, len(g.o.Members))
	}
	i := g.parent[rank]
	s := &g.states[i]
	m := &Member{
		group: g, ni: u.NI, rank: rank, target: portals.PhysID(uint32(g.o.Tree[i].Node), g.pids[i]),
		bits: KindPairs | uint64(g.place[rank])<<PlaceShift, none: p.Alloc(PairBytes),
	}
	binary.LittleEndian.PutUint32(m.none.Write(), None)
	if m.memory, u.Err = u.NI.Objects().MDBind(&portals.MD{Length: portals.SizeMax}); u.Err != nil {
		return nil, u.Err
	}
	m.inbox = p.Alloc(g.inbox())
	m.events = u.Queue(g.o.Window*int(s.Results)+1, "results of sparse")
	u.Of = fmt.Sprintf(" of group %d", g.o.Number)
	u.Append(u.Table(g.pt, m.events, 0), portals.AnyID, m.inbox, portals.ME{
		IgnoreBits: ^uint64(0), Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	})
	return m, u.Err
}

// Allreduce adds up vectors of so many elements. Source has the member's pairs,
// PairBytes each as in Pair, with ascending indices. sum gets the pairs of the
// result, a packet's at a time: blocks in any order, no index twice, no zeros. It
// must not keep the list, and pays itself for what it does with it. All members
// make the same calls in the same order. Each packet, sent or received, takes time
// of the core.
func (m *Member) Allreduce(elements int, source runtime.View, sum func(list []Pair)) error {
	if m.broken != nil {
		return m.broken
	}
	c := &call{elements: uint64(elements), at: source.Addr(), sum: sum}
	if err := m.divide(c, source.Read()); err != nil {
		return err
	}
	blocks := len(c.starts) - 1
	c.results = make([]arrived, blocks)
	for b := range min(blocks, m.group.o.Window) {
		if err := m.send(c, b); err != nil {
			return err
		}
	}
	for over := 0; over < blocks; {
		b, err := m.take(c)
		if err != nil {
			return err
		}
		if r := &c.results[b]; r.packets != r.of {
			continue
		}
		over++
		if next := b + m.group.o.Window; next < blocks {
			if err := m.send(c, next); err != nil {
				return err
			}
		}
	}
	m.first += uint32(blocks)
	return nil
}

// divide checks the pairs and finds the blocks.
func (m *Member) divide(c *call, pairs []byte) error {
	if c.elements == 0 || c.elements >= None || len(pairs)%PairBytes != 0 {
		return fmt.Errorf("sparse: %d elements and %d B of pairs, expected 1 to %d elements and pairs of %d B", c.elements, len(pairs), uint32(None-1), PairBytes)
	}
	n, span := c.elements, uint64(m.group.o.Span)
	c.starts = append(c.starts, 0)
	before := int64(-1)
	for at := 0; at < len(pairs); at += PairBytes {
		index := binary.LittleEndian.Uint32(pairs[at:])
		if int64(index) <= before || uint64(index) >= n {
			return fmt.Errorf("sparse: pair %d has index %d, expected more than %d and less than %d", at/PairBytes, index, before, n)
		}
		for uint64(len(c.starts)) <= uint64(index)/span {
			c.starts = append(c.starts, at)
		}
		before = int64(index)
	}
	for uint64(len(c.starts)) <= (n+span-1)/span {
		c.starts = append(c.starts, len(pairs))
	}
	for b, from := range c.starts[:len(c.starts)-1] {
		if n := (c.starts[b+1] - from) / PairBytes; n > m.group.o.Most {
			return fmt.Errorf("sparse: block %d has %d pairs, expected at most %d (Options.Most)", b, n, m.group.o.Most)
		}
	}
	return nil
}

// send sends a block.
func (m *Member) send(c *call, b int) error {
	at, to := c.starts[b], c.starts[b+1]
	put := portals.Put{MD: m.memory, Target: m.target, PT: m.group.pt, HdrData: uint64(m.first+uint32(b)) | c.elements<<32}
	for packet := uint64(0); ; packet++ {
		n := min(to-at, int(m.group.states[0].Packet))
		put.Offset, put.Length = c.at+uint64(at), uint64(n)
		put.MatchBits = m.bits | packet<<PacketShift | uint64(b)<<IndexShift
		if n == 0 {
			put.Offset, put.Length = m.none.Addr(), PairBytes
		}
		if at += n; at == to {
			put.MatchBits |= Last
		}
		if err := m.ni.Put(put); err != nil || at == to {
			return err
		}
	}
}

// take waits for a packet of the result, passes its pairs on and returns its
// block.
func (m *Member) take(c *call) (block int, err error) {
	e, err := m.ni.EQWait(m.events)
	if err != nil {
		return 0, err
	}
	if e.MatchBits == KindTrouble {
		m.broken = fmt.Errorf("sparse: rank %d of %d: %w", m.rank, len(m.group.o.Members), ErrDiffers)
		return 0, m.broken
	}
	at := int(e.Start - m.inbox.Addr())
	list := m.inbox.Slice(at, at+int(e.MLength)).Read()
	m.list = m.list[:0]
	for ; len(list) > 0; list = list[PairBytes:] {
		p := Pair{Index: binary.LittleEndian.Uint32(list), Value: math.Float32frombits(binary.LittleEndian.Uint32(list[4:]))}
		if p.Index != None {
			m.list = append(m.list, p)
		}
	}
	c.sum(m.list)
	block = int(e.MatchBits >> IndexShift)
	r := &c.results[block]
	r.packets++
	if e.MatchBits&Last != 0 {
		r.of = uint32(e.MatchBits>>PacketShift&PacketMask) + 1
	}
	return block, nil
}
