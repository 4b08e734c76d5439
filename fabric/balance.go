package fabric

// Tally is a number of packets and of their bytes, without headers of the
// fabric.
type Tally struct{ Packets, Bytes int64 }

// Add adds one packet with its number of bytes.
func (t *Tally) Add(bytes int) {
	t.Packets++
	t.Bytes += int64(bytes)
}

// Plus returns the sum of two tallies.
func (t Tally) Plus(o Tally) Tally { return Tally{t.Packets + o.Packets, t.Bytes + o.Bytes} }

// Minus returns the difference of two tallies.
func (t Tally) Minus(o Tally) Tally { return Tally{t.Packets - o.Packets, t.Bytes - o.Bytes} }

// Balance counts the packets that a fabric has not simply delivered once. When
// no event is left, sent + Doubled = arrived + Lost + Waiting.
type Balance struct {
	Lost    Tally // they have not arrived and never will
	Doubled Tally // second copies
	Waiting Tally // they wait for room in a buffer
	// Trimmed is packets whose payload a switch has cut off; the bytes are among
	// those of Lost.
	Trimmed int64
}

// BalanceOf returns the balance of a fabric and its decorators. For a fabric of
// another package, the lost packets come from its Losses. If Losses lists only
// some of them, the bytes of the others are unknown, and exact is false.
func BalanceOf(f Fabric) (b Balance, exact bool) {
	exact = true
	for {
		switch x := f.(type) {
		case *network:
			b.Lost, b.Trimmed = b.Lost.Plus(x.damage.gone()), x.damage.cut()
			b.Waiting = x.waiting()
			return b, exact
		case *Faulty:
			b.Lost = b.Lost.Plus(x.damage.gone())
			b.Doubled = b.Doubled.Plus(x.doubled())
			f = x.Fabric
			continue
		}
		if d, is := f.(interface{ Unwrap() Fabric }); is {
			f = d.Unwrap()
			continue
		}
		list, n := f.Losses()
		for _, l := range list {
			if !l.Damaged {
				b.Lost.Add(int(l.Packet.Bytes))
			}
		}
		return b, exact && n == len(list)
	}
}

// gone returns the packets lost on links. For nil it is zero.
func (d *damage) gone() (t Tally) {
	if d == nil {
		return t
	}
	for i := range d.links {
		t = t.Plus(Tally{d.links[i].lost, d.links[i].bytes})
	}
	return t
}

// cut returns how many packets were trimmed.
func (d *damage) cut() (n int64) {
	if d == nil {
		return 0
	}
	for i := range d.links {
		n += d.links[i].trimmed
	}
	return n
}

func (f *Faulty) doubled() (t Tally) {
	for _, c := range f.counts {
		t = t.Plus(Tally{c.Duplicated, c.DuplicatedBytes})
	}
	return t
}

// waiting returns the packets that wait for room in a lane.
func (n *network) waiting() (t Tally) {
	for i := range n.outboxes {
		for c := range n.outboxes[i].queues {
			q := &n.outboxes[i].queues[c]
			for k := range n.outboxes[i].counts[c] {
				w := &q.ring[(q.head+k)&(len(q.ring)-1)]
				t.Add(int(w.b >> 32 & lengthMask))
			}
		}
	}
	for i := range n.lanes {
		l, of := &n.lanes[i], &n.parts[0]
		if link := i >> n.shift; link < len(n.links) {
			of = &n.parts[n.domains[n.topo.Link(link).From]]
		}
		for k := range int(l.count) {
			q := &of.queues[l.queue]
			w := &q.ring[(q.head+k)&(len(q.ring)-1)]
			t.Add(int(w.b >> 32 & lengthMask))
		}
	}
	return t
}
