package nic

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
)

// Frame is a message as it was sent: a header and a payload cut into packets.
// The fabric carries references to it. A frame does not change once it is sent,
// and the bytes of a packet are present before the packet leaves. The receiver
// keeps its own state of the message, under Source and Number.
type Frame struct {
	mark poison.Mark

	// Every packet needs these, so they lie side by side:
	Data    []byte // nil: each packet has a page; see part
	Length  int    // of the payload, bytes
	Packets int    // at least 1
	MTU     int    // bytes of every packet except the last
	// how many packets at the end come without data, because the source could
	// not read it
	Unread         int
	Source, Target int32  // nodes
	Number         uint64 // of the message at its source, from 1
	Self           bool   // a timer of a handler, or its message to its own process
	// one packet of a put, sent as a separate message: if it is lost, only its
	// handlers react
	Datagram bool
	// a datagram: the offset of its data in the put, and the length of the put,
	// bytes
	At, Whole int
	cause     uint64 // Cause of its operation
	timer     *timer // periodic, that it is an expiry of; nil: none
	Header    portals.Header

	// number of the message on the way from its source to its target, from 1;
	// only where the network may bring a packet twice
	Nth  uint64
	home *Core // it was taken from there
	// of home's slab: the payload, by packet. Data is the bytes of the only one,
	// or nil. Without pages Data is a buffer of home.
	pages  []*host.Page
	tenant uint16 // of the process that sends it, if there are tenants
	_      [38]byte
}

// Span returns where packet i lies in the payload.
func (f *Frame) Span(i int) (from, to int) {
	from = i * f.MTU
	return from, min(from+f.MTU, f.Length)
}

// takes reports whether the payload is b itself.
func (f *Frame) takes(b []byte) bool {
	return len(b) > 0 && len(f.Data) > 0 && &b[0] == &f.Data[0]
}

// part returns bytes of the payload that lie in one packet.
func (f *Frame) part(from, to int) []byte {
	if f.Data != nil {
		return f.Data[from:to]
	}
	if from >= to {
		return nil
	}
	i := from / f.MTU
	return f.pages[i].Bytes()[from-i*f.MTU : to-i*f.MTU]
}

func (f *Frame) carries(i int) bool { return i < f.Packets-f.Unread }

// Flow is the message's number on timelines, unique in the run.
func (f *Frame) Flow() uint64 { return uint64(f.Source)<<40 | f.Number }

// Cause makes the Cause of an operation: timelines show that the operation
// happens because of flow. The same holds for messages that handlers send
// because of it, in a chain of at most hops messages.
func Cause(flow uint64, hops int) uint64 { return uint64(hops)<<causeBits | flow }

const causeBits = 62

// effect is the Cause of a message that a handler sends because of this one.
func (f *Frame) effect() uint64 {
	if f.cause>>causeBits > 1 {
		return f.cause - 1<<causeBits
	}
	return 0
}

// packet is one packet of a frame; its data is at the NIC.
type packet struct {
	f *Frame
	i int
	// from HPU memory: it counts against the egress limit of handlers until it
	// is on the wire
	device bool
}

func (k *packet) last() bool { return k.i+1 == k.f.Packets }

// Core is shared by the NICs that one core of the simulating machine handles:
// those of a domain of the run. It keeps free objects, so that the hot path
// allocates nothing and uses memory that is in the cache. No simulated result
// depends on it.
type Core struct {
	Number int // among the cores of the run
	// Slab, if not nil, has equal payloads of the NICs once.
	Slab     *host.Slab
	frames   freeList[Frame]
	incoming freeList[inbound]
	sending  freeList[outgoing]
	segments freeList[segment]
	accesses freeList[host.Access]
	dmas     freeList[dmaOp]
	issues   freeList[issue]
	runs     freeList[run] // with many NICs: without a handler they have none
	buffers  [bufferClasses][][]byte
	inUse    poison.Buffers
	held     poison.Count // pages
	scratch  []byte       // buffer of transmit.load
	unique   bool         // frames are not reused
	used     used.Set

	away [][]*Frame // frames of other cores, by number, that have ended here
	mu   sync.Mutex
	back []*Frame // frames of this core that others have returned
}

// Keep stops the reuse of frames. Networks need it that may bring a packet
// twice to a NIC whose transport is none.
func (c *Core) Keep() { c.unique = true }

// Used returns what has happened at the NICs that the core handles.
func (c *Core) Used() used.Set { return c.used }

// freeList keeps objects for reuse, the latest first.
type freeList[T any] struct {
	live poison.Count
	free []*T
}

func (l *freeList[T]) take() *T {
	l.live.Add(1)
	k := len(l.free) - 1
	if k < 0 {
		return new(T)
	}
	x := l.free[k]
	l.free = l.free[:k]
	return x
}

func (l *freeList[T]) give(x *T) {
	if l.live.Add(-1); !poison.On {
		l.free = append(l.free, x)
	}
}

const bufferClasses = 48 // powers of two

// frame returns a frame with a payload of n bytes. The caller fills in the
// payload, the header and the numbers.
func (c *Core) frame(n, mtu int) *Frame {
	f := c.frameFor(n, mtu)
	if n > 0 {
		f.Data = c.buffer(n)
	}
	return f
}

// frameFor is frame without the payload.
func (c *Core) frameFor(n, mtu int) *Frame {
	if len(c.frames.free) == 0 {
		c.reclaim()
	}
	f := c.frames.take()
	f.home = c
	f.Length, f.MTU, f.Packets, f.Unread, f.Self, f.Datagram, f.At, f.Whole, f.cause, f.timer, f.tenant = n, mtu, max(1, (n+mtu-1)/mtu), 0, false, false, 0, 0, 0, nil, 0
	return f
}

