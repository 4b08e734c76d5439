package portals

// Matching. A list keeps its elements in order of appending, and beside that
// finds them by hashing. Entries with the same ignore bits and the same
// wildcards in the identifier form a class; within a class a request has one
// key, and the entries of that key are chained in order. A search asks every
// class for its first entry that fits and takes the oldest of the answers.
// Programs use few classes (MPI: any or one source, any or one tag); entries of
// classes past maxClasses are walked, up to the age of the best answer.

// node is an element of a list: an entry or an unexpected header.
type node struct {
	seq          uint64 // age: smaller is older
	prev, next   *node  // list order
	gprev, gnext *node  // order within the group, or among the loose entries
	group        *group // nil: loose
	entry        *entry
	header       *unexpected
}

// chain is a list in order of appending.
type chain struct {
	head, tail *node
	n          int
}

func (c *chain) push(n *node) {
	n.prev, n.next = c.tail, nil
	if c.tail == nil {
		c.head = n
	} else {
		c.tail.next = n
	}
	c.tail = n
	c.n++
}

func (c *chain) cut(n *node) {
	if n.prev == nil {
		c.head = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		c.tail = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
	c.n--
}

// group is the entries or headers of one key, oldest first.
type group struct {
	bits, id   uint64
	head, tail *node
	next       *group // in the bucket
}

func (g *group) push(n *node) {
	n.group = g
	n.gprev, n.gnext = g.tail, nil
	if g.tail == nil {
		g.head = n
	} else {
		g.tail.gnext = n
	}
	g.tail = n
}

func (g *group) cut(n *node) {
	if n.gprev == nil {
		g.head = n.gnext
	} else {
		n.gprev.gnext = n.gnext
	}
	if n.gnext == nil {
		g.tail = n.gprev
	} else {
		n.gnext.gprev = n.gprev
	}
	n.gprev, n.gnext, n.group = nil, nil, nil
}

// index finds groups by key.
type index struct {
	buckets []*group
	groups  int
}

const firstBuckets = 16

func (x *index) find(bits, id uint64) *group {
	if x.groups == 0 {
		return nil
	}
	g := x.buckets[mix(bits, id)&uint64(len(x.buckets)-1)]
	for g != nil && (g.bits != bits || g.id != id) {
		g = g.next
	}
	return g
}

func (x *index) add(ni *NI, bits, id uint64, n *node) {
	g := x.find(bits, id)
	if g == nil {
		if x.groups >= len(x.buckets) {
			x.grow()
		}
		g = ni.groupPool.get()
		b := &x.buckets[mix(bits, id)&uint64(len(x.buckets)-1)]
		*g = group{bits: bits, id: id, next: *b}
		*b = g
		x.groups++
	}
	g.push(n)
}

func (x *index) remove(ni *NI, n *node) {
	g := n.group
	g.cut(n)
	if g.head != nil {
		return
	}
	b := &x.buckets[mix(g.bits, g.id)&uint64(len(x.buckets)-1)]
	for *b != g {
		b = &(*b).next
	}
	*b = g.next
	x.groups--
	ni.groupPool.put(g)
}

func (x *index) grow() {
	old := x.buckets
	x.buckets = make([]*group, max(firstBuckets, 2*len(old)))
	mask := uint64(len(x.buckets) - 1)
	for _, g := range old {
		for g != nil {
			next := g.next
			b := &x.buckets[mix(g.bits, g.id)&mask]
			g.next = *b
			*b = g
			g = next
		}
	}
}

// class is the entries of a list with the same wildcards.
type class struct {
	ignore uint64
	idMask uint64
	index  index
	n      int
}

// maxClasses bounds the work of a search that no class answers.
const maxClasses = 8

// entryList is a priority or overflow list.
type entryList struct {
	chain
	classes []*class
	spare   []*class
	loose   group
}

func (l *entryList) add(ni *NI, e *entry) {
	ni.sequence++
	e.node.seq = ni.sequence
	l.push(&e.node)
	if c := l.classFor(e); c != nil {
		c.n++
		c.index.add(ni, e.matchBits&^e.ignoreBits, e.idKey, &e.node)
		return
	}
	l.loose.push(&e.node)
	e.node.group = nil
}

func (l *entryList) classFor(e *entry) *class {
	for _, c := range l.classes {
		if c.ignore == e.ignoreBits && c.idMask == e.idMask {
			return c
		}
	}
	if len(l.classes) == maxClasses {
		return nil
	}
	var c *class
	if n := len(l.spare); n > 0 {
		c, l.spare = l.spare[n-1], l.spare[:n-1]
	} else {
		c = &class{}
	}
	c.ignore, c.idMask = e.ignoreBits, e.idMask
	l.classes = append(l.classes, c)
	return c
}

func (l *entryList) remove(ni *NI, e *entry) {
	l.cut(&e.node)
	if e.node.group == nil {
		l.loose.cut(&e.node)
		return
	}
	for i, c := range l.classes {
		if c.ignore != e.ignoreBits || c.idMask != e.idMask {
			continue
		}
		c.index.remove(ni, &e.node)
		if c.n--; c.n == 0 {
			last := len(l.classes) - 1
			l.classes[i] = l.classes[last]
			l.classes = l.classes[:last]
			l.spare = append(l.spare, c)
		}
		return
	}
}

// find returns the first entry in list order that matches the request.
func (l *entryList) find(h *Header) *entry {
	if l.n == 0 {
		return nil
	}
	id := initiatorKey(h)
	var best *node
	for _, c := range l.classes {
		g := c.index.find(h.MatchBits&^c.ignore, id&c.idMask)
		if g == nil {
			continue
		}
		n := g.head
		for n != nil && n.entry.opts&OptMENoTruncate != 0 && !n.entry.fits(h) {
			n = n.gnext
		}
		if n != nil && (best == nil || n.seq < best.seq) {
			best = n
		}
	}
	for n := l.loose.head; n != nil && (best == nil || n.seq < best.seq); n = n.gnext {
		if n.entry.accepts(h, id) {
			best = n
		}
	}
	if best == nil {
		return nil
	}
	return best.entry
}

// initiatorKey is the part of the initiator's name that entries compare.
func initiatorKey(h *Header) uint64 {
	if h.NI.Logical() {
		return uint64(h.Initiator.Rank)
	}
	return uint64(h.Initiator.NID)<<32 | uint64(h.Initiator.PID)
}

// idCriterion turns the identifier of an entry into mask and key.
func idCriterion(kind NIKind, id ID) (mask, key uint64) {
	if kind.Logical() {
		if id.Rank == RankAny {
			return 0, 0
		}
		return ^uint64(0), uint64(id.Rank)
	}
	if id.NID != NIDAny {
		mask |= 0xffffffff << 32
	}
	if id.PID != PIDAny {
		mask |= 0xffffffff
	}
	return mask, (uint64(id.NID)<<32 | uint64(id.PID)) & mask
}

// accepts is the whole match criterion for one entry (Portals 4.x §3.12).
func (e *entry) accepts(h *Header, id uint64) bool {
	return (h.MatchBits^e.matchBits)&^e.ignoreBits == 0 && id&e.idMask == e.idKey &&
		(e.opts&OptMENoTruncate == 0 || e.fits(h))
}

// offsetFor is the offset a request would use in the entry.
func (e *entry) offsetFor(h *Header) uint64 {
	if e.opts&OptMEManageLocal != 0 {
		return e.offset
	}
	return h.RemoteOffset
}

// fits reports whether the request needs no truncation.
func (e *entry) fits(h *Header) bool {
	off := e.offsetFor(h)
	return off <= e.region.Length && h.RLength <= e.region.Length-off
}
