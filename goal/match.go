package goal

// Posted receives and unexpected messages wait in a list per rank, oldest
// first, and the first that matches is taken. It nearly always stands near the
// front. When a search goes too far, the list also gets an index by source and
// tag, so that many messages in another order than their receives do not cost
// their square.

// scanLimit is how many entries are looked at before a list is indexed.
const scanLimit = 8

// matchList is a list of receives or of sends. While an entry is in it, its
// opState.link is the next entry, its stamp is above 0 and grows along the
// list, and if the list is indexed its child is the next of the same source and
// tag. Taken entries have stamp 0; in an indexed list they stay until a search
// comes by.
type matchList struct {
	first, last uint32
	n           uint32 // entries that have not been taken; indexedBit
}

// indexedBit of matchList.n says that the list is indexed.
const indexedBit = 1 << 31

// matchIndex holds the indexed entries of all lists.
type matchIndex struct {
	table  keyTable
	chains []chain // per key
}

// chain lists the entries of a key, oldest first.
type chain struct{ first, last uint32 }

func (x *matchIndex) reset() {
	for i := range x.chains {
		x.chains[i] = chain{none, none}
	}
}

// pairs reports whether a receive takes the message of a send to its rank.
func pairs(recv, send *simOp) bool {
	return (recv.peer == send.rank || recv.peer == Any) && tagsMatch(recv.tag, send.tag)
}

func tagsMatch(a, b uint32) bool { return a == b || a == Any || b == Any }

// listKey names the entries with a source and tag in the list of a rank.
func listKey(rank uint32, kind Kind, source, tag uint32) tableKey {
	return tableKey{uint64(rank)<<33 | uint64(kind&1)<<32 | uint64(source), tag}
}

// entryKey names the entries like op in the list it belongs to.
func entryKey(op *simOp) tableKey {
	if op.kind == Recv {
		return listKey(op.rank, Recv, op.peer, op.tag)
	}
	return listKey(op.peer, Send, op.rank, op.tag)
}

// put appends a receive or a message to its list.
func (m *Simulator) put(l *matchList, id uint32) {
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

// take takes the first entry of a list that matches op, or none.
func (m *Simulator) take(l *matchList, op *simOp) uint32 {
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

// scan looks at no more than limit entries from the front. It reports whether these were all.
func (m *Simulator) scan(l *matchList, op *simOp, limit int) (id uint32, whole bool) {
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

func (m *Simulator) unlink(l *matchList, prev, i uint32) {
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

func (m *Simulator) taken(l *matchList, id uint32) {
	m.ops[id].stamp = 0
	if l.n--; l.n&^indexedBit == 0 {
		*l = matchList{first: none}
	}
}

// takeFar takes the first match with the help of the index. What asks for any
// source or tag may find it under many keys and searches the list instead.
func (m *Simulator) takeFar(l *matchList, op *simOp) uint32 {
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

func (m *Simulator) addToIndex(id uint32) {
	m.ops[id].child = none
	n, added := m.index.table.get(entryKey(&m.ops[id]))
	if added {
		m.index.chains = append(m.index.chains, chain{none, none})
	}
	c := &m.index.chains[n]
	if c.first == none {
		c.first = id
	} else {
		m.ops[c.last].child = id
	}
	c.last = id
}

// oldest returns the oldest entry of a key that has not been taken.
func (m *Simulator) oldest(k tableKey) uint32 {
	n := m.index.table.find(k)
	if n == none {
		return none
	}
	c := &m.index.chains[n]
	for c.first != none && m.ops[c.first].stamp == 0 {
		c.first = m.ops[c.first].child
	}
	return c.first
}
