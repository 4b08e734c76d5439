package goal

// Posted receives and unexpected messages wait in a list per rank, oldest
// first. The first match is taken, which is nearly always near the front. After
// a long search the list also gets an index by source and tag. Otherwise many
// messages in another order than their receives would take quadratic time.

// scanLimit is the number of entries to search before a list gets an index.
const scanLimit = 8

// matchList is a list of receives or of sends. An entry in the list has the
// next entry in opState.link, and a stamp above 0 that grows along the list. In
// an indexed list, child is the next entry with the same source and tag. A
// taken entry has stamp 0; it stays in an indexed list until a search passes
// it.
type matchList struct {
	first, last uint32
	n           uint32 // entries not yet taken; also indexedBit
}

// indexedBit in matchList.n marks an indexed list.
const indexedBit = 1 << 31

// matcher keeps the match lists of all ranks.
type matcher struct {
	ops       []simOp // of the simulator
	scanLimit int
	entries   uint32 // number of the last entry
	// the entries of indexed lists
	table  keyTable
	chains []chain // per key
}

type chain struct{ first, last uint32 }

func (m *matcher) reset() {
	m.entries = 0
	for i := range m.chains {
		m.chains[i] = chain{none, none}
	}
}

// pairs reports whether a receive takes the message of a send to its rank.
func pairs(recv, send *simOp) bool {
	return (recv.peer == send.rank || recv.peer == Any) && tagsMatch(recv.tag, send.tag)
}

func tagsMatch(a, b uint32) bool { return a == b || a == Any || b == Any }

// listKey is the key of entries with a source and tag in the list of a rank.
func listKey(rank uint32, kind Kind, source, tag uint32) tableKey {
	return tableKey{uint64(rank)<<33 | uint64(kind&1)<<32 | uint64(source), tag}
}

// entryKey is the key of entries like op in its list.
func entryKey(op *simOp) tableKey {
	if op.kind == Recv {
		return listKey(op.rank, Recv, op.peer, op.tag)
	}
	return listKey(op.peer, Send, op.rank, op.tag)
}

func (m *matcher) put(l *matchList, id uint32) {
	m.entries++
	m.ops[id].opState = opState{link: none, child: none, stamp: m.entries}
	if l.first == none {
		l.first = id
	} else {
		m.ops[l.last].link = id
	}
	l.last = id
	l.n++
	if l.n&indexedBit != 0 {
		m.addToIndex(id)
	}
}

// take takes the first entry of a list that matches op; none: there is none.
func (m *matcher) take(l *matchList, op *simOp) uint32 {
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
func (m *matcher) scan(l *matchList, op *simOp, limit int) (id uint32, whole bool) {
	prev := none
	for i := l.first; i != none; {
		st := &m.ops[i].opState
		next := st.link
		if st.stamp > 0 {
			e := &m.ops[i]
			if e.kind == Recv && pairs(e, op) || e.kind == Send && pairs(op, e) {
				m.unlink(l, prev, i)
				m.taken(l, i)
				return i, true
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
	next := m.ops[i].link
	if prev == none {
		l.first = next
	} else {
		m.ops[prev].link = next
	}
	if next == none {
		l.last = prev
	}
}

func (m *matcher) taken(l *matchList, id uint32) {
	m.ops[id].stamp = 0
	if l.n--; l.n&^indexedBit == 0 {
		*l = matchList{first: none}
	}
}

// takeFar takes the first match with the help of the index. An operation for
// any source or tag may match many keys, so it searches the list instead.
func (m *matcher) takeFar(l *matchList, op *simOp) uint32 {
	if op.tag == Any || op.kind == Recv && op.peer == Any {
		id, _ := m.scan(l, op, len(m.ops))
		return id
	}
	if l.n&indexedBit == 0 {
		l.n |= indexedBit
		for i := l.first; i != none; i = m.ops[i].link {
			if m.ops[i].stamp > 0 {
				m.addToIndex(i)
			}
		}
	}
	best := none
	try := func(k tableKey) {
		if id := m.oldest(k); id != none && (best == none || m.ops[id].stamp < m.ops[best].stamp) {
			best = id
		}
	}
	if op.kind == Recv {
		try(listKey(op.rank, Send, op.peer, op.tag))
		try(listKey(op.rank, Send, op.peer, Any))
	} else {
		try(listKey(op.peer, Recv, op.rank, op.tag))
		try(listKey(op.peer, Recv, op.rank, Any))
		try(listKey(op.peer, Recv, Any, op.tag))
		try(listKey(op.peer, Recv, Any, Any))
	}
	if best != none {
		m.taken(l, best)
	}
	return best
}

func (m *matcher) addToIndex(id uint32) {
	m.ops[id].child = none
	n, added := m.table.get(entryKey(&m.ops[id]))
	if added {
		m.chains = append(m.chains, chain{none, none})
	}
	c := &m.chains[n]
	if c.first == none {
		c.first = id
	} else {
		m.ops[c.last].child = id
	}
	c.last = id
}

// oldest returns the oldest entry of a key that is not taken.
func (m *matcher) oldest(k tableKey) uint32 {
	n := m.table.find(k)
	if n == none {
		return none
	}
	c := &m.chains[n]
	for c.first != none && m.ops[c.first].stamp == 0 {
		c.first = m.ops[c.first].child
	}
	return c.first
}
