package smmu

import "math/bits"

// Geometry of Armv8 tables with granules of 4 KiB.
const (
	pageBits   = 12
	pageSize   = 1 << pageBits
	pageMask   = pageSize - 1
	levelBits  = 9
	lastLevel  = 3
	descriptor = 8 // bytes
	bits39     = pageBits + 3*levelBits
	bits48     = pageBits + 4*levelBits
	lineBytes  = 64 // Prefetch takes the other descriptors in them
)

// shift is the logarithm of the bytes that one descriptor of a level covers.
func shift(level int) uint { return uint(pageBits + levelBits*(lastLevel-level)) }

// tag names what a translation is for: the first address, the bank (bits 3 to
// 9) and the level of its descriptor, plus 1 (bits 0 to 2). 0: there is none.
type tag uint64

func tagOf(bank int, va uint64, level int) tag {
	return tag(va>>shift(level)<<shift(level) | uint64(bank)<<3 | uint64(level+1))
}

func (t tag) level() int { return int(t&7) - 1 }
func (t tag) bank() int  { return int(t >> 3 & (maxBanks - 1)) }

// spans is how many bytes a descriptor of a level covers.
var spans = [lastLevel + 1]uint64{1 << bits39, 1 << (bits39 - levelBits), 1 << (bits39 - 2*levelBits), pageSize}

// leaf is a page or block: its physical address and, in bit 0, whether it may
// be written.
type leaf uint64

const writable leaf = 1

func leafOf(e Entry) leaf {
	l := leaf(e.Addr &^ pageMask)
	if e.Write {
		l |= writable
	}
	return l
}

// frame is the physical address of the page of va in a block of a level.
func (l leaf) frame(level int, va uint64) uint64 {
	return uint64(l&^pageMask) + va&(1<<shift(level)-1)&^pageMask
}

// allows reports whether an access is permitted.
func (l leaf) allows(write bool) bool { return !write || l&writable != 0 }

// full is a fully associative TLB with true LRU replacement. A hash finds the
// entries, and a ring through entry 0 has them in order of use. The entries
// found last stand in front of it, see SMMU.Hit.
type full struct {
	fronts [2]front // of reads and of writes
	lines  []line
	heads  []uint16 // of the chains of equal hashes
	shift  uint
	count  [lastLevel + 1]int // of each level
	least  int                // of the smallest pages in the TLB
	free   uint16             // a chain
}

// front is an entry that was found last, with all that a hit needs. The ring
// learns of its use at the next look-up of another entry.
type front struct {
	base  uint64 // the first address
	pdid  uint16
	line  uint16
	bank  uint8
	level uint8 // of a page of its size; 0: there is no front
	used  use
}

// overlaps reports whether a front and an entry have addresses in common.
func (x *front) overlaps(t tag) bool {
	va := uint64(t) &^ pageMask
	return x.level != 0 && int(x.bank) == t.bank() && (va-x.base < spans[x.level&lastLevel] || x.base-va < spans[t.level()&lastLevel])
}

// use is how a front was used since the ring was last updated.
type use uint8

const (
	unused use = iota
	used       // before the other one
	newest     // after the other one
)

type line struct {
	tag          tag
	leaf         leaf
	newer, older uint16
	chain        uint16
}

func (f *full) init(entries int) {
	f.lines = make([]line, entries+1)
	f.heads = make([]uint16, 2*entries)
	f.shift = uint(64 - bits.TrailingZeros(uint(2*entries)))
	f.clear()
}

func (f *full) clear() {
	clear(f.heads)
	f.count, f.least = [lastLevel + 1]int{}, 0
	f.fronts = [2]front{}
	f.free = 0
	f.lines[0] = line{}
	for i := len(f.lines) - 1; i > 0; i-- {
		f.lines[i] = line{chain: f.free}
		f.free = uint16(i)
	}
}

func (f *full) bucket(t tag) *uint16 { return &f.heads[uint64(t)*0x9e3779b97f4a7c15>>f.shift] }

// find returns the entry of t, 0 if there is none.
func (f *full) find(t tag) uint16 {
	i := *f.bucket(t)
	for i != 0 && f.lines[i].tag != t {
		i = f.lines[i].chain
	}
	return i
}

// look returns the entry for va, 0 if there is none, and makes it the newest.
// If both a page and a block are in, which takes a forgotten invalidation, look
// returns the page.
func (f *full) look(bank int, va uint64) uint16 {
	f.settle()
	for level := f.least; level > 0; level-- {
		if f.count[level] == 0 {
			continue
		}
		if i := f.find(tagOf(bank, va, level)); i != 0 {
			f.touch(i)
			return i
		}
	}
	return 0
}

// leaf looks va up.
func (f *full) leaf(bank uint8, va uint64) (l leaf, level int, hit bool) {
	i := f.look(int(bank), va)
	line := &f.lines[i]
	return line.leaf, line.tag.level(), i != 0
}

// settle records the use of the fronts in the ring.
func (f *full) settle() {
	first, last := &f.fronts[0], &f.fronts[1]
	if first.used > last.used {
		first, last = last, first
	}
	if first.used != unused {
		f.touch(first.line)
	}
	if last.used != unused {
		f.touch(last.line)
	}
	first.used, last.used = unused, unused
}

