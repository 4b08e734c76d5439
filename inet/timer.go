package inet

import "github.com/spinsim/spinsim/sim"

// Deadline is the latest time for the next Expire, Never if there is none.
func (x *Conn) Deadline() sim.Time { return min(x.expires, x.ackAt, x.linger, x.tail.at) }

// Expire handles timers that have ended. Call Output afterwards.
func (x *Conn) Expire(now sim.Time) {
	if now >= x.linger {
		x.lingered(now)
	}
	if now >= x.ackAt {
		x.ackNow, x.ackAt = true, Never
	}
	if now >= x.tail.at {
		x.probeTimedOut(now)
	}
	if now < x.expires {
		return
	}
	x.expires = Never
	if x.persist > 0 {
		x.ask(now)
		return
	}
	x.timedOut(now)
}

// lingered handles the end of a state of limited duration.
func (x *Conn) lingered(now sim.Time) {
	if x.state == SynReceived {
		x.since = now - min(now, x.c.SynReceivedMost)
		x.gaveUp(now)
		return
	}
	x.end()
}

// timedOut handles the end of the retransmission timer (RFC 6298 §5.4 to 5.7,
// RFC 5681 §3.1).
func (x *Conn) timedOut(now sim.Time) {
	if x.retries == 0 {
		x.since = x.armed
	}
	x.Stats.Timeouts++
	if x.hopeless(now) {
		x.gaveUp(now)
		return
	}
	x.retries++
	x.timed = false
	if x.synchronized() {
		if x.retries == 1 { // a retransmission by this timer leaves the threshold as it is
			x.ssthresh = max((x.nxt-x.una)/2, uint32(2*x.mss)) // RFC 5681 §3.1, (4)
		}
		x.cwnd = uint32(x.mss)
	} else {
		x.synLost = true
	}
	if x.state != SynSent || x.retries > x.c.SynLinear {
		x.backOff()
	}
	x.nxt = x.una
	x.duplicates, x.recovering, x.recover, x.again = 0, false, x.top, false
	x.sack.late, x.tail = false, tail{at: Never, segment: x.tail.segment}
	x.sack.got = x.sack.got[:0] // RFC 2018 §8: the receiver may have dropped the bytes
}

// backOff doubles the time-out (RFC 6298 §5.5), as often as the Spec allows.
func (x *Conn) backOff() {
	if x.c.RTODoublings == 0 || x.retries <= x.c.RTODoublings {
		x.rto = min(2*x.rto, x.c.RTOMost)
	}
}

// limit returns how often a segment is sent again in this state; 0: for ever.
func (x *Conn) limit() int {
	switch x.state {
	case SynSent:
		return x.c.SynRetries
	case SynReceived:
		return x.c.SynAckRetries
	}
	return x.c.Retries
}

// hopeless reports whether the retransmissions of a segment have reached the
// number, or the time, that the Spec allows.
func (x *Conn) hopeless(now sim.Time) bool {
	n := x.limit()
	if n > 0 && x.synchronized() && x.c.RetriesAsTime {
		return now-x.since >= x.c.patience()
	}
	return n > 0 && x.retries >= n
}

// patience returns how long a connection would wait through its retries, with
// the least time-out and its doublings (Linux: tcp_retries2).
func (s *Spec) patience() (all sim.Time) {
	rto := s.RTOLeast
	for range s.Retries + 1 {
		all = all.Later(rto)
		rto = min(2*rto, s.RTOMost)
	}
	return all
}

// arm starts the retransmission timer.
func (x *Conn) arm(now sim.Time) {
	d := x.rto
	if n := x.limit(); x.c.LastWait > 0 && n > 0 && x.retries >= n {
		d = x.c.LastWait
	}
	x.armed, x.expires = now, x.later(now, d)
}

// later returns the end of a timer. A coarse timer ends at a tick.
func (x *Conn) later(now, d sim.Time) sim.Time {
	t := x.c.Tick
	if t == 0 {
		return now.Later(d)
	}
	return (now - now%t).Later((d + t - 1) / t * t)
}

// askLater starts the timer of probes: the window is closed, or too small for a
// segment that would not be silly (RFC 9293 §3.8.6.1, §3.8.6.2.1).
func (x *Conn) askLater(now sim.Time) {
	x.tail.at = Never
	switch {
	case x.persist == 0 && x.c.PersistFirst > 0:
		x.persist, x.since, x.probes = x.c.PersistFirst, now, 0
	case x.persist == 0:
		x.persist, x.since, x.probes = x.rto, now, 0
	}
	x.expires = x.later(now, x.persist)
}

// ask sends a probe and starts the timer of the next (RFC 9293 §3.8.6.1).
func (x *Conn) ask(now sim.Time) {
	if x.c.PersistRetries > 0 && x.probes >= x.c.PersistRetries {
		x.gaveUp(now)
		return
	}
	most := x.c.PersistMost
	if most == 0 {
		most = x.c.RTOMost
	}
	x.persist = min(2*x.persist, max(most, x.persist))
	x.nxt, x.probe, x.timed = x.una, true, false
	x.probes++
	x.Stats.Probes++
	x.expires = x.later(now, x.persist)
	if x.c.LastWait > 0 && x.probes == x.c.PersistRetries {
		x.expires = x.later(now, x.c.LastWait)
	}
}

// measured measures the round trip if the timed segment is acknowledged (RFC
// 6298 §2).
func (x *Conn) measured(now sim.Time, ack uint32) {
	if !x.timed || after(ack, x.timedEnd) < 0 {
		return
	}
	x.timed = false
	r := now - x.timedAt
	switch {
	// Jacobson 1988, appendix A: whole ticks, eight times the mean and four
	// times the deviation
	case x.c.Tick > 0:
		m := int64(now/x.c.Tick-x.timedAt/x.c.Tick) - x.sa>>3
		x.sa += m
		x.sv += max(m, -m) - x.sv>>2
		x.srtt = max(sim.Time(x.sa)*x.c.Tick/8, 1)
	case x.srtt == 0:
		x.srtt, x.rttvar = r, r/2 // (2.2)
	default:
		x.rttvar = (3*x.rttvar + max(x.srtt-r, r-x.srtt)) / 4 // (2.3)
		x.srtt = (7*x.srtt + r) / 8
	}
	x.rto = x.estimate()
}

// estimate returns the time-out from the measurements, without back-off.
func (x *Conn) estimate() sim.Time {
	var rto sim.Time
	switch {
	case x.c.Tick > 0:
		rto = sim.Time(x.sa>>3+x.sv) * x.c.Tick
	case x.srtt == 0:
		return x.c.RTOInitial
	case x.c.RTOLeastOfVariance:
		rto = x.srtt + max(4*x.rttvar, x.c.RTOLeast)
	default:
		rto = x.srtt + 4*x.rttvar
	}
	return min(max(rto, x.c.RTOLeast), x.c.RTOMost)
}

// RTO returns the current time-out and the smoothed round trip, 0 before the
// first measurement.
func (x *Conn) RTO() (rto, rtt sim.Time) { return x.rto, x.srtt }
