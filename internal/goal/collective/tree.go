package collective

// up returns the member above one in a tree of n, none: it is the root. Below
// member 0 is a binary tree in which every second member is a leaf.
func up(member, n int) int {
	if member == 0 {
		return none
	}
	low := member & -member
	if parent := member&^low | low<<1; parent < n {
		return parent
	}
	return member &^ low
}

// tree is a tree of the members from the view of one.
type tree struct {
	up   int
	down []int
}

// trees returns the tree of a member. The second one is the mirror image, or for an
// odd number of members that of the next ones.
func (m *member) tree(second bool) (t tree) {
	to := func(x int) int { // the member at a place of the tree, and back
		switch {
		case !second:
			return x
		case m.n%2 == 0:
			return m.n - 1 - x
		}
		return (x + 1) % m.n
	}
	place := m.me
	if second {
		if place = to(m.me); m.n%2 == 1 {
			place = m.at(-1)
		}
	}
	t.up = none
	if above := up(place, m.n); above != none {
		t.up = to(above)
	}
	for low := 1; low < m.n; low *= 2 { // members that differ in one place or two
		for _, x := range []int{place - low, place + low} {
			if x > 0 && x < m.n && x&-x == low && up(x, m.n) == place {
				t.down = append(t.down, to(x))
			}
		}
	}
	return t
}

func treeAllReduce(m *member) {
	m.threads = 2 * m.Channels
	for c := range m.Channels {
		m.upDown(m.tree(false), piece{0, m.bytes}.part(c, m.Channels), 2*c)
	}
}

func doubleTreeAllReduce(m *member) {
	m.threads = 4 * m.Channels
	for c := range m.Channels {
		own := piece{0, m.bytes}.part(c, m.Channels)
		m.upDown(m.tree(false), own.part(0, 2), 4*c)
		m.upDown(m.tree(true), own.part(1, 2), 4*c+2)
	}
}

// upDown reduces a piece up a tree and distributes it down, by two threads.
func (m *member) upDown(at tree, whole piece, number int) {
	reduces, distributes := thread{m, number, none}, thread{m, number + 1, none}
	for _, chunk := range whole.chunks(m.Chunk) {
		for i := range m.Slices {
			if m.err != nil {
				return
			}
			slice := []piece{chunk.part(i, m.Slices)}
			for _, child := range at.down {
				reduces.last = m.recv(number, child, slice, true, reduces.last)
			}
			if at.up == none {
				distributes.last = reduces.last
			} else {
				m.send(number, at.up, slice, reduces.last)
				distributes.last = m.recv(number+1, at.up, slice, false, distributes.last)
			}
			for _, child := range at.down {
				m.send(number+1, child, slice, distributes.last)
			}
		}
	}
}

// binomial returns the tree of a member in which it differs from the one above in
// its highest bit, counted from the root.
func (m *member) binomial() (t tree) {
	v := (m.me - m.root + m.n) % m.n
	bit := 1
	for ; bit <= v; bit *= 2 {
	}
	t.up = none
	if v > 0 {
		t.up = m.at(-bit / 2)
	}
	for ; v+bit < m.n; bit *= 2 {
		t.down = append(t.down, m.at(bit))
	}
	return t
}

func binomialBroadcast(m *member) {
	at, whole, got := m.binomial(), []piece{{0, m.bytes}}, none
	if at.up != none {
		got = m.recv(0, at.up, whole, false)
	}
	for _, child := range at.down {
		m.send(0, child, whole, got)
	}
}

func binomialReduce(m *member) {
	at, whole := m.binomial(), []piece{{0, m.bytes}}
	var got []int
	for _, child := range at.down {
		got = append(got, m.recv(0, child, whole, true))
	}
	if at.up != none {
		m.send(0, at.up, whole, got...)
	}
}

// binomialAllReduce reduces to a root and broadcasts.
func binomialAllReduce(m *member) {
	at, whole := m.binomial(), []piece{{0, m.bytes}}
	var got []int
	for _, child := range at.down {
		got = append(got, m.recv(0, child, whole, true))
	}
	if at.up != none {
		m.send(0, at.up, whole, got...)
		got = []int{m.recv(0, at.up, whole, false, got...)}
	}
	for _, child := range at.down {
		m.send(0, child, whole, got...)
	}
}

// pat passes blocks along a binomial tree of each member, first to the member
// that is farthest away. An allgather has the trees from their roots.
func patAllGather(m *member) {
	m.pat(m.bytes, false, func(member, i, n int) piece {
		return piece{0, m.bytes}.part(i, n).moved(uint64(member) * m.bytes)
	})
}

// patReduceScatter has the trees to their roots, in the reverse order.
func patReduceScatter(m *member) {
	m.pat((m.bytes+uint64(m.n)-1)/uint64(m.n), true, func(member, i, n int) piece {
		return piece{0, m.bytes}.part(member, m.n).part(i, n)
	})
}

// pat makes the steps. block returns part i of n of the block of a member; size is
// the largest block. A member has the blocks whose distances are multiples of a
// power of two, and gives them to the member at half of it.
func (m *member) pat(size uint64, reduce bool, block func(member, i, n int) piece) {
	var steps []int
	for d := 1; d < m.n; d *= 2 {
		steps = append([]int{d}, steps...)
	}
	if reduce {
		for i, d := range steps[:len(steps)/2] {
			steps[i], steps[len(steps)-1-i] = steps[len(steps)-1-i], d
		}
	}
	chunks := len(piece{0, size}.part(0, m.Channels).chunks(m.Chunk))
	m.channels(piece{0, size}, func(t *thread, _ piece) {
		for k := range chunks * m.Slices {
			at, n := t.number*chunks*m.Slices+k, m.Channels*chunks*m.Slices
			for _, d := range steps {
				if m.err != nil {
					return
				}
				var down, up []piece // to the member at +d, and from the one at -d
				for o := 0; o+d < m.n; o += 2 * d {
					down = append(down, block(m.at(-o), at, n))
					up = append(up, block(m.at(-d-o), at, n))
				}
				if reduce {
					m.send(t.number, m.at(-d), up, t.last)
					t.last = m.recv(t.number, m.at(d), down, true, t.last)
				} else {
					m.send(t.number, m.at(d), down, t.last)
					t.last = m.recv(t.number, m.at(-d), up, false, t.last)
				}
			}
		}
	})
}
