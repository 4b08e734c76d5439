package main

import (
	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// stripeOf returns the stripe for a hash, or with a number.
func stripeOf(s *kv.State, i uint32) *kv.Stripe {
	return spin.Behind[kv.Stripe](s, s.StripesAt+i&(s.Stripes-1)*kv.StripeSize)
}

// enter takes the stripe of a request as a Reader or as its Writer. If the
// stripe is at the host, it joins the requests there: AtHost. A waiting writer
// keeps new readers out, and waits for the present ones. 0: the stripe stayed
// taken.
func (c *call) enter(as uint64) uint64 {
	lock := &c.st.Lock
	for range c.s.Tries {
		if v := *lock; c.held == 0 && v&kv.Writer == 0 {
			way := as
			if v >= kv.AtHost {
				way = kv.AtHost
			}
			if spin.CAS(lock, v, v+way) {
				c.held = way
			}
		}
		if c.held != 0 && (c.held != kv.Writer || *lock == kv.Writer) {
			return c.held
		}
		c.s.Counts.Conflicts++
		spin.Yield()
	}
	c.leave()
	return 0
}

// leave gives back what enter has taken.
func (c *call) leave() {
	spin.FAdd(&c.st.Lock, -c.held)
	c.held = 0
}

// find walks the bucket of a key, to its item or to the end, where an item of
// zeros stands for none. It reads up to most bytes of the item into buffer a.
// It returns false if the walk is longer than Steps items: then the host must
// do it.
func (c *call) find(most uint64) bool {
	key := c.head[kv.RequestSize : kv.RequestSize+c.r.Key]
	c.item = spin.At[kv.Item](c.a)
	c.at = kv.Bucket(c.st.Table, c.hash)
	c.first = c.linkAt(c.at)
	c.link = c.first
	for steps := uint32(0); c.link != 0 && !c.failed; steps++ {
		if steps == c.s.Steps {
			c.s.Counts.Far++
			return false
		}
		c.s.Counts.Reads++
		place := kv.Place(c.link)
		if !kv.Alike(c.link, c.hash) {
			c.at, c.link = place, c.linkAt(place)
			continue
		}
		b := c.a.Bytes(uint32(min(uint64(64)<<kv.Class(c.link), most)))
		c.check(spin.DMAFromHost(spin.MEHostMem, place, b))
		if c.item.Hash == c.hash && c.item.Key == c.r.Key && kv.Same(b[kv.RequestSize:kv.RequestSize+c.r.Key], key) {
			return true
		}
		c.at, c.link = place, c.item.Next
	}
	*c.item = kv.Item{}
	return true
}

// get answers with the value of a key, and leaves the stripe. False: its item
// is too far.
func (c *call) get() bool {
	if !c.find(uint64(c.s.Chunk)) {
		return false
	}
	switch value := uint64(c.item.Value); {
	case c.link == 0:
		c.answer(kv.NotFound, 0, 0)
	case value > c.r.Room:
		c.answer(kv.TooLong, c.item.Version, c.item.Value)
	default:
		c.send(value)
	}
	c.leave()
	return true
}

// send sends the value of the found item. It sends each packet while it reads
// the next one.
func (c *call) send(value uint64) {
	// the head of the answer replaces everything before the value
	before := uint64(kv.RequestSize-kv.AnswerSize) + uint64(c.item.Key)
	packet, from, chunk := c.a+spin.Ptr(before), kv.Place(c.link)+before, uint64(c.s.Chunk)
	all, at := kv.AnswerSize+value, uint64(0)
	n := min(all, min(uint64(64)<<kv.Class(c.link), chunk)-before) // already read
	*spin.At[kv.Answer](packet) = kv.Answer{Status: kv.OK, Value: uint32(value), Version: c.item.Version, Tag: c.r.Tag}
	for rest := min(chunk, all-n); rest > 0; rest = min(chunk, all-at-n) {
		h := spin.DMAFromHostNB(spin.MEHostMem, from+at+n, c.b.Bytes(uint32(rest)))
		c.packet(packet, n, at, all)
		c.check(h.Wait())
		at, n, packet = at+n, rest, c.b
		c.a, c.b = c.b, c.a
	}
	c.packet(packet, n, at, all)
}

// change carries out a request that alters a bucket, answers, and leaves the
// stripe. False: the item is too far.
func (c *call) change() bool {
	if !c.find(kv.RequestSize + uint64(c.r.Key)) {
		return false
	}
	st, next, version := c.st, c.item.Next, c.item.Version
	status, unused := uint32(kv.OK), c.link // of a block
	switch {
	case (c.r.Op == kv.Swap || c.r.Expect != 0 && c.link != 0) && c.r.Expect != version:
		status, unused = kv.Changed, c.block
	case c.r.Op == kv.Delete && c.link == 0:
		status = kv.NotFound
	case c.r.Op == kv.Delete:
		c.check(spin.StoreHost(spin.MEHostMem, c.at, next))
		st.Items--
	// the item in the block replaces the found one, or becomes the first of the
	// bucket
	default:
		if c.link == 0 {
			next, c.at = c.first, kv.Bucket(st.Table, c.hash)
			st.Items++
		}
		st.Version++
		version = st.Version
		*spin.At[kv.Item](c.b) = kv.Item{Next: next, Hash: c.hash, Version: version, Key: c.r.Key, Value: c.r.Value}
		c.check(spin.DMAToHost(spin.MEHostMem, kv.Place(c.block), c.b.Bytes(kv.RequestSize)))
		c.check(spin.StoreHost(spin.MEHostMem, c.at, kv.Link(kv.Place(c.block), kv.Class(c.block), c.hash)))
	}
	if st.Items <= st.GrowAt {
		c.leave()
	} else {
		c.handOver(kv.Growing)
	}
	c.give(unused)
	c.answer(status, version, 0)
	return true
}

// linkAt reads a link.
func (c *call) linkAt(at uint64) uint64 {
	link, r := spin.LoadHost(spin.MEHostMem, at)
	c.check(r)
	return link
}
