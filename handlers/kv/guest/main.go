// Keeps a hash table in host memory: inserts, looks up, deletes and swaps by
// walking its buckets by DMA, and hands over to the host what takes longer
// (sPIN'17 §5.4).
//
//spin:library kv 1.0
//spin:needs spaces=entry entry_options=op_put
//spin:needs handler=header user_header=256
package main

import (
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// call is a handler that handles a request.
type call struct {
	s        *kv.State
	r        *kv.Request
	head     []byte   // the first bytes of the message: the request, and what follows
	headAt   spin.Ptr // their address
	nid, pid uint32   // of the client
	block    uint64   // for the message, behind the place for an item's head; 0: it needs none
	hash     uint64   // of its key
	st       *kv.Stripe
	buffer   uint32   // its index
	held     uint64   // of the stripe: Reader, Writer or AtHost
	a, b     spin.Ptr // halves of the buffer, for a packet each
	failed   bool     // memory was not there, or the network interface refused a put

	first uint64   // link of a bucket
	at    uint64   // place of the link at which a walk has ended
	link  uint64   // of the item; 0: there is none
	item  *kv.Item // at a
}

func (c *call) begin(s *kv.State, nid, pid uint32, head spin.Ptr, n uint32) {
	c.s, c.nid, c.pid, c.headAt, c.head, c.r = s, nid, pid, head, head.Bytes(n), spin.At[kv.Request](head)
	chunk := (s.Chunk + 7) &^ 7
	c.buffer = spin.Acquire(&s.Free)
	c.a = spin.After(s) + spin.Ptr(s.BuffersAt+c.buffer*2*chunk)
	c.b = c.a + spin.Ptr(chunk)
}

func (c *call) end(code spin.Code) spin.Code {
	spin.Release(&c.s.Free, c.buffer)
	if c.failed {
		return spin.Fail
	}
	return code
}

// header handles a short request. For a long one it allocates the memory into
// which payload handlers write.
//
//go:wasmexport header
func header(h *spin.Header, s *kv.State) spin.Code {
	if h.Type != spin.MsgPut || h.UserHdrLen < kv.RequestSize {
		s.Counts.Illegal++
		return spin.Drop
	}
	var c call
	c.begin(s, h.SourceNID, h.SourcePID, h.UserHdr, h.UserHdrLen)
	if c.r.Op >= kv.Done && c.nid == s.NID && c.pid == s.PID && h.UserHdrLen >= kv.WordSize {
		c.word(spin.At[kv.Word](h.UserHdr))
		return c.end(spin.Drop)
	}
	return c.end(c.arrive(h))
}

// arrive checks a request. It puts one that writes, or is long, into a block of
// its own.
func (c *call) arrive(h *spin.Header) spin.Code {
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
		if status := c.take(kv.ClassOf(n)); status != kv.OK {
			c.refuse(status)
			return spin.Drop
		}
		c.check(spin.DMAToHost(spin.MEHostMem, kv.Place(c.block)+kv.RequestSize, c.head[kv.RequestSize:]))
	}
	if !long {
		c.serve()
		return spin.Drop
	}
	slot := slotOf(c.s, h.MsgID, 0)
	if slot == nil {
		c.refuse(kv.Again)
		return spin.Drop
	}
	slot.Block, slot.NID, slot.PID, slot.Length = c.block, c.nid, c.pid, uint64(len(c.head))
	copy(slot.Head[:], c.head)
	return spin.ProcessData
}

// payload deposits a packet in the block of its request.
//
//go:wasmexport payload
func payload(p *spin.Payload, s *kv.State) spin.Code {
	slot := slotOf(s, p.MsgID, p.MsgID)
	if slot == nil || spin.DMAToHost(spin.MEHostMem, kv.Place(slot.Block)+slot.Length+p.Offset, p.Bytes()).Failed() {
		return spin.Fail
	}
	return spin.Success
}

// completion handles a long request, which is complete.
//
//go:wasmexport completion
func completion(m *spin.Completion, s *kv.State) spin.Code {
	slot := slotOf(s, m.MsgID, m.MsgID)
	if slot == nil {
		return spin.Fail
	}
	var c call
	c.begin(s, slot.NID, slot.PID, spin.AddrOf(&slot.Head), uint32(slot.Length))
	c.block = slot.Block
	if m.DroppedBytes > 0 || m.Failed != 0 {
		c.refuse(kv.Again)
	} else {
		c.serve()
	}
	slot.Message = 0
	return c.end(spin.Success)
}

// slotOf returns the slot of a message. If it had none before (was is 0), it
// takes one. nil: there is none.
func slotOf(s *kv.State, message, was uint64) *kv.Slot {
	for i := range s.Slots {
		slot := spin.Behind[kv.Slot](s, s.SlotsAt+(uint32(message)+i)%s.Slots*kv.SlotSize)
		if slot.Message == was && (was != 0 || spin.CAS(&slot.Message, 0, message)) {
			return slot
		}
	}
	return nil
}

// serve enters the stripe of a request and carries the request out, or hands it
// over.
func (c *call) serve() {
	short := c.r.Key <= kv.ShortKey // the host walks for longer keys
	c.hash = c.hashKey(short)
	c.st = stripeOf(c.s, uint32(c.hash))
	as := uint64(kv.Writer)
	if c.r.Op == kv.Get && short {
		as = kv.Reader
	}
	held := c.enter(as)
	if held == kv.Reader && c.get() || held == kv.Writer && short && c.change() {
		c.s.Counts.Served++
		return
	}
	if held == kv.Reader { // the host needs the stripe for itself
		c.leave()
		c.enter(kv.Writer)
	}
	if c.held == 0 || !c.handOver(kv.Serve) {
		c.refuse(kv.Again)
	}
}

// hashKey reads a key back that is not in the first bytes of the message.
func (c *call) hashKey(short bool) uint64 {
	n, at := uint64(c.r.Key), kv.Place(c.block)+kv.RequestSize
	if short {
		return kv.Hash(c.head[kv.RequestSize : kv.RequestSize+n])
	}
	h := kv.Begin(n)
	for n > 0 {
		b := c.a.Bytes(uint32(min(n, uint64(c.s.Chunk)&^7)))
		c.check(spin.DMAFromHost(spin.MEHostMem, at, b))
		h = kv.Mix(h, b)
		n, at = n-uint64(len(b)), at+uint64(len(b))
	}
	return kv.End(h)
}

// refuse answers that nothing was done.
func (c *call) refuse(status uint32) {
	c.s.Counts.Refused++
	c.give(c.block)
	c.answer(status, 0, 0)
}

// answer sends an answer without a value.
func (c *call) answer(status uint32, version uint64, value uint32) {
	*spin.At[kv.Answer](c.b) = kv.Answer{Status: status, Value: value, Version: version, Tag: c.r.Tag}
	c.packet(c.b, kv.AnswerSize, 0, kv.AnswerSize)
}

// packet sends a part of an answer, unless the part may be wrong.
func (c *call) packet(local spin.Ptr, n, at, all uint64) {
	if c.failed {
		return
	}
	c.check(spin.PutFromDevice(&spin.Op{
		Local: local, Length: n, TargetNID: c.nid, TargetPID: c.pid, PTIndex: c.r.PT, MatchBits: c.r.Bits, RemoteOffset: at,
		HdrData: kv.AnswerData(c.r.Tag, all),
	}))
}

// check notes a failed action.
func (c *call) check(r spin.Result) { c.failed = c.failed || r.Failed() }

func main() {}
