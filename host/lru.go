package host

// lru is a list of pages; the least recently used is at the tail. Frame 0, the
// page of zeros, is in no list and marks the end.
type lru struct {
	head, tail frame
	n          int
}

// Lists a page can be in.
const (
	onNone uint8 = iota
	onInactive
	onActive
)

func (m *physical) list(which uint8) *lru {
	if which == onActive {
		return &m.active
	}
	return &m.inactive
}

// enlist puts a page at the head of a list.
func (m *physical) enlist(f frame, which uint8) {
	g, l := m.page(f), m.list(which)
	if g.list != onNone || !g.used {
		panic("host: a page is put on a second list") // kernel bug
	}
	g.list, g.prev, g.next = which, 0, int32(l.head)
	if l.head != 0 {
		m.page(l.head).prev = f
	} else {
		l.tail = f
	}
	l.head = f
	l.n++
}

// delist removes a page from its list, if it is in one.
func (m *physical) delist(f frame) {
	g := m.page(f)
	if g.list == onNone {
		return
	}
	l := m.list(g.list)
	if g.prev != 0 {
		m.page(g.prev).next = g.next
	} else {
		l.head = frame(g.next)
	}
	if g.next != 0 {
		m.page(frame(g.next)).prev = g.prev
	} else {
		l.tail = g.prev
	}
	g.list, g.prev, g.next = onNone, 0, 0
	l.n--
}
