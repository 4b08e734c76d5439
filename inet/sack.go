package inet

import "slices"

// Block is a range of sequence numbers, To excluded (RFC 2018 §3).
type Block struct{ From, To uint32 }

// maxBlocks is the most ranges kept of the bytes after holes: a hostile
// receiver could report one for each byte.
const maxBlocks = 256

// scoreboard is the blocks that the peer has acknowledged after holes, and the
// progress of retransmission (RFC 6675 §2, §4).
type scoreboard struct {
	on     bool
	got    []Block // in order, apart, beyond una
	again  uint32  // HighRxt + 1: bytes before it were sent again in this recovery
	rescue bool    // (4) of NextSeg was used in this recovery
	late   bool    // a probe arrived that was sent much later than all segments before it
	before uint32  // bytes before it without an acknowledgement are lost (RFC 8985 §6.2)
}

// update takes the blocks of an acknowledgement and reports whether they have
// news. It ignores blocks of bytes that were never sent.
func (b *scoreboard) update(s *Segment, una, top uint32) (news bool) {
	for _, k := range s.Blocks[:s.Told] {
		if after(k.From, una) < 0 {
			k.From = una // a report of a duplicate (RFC 2883), or an old block
		}
		if after(k.To, k.From) > 0 && after(k.To, top) <= 0 && b.add(k) {
			news = true
		}
	}
	return news
}

// add joins a block with the blocks that it touches. False: nothing of it is
// new.
func (b *scoreboard) add(k Block) bool {
	i := 0
	for i < len(b.got) && after(k.From, b.got[i].To) > 0 {
		i++
	}
	j := i
	for j < len(b.got) && after(k.To, b.got[j].From) >= 0 {
		j++
	}
	if j == i {
		if len(b.got) == maxBlocks {
			return false
		}
		b.got = slices.Insert(b.got, i, k)
		return true
	}
	if after(k.From, b.got[i].From) >= 0 && after(b.got[i].To, k.To) >= 0 {
		return false
	}
	if after(b.got[i].From, k.From) < 0 {
		k.From = b.got[i].From
	}
	if after(b.got[j-1].To, k.To) > 0 {
		k.To = b.got[j-1].To
	}
	b.got[i] = k
	b.got = slices.Delete(b.got, i+1, j)
	return true
}

// forget drops acknowledged bytes.
func (b *scoreboard) forget(una uint32) {
	n := 0
	for n < len(b.got) && after(b.got[n].To, una) <= 0 {
		n++
	}
	b.got = b.got[:copy(b.got, b.got[n:])]
	if len(b.got) > 0 && after(b.got[0].From, una) < 0 {
		b.got[0].From = una
	}
}

// begin begins a recovery. Its first segment is sent again at una.
func (b *scoreboard) begin(una uint32) { b.again, b.rescue, b.late = una, false, false }

// lost is IsLost: enough data has arrived beyond a sequence number to count it
// as lost.
func (b *scoreboard) lost(seq, mss uint32) bool {
	if b.late && after(b.before, seq) > 0 {
		return true
	}
	ranges, bytes := 0, uint32(0)
	for _, k := range b.got {
		if after(k.To, seq) > 0 {
			ranges++
			bytes += k.To - k.From
		}
	}
	return ranges >= duplicateThreshold || bytes > (duplicateThreshold-1)*mss
}

// pipe is SetPipe: the estimate of the bytes in flight.
func (b *scoreboard) pipe(una, top, mss uint32) (bytes uint32) {
	ranges, told, to := 0, uint32(0), top // sacked beyond the hole, from the last block down
	for i := len(b.got); i >= 0; i-- {
		from := una
		if i > 0 {
			from = b.got[i-1].To
		}
		// it is not lost
		if ranges < duplicateThreshold && told <= (duplicateThreshold-1)*mss && !(b.late && after(b.before, from) > 0) {
			bytes += to - from
		}
		if after(b.again, from) > 0 {
			bytes += min(b.again-from, to-from)
		}
		if i > 0 {
			ranges++
			told += b.got[i-1].To - b.got[i-1].From
			to = b.got[i-1].From
		}
	}
	return bytes
}

// hole is (1) and (3) of NextSeg. It returns the first range that was not sent
// again, before the highest block, if it is lost or whatever is set. If this
// hole is not lost, no later hole is: fewer bytes came beyond it.
func (b *scoreboard) hole(una, mss uint32, whatever bool) (found Block, is bool) {
	at := una
	for _, k := range b.got {
		found = Block{at, k.From}
		if after(b.again, found.From) > 0 {
			found.From = b.again
		}
		if after(found.To, found.From) > 0 {
			return found, whatever || b.lost(found.From, mss)
		}
		at = k.To
	}
	return found, false
}

// last is (4) of NextSeg: the highest range without a block.
func (b *scoreboard) last(una, top uint32) (found Block, is bool) {
	found = Block{una, top}
	for _, block := range slices.Backward(b.got) {
		if found.From = block.To; after(found.To, found.From) > 0 {
			return found, true
		}
		found = Block{una, block.From}
	}
	return found, after(found.To, found.From) > 0
}

// skip returns the first sequence number from seq on that is in no block.
func (b *scoreboard) skip(seq uint32) uint32 {
	for _, k := range b.got {
		if after(k.From, seq) <= 0 && after(k.To, seq) > 0 {
			return k.To
		}
	}
	return seq
}

// below returns how many bytes before seq are in blocks.
func (b *scoreboard) below(seq uint32) (n int) {
	for _, k := range b.got {
		if after(k.To, seq) <= 0 {
			n += int(k.To - k.From)
		}
	}
	return n
}

// gap returns how many bytes lie between seq and the next block, at most most.
func (b *scoreboard) gap(seq uint32, most int) int {
	for _, k := range b.got {
		if d := after(k.From, seq); d > 0 {
			return min(most, int(d))
		}
	}
	return most
}
