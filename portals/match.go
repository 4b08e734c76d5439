package portals

// Matching. A list keeps its elements in order of appending, and beside that
// finds them by hashing. Entries with the same ignore bits and the same
// wildcards in the identifier form a class; within a class a request has one
// key, and the entries of that key are chained in order. A search asks every
// class for its first entry that fits and takes the oldest of the answers.
// Programs use few classes (MPI: any or one source, any or one tag). A list has
// more than fewClasses only if it has many entries for each; the others are
// walked, up to the age of the best answer.

// node is an element of a list: an entry or an unexpected header.
type node struct {
	seq          uint64 // age: smaller is older
	prev, next   *node  // list order
	gprev, gnext *node  // order within the group, or among the loose entries
	loose        bool   // entry outside every class
	entry        *entry
	header       *unexpected
}

// chain is a list in order of appending.
type chain struct {
	head, tail *node
	n          int
}

// push adds an element behind all that are older: at the end, unless it was in
// the list before.
func (c *chain) push(n *node) {
	older := c.tail
	for older != nil && older.seq > n.seq {
		older = older.prev
	}
	n.prev, n.next = older, c.head
	if older != nil {
		n.next = older.next
		older.next = n
	} else {
		c.head = n
	}
	if n.next != nil {
		n.next.prev = n
	} else {
		c.tail = n
	}
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
	entry      *entry // of head: saves a step through slow memory
}

// oldest returns the head of a group that index.find may not have found.
func (g *group) oldest() *node {
	if g == nil {
		return nil
	}
	return g.head
}

// push adds an element behind all that are older.
func (g *group) push(n *node) {
	older := g.tail
	for older != nil && older.seq > n.seq {
		older = older.gprev
	}
	n.gprev, n.gnext = older, g.head
	if older != nil {
		n.gnext = older.gnext
		older.gnext = n
	} else {
		g.head, g.entry = n, n.entry
	}
	if n.gnext != nil {
		n.gnext.gprev = n
	} else {
		g.tail = n
	}
}

func (g *group) cut(n *node) {
	if n.gprev == nil {
		if g.head = n.gnext; g.head != nil {
			g.entry = g.head.entry
		}
	} else {
		n.gprev.gnext = n.gnext
	}
	if n.gnext == nil {
		g.tail = n.gprev
	} else {
		n.gnext.gprev = n.gprev
	}
	n.gprev, n.gnext = nil, nil
}

// index finds groups by key: a hash table with linear probing. A slot without
// head is free.
type index struct {
	slots  []group
	groups int
}

const firstSlots = 4

func (x *index) home(bits, id uint64) uint64 { return mix(bits, id) & uint64(len(x.slots)-1) }

func (x *index) find(bits, id uint64) *group {
	if x.groups == 0 {
		return nil
	}
	mask := uint64(len(x.slots) - 1)
	for i := x.home(bits, id); ; i = (i + 1) & mask {
		g := &x.slots[i]
		if g.bits == bits && g.id == id && g.head != nil {
			return g
		}
		if g.head == nil {
			return nil
		}
	}
}

func (x *index) add(bits, id uint64, n *node) {
	g := x.find(bits, id)
	if g == nil {
		// At most four slots of five are in use.
		if 5*(x.groups+1) > 4*len(x.slots) {
			x.grow()
		}
		g = x.free(bits, id)
		g.bits, g.id = bits, id
		x.groups++
	}
	g.push(n)
}

// free returns the slot for a new key.
func (x *index) free(bits, id uint64) *group {
	mask := uint64(len(x.slots) - 1)
	i := x.home(bits, id)
	for x.slots[i].head != nil {
		i = (i + 1) & mask
	}
	return &x.slots[i]
}

func (x *index) remove(bits, id uint64, n *node) {
	mask := uint64(len(x.slots) - 1)
	i := x.home(bits, id)
	for x.slots[i].bits != bits || x.slots[i].id != id || x.slots[i].head == nil {
		i = (i + 1) & mask
	}
	g := &x.slots[i]
	g.cut(n)
	if g.head != nil {
		return
	}
	x.groups--
	// Close the gap: move back every later slot whose home lies before it.
	for j := (i + 1) & mask; x.slots[j].head != nil; j = (j + 1) & mask {
		home := x.home(x.slots[j].bits, x.slots[j].id)
		if (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = group{}
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]group, max(firstSlots, 2*len(old)))
	for i := range old {
		if old[i].head != nil {
			*x.free(old[i].bits, old[i].id) = old[i]
		}
	}
}

// wildcards are the parts of a request that entries ignore.
type wildcards struct{ ignore, idMask uint64 }

func (e *entry) wildcards() wildcards { return wildcards{e.ignoreBits, e.idMask} }

// class is the entries of a list with the same wildcards.
type class struct {
	wildcards
	index index
	n     int
	at    int // in entryList.classes
}

// A class costs a search about as much as some entries outside every class.
const (
	fewClasses      = 8
	entriesForClass = 16 // for each class beyond these
)

