//go:build !tinygo

package graph

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/spin"
)

// host does the work of handlers on one core. It collects updates for each node
// in packets, carries out received ones, acknowledges them, and finds the end
// in the same way. The profile has the costs of its core: to post, to look at
// an event and match it, to read and write bytes in sequence, a line of memory
// for each label, and an access to DRAM for each vertex from which the search
// goes on. Its instructions cost nothing.
type host struct {
	*Member
	eq       portals.Handle
	in, out  runtime.View // slots for packets on their way from, and to, each node
	md       portals.Handle
	slots    int
	free     [][]int // of each node: slots of out
	filling  []int   // of each node: the slot that is being filled; -1: none
	fill     []int   // updates in it
	filled   int     // slots with unsent updates
	waiting  []uint64
	lines    []uint64
	cursor   int
	deficit  uint64 // packets that are not complete
	engaged  bool
	by       uint32 // node that has engaged this one
	over     bool
	counts   Counts
	distance uint32 // of the vertex from which the search goes on
	parent   uint32
}

// mostSlots is how many packets a host may have on their way to another node.
const mostSlots = 4

// listen makes the host ready.
func (m *Member) listen(u *handlers.Setup) error {
	h := &host{Member: m, slots: min(m.o.Workers, mostSlots)}
	m.host = h
	words := (m.local + 63) / 64
	h.waiting, h.lines = make([]uint64, words), make([]uint64, (words+63)/64)
	size := m.nodes * h.slots * h.packet()
	h.in, h.out = u.Locked(size), u.Locked(size)
	h.free, h.filling, h.fill = make([][]int, m.nodes), make([]int, m.nodes), make([]int, m.nodes)
	for i := range h.free {
		h.filling[i] = -1
		for j := range h.slots {
			h.free[i] = append(h.free[i], j)
		}
	}
	h.eq, h.md = u.Queue(2*m.nodes*h.slots+2*m.nodes+8, ""), u.Bind(h.out, portals.MD{})
	u.Table(m.o.PT, h.eq, 0)
	u.Append(m.o.PT, portals.AnyID, h.in, portals.ME{
		MatchBits: UpdateBits &^ ControlMask, IgnoreBits: ControlMask, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	})
	return u.Err
}

// packet returns the size of a slot.
func (h *host) packet() int { return h.o.Updates * UpdateSize }

func (h *host) slot(node uint32, slot int) int { return (int(node)*h.slots + slot) * h.packet() }

