package fabric

// Tally is a number of packets and the bytes in them, without headers of the fabric.
type Tally struct{ Packets, Bytes int64 }

// Add adds so many bytes in one packet.
func (t *Tally) Add(bytes int) {
	t.Packets++
	t.Bytes += int64(bytes)
}

// Plus is the sum of two tallies.
func (t Tally) Plus(o Tally) Tally { return Tally{t.Packets + o.Packets, t.Bytes + o.Bytes} }

// Minus is the difference of two tallies.
func (t Tally) Minus(o Tally) Tally { return Tally{t.Packets - o.Packets, t.Bytes - o.Bytes} }

// Balance is what a fabric has made of the packets that it was given, besides
// bringing each to its node once: when no event is left, sent + Doubled =
// arrived + Lost + Waiting.
type Balance struct {
	Lost    Tally // that have not arrived and never will
	Doubled Tally // second copies
	Waiting Tally // that wait for room in a buffer
}

// BalanceOf returns the balance of a fabric and of what decorates it. A fabric
// of somebody else's has lost what its Losses say; of more than they list only
// the number of packets is known, and exact is false.
func BalanceOf(f Fabric) (b Balance, exact bool) {
	exact = true
	for {
		switch x := f.(type) {
		case *network:
			b.Lost = b.Lost.Plus(x.damage.gone())
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

// gone is what was lost on links; nil has lost nothing.
func (d *damage) gone() (t Tally) {
	if d == nil {
		return t
	}
	for i := range d.links {
		t = t.Plus(Tally{d.links[i].lost, d.links[i].bytes})
	}
	return t
}

func (f *Faulty) doubled() (t Tally) {
	for _, c := range f.counts {
		t = t.Plus(Tally{c.Duplicated, c.DuplicatedBytes})
	}
	return t
}

// waiting are the packets that wait for room in a lane.
func (n *network) waiting() (t Tally) {
	for i := range n.lanes {
		l := &n.lanes[i]
		for k := range int(l.count) {
			q := &n.queues[l.queue]
			w := &q.ring[(q.head+k)&(len(q.ring)-1)]
			t.Add(int(w.b >> 32 & lengthMask))
		}
	}
	return t
}
