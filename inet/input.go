package inet

import "github.com/spinsim/spinsim/sim"

// Input takes a segment that has come. Call Output afterwards.
func (x *Conn) Input(now sim.Time, s *Segment) {
	switch x.state {
	case Closed:
		if answer, due := Refuse(s); due {
			x.resetWith(&answer)
		}
		return
	case SynSent:
		x.inSynSent(now, s)
		return
	case SynReceived:
		if s.Flags&(SYN|RST) == SYN && s.Seq == x.irs {
			if s.Flags&ACK == 0 {
				// our SYN+ACK was perhaps lost: its acknowledgement measures nothing (Karn)
				x.nxt, x.timed = x.iss, false
				return
			}
			// both sides have opened at once: this is the acknowledgement of our SYN
			// (RFC 9293 §3.5, figure 7)
			stripped := *s
			stripped.Seq, stripped.Flags = s.Seq+1, s.Flags&^SYN
			s = &stripped
		}
	}
	if !x.checked(now, s) || s.Flags&ACK == 0 {
		return
	}
	if x.state == SynReceived && !x.agreed(now, s) || !x.acknowledged(now, s) {
		return
	}
	if x.una == x.dataEnd()+1 && !x.finAcked {
		x.finAcknowledged(now)
	}
	x.text(now, s)
}

// checked is the first to the fourth check of RFC 9293 §3.10.7.4: sequence
// number, RST, SYN. It returns false if the segment is finished with.
func (x *Conn) checked(now sim.Time, s *Segment) bool {
	if !x.acceptable(s) {
		x.unacceptable(now, s)
		return false
	}
	switch {
	case s.Flags&RST != 0:
		x.resetReceived(now, s)
		return false
	case s.Flags&SYN != 0 && x.state == SynReceived && x.passive:
		x.fail(now, ErrReset) // RFC 9293: return to LISTEN
		return false
	case s.Flags&SYN != 0 && x.c.Challenge:
		x.challenge(now)
		return false
	case s.Flags&SYN != 0: // RFC 793: an error
		x.sendReset(x.top, true)
		x.fail(now, ErrReset)
		return false
	}
	return true
}

