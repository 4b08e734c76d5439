package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// What comes of entering a stripe.
const (
	entered = iota
	isAtHost
	gaveUp
)

// enter takes the lock of a stripe, for reading or for writing.
func enter(s *kv.State, st *kv.Stripe, read bool) int {
	for range s.Tries {
		v := st.Lock
		switch {
		case v >= kv.AtHost:
			return isAtHost
		case read && v&(kv.Writer|kv.Waiting) == 0:
			if spin.CAS(&st.Lock, v, v+kv.Reader) {
				return entered
			}
		case !read && v&^kv.Waiting == 0:
			if spin.CAS(&st.Lock, v, kv.Writer) {
				return entered
			}
		case !read && v&kv.Waiting == 0:
			spin.CAS(&st.Lock, v, v|kv.Waiting)
		}
		s.Counts.Conflicts++
		spin.Yield()
	}
	if !read {
		for v := st.Lock; v&kv.Waiting != 0 && !spin.CAS(&st.Lock, v, v&^kv.Waiting); v = st.Lock {
		}
	}
	return gaveUp
}

// leave gives up Writer or Reader.
func leave(st *kv.Stripe, as uint64) {
	for v := st.Lock; !spin.CAS(&st.Lock, v, v-as); v = st.Lock {
	}
}

// join adds a request to those that the host has of a stripe; false: it has none any more.
func join(st *kv.Stripe) bool {
	for v := st.Lock; v >= kv.AtHost; v = st.Lock {
		if spin.CAS(&st.Lock, v, v+kv.AtHost) {
			return true
		}
	}
	return false
}

// reserve tells whether the host may have one more request.
func reserve(s *kv.State) bool {
	if spin.FAdd(&s.Held, 1) < uint64(s.Limit) {
		return true
	}
	unreserve(s)
	return false
}

func unreserve(s *kv.State) { spin.FAdd(&s.Held, ^uint64(0)) }

// give makes the stripe, of which c is the writer, the host's, with the request or to grow. If the host has too much to do already it leaves the stripe,
// and the client is to come again with its request.
func (c *call) give(kind uint32) bool {
	if !reserve(c.s) {
		leave(c.st, kv.Writer)
		if kind == kv.Serve {
			c.refuse(kv.Again)
		}
		return false
	}
	c.st.Era++
	table, items, update := c.st.Table, c.st.Items, c.st.Version
	for v := c.st.Lock; !spin.CAS(&c.st.Lock, v, kv.AtHost); v = c.st.Lock {
	}
	f := c.handoff(kind)
	f.Fresh, f.Table, f.Items, f.Update = 1, table, items, update
	c.hand(f)
	return true
}

// handOver sends a request to the host that has its stripe.
func (c *call) handOver(kind uint32) { c.hand(c.handoff(kind)) }

// handoff begins one in the buffer b.
func (c *call) handoff(kind uint32) *kv.Handoff {
	f := spin.At[kv.Handoff](c.b)
	*f = kv.Handoff{Kind: kind, Stripe: c.number, NID: c.nid, PID: c.pid, Era: c.st.Era}
	if kind == kv.Serve {
		if f.Block = c.block; c.block != 0 && !c.put {
			c.write(kv.Place(c.block)+kv.RequestSize, c.head[kv.RequestSize:])
		}
		c.s.Counts.Handed++
		if c.r.Key > kv.ShortKey {
			c.s.Counts.Keys++
		}
	}
	return f
}

// hand sends a handoff to the process.
func (c *call) hand(f *kv.Handoff) {
	length := uint64(0)
	if f.Kind == kv.Serve {
		length = uint64(len(c.head))
	}
	if toHost(c.s, f, c.headAt, length).Failed() {
		c.failed = true
	}
}

func toHost(s *kv.State, f *kv.Handoff, behind spin.Ptr, length uint64) spin.Result {
	op := spin.Op{
		UserHdr: spin.AddrOf(f), UserHdrLen: kv.HandoffSize, Local: behind, Length: length,
		TargetNID: s.NID, TargetPID: s.PID, PTIndex: s.HostPT, MatchBits: s.HostBits,
	}
	return spin.PutFromDevice(&op)
}

// word carries out what the host says.
func word(s *kv.State, b []byte) {
	w := (*kv.Word)(unsafe.Pointer(unsafe.SliceData(b)))
	if w.Op == kv.Refill {
		refill(s, w, b)
		return
	}
	st := (*kv.Stripe)(behind(s, s.StripesAt+w.Number*kv.StripeSize))
	for v := st.Lock; v&kv.Updating != 0 || !spin.CAS(&st.Lock, v, v|kv.Updating); v = st.Lock {
		spin.Yield()
	}
	if w.Turn > st.Turn { // else a later word has overtaken this one
		st.Table, st.Items, st.Version, st.GrowAt, st.Turn = w.Table, w.Items, w.Update, w.GrowAt, w.Turn
	}
	for v := st.Lock; !spin.CAS(&st.Lock, v, v-uint64(w.Count)*kv.AtHost-kv.Updating); v = st.Lock {
	}
	spin.FAdd(&s.Held, -uint64(w.Count))
}
