package inet

import (
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Input takes a segment that has come. Output follows.
func (x *Conn) Input(now sim.Time, s *Segment) {
	switch x.state {
	case synSent:
		if s.Flags&(SYN|ACK) == SYN|ACK && s.Ack == x.iss+1 {
			x.measured(now, s.Ack)
			x.una, x.state, x.expires = s.Ack, established, Never
			x.synced(s)
			x.wl1, x.wl2 = s.Seq, s.Ack
		}
		return
	case synReceived:
		switch {
		case s.Flags&SYN != 0:
			x.nxt = x.iss // our answer was lost
			return
		case s.Flags&ACK == 0 || s.Ack != x.iss+1:
			return
		}
		x.measured(now, s.Ack)
		x.una, x.state, x.expires = s.Ack, established, Never
		x.wnd, x.wl1, x.wl2 = uint32(s.Window)<<x.shift, s.Seq, s.Ack
		x.ackNow = false
	case established:
		if s.Flags&SYN != 0 { // our acknowledgement was lost
			x.ackNow = true
			return
		}
		if s.Flags&ACK != 0 {
			x.acknowledged(now, s)
		}
	}
	x.take(now, s)
}

// acknowledged deals with an acknowledgement (RFC 5681 §3, RFC 6298 §5, RFC 6582 §3.2).
func (x *Conn) acknowledged(now sim.Time, s *Segment) {
	wnd := uint32(s.Window) << x.shift
	switch age := after(s.Ack, x.una); {
	case after(s.Ack, x.top) > 0: // of what was never sent
		x.ackNow = true
		return
	case age > 0:
		x.advance(now, s.Ack, uint32(age))
	case age == 0 && len(s.Data) == 0 && s.Flags&FIN == 0 && wnd == x.wnd && x.top != x.una:
		x.duplicate()
	}
	if d := after(s.Seq, x.wl1); d > 0 || d == 0 && after(s.Ack, x.wl2) >= 0 { // RFC 9293 §3.10.7.4
		x.wnd, x.wl1, x.wl2 = wnd, s.Seq, s.Ack
	}
}

// advance releases what was acknowledged.
func (x *Conn) advance(now sim.Time, ack, n uint32) {
	x.measured(now, ack)
	if gone := min(int(after(ack, x.base)), len(x.data)); gone > 0 {
		x.data = x.data[gone:]
		x.base += uint32(gone)
	}
	x.una = ack
	if after(x.una, x.nxt) > 0 {
		x.nxt = x.una
	}
	x.expires = Never
	if x.una != x.top {
		x.expires = now.Later(x.rto) // RFC 6298 §5.3
	}
	mss := uint32(x.mss)
	switch {
	case x.recovering && after(ack, x.recover) >= 0: // RFC 6582 §3.2, step 3, full
		x.cwnd = min(x.ssthresh, max(x.nxt-x.una, mss)+mss)
		x.recovering, x.duplicates = false, 0
	case x.recovering: // partial: the next hole
		x.again = true
		x.cwnd -= min(n, x.cwnd)
		x.cwnd += mss
	case x.cwnd < x.ssthresh: // RFC 5681 §3.1, (2)
		x.cwnd += min(n, mss)
		x.duplicates = 0
	default: // (3)
		x.cwnd += max(1, uint32(uint64(mss)*uint64(mss)/uint64(x.cwnd)))
		x.duplicates = 0
	}
}

// duplicate is an acknowledgement that says nothing new (RFC 5681 §3.2).
func (x *Conn) duplicate() {
	mss := uint32(x.mss)
	switch x.duplicates++; {
	case x.recovering:
		x.cwnd += mss
	case x.duplicates == 3 && after(x.una, x.recover) >= 0:
		x.ssthresh = max((x.top-x.una)/2, 2*mss)
		x.cwnd = x.ssthresh + 3*mss
		x.recovering, x.recover, x.again = true, x.top, true
		x.Stats.Fast++
	}
}

// measured takes a measurement of the round trip, if the segment that is timed was acknowledged (RFC 6298 §2).
func (x *Conn) measured(now sim.Time, ack uint32) {
	if !x.timed || after(ack, x.timedEnd) < 0 {
		return
	}
	x.timed = false
	r := now - x.timedAt
	if x.srtt == 0 {
		x.srtt, x.rttvar = r, r/2 // (2.2)
	} else {
		x.rttvar = (3*x.rttvar + max(x.srtt-r, r-x.srtt)) / 4 // (2.3)
		x.srtt = (7*x.srtt + r) / 8
	}
	x.rto = min(max(x.srtt+4*x.rttvar, x.c.RTOMin), x.c.RTOMax)
}

// RTO is the time-out as it is now, and RTT the smoothed round trip, 0: there is no measurement.
func (x *Conn) RTO() (rto, rtt sim.Time) { return x.rto, x.srtt }

// take takes the data of a segment, and the end of it.
func (x *Conn) take(now sim.Time, s *Segment) {
	p := piece{s.Seq, s.Data, s.Flags&FIN != 0}
	if len(p.data) == 0 && !p.fin {
		return
	}
	switch age := after(p.seq, x.rcv); {
	case age > 0:
		x.ackNow = true // a duplicate for who sends (RFC 5681 §4.2)
		x.keep(p, age)
		return
	case x.finished:
		x.ackNow = true
		return
	}
	hole := len(x.early) > 0
	if !x.append(p) {
		x.ackNow = true // it was there
		return
	}
	for len(x.early) > 0 && after(x.early[0].seq, x.rcv) <= 0 {
		x.append(x.early[0])
		x.early = slices.Delete(x.early, 0, 1)
	}
	if x.unacked++; hole || x.unacked > 1 || s.Flags&(PSH|FIN) != 0 { // RFC 5681 §4.2
		x.ackNow = true
	} else if x.ackAt == Never {
		x.ackAt = now.Later(x.c.DelayedAck)
	}
}

// append takes a piece that begins at rcv or before, as far as there is room; false: there was nothing new in it.
func (x *Conn) append(p piece) bool {
	old := int(-after(p.seq, x.rcv))
	if old > len(p.data) || old == len(p.data) && !p.fin {
		return false
	}
	p.data = p.data[old:]
	if room := x.c.ReceiveBuffer - len(x.pending); len(p.data) > room {
		p.data, p.fin = p.data[:max(room, 0)], false
	}
	if len(p.data) == 0 && !p.fin {
		return false
	}
	x.pending = append(x.pending, p.data...)
	x.rcv += uint32(len(p.data))
	x.Stats.Received += int64(len(p.data))
	if p.fin {
		x.rcv++
		x.finished = true
	}
	return true
}

// keep keeps a piece that has come before its turn, if it lies within the window.
func (x *Conn) keep(p piece, age int32) {
	x.Stats.Reordered++
	if int(age)+len(p.data) > x.c.ReceiveBuffer-len(x.pending) {
		return
	}
	i, found := slices.BinarySearchFunc(x.early, p.seq, func(e piece, seq uint32) int { return int(after(e.seq, seq)) })
	p.data = slices.Clone(p.data)
	switch {
	case !found:
		x.early = slices.Insert(x.early, i, p)
	case len(p.data) > len(x.early[i].data):
		x.early[i] = p
	}
}
