package inet

import (
	"math"

	"github.com/spinsim/spinsim/sim"
)

// Output passes at most so many segments that the connection may send now to
// emit. emit must not keep them or their data. Output reports whether there may
// be more.
func (x *Conn) Output(now sim.Time, most int, emit func(*Segment)) (more bool) {
	last := x.Stats.Segments + min(int64(most), math.MaxInt64-x.Stats.Segments)
	if x.reset.due && most > 0 {
		x.reset.due = false
		x.Stats.Resets++
		x.out = Segment{Seq: x.reset.seq, Flags: RST}
		if x.reset.ack {
			x.out.Flags |= ACK
		}
		x.send(emit)
	}
	switch x.state {
	case Closed:
		return x.reset.due
	case SynSent, SynReceived:
		return x.begin(now, last, emit)
	}
	if x.again && x.Stats.Segments < last {
		x.again = false
		x.repeat(now, emit)
	}
	if x.tail.due && x.Stats.Segments < last {
		x.probeTail(now, emit)
	}
	for x.Stats.Segments < last && x.next(now, emit) {
	}
	if x.Stats.Segments >= last {
		return true
	}
	if x.expires == Never && x.una == x.nxt && (x.data.len() > 0 || x.closed && !x.finAcked) {
		x.askLater(now)
	}
	if x.ackNow {
		x.acknowledge(emit)
	}
	return false
}

// acknowledge sends a segment without data.
func (x *Conn) acknowledge(emit func(*Segment)) {
	x.out = Segment{Seq: x.acknowledging(), Flags: ACK}
	x.tellBlocks()
	x.send(emit)
}

// begin is Output until the connection is established. It sends the SYN, and in
// SYN-RECEIVED the answer to a segment that was not acceptable or is
// challenged.
func (x *Conn) begin(now sim.Time, last int64, emit func(*Segment)) (more bool) {
	switch {
	case x.nxt != x.iss && (x.state != SynReceived || !x.ackNow):
	case x.Stats.Segments >= last:
		return true
	case x.nxt == x.iss:
		x.synchronize(now, emit)
	default:
		x.acknowledge(emit)
	}
	return false
}

// synchronize sends the SYN, with an acknowledgement if the peer's SYN has
// come.
func (x *Conn) synchronize(now sim.Time, emit func(*Segment)) {
	x.out = Segment{Seq: x.iss, Flags: SYN, MSS: uint16(min(x.c.MSS, 0xffff)), Selective: x.c.SACK}
	if x.c.WindowScale {
		x.out.Scale = 1 + int(x.myShift)
	}
	if x.state == SynReceived { // without an offer from the peer this side offers nothing
		x.out.Flags |= ACK
		x.out.Selective = x.sack.on
		if x.myShift == 0 && x.shift == 0 {
			x.out.Scale = 0
		}
	}
	if after(x.top, x.iss) > 0 {
		x.Stats.Retransmitted++
	}
	x.send(emit)
	x.sent(now, x.iss, 1)
}

// acknowledging returns the sequence number of a segment without data: the next
// one to send, or the end of the peer's window if it is lower.
func (x *Conn) acknowledging() uint32 {
	if edge := x.una + x.wnd; after(x.top, edge) > 0 {
		return edge
	}
	return x.top
}

// tellBlocks puts the blocks received after holes into a segment (RFC 2018 §3,
// §4).
func (x *Conn) tellBlocks() {
	if x.sack.on {
		x.out.Told = uint8(copy(x.out.Blocks[:], x.blocks))
	}
}

// repeat sends the first unacknowledged segment again.
func (x *Conn) repeat(now sim.Time, emit func(*Segment)) {
	n := max(0, min(x.mss, int(after(x.dataEnd(), x.una))))
	if x.sack.on {
		n = x.sack.gap(x.una, n)
		x.repeated(x.una, n)
	}
	x.timed = false // Karn
	x.emitData(now, emit, x.una, n)
	x.arm(now)
}

// next sends the next segment if the windows allow it, and reports whether it
// did.
func (x *Conn) next(now sim.Time, emit func(*Segment)) bool {
	if x.recovering && x.sack.on {
		return x.nextSelective(now, emit)
	}
	if x.sack.on {
		x.nxt = x.sack.skip(x.nxt) // after a time-out: skip acknowledged blocks
	}
	left := int(after(x.dataEnd(), x.nxt))
	if left < 0 || left == 0 && !x.closed { // the FIN is sent too
		return false
	}
	flight := int(x.nxt - x.una)
	// RFC 5681 §4.1
	if flight == 0 && x.top == x.una && x.c.RestartAfterIdle && now-x.lastData > x.rto {
		x.cwnd = min(x.cwnd, x.initialWindow())
	}
	n := min(x.mss, left, int(x.allowed())-flight, int(x.wnd)-flight)
	if x.sack.on && x.nxt != x.top { // after a time-out: skip acknowledged blocks
		n = min(x.mss, left, int(x.allowed())-flight+x.sack.below(x.nxt), int(x.wnd)-flight)
		n = x.sack.gap(x.nxt, n)
	}
	if x.probe {
		n = max(n, min(left, 1))
	} else if left == 0 && int(x.wnd) <= flight {
		// A FIN also waits for a window, so that probes go on as long as there are
		// answers.
		return false
	}
	if left > 0 && n < 1 || n < x.mss && !x.probe && x.holdsBack(n, left, flight) {
		return false
	}
	x.probe = false
	x.emitData(now, emit, x.nxt, n)
	return true
}

