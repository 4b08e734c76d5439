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

// receiver is the receiving side of a connection: what has come, and what the
// peer is told about it. next is RCV.NXT.
type receiver struct {
	c         *Config
	stats     *Stats
	irs, next uint32
	finished  bool   // the peer's FIN has come, in order
	scale     uint   // shift of the window
	told      uint32 // right edge of the window announced last
	came      queue  // received in order, and not read
	early     []piece
	held      int     // bytes of memory in early
	selective bool    // the peer takes blocks
	blocks    []Block // of early, the latest first (RFC 2018 §4)
	ackNow    bool
	ackAt     sim.Time // Never: no delayed acknowledgement
	unacked   int      // segments received without an acknowledgement yet
}

func (r *receiver) init(c *Config, stats *Stats) {
	r.c, r.stats, r.ackAt = c, stats, Never
	if c.WindowScale {
		for c.ReceiveBuffer>>r.scale > 0xffff && r.scale < maxScale {
			r.scale++
		}
	}
}

// synced takes the peer's SYN.
func (r *receiver) synced(s *Segment) {
	r.irs, r.next, r.told = s.Seq, s.Seq+1, s.Seq+1
	if s.Scale == 0 || !r.c.WindowScale {
		r.scale = 0
	}
	r.selective = r.c.SACK && s.Selective
	r.ackNow = true
}

// stop forgets what came before its turn, and what is to be acknowledged.
func (r *receiver) stop() {
	r.ackNow, r.ackAt = false, Never
	r.early, r.held = nil, 0
}

// acceptable is the first check of RFC 9293 §3.10.7.4: part of the segment lies within the window.
func (r *receiver) acceptable(s *Segment) bool {
	room, n := uint32(r.room()), s.length()
	first, last := s.Seq-r.next, s.Seq+n-1-r.next
	switch {
	case n == 0 && room == 0:
		return first == 0
	case n == 0:
		return first < room
	case room == 0:
		return false
	}
	return first < room || last < room
}

// drop drops a piece.
func (r *receiver) drop(i int) {
	r.held -= len(r.early[i].data) + pieceBytes
	r.early = slices.Delete(r.early, i, i+1)
}

// take takes the data of a segment, and its FIN. It reports whether the stream
// has ended now.
func (r *receiver) take(now sim.Time, s *Segment) (ended bool) {
	p := piece{s.Seq, s.Data, s.Flags&FIN != 0}
	if len(p.data) == 0 && !p.fin {
		return false
	}
	switch age := after(p.seq, r.next); {
	case age > 0:
		r.ackNow = true // a duplicate for the sender (RFC 5681 §4.2)
		r.keep(p, int(age))
		return false
	case r.finished:
		r.ackNow = true
		return false
	}
	hole := len(r.early) > 0
	if !r.append(p) {
		r.ackNow = true // it had come before
		return false
	}
	for len(r.early) > 0 && after(r.early[0].seq, r.next) <= 0 {
		r.append(r.early[0])
		r.drop(0)
	}
	if len(r.blocks) > 0 {
		r.blocks = slices.DeleteFunc(r.blocks, func(b Block) bool { return after(b.To, r.next) <= 0 })
	}
	// RFC 5681 §4.2
	if r.unacked++; hole || r.unacked > 1 || s.Flags&FIN != 0 || r.c.AckPushed && s.Flags&PSH != 0 {
		r.ackNow = true
	} else if r.ackAt == Never {
		if r.ackAt = now.Later(r.c.DelayedAck); r.c.DelayedAckTick > 0 {
			r.ackAt = (now/r.c.DelayedAckTick + 1) * r.c.DelayedAckTick
		}
	}
	return r.finished
}

// append takes a piece that begins at next or before, as much of it as there is
// room for. It returns false if the piece has nothing new.
func (r *receiver) append(p piece) bool {
	old := int(-after(p.seq, r.next))
	if old > len(p.data) || old == len(p.data) && !p.fin || r.finished {
		return false
	}
	p.data = p.data[old:]
	if room := r.room(); len(p.data) > room {
		p.data, p.fin = p.data[:room], false
	}
	if len(p.data) == 0 && !p.fin {
		return false
	}
	r.came.append(p.data)
	r.next += uint32(len(p.data))
	r.stats.Received += int64(len(p.data))
	if p.fin {
		r.next++
		r.finished = true
	}
	return true
}

