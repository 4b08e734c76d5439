package host

import (
	"math/bits"

	"github.com/spinsim/spinsim/sim"
)

// Cache is a cache that all cores of a node share. It holds the lines used
// last: only their addresses, not their bytes. What an access costs is in Spec.
//
// Lines are found by the addresses of a process. Memory that two processes
// share is there twice, as if it were two memories.
type Cache struct {
	line, room uint64 // bytes of a line, and lines that fit
	deposits   bool   // DepositsCache
	lines      uint64 // held
	groups     map[groupKey]int32
	list       []group // list[0] marks both ends: next is the group used last
	free       int32   // first of the unused entries of list, by next; 0: none
}

// groupLines is the number of lines that share an entry. They are evicted
// together.
const groupLines = 64

type groupKey struct {
	space *AddressSpace
	index uint64 // of 64 lines of the address space
}

// group is 64 adjacent lines.
type group struct {
	key        groupKey
	held       uint64 // a bit for each line
	prev, next int32
}

// NewCache makes the empty cache of a node. nil: the profile has none.
func NewCache(s *Spec) *Cache {
	if s.Cache == 0 {
		return nil
	}
	line := uint64(s.LineBytes)
	return &Cache{
		line: line, room: max(1, uint64(s.Cache)/line), deposits: s.CacheDeposits == DepositsCache,
		groups: make(map[groupKey]int32), list: make([]group, 1),
	}
}

// Use reads or writes n bytes as a core does, and returns how many of the lines
// it needs were held. Then it holds them all, as far as they fit.
func (c *Cache) Use(space *AddressSpace, addr, n uint64) (lines, held int64) {
	c.each(addr, n, func(index, mask uint64) {
		g := c.hold(groupKey{space, index}, mask)
		lines += int64(bits.OnesCount64(mask))
		held += int64(bits.OnesCount64(mask & g))
	})
	return lines, held
}

// Deposit is a write of a device: the lines are held from now on, or, if
// deposits go to memory, no longer.
func (c *Cache) Deposit(space *AddressSpace, addr, n uint64) {
	c.each(addr, n, func(index, mask uint64) {
		key := groupKey{space, index}
		if c.deposits {
			c.hold(key, mask)
		} else if i := c.groups[key]; i != 0 {
			c.drop(i, mask)
		}
	})
}

// ended is Deposit of what an access of a device has written.
func (c *Cache) ended(a *Access) {
	for off := 0; off < a.Length; {
		addr, n := a.At(off)
		c.Deposit(a.Space, addr, uint64(n))
		off += n
	}
}

// each calls f for each group of lines that hold n bytes from addr on.
func (c *Cache) each(addr, n uint64, f func(index, mask uint64)) {
	if n == 0 {
		return
	}
	first, last := addr/c.line, (addr+n-1)/c.line
	for index := first / groupLines; index <= last/groupLines; index++ {
		from, to := uint64(0), uint64(groupLines-1)
		if index == first/groupLines {
			from = first % groupLines
		}
		if index == last/groupLines {
			to = last % groupLines
		}
		f(index, ^uint64(0)>>(groupLines-1-to)&(^uint64(0)<<from))
	}
}

// hold makes lines of a group the ones used last, and returns those of the
// group that were held before.
func (c *Cache) hold(key groupKey, mask uint64) (before uint64) {
	i := c.groups[key]
	if i == 0 {
		i = c.entry(key)
	} else {
		c.unlink(i)
	}
	g := &c.list[i]
	before = g.held
	g.held |= mask
	c.lines += uint64(bits.OnesCount64(g.held &^ before))
	head := &c.list[0]
	g.prev, g.next = 0, head.next
	c.list[head.next].prev = i
	head.next = i
	for c.lines > c.room {
		last := c.list[0].prev
		if last == i { // it alone is larger than the cache
			c.drop(i, c.list[i].held&^mask)
			if c.lines > c.room {
				c.drop(i, mask)
			}
			break
		}
		c.drop(last, c.list[last].held)
	}
	return before
}

// entry returns an empty entry that is in no list.
func (c *Cache) entry(key groupKey) int32 {
	i := c.free
	if i == 0 {
		i = int32(len(c.list))
		c.list = append(c.list, group{})
	} else {
		c.free = c.list[i].next
	}
	c.list[i] = group{key: key}
	c.groups[key] = i
	return i
}

// drop gives lines of a group up.
func (c *Cache) drop(i int32, mask uint64) {
	g := &c.list[i]
	c.lines -= uint64(bits.OnesCount64(g.held & mask))
	if g.held &^= mask; g.held != 0 {
		return
	}
	c.unlink(i)
	delete(c.groups, g.key)
	*g = group{next: c.free}
	c.free = i
}

// unlink takes an entry out of the list.
func (c *Cache) unlink(i int32) {
	g := &c.list[i]
	c.list[g.prev].next, c.list[g.next].prev = g.next, g.prev
}

// Stream is memory that a core reads and writes in one loop. The zero value is
// none.
type Stream struct {
	bytes, held int64 // all bytes, and those of whole lines that the cache held
	strided     bool
}

// Add adds bytes wherever they are: memory holds them.
func (s *Stream) Add(bytes int64) { s.bytes += bytes }

// Use adds bytes of an address space. Without a cache it is Add. Bytes of lines
// that the cache holds count as held.
func (s *Stream) Use(c *Cache, space *AddressSpace, addr, n uint64) {
	s.bytes += int64(n)
	if c == nil || n == 0 {
		return
	}
	lines, held := c.Use(space, addr, n)
	s.held += int64(n) * held / lines
}

// Hold is Use of whole lines whose bytes Add counts.
func (s *Stream) Hold(c *Cache, space *AddressSpace, addr, n uint64) {
	_, held := c.Use(space, addr, n)
	s.held += held * int64(c.line)
}

// Strided makes the loop one of many short or distant pieces
// (Spec.StridedBandwidth).
func (s *Stream) Strided() { s.strided = true }

// Bytes returns all bytes of the loop.
func (s *Stream) Bytes() int64 { return s.bytes }

// beyond returns the bytes that memory moves, and the rate of a core for them.
func (s *Stream) beyond(spec *Spec) (bytes int64, rate sim.Rate) {
	if s.strided && !spec.StridedBandwidth.IsZero() {
		return s.bytes - s.held, spec.StridedBandwidth
	}
	return s.bytes - s.held, spec.CoreBandwidth
}