// allowed returns the congestion window, with the addition of limited transmit
// (RFC 3042, RFC 5681 §3.2, step 1; RFC 6675 §5, (3)).
func (x *Conn) allowed() uint32 {
	if x.c.LimitedTransmit && !x.recovering && x.duplicates > 0 && x.nxt == x.top {
		return x.cwnd + uint32(min(x.duplicates, duplicateThreshold-1)*x.mss)
	}
	return x.cwnd
}

// holdsBack reports whether a segment that is not full waits (RFC 9293
// §3.8.6.2.1 and, for Nagle, §3.7.4).
func (x *Conn) holdsBack(n, left, flight int) bool {
	if n == left { // all bytes that there are: (2)
		return x.c.Nagle && flight > 0 && !x.closed
	}
	// (3)
	return flight > 0 || n < int(x.maxWnd/2) && !x.sack.on || n < int(x.maxWnd/2) && x.sack.gap(x.nxt, x.mss) == x.mss
}

// nextSelective is NextSeg and step (C) of RFC 6675.
func (x *Conn) nextSelective(now sim.Time, emit func(*Segment)) bool {
	mss := uint32(x.mss)
	if pipe := x.sack.pipe(x.una, x.top, mss); x.cwnd < pipe || x.cwnd-pipe < mss {
		return false
	}
	if hole, is := x.sack.hole(x.una, mss, false); is { // (1)
		x.fill(now, emit, hole)
		return true
	}
	fresh := min(x.mss, int(after(x.dataEnd(), x.top)), int(after(x.una+x.wnd, x.top)))
	fin := x.closed && x.top == x.dataEnd() && after(x.una+x.wnd, x.top) > 0
	if x.nxt = x.top; fresh > 0 || fin { // (2)
		if fresh > 0 && fresh < x.mss && fresh < int(after(x.dataEnd(), x.top)) {
			return false // silly
		}
		x.emitData(now, emit, x.top, max(fresh, 0))
		return true
	}
	if hole, is := x.sack.hole(x.una, mss, true); is { // (3)
		x.fill(now, emit, hole)
		return true
	}
	if hole, is := x.sack.last(x.una, x.recover); is && !x.sack.rescue { // (4)
		x.sack.rescue = true
		again := x.sack.again
		if hole.To == x.dataEnd()+1 { // the FIN takes no room
			mss++
		}
		if hole.To-hole.From > mss {
			hole.From = hole.To - mss
		}
		x.fill(now, emit, hole)
		x.sack.again = again
		return true
	}
	return false
}

// fill sends the first segment of a hole again.
func (x *Conn) fill(now sim.Time, emit func(*Segment), hole Block) {
	n := min(x.mss, int(hole.To-hole.From), int(after(x.dataEnd(), hole.From)))
	x.repeated(hole.From, n)
	x.timed = false // Karn
	x.emitData(now, emit, hole.From, n)
}

// repeated notes that n bytes from a sequence number on are sent again, and the
// FIN if they are the last.
func (x *Conn) repeated(seq uint32, n int) {
	x.sack.again = seq + uint32(n)
	if x.sack.again == x.dataEnd() && x.closed {
		x.sack.again++
	}
}

// emitData sends n bytes from a sequence number on, and the FIN after the last.
func (x *Conn) emitData(now sim.Time, emit func(*Segment), seq uint32, n int) {
	at := int(seq - x.base)
	x.out = Segment{Seq: seq, Flags: ACK}
	length := n
	if at < x.data.len() {
		x.out.Data = x.data.bytes()[at : at+n]
	}
	if seq+uint32(n) == x.dataEnd() {
		if n > 0 {
			x.out.Flags |= PSH
		}
		if x.closed {
			x.out.Flags |= FIN
			length++
			x.finSent()
		}
	}
	if length == 0 {
		return
	}
	if after(x.top, seq) > 0 {
		x.Stats.Retransmitted++
	}
	apart := false
	// options reduce the MSS (RFC 9293 §3.7.1)
	if len(x.out.Data)+8*min(len(x.blocks), mostTold)+4 <= x.mss {
		x.tellBlocks()
	} else if x.sack.on && len(x.blocks) > 0 {
		apart = x.ackNow // new blocks go in a separate segment
	}
	x.lastData = now
	x.send(emit)
	x.ackNow = apart
	x.sent(now, seq, length)
}

// sent notes that sequence numbers are in flight.
func (x *Conn) sent(now sim.Time, seq uint32, n int) {
	end := seq + uint32(n)
	fresh := after(x.top, seq) <= 0
	if after(end, x.nxt) > 0 {
		x.nxt = end
	}
	if after(end, x.top) > 0 {
		x.top = end
	}
	if fresh && !x.timed {
		x.timed, x.timedEnd, x.timedAt = true, end, now
	}
	if x.expires == Never {
		x.arm(now)
	}
	if fresh {
		x.tail.segment = seq
		x.expectProbe(now)
	}
}

// send completes the segment and emits it.
func (x *Conn) send(emit func(*Segment)) {
	s := &x.out
	s.SrcPort, s.DstPort = x.Local, x.Remote
	switch {
	case s.Flags&RST != 0:
		s.Ack = x.reset.number
	case s.Flags&ACK != 0:
		s.Ack = x.rcv
		x.ackNow, x.unacked, x.ackAt = false, 0, Never
	}
	switch {
	case s.Flags&RST != 0:
	case s.Flags&SYN != 0:
		s.Window = uint16(min(x.c.ReceiveBuffer, 0xffff))
		if s.Flags&ACK != 0 {
			x.told = x.rcv + uint32(s.Window)
		}
	default:
		w := x.window()
		s.Window = uint16(w)
		x.told = x.rcv + w<<x.myShift
	}
	x.Stats.Segments++
	emit(s)
}