// forget removes the fronts, after a change that decides about a hit.
func (f *full) forget() {
	f.settle()
	f.fronts = [2]front{}
}

// touch makes i the newest.
func (f *full) touch(i uint16) {
	if f.lines[0].older != i {
		f.unlink(i)
		f.link(i)
	}
}

func (f *full) unlink(i uint16) {
	l := &f.lines[i]
	f.lines[l.newer].older, f.lines[l.older].newer = l.older, l.newer
}

// link puts i before the newest, which is the older one of entry 0.
func (f *full) link(i uint16) {
	second := f.lines[0].older
	f.lines[i].newer, f.lines[i].older = 0, second
	f.lines[second].newer = i
	f.lines[0].older = i
}

// insert adds a translation as the newest. If there is no room, it drops the
// oldest.
func (f *full) insert(t tag, l leaf) {
	f.settle()
	for k := range f.fronts {
		if f.fronts[k].overlaps(t) {
			f.fronts[k] = front{}
		}
	}
	i := f.find(t)
	if i != 0 {
		f.lines[i].leaf = l
		f.touch(i)
		return
	}
	if f.free == 0 {
		f.drop(f.lines[0].newer)
	}
	i = f.free
	f.free = f.lines[i].chain
	head := f.bucket(t)
	f.lines[i].tag, f.lines[i].leaf, f.lines[i].chain = t, l, *head
	*head = i
	f.count[t.level()]++
	f.least = max(f.least, t.level())
	f.link(i)
}

// drop forgets entry i.
func (f *full) drop(i uint16) {
	l := &f.lines[i]
	at := f.bucket(l.tag)
	for *at != i {
		at = &f.lines[*at].chain
	}
	*at = l.chain
	f.unlink(i)
	f.count[l.tag.level()]--
	for f.least > 0 && f.count[f.least] == 0 {
		f.least--
	}
	*l = line{chain: f.free}
	f.free = i
	for k := range f.fronts {
		if f.fronts[k].line == i {
			f.fronts[k] = front{}
		}
	}
}

// invalidate drops the entries for va, of any size.
func (f *full) invalidate(bank int, va uint64) {
	f.settle()
	for level := lastLevel; level > 0; level-- {
		if i := f.find(tagOf(bank, va, level)); i != 0 {
			f.drop(i)
		}
	}
}

func (f *full) invalidateBank(bank int) {
	f.settle()
	for i := 1; i < len(f.lines); i++ {
		if t := f.lines[i].tag; t != 0 && t.bank() == bank {
			f.drop(uint16(i))
		}
	}
}

// assoc is a set-associative cache with LRU replacement in each set. The low
// bits of the number of a page or block choose the set. The ways of a set are
// in order of use, newest first, without gaps.
type assoc struct {
	pairs []pair
	ways  int
	mask  uint64
	count [lastLevel + 1]int // of each level
}

type pair struct {
	tag  tag
	data uint64
}

func (c *assoc) init(entries, ways int) {
	c.pairs, c.ways, c.mask = make([]pair, entries), ways, uint64(entries/max(1, ways)-1)
}

func (c *assoc) clear() {
	clear(c.pairs)
	c.count = [lastLevel + 1]int{}
}

// set returns the only set that t may be in.
func (c *assoc) set(t tag) []pair {
	first := int(uint64(t)>>shift(t.level())&c.mask) * c.ways
	return c.pairs[first : first+c.ways]
}

// look returns the data for va from a descriptor of the level, and makes it the
// newest of its set.
func (c *assoc) look(bank int, va uint64, level int) (data uint64, ok bool) {
	if c.count[level] == 0 {
		return 0, false
	}
	t := tagOf(bank, va, level)
	set := c.set(t)
	for i, p := range set {
		if p.tag == t {
			copy(set[1:i+1], set[:i])
			set[0] = p
			return p.data, true
		}
	}
	return 0, false
}

// insert adds data as the newest of its set. If there is no room, it drops the
// oldest.
func (c *assoc) insert(t tag, data uint64) {
	if len(c.pairs) == 0 {
		return
	}
	set := c.set(t)
	i := 0
	for i < len(set)-1 && set[i].tag != 0 && set[i].tag != t {
		i++
	}
	switch old := set[i].tag; {
	case old == 0:
		c.count[t.level()]++
	case old != t:
		c.count[old.level()]--
		c.count[t.level()]++
	}
	copy(set[1:i+1], set[:i])
	set[0] = pair{t, data}
}

// invalidate drops the data for va from a descriptor of the level.
func (c *assoc) invalidate(bank int, va uint64, level int) {
	if c.count[level] == 0 {
		return
	}
	t := tagOf(bank, va, level)
	set := c.set(t)
	for i := range set {
		if set[i].tag == t {
			copy(set[i:], set[i+1:])
			set[len(set)-1] = pair{}
			c.count[level]--
			return
		}
	}
}

func (c *assoc) invalidateBank(bank int) {
	for from := 0; from < len(c.pairs); from += c.ways {
		set := c.pairs[from : from+c.ways]
		kept := 0
		for _, p := range set {
			switch {
			case p.tag == 0:
			case p.tag.bank() == bank:
				c.count[p.tag.level()]--
			default:
				set[kept] = p
				kept++
			}
		}
		clear(set[kept:])
	}
}