// run searches until the end is announced.
func (h *host) run() error {
	if h.rank == h.o.Root%h.nodes {
		first := make([]byte, UpdateSize)
		h.first(first)
		h.engaged, h.by = true, uint32(h.rank)
		h.relax(first)
	}
	for !h.over {
		var err error
		switch v, found := h.take(); {
		case h.ni.Objects().EQLen(h.eq) > 0:
			if found {
				h.wait(v)
			}
			err = h.event()
		case found:
			err = h.follow(v)
		default:
			err = h.rest()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rest sends unsent updates, and ends the node's work if nothing is on its way.
func (h *host) rest() error {
	for i := 1; i < h.nodes && h.filled > 0; i++ {
		if to := uint32((h.rank + i) % h.nodes); h.fill[to] > 0 {
			if err := h.send(to); err != nil {
				return err
			}
		}
	}
	if h.engaged && h.deficit == 0 {
		h.engaged = false
		if h.by == uint32(h.rank) {
			return h.end()
		}
		if err := h.tell(h.by, DoneBits, 0); err != nil {
			return err
		}
	}
	return h.event()
}

// event waits for a message and processes it.
func (h *host) event() error {
	ev, err := h.ni.EQWait(h.eq)
	if err != nil {
		return err
	}
	h.p.Compute(h.p.Reads(used.Match).Host.Match)
	from := ev.Initiator.NID
	switch ev.MatchBits {
	case UpdateBits:
		return h.updates(from, &ev)
	case AckBits, EngagedBits:
		if ev.MatchBits == AckBits {
			h.deficit--
		}
		h.free[from] = append(h.free[from], int(ev.HdrData))
	case DoneBits:
		h.deficit--
	case EndBits:
		return h.end()
	}
	return nil
}

// updates carries out a packet, and acknowledges it.
func (h *host) updates(from uint32, ev *portals.Event) error {
	at := h.slot(from, int(ev.HdrData))
	improved := h.relax(h.in.Slice(at, at+int(ev.MLength)).Read())
	what := uint64(AckBits)
	if improved && !h.engaged {
		what = EngagedBits
		h.engaged, h.by = true, from
	}
	return h.tell(from, what, ev.HdrData)
}

// relax carries out updates, and reports whether one has made a distance
// smaller.
func (h *host) relax(b []byte) (improved bool) {
	written := int64(0)
	list := b
	for ; len(list) > 0; list = list[UpdateSize:] {
		label, v := le.Uint64(list), int(le.Uint32(list[8:]))
		if h.better(v, label) {
			improved = true
			written++
			h.wait(v)
		}
	}
	n := len(b) / UpdateSize
	h.counts.Updates += uint64(n)
	h.counts.Improved += uint64(written)
	line := int64(h.p.Reads(used.Stream).Host.LineBytes)
	h.p.Stream(int64(len(b))+int64(n)*line, written*line)
	return improved
}

// better makes the label of a vertex smaller, if the new one is.
func (h *host) better(v int, label uint64) bool {
	at := v * VertexSize
	if label>>32 >= le.Uint64(h.memory.Slice(at, at+8).Read())>>32 {
		return false
	}
	le.PutUint64(h.memory.Slice(at, at+8).Write(), label)
	return true
}

// wait notes a vertex from which the search must go on.
func (h *host) wait(v int) {
	h.waiting[v/64] |= 1 << (v % 64)
	h.lines[v/64/64] |= 1 << (v / 64 % 64)
}

// take returns a waiting vertex, in turn.
func (h *host) take() (v int, found bool) {
	line, mask := h.cursor/64/64, ^uint64(0)<<(h.cursor/64%64)
	if line >= len(h.lines) {
		line, mask = 0, ^uint64(0)
	}
	for n := 0; n <= len(h.lines) && len(h.lines) > 0; n++ {
		if some := h.lines[line] & mask; some != 0 {
			i := line*64 + bits.TrailingZeros64(some)
			v = i*64 + bits.TrailingZeros64(h.waiting[i])
			if h.waiting[i] &= h.waiting[i] - 1; h.waiting[i] == 0 {
				h.lines[line] &^= 1 << (i % 64)
			}
			h.cursor = v
			if h.waiting[i] == 0 {
				h.cursor = (i + 1) * 64
			}
			return v, true
		}
		mask = ^uint64(0)
		if line++; line == len(h.lines) {
			line = 0
		}
	}
	return 0, false
}

// follow makes updates from the edges of a vertex.
func (h *host) follow(v int) error {
	var vertex Vertex
	if err := spin.DecodeState(h.memory.Slice(v*VertexSize, (v+1)*VertexSize).Read(), &vertex); err != nil {
		return err
	}
	h.counts.Taken++
	h.distance, h.parent = uint32(vertex.Label>>32), uint32(v*h.nodes+h.rank)
	spec, size := &h.p.Reads(used.MemoryLatency).Host, h.edgeSize()
	h.p.Compute(spec.MemoryLatency)
	own := make([]byte, 0, UpdateSize)
	remote := int64(0)
	for i := range int(vertex.Degree) {
		at := h.local*VertexSize + (int(vertex.Start)+i)*size
		edge := h.memory.Slice(at, at+size).Read()
		target, weight := le.Uint32(edge), uint64(1)
		if h.o.Weighted {
			weight = uint64(le.Uint32(edge[4:]))
		}
		distance := uint64(h.distance) + weight
		if distance >= 1<<32-1 {
			continue
		}
		label, to, local := Label(uint32(distance), h.parent), target&(1<<h.shift-1), target>>h.shift
		if to == uint32(h.rank) {
			own = le.AppendUint64(own, label)
			own = le.AppendUint64(own, uint64(local))
			continue
		}
		remote++
		if err := h.put(to, label, local); err != nil {
			return err
		}
	}
	h.counts.Edges += uint64(vertex.Degree)
	line := int64(spec.LineBytes)
	h.p.Stream((int64(vertex.Degree)*int64(size)+line-1)/line*line+line, remote*UpdateSize)
	h.relax(own)
	return nil
}

// put adds an update to the packet for a node, and sends the packet if it is
// full. While all slots are on their way it first processes received messages.
func (h *host) put(to uint32, label uint64, local uint32) error {
	for h.filling[to] < 0 {
		if n := len(h.free[to]); n > 0 {
			h.filling[to], h.free[to] = h.free[to][n-1], h.free[to][:n-1]
			break
		}
		if err := h.event(); err != nil {
			return err
		}
	}
	at := h.slot(to, h.filling[to]) + h.fill[to]*UpdateSize
	b := h.out.Slice(at, at+UpdateSize).Write()
	le.PutUint64(b, label)
	le.PutUint64(b[8:], uint64(local))
	if h.fill[to]++; h.fill[to] == 1 {
		h.filled++
	}
	if h.fill[to] < h.o.Updates {
		return nil
	}
	return h.send(to)
}

// send sends the packet for a node to the sender's slot there.
func (h *host) send(to uint32) error {
	slot, n := h.filling[to], uint64(h.fill[to])*UpdateSize
	h.filling[to], h.fill[to] = -1, 0
	h.filled--
	h.deficit++
	h.counts.Sent += n / UpdateSize
	there := uint64(h.slot(uint32(h.rank), slot))
	return h.ni.Put(portals.Put{MD: h.md, Offset: uint64(h.slot(to, slot)), Length: n, Target: portals.PhysID(to, 0), PT: h.o.PT, MatchBits: UpdateBits, RemoteOffset: there, HdrData: uint64(slot)})
}

func (h *host) tell(to uint32, what, data uint64) error {
	return h.ni.Put(portals.Put{MD: h.md, Target: portals.PhysID(to, 0), PT: h.o.PT, MatchBits: what, HdrData: data})
}

// end passes the end of the search on, as handlers do.
func (h *host) end() error {
	h.over = true
	relative := (h.rank + h.nodes - h.o.Root%h.nodes) % h.nodes
	for d := 1; d < h.nodes && relative&d == 0; d <<= 1 {
		if relative+d < h.nodes {
			if err := h.tell(uint32((h.rank+d)%h.nodes), EndBits, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *host) quiet() error {
	if _, found := h.take(); found || h.deficit != 0 || h.engaged || h.filled != 0 {
		return fmt.Errorf("graph: node %d at the end: %d packets on their way, engaged %v", h.rank, h.deficit, h.engaged)
	}
	return nil
}
