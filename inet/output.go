package inet

import "github.com/spinsim/spinsim/sim"

// Output gives segments that the connection may send now to emit, which must not keep them: so many at most. It reports whether there may be more.
func (x *Conn) Output(now sim.Time, most int, emit func(*Segment)) (more bool) {
	before := x.Stats.Segments
	left := func() bool { return x.Stats.Segments-before < int64(most) }
	switch x.state {
	case listening:
		return false
	case synSent, synReceived:
		if x.nxt == x.iss {
			flags := uint8(SYN)
			if x.state == synReceived {
				flags |= ACK
			}
			x.send(emit, &Segment{Seq: x.iss, Flags: flags, MSS: uint16(min(x.c.MSS, 0xffff)), Scale: x.offered()})
			x.sent(now, x.iss, 1)
		}
		return false
	}
	if x.again {
		x.again = false
		n := min(x.mss, int(x.end()-x.una))
		x.timed = false // Karn
		x.emitData(now, emit, x.una, max(n, 0))
		x.expires = now.Later(x.rto)
	}
	for left() && x.next(now, emit) {
	}
	if !left() {
		return true
	}
	if x.expires == Never && x.una == x.nxt && (len(x.data) > 0 || x.closed && !x.Done()) {
		x.expires = now.Later(x.rto) // the window is closed: somebody has to ask (RFC 9293 §3.8.6.1)
	}
	if x.ackNow {
		x.send(emit, &Segment{Seq: x.nxt, Flags: ACK})
	}
	return false
}

// offered is the window scale option of a SYN; a side that was offered none offers none.
func (x *Conn) offered() int {
	if x.state == synReceived && x.myShift == 0 && x.shift == 0 {
		return 0
	}
	return 1 + int(x.myShift)
}

// next sends the next segment if windows let it, and reports whether they did.
func (x *Conn) next(now sim.Time, emit func(*Segment)) bool {
	left := int(after(x.end(), x.nxt))
	if left < 0 { // the FIN, too, was sent
		return false
	}
	flight := int(x.nxt - x.una)
	n := min(x.mss, left, int(min(x.cwnd, x.wnd))-flight)
	if x.probe && n < 1 {
		n = min(left, 1)
	}
	switch {
	case left == 0 && !x.closed:
		return false
	case left > 0 && n < 1:
		return false
	case n < x.mss && n < left && flight > 0: // a part of a segment: wait for more room (RFC 9293 §3.8.6.2.1)
		return false
	}
	x.probe = false
	x.emitData(now, emit, x.nxt, n)
	return true
}

// emitData sends n bytes from a sequence number on and, behind the last, the FIN.
func (x *Conn) emitData(now sim.Time, emit func(*Segment), seq uint32, n int) {
	at := int(seq - x.base)
	s := Segment{Seq: seq, Flags: ACK}
	length := n
	if at < len(x.data) {
		s.Data = x.data[at : at+n]
	}
	if seq+uint32(n) == x.end() {
		if n > 0 {
			s.Flags |= PSH
		}
		if x.closed {
			s.Flags |= FIN
			length++
		}
	}
	if length == 0 {
		return
	}
	if after(x.top, seq) > 0 {
		x.Stats.Retransmitted++
	}
	x.send(emit, &s)
	x.sent(now, seq, length)
}

// sent notes that sequence numbers are under way.
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
		x.expires = now.Later(x.rto)
	}
}

// send completes a segment and gives it away.
func (x *Conn) send(emit func(*Segment), s *Segment) {
	s.SrcPort, s.DstPort = x.Local, x.Remote
	if s.Flags&ACK != 0 {
		s.Ack = x.rcv
		x.ackNow, x.unacked, x.ackAt = false, 0, Never
	}
	if s.Flags&SYN != 0 {
		s.Window = uint16(min(x.c.ReceiveBuffer, 0xffff))
	} else {
		w := x.window()
		s.Window = uint16(w)
		x.told = x.rcv + w<<x.myShift
	}
	x.Stats.Segments++
	emit(s)
}

// Deadline is when Expire should be called at the latest; Never: there is no need.
func (x *Conn) Deadline() sim.Time { return min(x.expires, x.ackAt) }

// Expire deals with timers that are over. Output follows.
func (x *Conn) Expire(now sim.Time) {
	if now >= x.ackAt {
		x.ackNow, x.ackAt = true, Never
	}
	if now < x.expires {
		return
	}
	x.expires = Never
	x.rto = min(2*x.rto, x.c.RTOMax) // RFC 6298 §5.5
	x.timed = false
	if x.state == established && x.wnd == 0 && x.una == x.nxt {
		x.probe = true
		return
	}
	x.Stats.Timeouts++
	if x.state == established {
		flight := x.nxt - x.una
		x.ssthresh = max(flight/2, uint32(2*x.mss)) // RFC 5681 §3.1, (4)
		x.cwnd = uint32(x.mss)
	}
	x.nxt = x.una
	x.duplicates, x.recovering, x.recover = 0, false, x.top
}
