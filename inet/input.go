package inet

import "github.com/spinsim/spinsim/sim"

// Input takes a segment that has come. Call Output afterwards.
func (x *Conn) Input(now sim.Time, s *Segment) {
	switch x.state {
	case Closed:
		if answer, due := Refuse(s); due {
			x.reset = reset{due: true, ack: answer.Flags&ACK != 0, seq: answer.Seq, number: answer.Ack}
		}
		return
	case SynSent:
		x.inSynSent(now, s)
		return
	case SynReceived:
		if s.Flags&(SYN|RST) == SYN && s.Seq == x.rcv.irs {
			if s.Flags&ACK == 0 {
				// our SYN+ACK was perhaps lost: its acknowledgement measures nothing (Karn)
				x.snd.nxt, x.snd.rtt.timed = x.snd.iss, false
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
	if x.state == SynReceived {
		if s.Ack != x.snd.iss+1 || x.snd.top == x.snd.iss { // it acknowledges something else
			x.sendReset(s.Ack, false)
			return
		}
		x.establish(now, s)
	}
	if x.acknowledged(now, s) {
		x.text(now, s)
	}
}

// checked is the first to the fourth check of RFC 9293 §3.10.7.4: sequence
// number, RST, SYN. It returns false if the segment is finished with.
func (x *Conn) checked(now sim.Time, s *Segment) bool {
	if !x.rcv.acceptable(s) {
		x.unacceptable(now, s)
		return false
	}
	switch {
	case s.Flags&RST != 0 && x.c.Challenge && s.Seq != x.rcv.next: // RFC 5961 §3
		x.challenge(now)
	case s.Flags&RST != 0 && x.state == SynReceived && !x.passive:
		x.fail(now, ErrRefused)
	case s.Flags&RST != 0 && (x.state == Closing || x.state == LastAck || x.state == TimeWait):
		x.end()
	case s.Flags&RST != 0:
		x.fail(now, ErrReset)
	case s.Flags&SYN != 0 && x.state == SynReceived && x.passive:
		x.fail(now, ErrReset) // RFC 9293: return to LISTEN
	case s.Flags&SYN != 0 && x.c.Challenge:
		x.challenge(now)
	case s.Flags&SYN != 0: // RFC 793: an error
		x.sendReset(x.snd.top, true)
		x.fail(now, ErrReset)
	default:
		return true
	}
	return false
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
		x.rcv.ackNow = true
	}
	if x.state == TimeWait && s.Flags&FIN != 0 {
		x.timeWait(now)
	}
	// a closed window still takes acknowledgements
	if x.rcv.room() == 0 && s.Seq == x.rcv.next && s.Flags&ACK != 0 && x.Established() {
		x.acknowledged(now, s)
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
	x.rcv.ackNow = true
}

// inSynSent is RFC 9293 §3.10.7.3.
func (x *Conn) inSynSent(now sim.Time, s *Segment) {
	acked := s.Flags&ACK != 0
	switch {
	case acked && (s.Ack != x.snd.iss+1 || x.snd.top == x.snd.iss):
		if s.Flags&RST == 0 {
			x.sendReset(s.Ack, false)
		}
	case s.Flags&RST != 0:
		if acked {
			x.fail(now, ErrRefused)
		}
	case s.Flags&SYN == 0:
	case acked:
		x.synced(s)
		x.establish(now, s)
		if len(s.Data) > 0 || s.Flags&FIN != 0 {
			x.take(now, &Segment{Seq: s.Seq + 1, Flags: s.Flags & FIN, Data: s.Data})
		}
	default: // both sides have opened at once
		x.synced(s)
		x.state, x.snd.nxt = SynReceived, x.snd.iss
		x.snd.retries, x.snd.rtt.timed = 0, false
		x.snd.most, x.snd.linear = x.c.SynAckRetries, 0
		if x.c.SynReceivedMost > 0 {
			x.linger = x.c.later(now, x.c.SynReceivedMost)
		}
	}
}

// establish enters ESTABLISHED: the peer has acknowledged the SYN.
func (x *Conn) establish(now sim.Time, s *Segment) {
	x.state, x.linger = Established, Never
	x.snd.establish(now, s)
}

// acknowledged is the fifth check of RFC 9293 §3.10.7.4: the acknowledgement
// and the window of the segment. False: drop the segment.
func (x *Conn) acknowledged(now sim.Time, s *Segment) bool {
	age := after(s.Ack, x.snd.una)
	if after(s.Ack, x.snd.top) > 0 || x.c.Challenge && age < 0 && uint32(-age) > x.snd.maxWnd {
		if x.c.Challenge {
			x.challenge(now) // RFC 5961 §5.2
		} else {
			x.rcv.ackNow = true
		}
		return false
	}
	if age >= 0 { // no old one
		x.snd.acknowledged(now, s)
	}
	if x.snd.una == x.snd.dataEnd()+1 && !x.finAcked {
		x.finAcknowledged(now)
	}
	return true
}

// text is the seventh and the eighth check: the bytes of the segment, and its
// FIN.
func (x *Conn) text(now sim.Time, s *Segment) {
	switch x.state {
	case Established, FinWait1, FinWait2:
		// RFC 9293 §3.6.1: the program will not read it
		if x.released && len(s.Data) > 0 && after(s.Seq+uint32(len(s.Data)), x.rcv.next) > 0 {
			x.sendReset(x.snd.top, true)
			x.fail(now, ErrAborted)
			return
		}
		x.take(now, s)
	case TimeWait:
		if s.Flags&FIN != 0 {
			x.rcv.ackNow = true
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
	x.reset = reset{due: true, ack: acknowledges, seq: seq}
	if acknowledges {
		x.reset.number = x.rcv.next
	}
}