func (c *Core) releaseFrame(f *Frame) {
	if f.home != c {
		c.sendHome(f)
		return
	}
	if c.unique {
		c.frames.live.Add(-1)
		return
	}
	if len(f.pages) == 0 {
		c.releaseBuffer(f.Data)
	}
	for _, p := range f.pages {
		if p != nil { // it could be read
			c.drop(nil, p)
		}
	}
	f.Data, f.pages = nil, f.pages[:0]
	if f.mark.Release("a frame"); poison.On {
		*f = Frame{mark: f.mark, home: f.home, Packets: -1, Target: -1}
	}
	c.frames.give(f)
}

// together is how many frames of another core are returned at once.
const together = 64

// sendHome returns a frame to the core that it was taken from, soon.
func (c *Core) sendHome(f *Frame) {
	h := f.home
	for len(c.away) <= h.Number {
		c.away = append(c.away, nil)
	}
	list := append(c.away[h.Number], f)
	if len(list) == together {
		h.mu.Lock()
		h.back = append(h.back, list...)
		h.mu.Unlock()
		list = list[:0]
	}
	c.away[h.Number] = list
}

// reclaim takes the frames that others have returned.
func (c *Core) reclaim() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.back {
		c.releaseFrame(f)
	}
	c.back = c.back[:0]
}

// keep returns a copy of b, at least 1 byte, that nobody changes: a page or, if page is nil, a
// buffer.
func (c *Core) keep(b []byte) (data []byte, page *host.Page) {
	if c.Slab != nil && len(b) >= host.PageLeast {
		c.held.Add(1)
		page = c.Slab.Keep(b)
		return page.Bytes(), page
	}
	data = c.buffer(len(b))
	copy(data, b)
	return data, nil
}

// drop ends the use of a result of keep, or of a buffer.
func (c *Core) drop(data []byte, page *host.Page) {
	if page != nil {
		c.held.Add(-1)
		c.Slab.Drop(page)
		return
	}
	c.releaseBuffer(data)
}

// buffer returns n bytes of arbitrary content, n at least 1.
func (c *Core) buffer(n int) []byte {
	class := bits.Len(uint(n - 1))
	if s := c.buffers[class]; len(s) > 0 {
		b := s[len(s)-1]
		c.buffers[class] = s[:len(s)-1]
		return b[:n]
	}
	memory.Ask(1 << class)
	b := make([]byte, n, 1<<class)
	c.inUse.Taken(b)
	return b
}

func (c *Core) releaseBuffer(b []byte) {
	if cap(b) == 0 {
		return
	}
	if c.inUse.Released(b); poison.On {
		return
	}
	class := bits.Len(uint(cap(b) - 1))
	c.buffers[class] = append(c.buffers[class], b[:0])
}

func (c *Core) access() *host.Access {
	a := c.accesses.take()
	*a = host.Access{}
	return a
}

func (c *Core) releaseAccess(a *host.Access) {
	if poison.On {
		*a = host.Access{Length: -1}
	}
	c.accesses.give(a)
}

func (c *Core) outgoing() *outgoing {
	o := c.sending.take()
	*o = outgoing{}
	return o
}

func (c *Core) releaseOutgoing(o *outgoing) {
	if o.mark.Release("a message at its source"); poison.On {
		*o = outgoing{mark: o.mark}
	}
	c.sending.give(o)
}

func (c *Core) segment() *segment {
	s := c.segments.take()
	*s = segment{}
	return s
}

func (c *Core) releaseSegment(s *segment) {
	if s.mark.Release("a packet of a reliable transport"); poison.On {
		*s = segment{mark: s.mark, over: true, target: -1}
	}
	c.segments.give(s)
}

func (c *Core) inbound(f *Frame) *inbound {
	in := c.incoming.take()
	in.delivered = delivered{frame: f, left: int32(f.Packets), kind: f.Header.Kind}
	return in
}

func (c *Core) releaseInbound(in *inbound) {
	in.mark.Release("a message at its target")
	if !in.cut {
		c.releaseFrame(in.frame)
	}
	if poison.On {
		if len(in.held)+len(in.waiting)+len(in.barriers) > 0 {
			panic("nic: a message has ended for which something waits") //lint:panic a bug
		}
		*in = inbound{mark: in.mark, delivered: delivered{left: -1}}
	}
	in.frame = nil
	c.incoming.give(in)
}

// Balanced returns an error if an object taken from the core was not given
// back. It works only with the build tag invariants.
func (c *Core) Balanced() error {
	var open []error
	for _, l := range []struct {
		what string
		live int
	}{
		{"frames", c.frames.live.Live()},
		{"payloads", c.inUse.Live() + c.held.Live()},
		{"messages at their targets", c.incoming.live.Live()},
		{"messages at their sources", c.sending.live.Live()},
		{"packets of reliable transports", c.segments.live.Live()},
		{"accesses to memory", c.accesses.live.Live()},
		{"DMA operations", c.dmas.live.Live()},
		{"operations of handlers", c.issues.live.Live()},
	} {
		if l.live != 0 {
			open = append(open, fmt.Errorf("nic: %d %s were not given back", l.live, l.what))
		}
	}
	return errors.Join(open...)
}

// live panics if an event refers to an object that was given back.
func live(ref any) {
	switch x := ref.(type) {
	case *Frame:
		x.mark.Live("a frame")
	case *inbound:
		x.mark.Live("a message at its target")
	case *outgoing:
		x.mark.Live("a message at its source")
	case *dmaOp:
		x.mark.Live("a DMA operation")
	case *issue:
		x.mark.Live("an operation of a handler")
	}
}
