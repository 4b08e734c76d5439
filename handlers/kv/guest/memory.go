package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

func behind(s *kv.State, at uint32) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(s), unsafe.Sizeof(*s)+uintptr(at))
}

// buffers takes two buffers of a packet. As many handlers as there are buffers run at a time.
func (c *call) buffers() bool {
	chunk := (c.s.Chunk + 7) &^ 7
	at := c.s.BuffersAt
	for range c.s.Buffers {
		busy := (*uint64)(behind(c.s, at))
		if *busy == 0 && spin.CAS(busy, 0, 1) {
			c.busy = busy
			c.a = spin.After(c.s) + spin.Ptr(at+8)
			c.b = c.a + spin.Ptr(chunk)
			return true
		}
		at += 8 + 2*chunk
	}
	return false
}

// newSlot takes a slot for a message; nil: there is none.
func newSlot(s *kv.State, message uint64) *kv.Slot {
	for i := range s.Slots {
		slot := slotAt(s, uint32(message)+i)
		if slot.Message == 0 && spin.CAS(&slot.Message, 0, message) {
			return slot
		}
	}
	return nil
}

// slotOf finds the slot of a message; nil: it has none.
func slotOf(s *kv.State, message uint64) *kv.Slot {
	for i := range s.Slots {
		if slot := slotAt(s, uint32(message)+i); slot.Message == message {
			return slot
		}
	}
	return nil
}

func slotAt(s *kv.State, i uint32) *kv.Slot {
	return (*kv.Slot)(behind(s, s.SlotsAt+i%s.Slots*kv.SlotSize))
}

// lock takes a stack, which nobody has for long.
func lock(s *kv.State, class uint32) *kv.Stack {
	k := (*kv.Stack)(behind(s, s.StacksAt+class*(kv.StackSize+8*s.Depth)))
	for !spin.CAS(&k.Lock, 0, 1) {
		spin.Yield()
	}
	return k
}

func blocks(s *kv.State, k *kv.Stack) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(k), kv.StackSize)), s.Depth)
}

// take allocates a block; 0: the status says whether to come again. It asks the host for more before there are none.
func take(s *kv.State, class uint32) (block uint64, status uint32) {
	k := lock(s, class)
	status = kv.Again
	if k.Count > 0 {
		k.Count--
		block = blocks(s, k)[k.Count]
	} else if k.Asked == kv.Dry {
		status = kv.Full
	}
	ask := k.Count < s.Low && k.Asked == kv.NotAsked
	if ask {
		k.Asked = kv.Asked
	}
	k.Lock = 0
	if ask {
		notify(s, kv.Asking, uint64(class), 0, 0)
	}
	return block, status
}

// give takes a block back. Half of a full stack goes to the host.
func give(s *kv.State, block uint64) {
	class := kv.Class(block)
	k := lock(s, class)
	all := blocks(s, k)
	if half := s.Depth / 2; k.Count == s.Depth {
		k.Count -= half
		s.Counts.Returned += uint64(half)
		notify(s, kv.Returning, 0, half, spin.AddrOf(&all[k.Count]))
	}
	all[k.Count] = kv.Link(kv.Place(block), class, 0)
	k.Count++
	if k.Asked == kv.Dry {
		k.Asked = kv.NotAsked
	}
	k.Lock = 0
}

// notify tells the host something that is no request.
func notify(s *kv.State, kind uint32, block uint64, count uint32, links spin.Ptr) {
	n := (*kv.Handoff)(behind(s, s.NoteAt))
	for !spin.CAS(&s.Noting, 0, 1) {
		spin.Yield()
	}
	*n = kv.Handoff{Kind: kind, Block: block, Count: count}
	toHost(s, n, links, 8*uint64(count))
	s.Noting = 0
}

// refill takes blocks from the host. Those that find no room go back.
func refill(s *kv.State, w *kv.Word, b []byte) {
	k := lock(s, w.Number)
	k.Asked = kv.NotAsked
	if w.Count == 0 {
		k.Asked = kv.Dry
	}
	k.Lock = 0
	links := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b[kv.WordSize:]))), w.Count)
	for i := range links {
		s.Counts.Refilled++
		give(s, links[i])
	}
}
