package collective

import "math/bits"

// folded makes a power of two of the members: each even one of the first ones
// gives its vector to the next, and gets the result from it. do has the steps of
// the others; partner is the member with a number among them.
func (m *member) folded(do func(me, n int, partner func(int) int, last int) int) {
	whole := []piece{{0, m.bytes}}
	n := 1 << (bits.Len(uint(m.n)) - 1)
	extra := 2 * (m.n - n)
	if m.me < extra && m.me%2 == 0 {
		m.recv(0, m.me+1, whole, false, m.send(0, m.me+1, whole))
		return
	}
	me, last := m.me-extra/2, none
	if m.me < extra {
		me, last = m.me/2, m.recv(0, m.me-1, whole, true)
	}
	last = do(me, n, func(x int) int {
		if 2*x < extra {
			return 2*x + 1
		}
		return x + extra/2
	}, last)
	if m.me < extra {
		m.send(0, m.me-1, whole, last)
	}
}

// doublingAllReduce exchanges whole vectors at doubling distances.
func doublingAllReduce(m *member) {
	m.folded(func(me, n int, partner func(int) int, last int) int {
		for d := 1; d < n; d *= 2 {
			to, whole := partner(me^d), []piece{{0, m.bytes}}
			m.send(0, to, whole, last)
			last = m.recv(0, to, whole, true, last)
		}
		return last
	})
}

// halvingAllReduce exchanges halves of what is left, at halving distances, and
// then back.
func halvingAllReduce(m *member) {
	m.folded(func(me, n int, partner func(int) int, last int) int {
		whole := piece{0, m.bytes}
		part := func(first, of int) []piece { // the parts of some members
			return []piece{{whole.part(first, n).from, whole.part(first+of-1, n).to}}
		}
		for d := n / 2; d > 0; d /= 2 {
			to := partner(me ^ d)
			m.send(0, to, part((me^d)&^(d-1), d), last)
			last = m.recv(0, to, part(me&^(d-1), d), true, last)
		}
		for d := 1; d < n; d *= 2 {
			to := partner(me ^ d)
			m.send(0, to, part(me&^(d-1), d), last)
			last = m.recv(0, to, part((me^d)&^(d-1), d), false, last)
		}
		return last
	})
}

// between is the block of an alltoall from one member to another.
func (m *member) between(from, to int) []piece {
	return []piece{piece{0, m.bytes}.part(to, m.n).moved(uint64(from) * m.bytes)}
}

// linearAllToAll sends everything at once.
func linearAllToAll(m *member) {
	for d := 1; d < m.n; d++ {
		m.send(0, m.at(d), m.between(m.me, m.at(d)))
		m.recv(0, m.at(-d), m.between(m.at(-d), m.me), false)
	}
}

// pairwiseAllToAll has one exchange after the other.
func pairwiseAllToAll(m *member) {
	sent, got := none, none
	for d := 1; d < m.n; d++ {
		now := m.send(0, m.at(d), m.between(m.me, m.at(d)), sent, got)
		got = m.recv(0, m.at(-d), m.between(m.at(-d), m.me), false, sent, got)
		sent = now
	}
}

// disseminationBarrier sends empty messages at doubling distances.
func disseminationBarrier(m *member) {
	last := none
	for d := 1; d < m.n; d *= 2 {
		m.send(0, m.at(d), nil, last)
		last = m.recv(0, m.at(-d), nil, false, last)
	}
}
