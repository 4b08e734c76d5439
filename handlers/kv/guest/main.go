// Keeps a hash table in host memory: inserts, looks up, deletes and swaps by walking its buckets by DMA, and hands over to the host what takes longer (sPIN'17 §5.4).
//
//spin:library kv 1.0
//spin:needs user_header=256 spaces=entry entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// call is a request that is dealt with.
type call struct {
	s      *kv.State
	st     *kv.Stripe
	r      *kv.Request
	head   []byte // the first bytes of the message: the request, and what follows
	headAt spin.Ptr
	number uint32 // of the stripe
	nid    uint32 // of the client
	pid    uint32
	toHost bool   // it is for the host
	put    bool   // the block has the bytes behind the request
	block  uint64 // link, 0: none
	hash   uint64
	busy   *uint64 // of the buffers
	a, b   spin.Ptr
	failed bool
	found  found
}

// header checks a request. A short one it deals with; for a long one it allocates the memory that payload handlers deposit it in.
//
//go:wasmexport header
func header(h *spin.Header, s *kv.State) spin.Code {
	if h.Type != spin.MsgPut || h.UserHdrLen < kv.RequestSize {
		s.Counts.Illegal++
		return spin.Drop
	}
	var c call
	c.s, c.head, c.headAt, c.nid, c.pid = s, h.UserHeader(), h.UserHdr, h.SourceNID, h.SourcePID
	c.r = (*kv.Request)(unsafe.Pointer(unsafe.SliceData(c.head)))
	if c.r.Op >= kv.Done && c.nid == s.NID && c.pid == s.PID && h.UserHdrLen >= kv.WordSize {
		word(s, c.head)
		return spin.Drop
	}
	if !c.buffers() {
		return spin.Fail
	}
	code := arrive(&c, h)
	*c.busy = 0
	if c.failed {
		return spin.Fail
	}
	return code
}

// arrive is header for a request of a client.
func arrive(c *call, h *spin.Header) spin.Code {
	r := c.r
	n := uint64(kv.RequestSize) + uint64(r.Key) + uint64(r.Value)
	writes := r.Op == kv.Put || r.Op == kv.Swap
	if r.Op == 0 || r.Op > kv.Swap || r.Key > kv.MaxKey || n > kv.MaxItem || n != h.Length || n != h.MLength || r.Value != 0 && !writes {
		c.s.Counts.Illegal++
		c.answer(kv.Illegal, 0, 0)
		return spin.Drop
	}
	long := n > uint64(len(c.head))
	if long || writes {
		var status uint32
		if c.block, status = take(c.s, kv.ClassOf(n)); c.block == 0 {
			c.refuse(status)
			return spin.Drop
		}
	}
	if !long {
		c.hash = kv.Hash(c.head[kv.RequestSize : kv.RequestSize+r.Key])
		serve(c)
		return spin.Drop
	}
	slot := newSlot(c.s, h.MsgID)
	if slot == nil {
		c.refuse(kv.Again)
		return spin.Drop
	}
	slot.Block, slot.NID, slot.PID, slot.Length = c.block, c.nid, c.pid, uint64(len(c.head))
	copy(slot.Head[:], c.head)
	c.write(kv.Place(c.block)+kv.RequestSize, c.head[kv.RequestSize:])
	return spin.ProcessData
}

// payload deposits a packet in the block of its request.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *kv.State) spin.Code {
	slot := slotOf(s, p.MsgID)
	if slot == nil || spin.DMAToHost(spin.MEHostMem, kv.Place(slot.Block)+slot.Length+p.Offset, p.Bytes()).Failed() {
		return spin.Fail
	}
	return spin.Success
}

// completion deals with a long request, which is there.
//
//go:wasmexport completion
func completion(m *spin.Completion, s *kv.State) spin.Code {
	slot := slotOf(s, m.MsgID)
	if slot == nil {
		return spin.Fail
	}
	var c call
	c.s, c.nid, c.pid, c.block, c.put = s, slot.NID, slot.PID, slot.Block, true
	c.head, c.headAt = slot.Head[:slot.Length], spin.AddrOf(&slot.Head)
	c.r = (*kv.Request)(unsafe.Pointer(&slot.Head))
	if !c.buffers() {
		return spin.Fail
	}
	switch key := c.r.Key; {
	case m.DroppedBytes > 0 || m.Failed != 0:
		c.refuse(kv.Again)
	case key <= kv.ShortKey:
		c.hash = kv.Hash(c.head[kv.RequestSize : kv.RequestSize+key])
		serve(&c)
	default:
		c.toHost = true
		c.hash = c.hashOf(uint64(key))
		serve(&c)
	}
	*c.busy = 0
	slot.Message = 0
	if c.failed {
		return spin.Fail
	}
	return spin.Success
}

// hashOf reads a long key back.
func (c *call) hashOf(n uint64) uint64 {
	h, at := kv.Begin(n), kv.Place(c.block)+kv.RequestSize
	for n > 0 {
		part := min(n, uint64(c.s.Chunk)&^7)
		b := c.a.Bytes(uint32(part))
		c.read(at, b)
		h = kv.Mix(h, b)
		n, at = n-part, at+part
	}
	return kv.End(h)
}

// serve enters the stripe of a request and deals with it, or hands it over.
func serve(c *call) {
	c.number = uint32(c.hash) & (c.s.Stripes - 1)
	c.st = (*kv.Stripe)(behind(c.s, c.s.StripesAt+c.number*kv.StripeSize))
	for range c.s.Tries {
		get := c.r.Op == kv.Get && !c.toHost
		switch enter(c.s, c.st, get) {
		case gaveUp:
			c.refuse(kv.Again)
			return
		case isAtHost:
			if !reserve(c.s) {
				c.refuse(kv.Again)
				return
			}
			if join(c.st) {
				c.handOver(kv.Serve)
				return
			}
			unreserve(c.s)
			continue
		}
		switch {
		case c.toHost:
			c.give(kv.Serve)
			return
		case get:
			c.get()
		default:
			c.change()
		}
		if !c.toHost {
			c.s.Counts.Served++
			return
		}
		c.s.Counts.Far++
		if !get {
			c.give(kv.Serve)
			return
		}
		leave(c.st, kv.Reader) // the host needs the stripe for itself
	}
	c.refuse(kv.Again)
}

// refuse answers that nothing was done.
func (c *call) refuse(status uint32) {
	if status == kv.Full {
		c.s.Counts.Full++
	} else {
		c.s.Counts.Again++
	}
	if c.block != 0 {
		give(c.s, c.block)
	}
	c.answer(status, 0, 0)
}

func main() {}
