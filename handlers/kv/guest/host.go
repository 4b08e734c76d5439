package main

import (
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// handOver hands a request, or a stripe that must grow, over to the host. If
// its writer does so, the stripe goes with it. It returns false if the host
// already has too many requests.
func (c *call) handOver(kind uint32) bool {
	s, st := c.s, c.st
	if spin.FAdd(&s.Held, 1) >= uint64(s.Limit) {
		spin.FAdd(&s.Held, ^uint64(0))
		c.leave()
		return false
	}
	f := kv.Handoff{Kind: kind, Stripe: uint32(c.hash) & (s.Stripes - 1), NID: c.nid, PID: c.pid}
	if c.held == kv.Writer {
		st.Era++
		f.Fresh, f.Table, f.Items, f.Update = 1, st.Table, st.Items, st.Version
		spin.FAdd(&st.Lock, kv.AtHost-kv.Writer)
	}
	f.Era = st.Era
	n := uint64(0)
	if kind == kv.Serve {
		f.Block, n = c.block, uint64(len(c.head))
		s.Counts.Handed++
	} else {
		s.Counts.Grown++
	}
	if c.r.Key > kv.ShortKey {
		s.Counts.Keys++
	}
	c.tell(&f, c.headAt, n)
	return true
}

// tell sends a handoff to the process of the store, followed by n bytes.
func (c *call) tell(f *kv.Handoff, behind spin.Ptr, n uint64) {
	*spin.At[kv.Handoff](c.b) = *f
	c.check(spin.PutFromDevice(&spin.Op{
		UserHdr: c.b, UserHdrLen: kv.HandoffSize, Local: behind, Length: n,
		TargetNID: c.s.NID, TargetPID: c.s.PID, PTIndex: c.s.HostPT, MatchBits: c.s.HostBits,
	}))
}

// word carries out a word of the host: that it has handled requests of a
// stripe, or has blocks for a stack.
func (c *call) word(w *kv.Word) {
	if w.Op == kv.Refill {
		c.refill(w)
		return
	}
	st := stripeOf(c.s, w.Number)
	spin.Lock(&c.s.Words)
	if w.Turn > st.Turn { // otherwise a later word has overtaken this one
		st.Table, st.Items, st.Version, st.GrowAt, st.Turn = w.Table, w.Items, w.Update, w.GrowAt, w.Turn
	}
	spin.FAdd(&st.Lock, -uint64(w.Count)*kv.AtHost)
	spin.Unlock(&c.s.Words)
	spin.FAdd(&c.s.Held, -uint64(w.Count))
}

func stackOf(s *kv.State, class uint32) *kv.Stack {
	return spin.Behind[kv.Stack](s, s.StacksAt+class*(kv.StackSize+8*s.Depth))
}

// blocks returns the blocks of a stack.
func blocks(s *kv.State, k *kv.Stack) []uint64 {
	return spin.View[uint64](spin.After(k).Bytes(8 * s.Depth))
}

// take allocates the block of a request. It returns OK, or the status for the
// client. It asks the host for more blocks before there are none.
func (c *call) take(class uint32) uint32 {
	k := stackOf(c.s, class)
	spin.Lock(&k.Lock)
	if k.Count <= c.s.Low && k.Empty == kv.OK {
		k.Empty = kv.Again
		c.tell(&kv.Handoff{Kind: kv.Asking, Block: uint64(class)}, 0, 0)
	}
	status := k.Empty
	if k.Count > 0 {
		k.Count--
		c.block, status = blocks(c.s, k)[k.Count], kv.OK
	}
	spin.Unlock(&k.Lock)
	return status
}

// give frees a block, if there is one. Half of a full stack goes to the host.
func (c *call) give(block uint64) {
	if block == 0 {
		return
	}
	class := kv.Class(block)
	k := stackOf(c.s, class)
	spin.Lock(&k.Lock)
	all := blocks(c.s, k)
	if half := c.s.Depth / 2; k.Count == c.s.Depth {
		k.Count -= half
		c.s.Counts.Returned += uint64(half)
		c.tell(&kv.Handoff{Kind: kv.Returning, Count: half}, spin.AddrOf(&all[k.Count]), 8*uint64(half))
	}
	all[k.Count] = kv.Link(kv.Place(block), class, 0)
	k.Count++
	if k.Empty == kv.Full {
		k.Empty = kv.OK
	}
	spin.Unlock(&k.Lock)
}

// refill takes blocks from the host. Blocks without room go back.
func (c *call) refill(w *kv.Word) {
	stackOf(c.s, w.Number).Empty = w.Empty
	for _, link := range spin.View[uint64](c.head[kv.WordSize:])[:w.Count] {
		c.s.Counts.Refilled++
		c.give(link)
	}
}
