package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/kv"
	"github.com/spinsim/spinsim/spin"
)

// found is where a walk has ended.
type found struct {
	first uint64 // the bucket's first link
	at    uint64 // where the item's link stands
	link  uint64 // of the item, 0: there is none
	item  *kv.Item
}

// find walks the bucket of a key. It reads up to most bytes of the item into the buffer a. More than Steps items are the host's.
func (c *call) find(most uint64) {
	f := &c.found
	key := c.head[kv.RequestSize : kv.RequestSize+c.r.Key]
	f.at = kv.Bucket(c.st.Table, c.hash)
	f.first = c.word(f.at)
	f.link = f.first
	f.item = spin.At[kv.Item](c.a)
	for steps := uint32(0); f.link != 0 && !c.failed; steps++ {
		if steps == c.s.Steps {
			c.toHost = true
			return
		}
		c.s.Counts.Reads++
		place := kv.Place(f.link)
		if !kv.Alike(f.link, c.hash) {
			f.at, f.link = place, c.word(place)
			continue
		}
		n := min(uint64(64)<<kv.Class(f.link), most)
		b := c.a.Bytes(uint32(n))
		c.read(place, b)
		if f.item.Hash == c.hash && f.item.Key == c.r.Key && kv.Same(b[kv.RequestSize:kv.RequestSize+c.r.Key], key) {
			return
		}
		f.at, f.link = place, f.item.Next
	}
}

// get sends the value of a key.
func (c *call) get() {
	c.find(uint64(c.s.Chunk))
	f := &c.found
	if c.toHost {
		return
	}
	i := f.item
	if f.link == 0 || c.failed || uint64(i.Value) > c.r.Room {
		status, version, value := uint32(kv.NotFound), uint64(0), uint64(0)
		if f.link != 0 {
			status, version, value = kv.TooLong, i.Version, uint64(i.Value)
		}
		leave(c.st, kv.Reader)
		c.answer(status, version, value)
		return
	}
	before := uint64(kv.RequestSize) + uint64(i.Key)
	value := uint64(i.Value)
	have := min(value, min(uint64(64)<<kv.Class(f.link), uint64(c.s.Chunk))-before)
	if have == value {
		leave(c.st, kv.Reader)
	}
	c.send(c.a+spin.Ptr(before-kv.AnswerSize), kv.Answer{Status: kv.OK, Value: i.Value, Version: i.Version, Tag: c.r.Tag}, have)
	if have < value {
		c.rest(kv.Place(f.link)+before, have, value)
		leave(c.st, kv.Reader)
	}
}

// rest sends what the first packet of a value has not: one part is read while the one before is sent.
func (c *call) rest(from, have, value uint64) {
	chunk := uint64(c.s.Chunk)
	reading, ready := c.b, c.a
	h := spin.DMAFromHostNB(spin.MEHostMem, from+have, reading.Bytes(uint32(min(chunk, value-have))))
	for have < value {
		n := min(chunk, value-have)
		if h.Wait().Failed() {
			c.failed = true
			return
		}
		reading, ready = ready, reading
		at := have
		if have += n; have < value {
			h = spin.DMAFromHostNB(spin.MEHostMem, from+have, reading.Bytes(uint32(min(chunk, value-have))))
		}
		c.packet(ready, n, kv.AnswerSize+at, kv.AnswerSize+value)
	}
}

// change carries out what alters a bucket.
func (c *call) change() {
	c.find(kv.RequestSize + uint64(c.r.Key))
	f := &c.found
	if c.toHost {
		return
	}
	version := uint64(0)
	if f.link != 0 {
		version = f.item.Version
	}
	status := uint32(kv.OK)
	switch {
	case (c.r.Op == kv.Swap || c.r.Expect != 0 && f.link != 0) && c.r.Expect != version:
		status = kv.Changed
	case c.r.Op == kv.Delete && f.link == 0:
		status = kv.NotFound
	case c.r.Op == kv.Delete:
		c.setWord(f.at, f.item.Next)
		c.st.Items--
	default:
		next, at := f.first, kv.Bucket(c.st.Table, c.hash)
		if f.link != 0 {
			next, at = f.item.Next, f.at
		} else {
			c.st.Items++
		}
		version = c.insert(next, at)
	}
	unused := f.link // of a block
	if status != kv.OK {
		unused = c.block
	}
	if c.r.Op == kv.Delete && status != kv.OK {
		unused = 0
	}
	grow := c.st.Items > c.st.GrowAt
	if grow && c.give(kv.Growing) {
		c.s.Counts.Grown++
	} else if !grow {
		leave(c.st, kv.Writer)
	}
	if unused != 0 {
		give(c.s, unused)
	}
	if c.r.Op == kv.Delete && c.block != 0 {
		give(c.s, c.block)
	}
	c.answer(status, version, 0)
}

// insert writes the item of a request, and the link to it at a place: of the one that it replaces, or the first of the bucket.
func (c *call) insert(next, at uint64) uint64 {
	c.st.Version++
	i := spin.At[kv.Item](c.b)
	*i = kv.Item{Next: next, Hash: c.hash, Version: c.st.Version, Key: c.r.Key, Value: c.r.Value}
	n := uint32(kv.RequestSize)
	if !c.put {
		n = uint32(len(c.head))
		copy(c.b.Bytes(n)[kv.RequestSize:], c.head[kv.RequestSize:])
	}
	c.write(kv.Place(c.block), c.b.Bytes(n))
	c.setWord(at, kv.Link(kv.Place(c.block), kv.Class(c.block), c.hash))
	return c.st.Version
}

// answer sends an answer without a value.
func (c *call) answer(status uint32, version, value uint64) {
	c.send(c.b, kv.Answer{Status: status, Value: uint32(value), Version: version, Tag: c.r.Tag}, 0)
}

// send sends the first packet of an answer: at is where it begins in HPU memory, which has so many bytes of the value behind it.
func (c *call) send(at spin.Ptr, a kv.Answer, have uint64) {
	*(*kv.Answer)(unsafe.Pointer(unsafe.SliceData(at.Bytes(kv.AnswerSize)))) = a
	all := uint64(kv.AnswerSize)
	if a.Status == kv.OK {
		all += uint64(a.Value)
	}
	c.packet(at, kv.AnswerSize+have, 0, all)
}

// packet sends a part of an answer.
func (c *call) packet(local spin.Ptr, n, at, all uint64) {
	op := spin.Op{
		Local: local, Length: n, TargetNID: c.nid, TargetPID: c.pid, PTIndex: c.r.PT, MatchBits: c.r.Bits, RemoteOffset: at,
		HdrData: kv.AnswerData(c.r.Tag, all),
	}
	if spin.PutFromDevice(&op).Failed() {
		c.failed = true
	}
}

func (c *call) read(at uint64, b []byte) {
	if spin.DMAFromHost(spin.MEHostMem, at, b).Failed() {
		c.failed = true
	}
}

func (c *call) write(at uint64, b []byte) {
	if len(b) > 0 && spin.DMAToHost(spin.MEHostMem, at, b).Failed() {
		c.failed = true
	}
}

func (c *call) word(at uint64) uint64 {
	w := uint64(0)
	if spin.ReadHost(spin.MEHostMem, at, unsafe.Pointer(&w), 8).Failed() {
		c.failed = true
		return 0
	}
	return w
}

func (c *call) setWord(at, w uint64) {
	if spin.WriteHost(spin.MEHostMem, at, unsafe.Pointer(&w), 8).Failed() {
		c.failed = true
	}
}
