package inet

import (
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// piece is data received before its turn.
type piece struct {
	seq  uint32
	data []byte
	fin  bool
}

// end is the sequence number after the data.
func (p *piece) end() uint32 { return p.seq + uint32(len(p.data)) }

// pieceBytes is the memory of a piece in addition to its data: the piece, and
// the rounding of an allocation.
const pieceBytes = 64

// dropEarly drops a piece.
func (x *Conn) dropEarly(i int) {
	x.held -= len(x.early[i].data) + pieceBytes
	x.early = slices.Delete(x.early, i, i+1)
}

// take takes the data of a segment, and its FIN.
func (x *Conn) take(now sim.Time, s *Segment) {
	p := piece{s.Seq, s.Data, s.Flags&FIN != 0}
	if len(p.data) == 0 && !p.fin {
		return
	}
	switch age := after(p.seq, x.rcv); {
	case age > 0:
		x.ackNow = true // a duplicate for the sender (RFC 5681 §4.2)
		x.keep(p, int(age))
		return
	case x.finished:
		x.ackNow = true
		return
	}
	hole := len(x.early) > 0
	if !x.append(now, p) {
		x.ackNow = true // it had come before
		return
	}
	for len(x.early) > 0 && after(x.early[0].seq, x.rcv) <= 0 {
		x.append(now, x.early[0])
		x.dropEarly(0)
	}
	if len(x.blocks) > 0 {
		x.blocks = slices.DeleteFunc(x.blocks, func(b Block) bool { return after(b.To, x.rcv) <= 0 })
	}
	// RFC 5681 §4.2
	if x.unacked++; hole || x.unacked > 1 || s.Flags&FIN != 0 || x.c.AckPushed && s.Flags&PSH != 0 {
		x.ackNow = true
	} else if x.ackAt == Never {
		if x.ackAt = now.Later(x.c.DelayedAck); x.c.DelayedAckTick > 0 {
			x.ackAt = (now/x.c.DelayedAckTick + 1) * x.c.DelayedAckTick
		}
	}
}

// append takes a piece that begins at rcv or before, as much of it as there is
// room for. It returns false if the piece has nothing new.
func (x *Conn) append(now sim.Time, p piece) bool {
	old := int(-after(p.seq, x.rcv))
	if old > len(p.data) || old == len(p.data) && !p.fin || x.finished {
		return false
	}
	p.data = p.data[old:]
	if room := x.room(); len(p.data) > room {
		p.data, p.fin = p.data[:room], false
	}
	if len(p.data) == 0 && !p.fin {
		return false
	}
	x.came.append(p.data)
	x.rcv += uint32(len(p.data))
	x.Stats.Received += int64(len(p.data))
	if p.fin {
		x.rcv++
		x.finReceived(now)
	}
	return true
}

// keep keeps a piece that came before its turn, as far as it lies within the
// window and is new. Pieces do not overlap, so their data is no more than the
// window. Small pieces that follow each other are joined. The memory of all
// pieces is limited to twice the window. A piece beyond the limit is not
// acknowledged in a block, so it comes again (Linux also charges a segment's
// memory to the buffer: tcp_try_rmem_schedule).
func (x *Conn) keep(p piece, age int) {
	x.Stats.Reordered++
	if most := x.room() - age; len(p.data) > most {
		p.data, p.fin = p.data[:max(most, 0)], false
	}
	i := 0
	for ; i < len(x.early) && after(x.early[i].seq, p.seq) <= 0; i++ {
		e := &x.early[i]
		if old := int(after(e.end(), p.seq)); old > 0 {
			cut := min(old, len(p.data))
			// data after an announced end came earlier: the peer contradicts itself
			p.seq, p.data, p.fin = p.seq+uint32(cut), p.data[cut:], p.fin && cut == old
		}
		p.fin = p.fin && !e.fin
	}
	for i < len(x.early) && (after(x.early[i].end(), p.end()) < 0 || after(x.early[i].end(), p.end()) == 0 && !x.early[i].fin) {
		x.dropEarly(i)
	}
	if i < len(x.early) && after(p.end(), x.early[i].seq) > 0 {
		p.data, p.fin = p.data[:x.early[i].seq-p.seq], false
	}
	if len(p.data) == 0 && !p.fin {
		return
	}
	switch joins := i > 0 && x.early[i-1].end() == p.seq && !x.early[i-1].fin; {
	case !joins && x.held+len(p.data)+pieceBytes > 2*max(x.c.ReceiveBuffer, pieceBytes):
		x.Stats.Crowded++
		return
	case joins:
		before := &x.early[i-1]
		before.data, before.fin = append(before.data, p.data...), p.fin
		x.held += len(p.data)
	default:
		x.held += len(p.data) + pieceBytes
		x.early = slices.Insert(x.early, i, piece{p.seq, slices.Clone(p.data), p.fin})
	}
	if x.sack.on {
		x.note(Block{p.seq, p.end()})
	}
}

// note puts the block with a piece first (RFC 2018 §4).
func (x *Conn) note(b Block) {
	if b.From == b.To {
		return
	}
	x.blocks = slices.DeleteFunc(x.blocks, func(o Block) bool {
		touches := after(o.To, b.From) >= 0 && after(b.To, o.From) >= 0
		if touches {
			if after(o.From, b.From) < 0 {
				b.From = o.From
			}
			if after(o.To, b.To) > 0 {
				b.To = o.To
			}
		}
		return touches
	})
	x.blocks = slices.Insert(x.blocks, 0, b)
}

// room returns how many more bytes may come.
func (x *Conn) room() int { return max(0, x.c.ReceiveBuffer-x.came.len()) }

// window returns the window to announce, shifted. Its right edge moves by at
// least a segment, or half of the buffer (RFC 9293 §3.8.6.2.2).
func (x *Conn) window() uint32 {
	room := uint32(x.room())
	if old := after(x.told, x.rcv); old >= 0 && int(room)-int(old) < min(x.c.MSS, x.c.ReceiveBuffer/2) && uint32(old) < room {
		room = uint32(old)
	}
	return min(room>>x.myShift, 0xffff)
}