// entryList is a priority or overflow list.
type entryList struct {
	recent  found
	fitting int // entries that take only what fits into them
	chain
	classes  []*class             // behind the last are those that were given up
	known    map[wildcards]*class // the classes, once there have been more than a few
	loose    group
	appended uint64 // entries so far
}

// found is what a list answered last: as long as it does not change, requests
// with the same bits of the same initiator, one packet of a long put after the
// other, need no search, and where all entries are of one class, none that
// differ only in what the class ignores. It is nothing where what matches
// depends on lengths.
type found struct {
	bits, id       uint64
	ignore, idMask uint64
	entry          *entry
}

// answers reports whether a request would find the same again.
func (f *found) answers(h *Header, id uint64) bool {
	return f.entry != nil && (f.bits^h.MatchBits)&^f.ignore == 0 && (f.id^id)&f.idMask == 0
}

func (l *entryList) add(e *entry) {
	l.recent.entry = nil
	if e.opts&OptMENoTruncate != 0 {
		l.fitting++
	}
	if e.node.seq == 0 { // else it was in the list before
		l.appended++
		e.node.seq = l.appended
	}
	l.push(&e.node)
	if !l.classify(e) {
		e.node.loose = true
		l.loose.push(&e.node)
	}
	if l.loose.head != nil && l.n&(l.n-1) == 0 { // more classes are allowed than before
		l.promote()
	}
}

// classify gives an entry to the class of its wildcards; false: it has none.
func (l *entryList) classify(e *entry) bool {
	c := l.class(e.wildcards())
	if c == nil {
		if !l.mayOpen() {
			return false
		}
		c = l.open(e.wildcards())
	}
	c.n++
	c.index.add(e.matchBits&^e.ignoreBits, e.idKey, &e.node)
	return true
}

func (l *entryList) mayOpen() bool { return len(l.classes) < max(fewClasses, l.n/entriesForClass) }

// promote gives entries outside every class to classes that may be opened now.
func (l *entryList) promote() {
	for n := l.loose.head; n != nil; {
		next := n.gnext
		if l.class(n.entry.wildcards()) != nil || l.mayOpen() {
			l.loose.cut(n)
			n.loose = false
			l.classify(n.entry)
		}
		n = next
	}
}

// class returns the class of some wildcards; nil: there is none.
func (l *entryList) class(w wildcards) *class {
	if l.known != nil {
		return l.known[w]
	}
	for _, c := range l.classes {
		if c.wildcards == w {
			return c
		}
	}
	return nil
}

// open adds a class.
func (l *entryList) open(w wildcards) *class {
	n := len(l.classes)
	if n == cap(l.classes) || l.classes[:n+1][n] == nil {
		l.classes = append(l.classes, &class{})
	}
	l.classes = l.classes[:n+1]
	c := l.classes[n]
	c.wildcards, c.at = w, n
	if l.known == nil && len(l.classes) > fewClasses {
		l.known = make(map[wildcards]*class)
		for _, one := range l.classes {
			l.known[one.wildcards] = one
		}
	}
	if l.known != nil {
		l.known[w] = c
	}
	return c
}

func (l *entryList) remove(e *entry) {
	l.recent.entry = nil
	if e.opts&OptMENoTruncate != 0 {
		l.fitting--
	}
	l.cut(&e.node)
	if e.node.loose {
		l.loose.cut(&e.node)
		e.node.loose = false
		return
	}
	c := l.class(e.wildcards())
	c.index.remove(e.matchBits&^e.ignoreBits, e.idKey, &e.node)
	if c.n--; c.n > 0 {
		return
	}
	last := len(l.classes) - 1
	other := l.classes[last]
	l.classes[c.at], other.at = other, c.at
	l.classes[last] = c
	l.classes = l.classes[:last]
	delete(l.known, c.wildcards)
}

// find returns the first entry in list order that matches the request.
func (l *entryList) find(h *Header) *entry {
	id := initiatorKey(h)
	if l.recent.answers(h, id) {
		return l.recent.entry
	}
	if l.n == 0 {
		return nil
	}
	best := l.search(h, id)
	if l.fitting == 0 {
		l.recent = found{h.MatchBits, id, 0, ^uint64(0), best}
		if len(l.classes) == 1 && l.loose.head == nil {
			l.recent.ignore, l.recent.idMask = l.classes[0].ignore, l.classes[0].idMask
		}
	}
	return best
}

func (l *entryList) search(h *Header, id uint64) *entry {
	var best *entry
	for _, c := range l.classes {
		g := c.index.find(h.MatchBits&^c.ignore, id&c.idMask)
		if g == nil {
			continue
		}
		e := g.entry
		for e.opts&OptMENoTruncate != 0 && !e.fits(h) {
			n := e.node.gnext
			if n == nil {
				e = nil
				break
			}
			e = n.entry
		}
		if e != nil && (best == nil || e.node.seq < best.node.seq) {
			best = e
		}
	}
	for n := l.loose.head; n != nil && (best == nil || n.seq < best.node.seq); n = n.gnext {
		if n.entry.accepts(h, id) {
			best = n.entry
		}
	}
	return best
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
