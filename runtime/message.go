package runtime

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
)

// message is one network transaction on its way: a header and a payload cut into packets. The sender fills it, the fabric
// carries references to it, and from the arrival of its first packet on it belongs to the receiver, which releases it.
type message struct {
	mark      poison.Mark
	hdr       portals.Header
	op        *portals.Op // at the sender, until its data has been read
	ni        *NI         // at the sender: whose operation it is
	data      []byte      // the payload; grows valid packet by packet as it is read
	packets   int
	mtu       int
	target    int32            // node
	fail      portals.FailType // of reading the data
	requested bool             // at the sender: the request for its data has reached host memory
	self      bool             // a timer or a message to the own process
	completes *unfinished      // put: message whose entry it completes
	command   bool             // a handler's: it counts against the command queue until its data has been read
	device    bool             // the data came from HPU memory: it counts against the egress limit of handlers
	flow      uint64           // number for the timeline; unique in the run
	seen      []uint64         // of a network with faults: packets that have arrived
	rx        receive
	next      *message // free list
}

// span returns where packet i lies in the payload.
func (m *message) span(i int) (from, to int) {
	from = i * m.mtu
	return from, min(from+m.mtu, len(m.data))
}

// firstTime notes that a packet has arrived and reports whether it had not yet. Only a network with faults brings one twice.
func (m *message) firstTime(i uint32) bool {
	if m.seen == nil {
		m.seen = make([]uint64, (m.packets+63)/64)
	}
	word, bit := &m.seen[i/64], uint64(1)<<(i%64)
	first := *word&bit == 0
	*word |= bit
	return first
}

// messagePool reuses messages and their buffers. A node has its own; messages move between pools with the traffic.
type messagePool struct {
	free    *message
	buffers [bufferClasses][][]byte
	inUse   poison.Buffers
	keep    bool // nothing is used again: a packet of a message that is complete may come a second time
}

const bufferClasses = 48 // powers of two

// get returns a message with a payload of n bytes, whose content is arbitrary.
func (p *messagePool) get(n, mtu int) *message {
	m := p.free
	if m == nil {
		m = new(message)
	} else {
		p.free = m.next
		held := m.rx.held[:0]
		waiting := m.rx.waiting[:0]
		*m = message{}
		m.rx.held, m.rx.waiting = held, waiting
	}
	m.mtu = mtu
	m.packets = max(1, (n+mtu-1)/mtu)
	if n > 0 {
		m.data = p.buffer(n)
	}
	return m
}

func (p *messagePool) put(m *message) {
	if p.keep {
		return
	}
	p.release(m.data)
	m.data = nil
	if m.mark.Release("a message"); poison.On {
		*m = message{mark: m.mark, packets: -1, target: -1}
		return
	}
	m.next = p.free
	p.free = m
}

// buffer returns n bytes of arbitrary content.
func (p *messagePool) buffer(n int) []byte {
	class := bits.Len(uint(n - 1))
	if s := p.buffers[class]; len(s) > 0 {
		b := s[len(s)-1]
		p.buffers[class] = s[:len(s)-1]
		return b[:n]
	}
	b := make([]byte, n, 1<<class)
	p.inUse.Taken(b)
	return b
}

func (p *messagePool) release(b []byte) {
	if cap(b) == 0 {
		return
	}
	if p.inUse.Released(b); poison.On {
		return
	}
	class := bits.Len(uint(cap(b) - 1))
	p.buffers[class] = append(p.buffers[class], b[:0])
}
