package nic

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
)

// Frame is a message as it was sent: a header and a payload cut into packets,
// of which the fabric carries references. What stands in it does not change
// once it has been sent; the bytes of a packet are there before the packet is.
// What the receiver knows of the message it keeps by itself, under Source and
// Number.
type Frame struct {
	mark poison.Mark

	// What every packet needs, side by side:
	Data    []byte
	Packets int // at least 1
	MTU     int // bytes of every packet but the last
	// so many packets, the last, come without their data: the source could not
	// read it
	Unread         int
	Source, Target int32  // nodes
	Number         uint64 // of the message at its source, from 1
	Self           bool   // a timer of a handler, or its message to the own process
	// a packet of a put that is a message of its own: what is lost of it is its
	// handlers' business
	Datagram bool
	// a datagram: the place of its data in the put, and the length of that,
	// bytes
	At, Whole int
	cause     uint64 // of its operation
	Header    portals.Header

	// of the message among those from its source to its target, from 1; only
	// where the network may bring a packet twice
	Nth uint64
	_   [24]byte
}

// Span returns where packet i lies in the payload.
func (f *Frame) Span(i int) (from, to int) {
	from = i * f.MTU
	return from, min(from+f.MTU, len(f.Data))
}

// carries reports whether packet i has the data that it should.
func (f *Frame) carries(i int) bool { return i < f.Packets-f.Unread }

// Flow is the number of the message for timelines: no other of the run has it.
func (f *Frame) Flow() uint64 { return uint64(f.Source)<<40 | f.Number }

// Cause makes what is the Cause of an operation: timelines show that it, and
// what handlers send because of it hops times over, happens because of a flow.
func Cause(flow uint64, hops int) uint64 { return uint64(hops)<<causeBits | flow }

const causeBits = 62

// effect is the Cause of what a handler sends because of the message.
func (f *Frame) effect() uint64 {
	if f.cause>>causeBits > 1 {
		return f.cause - 1<<causeBits
	}
	return 0
}

// packet is one packet of a frame whose data is at the NIC.
type packet struct {
	f *Frame
	i int
	// from HPU memory: it counts against the egress limit of handlers until it
	// is on the wire
	device bool
}

// last reports whether it is the frame's last packet.
func (k *packet) last() bool { return k.i+1 == k.f.Packets }

// Core is what the NICs that one core of the simulating machine handles share:
// objects that nobody uses at the moment, so that the hot path allocates
// nothing and finds memory that is in the cache. Nothing that is simulated
// depends on it.
type Core struct {
	frames   freeList[Frame]
	incoming freeList[inbound]
	sending  freeList[outgoing]
	segments freeList[segment]
	accesses freeList[host.Access]
	dmas     freeList[dmaOp]
	issues   freeList[issue]
	buffers  [bufferClasses][][]byte
	inUse    poison.Buffers
	keep     bool // frames are not used again
}

// Keep makes the core's frames never be used again, for networks that bring a
// packet a second time to a NIC whose transport is none.
func (c *Core) Keep() { c.keep = true }

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

// frame returns a frame with a payload of n bytes. What that is, the header and
// the numbers are the caller's to fill in.
func (c *Core) frame(n, mtu int) *Frame {
	f := c.frames.take()
	f.MTU, f.Packets, f.Unread, f.Self, f.Datagram, f.At, f.Whole, f.cause = mtu, max(1, (n+mtu-1)/mtu), 0, false, false, 0, 0, 0
	if n > 0 {
		f.Data = c.buffer(n)
	}
	return f
}

func (c *Core) releaseFrame(f *Frame) {
	if c.keep {
		c.frames.live.Add(-1)
		return
	}
	c.releaseBuffer(f.Data)
	f.Data = nil
	if f.mark.Release("a frame"); poison.On {
		*f = Frame{mark: f.mark, Packets: -1, Target: -1}
	}
	c.frames.give(f)
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

// Balanced returns an error if something that was taken from the core was not
// given back; with the tag invariants only.
func (c *Core) Balanced() error {
	var open []error
	for _, l := range []struct {
		what string
		live int
	}{
		{"frames", c.frames.live.Live()},
		{"payloads", c.inUse.Live()},
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