// acceptable is the first check: part of the segment lies within the window.
func (x *Conn) acceptable(s *Segment) bool {
	room, n := uint32(x.room()), s.length()
	first, last := s.Seq-x.rcv, s.Seq+n-1-x.rcv
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

// unacceptable answers a segment that is not acceptable with the current state
// of the stream.
func (x *Conn) unacceptable(now sim.Time, s *Segment) {
	x.Stats.Dropped++
	if s.Flags&RST != 0 {
		return
	}
	switch limited := x.c.LimitUnacceptable && (len(s.Data) == 0 && s.Flags&FIN == 0 || s.Flags&SYN != 0); {
	case limited && now < x.challenged:
		x.Stats.Unanswered++
	case limited:
		x.challenged = now.Later(x.c.ChallengeInterval)
		fallthrough
	default:
		x.ackNow = true
	}
	if x.state == TimeWait && s.Flags&FIN != 0 {
		x.timeWait(now)
	}
	// a closed window still takes acknowledgements
	if x.room() == 0 && s.Seq == x.rcv && s.Flags&ACK != 0 && x.state >= Established && x.acknowledged(now, s) {
		if x.una == x.dataEnd()+1 && !x.finAcked {
			x.finAcknowledged(now)
		}
	}
}

// resetReceived is the second check (RFC 5961 §3 if it is on).
func (x *Conn) resetReceived(now sim.Time, s *Segment) {
	switch {
	case x.c.Challenge && s.Seq != x.rcv:
		x.challenge(now)
	case x.state == SynReceived && !x.passive:
		x.fail(now, ErrRefused)
	case x.state == Closing || x.state == LastAck || x.state == TimeWait:
		x.end()
	default:
		x.fail(now, ErrReset)
	}
}

// challenge asks the sender of a segment that may be forged to confirm it (RFC
// 5961 §3.2, §4.2, §5.2), not more often than the Spec allows (§7).
func (x *Conn) challenge(now sim.Time) {
	if now < x.challenged {
		return
	}
	x.challenged = now.Later(x.c.ChallengeInterval)
	x.Stats.Challenges++
	x.ackNow = true
}

// inSynSent is RFC 9293 §3.10.7.3.
func (x *Conn) inSynSent(now sim.Time, s *Segment) {
	acked := s.Flags&ACK != 0
	switch {
	case acked && (s.Ack != x.iss+1 || x.top == x.iss):
		if s.Flags&RST == 0 {
			x.sendReset(s.Ack, false)
		}
	case s.Flags&RST != 0:
		if acked {
			x.fail(now, ErrRefused)
		}
	case s.Flags&SYN == 0:
	case acked:
		x.measured(now, s.Ack)
		x.synced(s)
		x.establish(now, s)
		if len(s.Data) > 0 || s.Flags&FIN != 0 {
			x.take(now, &Segment{Seq: s.Seq + 1, Flags: s.Flags & FIN, Data: s.Data})
		}
	default: // both sides have opened at once
		x.synced(s)
		x.state, x.nxt = SynReceived, x.iss
		x.retries, x.timed = 0, false
		if x.c.SynReceivedMost > 0 {
			x.linger = x.later(now, x.c.SynReceivedMost)
		}
	}
}

// agreed is the fifth check in SYN-RECEIVED. False: the segment acknowledges
// something else.
func (x *Conn) agreed(now sim.Time, s *Segment) bool {
	if s.Ack != x.iss+1 || x.top == x.iss {
		x.sendReset(s.Ack, false)
		return false
	}
	x.measured(now, s.Ack)
	x.establish(now, s)
	return true
}

// establish enters ESTABLISHED: the peer has acknowledged the SYN.
func (x *Conn) establish(now sim.Time, s *Segment) {
	x.una, x.nxt, x.state = s.Ack, s.Ack, Established
	x.wl1, x.wl2 = s.Seq, s.Ack
	x.expires, x.linger = Never, Never
	x.retries, x.lastData = 0, now
	if x.c.RTOResets && x.srtt == 0 {
		x.rto = x.c.RTOInitial
	}
	if x.synLost {
		x.cwnd = uint32(x.mss) // RFC 5681 §3.1
		if x.c.RTOAfterSYN > 0 && x.c.RTOInitial < x.c.RTOAfterSYN {
			x.rto = x.c.RTOAfterSYN // RFC 6298 §5.7
		}
	}
}

// text is the seventh and the eighth check: the bytes of the segment, and its
// FIN.
func (x *Conn) text(now sim.Time, s *Segment) {
	switch x.state {
	case Established, FinWait1, FinWait2:
		// RFC 9293 §3.6.1: the program will not read it
		if x.released && len(s.Data) > 0 && after(s.Seq+uint32(len(s.Data)), x.rcv) > 0 {
			x.sendReset(x.top, true)
			x.fail(now, ErrAborted)
			return
		}
		x.take(now, s)
	case TimeWait:
		if s.Flags&FIN != 0 {
			x.ackNow = true
			x.timeWait(now)
		}
	}
}

// Refuse returns the answer to a segment without a connection (RFC 9293
// §3.10.7.1, and §3.10.7.2 for one that is no SYN). False: there is no answer.
func Refuse(s *Segment) (answer Segment, due bool) {
	if s.Flags&RST != 0 {
		return answer, false
	}
	answer = Segment{SrcPort: s.DstPort, DstPort: s.SrcPort, Flags: RST}
	if s.Flags&ACK != 0 {
		answer.Seq = s.Ack
	} else {
		answer.Flags |= ACK
		answer.Ack = s.Seq + s.length()
	}
	return answer, true
}

// sendReset sends a reset at the next Output, with or without an
// acknowledgement of the received bytes.
func (x *Conn) sendReset(seq uint32, acknowledges bool) {
	r := Segment{Flags: RST, Seq: seq}
	if acknowledges {
		r.Flags |= ACK
		r.Ack = x.rcv
	}
	x.resetWith(&r)
}

func (x *Conn) resetWith(s *Segment) {
	x.reset.due, x.reset.ack = true, s.Flags&ACK != 0
	x.reset.seq, x.reset.number = s.Seq, s.Ack
}