// keep keeps the part of an early piece that lies within the window and is new.
// Pieces do not overlap, so their data is no more than the window. Small pieces
// that follow each other are joined. The memory of all pieces is limited to
// twice the window. A piece beyond the limit is not acknowledged in a block, so
// it comes again (Linux also charges a segment's memory to the buffer:
// tcp_try_rmem_schedule).
func (r *receiver) keep(p piece, age int) {
	r.stats.Reordered++
	if most := r.room() - age; len(p.data) > most {
		p.data, p.fin = p.data[:max(most, 0)], false
	}
	i := 0
	for ; i < len(r.early) && after(r.early[i].seq, p.seq) <= 0; i++ {
		e := &r.early[i]
		if old := int(after(e.end(), p.seq)); old > 0 {
			cut := min(old, len(p.data))
			// data after an announced end came earlier: the peer contradicts itself
			p.seq, p.data, p.fin = p.seq+uint32(cut), p.data[cut:], p.fin && cut == old
		}
		p.fin = p.fin && !e.fin
	}
	for i < len(r.early) && (after(r.early[i].end(), p.end()) < 0 || after(r.early[i].end(), p.end()) == 0 && !r.early[i].fin) {
		r.drop(i)
	}
	if i < len(r.early) && after(p.end(), r.early[i].seq) > 0 {
		p.data, p.fin = p.data[:r.early[i].seq-p.seq], false
	}
	if len(p.data) == 0 && !p.fin {
		return
	}
	switch joins := i > 0 && r.early[i-1].end() == p.seq && !r.early[i-1].fin; {
	case !joins && r.held+len(p.data)+pieceBytes > 2*max(r.c.ReceiveBuffer, pieceBytes):
		r.stats.Crowded++
		return
	case joins:
		before := &r.early[i-1]
		before.data, before.fin = append(before.data, p.data...), p.fin
		r.held += len(p.data)
	default:
		r.held += len(p.data) + pieceBytes
		r.early = slices.Insert(r.early, i, piece{p.seq, slices.Clone(p.data), p.fin})
	}
	if r.selective {
		r.note(Block{p.seq, p.end()})
	}
}

// note puts the block with a piece first (RFC 2018 §4).
func (r *receiver) note(b Block) {
	if b.From == b.To {
		return
	}
	r.blocks = slices.DeleteFunc(r.blocks, func(o Block) bool {
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
	r.blocks = slices.Insert(r.blocks, 0, b)
}

// room returns how many more bytes may come.
func (r *receiver) room() int { return max(0, r.c.ReceiveBuffer-r.came.len()) }

// window returns the window to announce, shifted. Its right edge moves by at
// least a segment, or half of the buffer (RFC 9293 §3.8.6.2.2).
func (r *receiver) window() uint32 {
	room := uint32(r.room())
	if old := after(r.told, r.next); old >= 0 && int(room)-int(old) < min(r.c.MSS, r.c.ReceiveBuffer/2) && uint32(old) < room {
		room = uint32(old)
	}
	return min(room>>r.scale, 0xffff)
}

// opened reports whether the window has opened by enough to announce it (RFC
// 9293 §3.8.6.2.2), for segments of mss bytes.
func (r *receiver) opened(mss int) bool {
	edge := r.next + r.window()<<r.scale
	return !r.finished && after(edge, r.told) >= int32(max(1, min(2*mss, r.c.ReceiveBuffer/2)))
}

// tell puts the blocks received after holes into a segment (RFC 2018 §3, §4).
func (r *receiver) tell(s *Segment) {
	if r.selective {
		s.Told = uint8(copy(s.Blocks[:], r.blocks))
	}
}

// acknowledge puts the acknowledgement, if it has one, and the window into a
// segment.
func (r *receiver) acknowledge(s *Segment) {
	if s.Flags&ACK != 0 {
		s.Ack = r.next
		r.ackNow, r.unacked, r.ackAt = false, 0, Never
	}
	if s.Flags&SYN == 0 {
		w := r.window()
		s.Window = uint16(w)
		r.told = r.next + w<<r.scale
		return
	}
	s.Window = uint16(min(r.c.ReceiveBuffer, 0xffff))
	if s.Flags&ACK != 0 {
		r.told = r.next + uint32(s.Window)
	}
}
