package collective

// thread is a sequence of receives. What it sends does not hold it up.
type thread struct {
	*member

	number int
	last   int // receive or work, or none
}

// slices calls f for the slices of a chunk.
func (t *thread) slices(chunk piece, f func(slice []piece)) {
	for i := range t.Slices {
		f([]piece{chunk.part(i, t.Slices)})
	}
}

func (t *thread) give(to int, chunk piece) {
	t.slices(chunk, func(slice []piece) { t.send(t.number, to, slice, t.last) })
}

// take receives a chunk. With to >= 0 it goes on to another member.
func (t *thread) take(from int, chunk piece, reduce bool, to int) {
	t.slices(chunk, func(slice []piece) {
		t.last = t.recv(t.number, from, slice, reduce, t.last)
		if to >= 0 {
			t.send(t.number, to, slice, t.last)
		}
	})
}

// channels calls f for the part of each channel.
func (m *member) channels(whole piece, f func(t *thread, part piece)) {
	m.threads = m.Channels
	for c := range m.Channels {
		f(&thread{m, c, none}, whole.part(c, m.Channels))
	}
}

func ringAllReduce(m *member) {
	loop := m.Chunk * uint64(m.n)
	if m.Chunk > 0 && loop/m.Chunk != uint64(m.n) {
		loop = 0 // more than any vector
	}
	m.channels(piece{0, m.bytes}, func(t *thread, own piece) {
		for _, p := range own.chunks(loop) {
			if m.err != nil {
				return
			}
			part := func(distance int) piece { return p.part(m.at(distance), m.n) }
			t.give(m.at(1), part(0))
			for k := 1; k < m.n; k++ {
				t.take(m.at(-1), part(-k), true, m.at(1))
			}
			for k := range m.n - 2 {
				t.take(m.at(-1), part(-k), false, m.at(1))
			}
			t.take(m.at(-1), part(2), false, none)
		}
	})
}

func ringAllGather(m *member) {
	m.channels(piece{0, m.bytes}, func(t *thread, own piece) {
		for _, p := range own.chunks(m.Chunk) {
			if m.err != nil {
				return
			}
			block := func(distance int) piece { return p.moved(uint64(m.at(distance)) * m.bytes) }
			t.give(m.at(1), block(0))
			for k := 1; k < m.n-1; k++ {
				t.take(m.at(-1), block(-k), false, m.at(1))
			}
			t.take(m.at(-1), block(1), false, none)
		}
	})
}

// ringReduceScatter has parts that may differ by a byte, but all as many chunks.
func ringReduceScatter(m *member) {
	part := func(member int) piece { return piece{0, m.bytes}.part(member, m.n) }
	m.channels(part(0), func(t *thread, own piece) {
		chunks := len(own.chunks(m.Chunk))
		for i := range chunks {
			if m.err != nil {
				return
			}
			of := func(distance int) piece {
				return part(m.at(distance)).part(t.number, m.Channels).part(i, chunks)
			}
			t.give(m.at(1), of(-1))
			for k := 2; k < m.n; k++ {
				t.take(m.at(-1), of(-k), true, m.at(1))
			}
			t.take(m.at(-1), of(0), true, none)
		}
	})
}

// ringBroadcast is a chain from the root.
func ringBroadcast(m *member) { m.chain(m.root, false) }

// ringReduce is a chain to the root.
func ringReduce(m *member) { m.chain((m.root+1)%m.n, true) }

func (m *member) chain(first int, reduce bool) {
	m.channels(piece{0, m.bytes}, func(t *thread, own piece) {
		for _, p := range own.chunks(m.Chunk) {
			if m.err != nil {
				return
			}
			next := m.at(1)
			if next == first {
				next = none
			}
			if m.me == first {
				t.give(next, p)
			} else {
				t.take(m.at(-1), p, reduce, next)
			}
		}
	})
}
