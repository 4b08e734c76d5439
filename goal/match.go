package goal

import "math"

// Posted receives and unexpected messages wait in a list per rank, oldest
// first. The first match is taken, which is nearly always near the front. After
// a long search the list also gets an index by source and tag. Otherwise many
// messages in another order than their receives would take quadratic time.

// scanLimit is the number of entries to search before a list gets an index.
const scanLimit = 8

// matchList is a list of receives or of sends. An entry in the list has the
// next entry in link, and a stamp above 0 that grows along the list. In an
// indexed list, child is the next entry with the same source and tag. A taken
// entry has stamp 0; it stays in an indexed list until a search passes it, and
// in its index.
type matchList struct {
	first, last uint32
	n           uint32 // entries not yet taken; also indexedBit
}

// Bits in entry.op for the places where an entry of a match list is.
const (
	inList  = 1 << 30
	inIndex = 1 << 31
)

// indexedBit in matchList.n marks an indexed list.
const indexedBit = 1 << 31

// matcher keeps the match lists of all ranks.
type matcher struct {
	s         *store
	ranks     []rankState
	entries   *entries
	scanLimit int
	stamp     uint32 // of the last entry
	// the entries of indexed lists
	table  keyTable
	chains []chain // per key
}

type chain struct{ first, last uint32 }

func (m *matcher) reset() {
	m.stamp = 0
	for i := range m.chains {
		m.chains[i] = chain{none, none}
	}
}

// pairs reports whether a receive takes the message of a send to its rank.
func (m *matcher) pairs(recv, send uint32) bool {
	from := m.s.at(recv).peer
	return (from == Any || from == m.s.rank(send)) && tagsMatch(m.s.tag(recv), m.s.tag(send))
}

func tagsMatch(a, b uint64) bool { return a == b || a == AnyTag || b == AnyTag }

// listKey is the key of entries with a source and tag in the list of a rank.
func listKey(rank uint32, kind Kind, source uint32, tag uint64) tableKey {
	return tableKey{uint64(rank)<<33 | uint64(kind&1)<<32 | uint64(source), tag}
}

// entryKey is the key of entries like op in its list.
func (m *matcher) entryKey(op uint32) tableKey {
	p, rank, tag := m.s.at(op), m.s.rank(op), m.s.tag(op)
	if p.kind() == Recv {
		return listKey(rank, Recv, p.peer, tag)
	}
	return listKey(p.peer, Send, rank, tag)
}

func (m *matcher) put(rank uint32, l *matchList, op uint32) {
	m.stamp++
	i := m.entries.get(&m.ranks[rank].free, op|inList, m.stamp)
	if l.first == none {
		l.first = i
	} else {
		m.entries.all[l.last].link = i
	}
	l.last = i
	l.n++
	if l.n&indexedBit != 0 {
		m.addToIndex(i)
	}
}

// take takes the first operation of a list that matches op; none: there is none.
func (m *matcher) take(l *matchList, op uint32) uint32 {
	if l.first == none {
		return none
	}
	limit := m.scanLimit
	if l.n&indexedBit != 0 {
		limit = 1
	}
	id, whole := m.scan(l, op, limit)
	if id == none && !whole {
		id = m.takeFar(l, op)
	}
	return id
}

// scan looks at up to limit entries from the front; whole: these were all.
func (m *matcher) scan(l *matchList, op uint32, limit int) (id uint32, whole bool) {
	receives := m.s.at(op).kind() == Recv
	prev := none
	for i := l.first; i != none; {
		e := &m.entries.all[i]
		next := e.link
		if e.stamp > 0 {
			id := e.op & idMask
			if receives && m.pairs(op, id) || !receives && m.pairs(id, op) {
				m.unlink(l, prev, i)
				m.taken(l, i)
				return id, true
			}
			if limit--; limit == 0 && next != none {
				return none, false
			}
			prev = i
		} else {
			m.unlink(l, prev, i)
		}
		i = next
	}
	return none, true
}

func (m *matcher) unlink(l *matchList, prev, i uint32) {
	next := m.entries.all[i].link
	if prev == none {
		l.first = next
	} else {
		m.entries.all[prev].link = next
	}
	if next == none {
		l.last = prev
	}
	m.leave(i, inList)
}

// leave notes that an entry is no longer in the list, or in the index.
func (m *matcher) leave(i, place uint32) {
	e := &m.entries.all[i]
	if e.op &^= place; e.op&^idMask == 0 {
		m.entries.give(&m.ranks[m.listed(e.op)].free, i)
	}
}

// listed returns the rank in whose list an operation is.
func (m *matcher) listed(op uint32) uint32 {
	if p := m.s.at(op); p.kind() == Send {
		return p.peer
	}
	return m.s.rank(op)
}

// taken notes that an entry is taken.
func (m *matcher) taken(l *matchList, i uint32) {
	m.entries.all[i].stamp = 0
	if l.n--; l.n&^indexedBit == 0 {
		for l.first != none {
			m.unlink(l, none, l.first)
		}
		*l = matchList{first: none}
	}
}

// takeFar takes the first match with the help of the index. An operation for
// any source or tag may match many keys, so it searches the list instead.
func (m *matcher) takeFar(l *matchList, op uint32) uint32 {
	p, rank, tag := m.s.at(op), m.s.rank(op), m.s.tag(op)
	if tag == AnyTag || p.kind() == Recv && p.peer == Any {
		id, _ := m.scan(l, op, math.MaxInt)
		return id
	}
	if l.n&indexedBit == 0 {
		l.n |= indexedBit
		for i := l.first; i != none; i = m.entries.all[i].link {
			if m.entries.all[i].stamp > 0 {
				m.addToIndex(i)
			}
		}
	}
	best := none
	try := func(k tableKey) {
		if i := m.oldest(k); i != none && (best == none || m.entries.all[i].stamp < m.entries.all[best].stamp) {
			best = i
		}
	}
	if p.kind() == Recv {
		try(listKey(rank, Send, p.peer, tag))
		try(listKey(rank, Send, p.peer, AnyTag))
	} else {
		try(listKey(p.peer, Recv, rank, tag))
		try(listKey(p.peer, Recv, rank, AnyTag))
		try(listKey(p.peer, Recv, Any, tag))
		try(listKey(p.peer, Recv, Any, AnyTag))
	}
	if best == none {
		return none
	}
	id := m.entries.all[best].op & idMask
	m.taken(l, best)
	return id
}

func (m *matcher) addToIndex(i uint32) {
	e := &m.entries.all[i]
	e.child = none
	e.op |= inIndex
	n, added := m.table.get(m.entryKey(e.op & idMask))
	if added {
		m.chains = append(m.chains, chain{none, none})
	}
	c := &m.chains[n]
	if c.first == none {
		c.first = i
	} else {
		m.entries.all[c.last].child = i
	}
	c.last = i
}

// oldest returns the oldest entry of a key that is not taken.
func (m *matcher) oldest(k tableKey) uint32 {
	n := m.table.find(k)
	if n == none {
		return none
	}
	c := &m.chains[n]
	for c.first != none && m.entries.all[c.first].stamp == 0 {
		taken := c.first
		c.first = m.entries.all[taken].child
		m.leave(taken, inIndex)
	}
	return c.first
}
