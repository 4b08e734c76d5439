package inet

import "github.com/spinsim/spinsim/sim"

// timers are the timers of a sender: of RFC 6298 and of probes.
type timers struct {
	expires sim.Time // time-out; Never: none
	armed   sim.Time // when it was started
	retries int      // time-outs since the last new acknowledgement
	most    int      // of them, before the sender gives up; 0: no limit
	linear  int      // of them, that do not double the next
	since   sim.Time // when the segment that timed out was first sent
	synLost bool
	persist sim.Time // until the next probe; 0: the window is open
	probe   bool     // send a byte, whatever the window
	probes  int      // without an answer
}

// Deadline is the latest time for the next Expire, Never if there is none.
func (x *Conn) Deadline() sim.Time { return min(x.snd.expires, x.rcv.ackAt, x.linger, x.snd.tail.at) }

// Expire handles timers that have ended. Call Output afterwards.
func (x *Conn) Expire(now sim.Time) {
	if now >= x.linger { // the end of a state of limited duration
		if x.state == SynReceived {
			x.snd.since = now - min(now, x.c.SynReceivedMost)
			x.gaveUp(now)
		} else {
			x.end()
		}
	}
	if now >= x.rcv.ackAt {
		x.rcv.ackNow, x.rcv.ackAt = true, Never
	}
	if x.snd.expire(now) {
		x.gaveUp(now)
	}
}

// expire handles timers that have ended, and reports whether the sender gives
// up because there is no answer.
func (x *sender) expire(now sim.Time) (gaveUp bool) {
	if now >= x.tail.at {
		// send a probe, and restart the time-out in case the probe is lost, too
		// (RFC 8985 §7.3)
		x.tail.at, x.tail.due = Never, true
		x.arm(now)
	}
	if now < x.expires {
		return false
	}
	x.expires = Never
	if x.persist > 0 {
		return x.ask(now)
	}
	return x.timedOut(now)
}

// timedOut handles the end of the retransmission timer (RFC 6298 §5.4 to 5.7,
// RFC 5681 §3.1).
func (x *sender) timedOut(now sim.Time) (gaveUp bool) {
	if x.retries == 0 {
		x.since = x.armed
	}
	x.stats.Timeouts++
	if x.hopeless(now) {
		return true
	}
	x.retries++
	x.rtt.timed = false
	if x.open {
		if x.retries == 1 { // a retransmission by this timer leaves the threshold as it is
			x.ssthresh = max((x.nxt-x.una)/2, uint32(2*x.mss)) // RFC 5681 §3.1, (4)
		}
		x.cwnd = uint32(x.mss)
	} else {
		x.synLost = true
	}
	if x.retries > x.linear {
		x.rtt.backOff(x.retries)
	}
	x.nxt = x.una
	x.duplicates, x.recovering, x.recover, x.again = 0, false, x.top, false
	x.sack.late, x.tail = false, tail{at: Never, segment: x.tail.segment}
	x.sack.got = x.sack.got[:0] // RFC 2018 §8: the receiver may have dropped the bytes
	return false
}

// hopeless reports whether the retransmissions of a segment have reached the
// number, or the time, that the Spec allows.
func (x *sender) hopeless(now sim.Time) bool {
	if x.most > 0 && x.open && x.c.RetriesAsTime {
		return now-x.since >= x.c.patience()
	}
	return x.most > 0 && x.retries >= x.most
}

// arm starts the retransmission timer.
func (x *sender) arm(now sim.Time) {
	d := x.rtt.out
	if x.c.LastWait > 0 && x.most > 0 && x.retries >= x.most {
		d = x.c.LastWait
	}
	x.armed, x.expires = now, x.c.later(now, d)
}

// askLater starts the timer of probes: the window is closed, or too small for a
// segment that would not be silly (RFC 9293 §3.8.6.1, §3.8.6.2.1).
func (x *sender) askLater(now sim.Time) {
	x.tail.at = Never
	switch {
	case x.persist == 0 && x.c.PersistFirst > 0:
		x.persist, x.since, x.probes = x.c.PersistFirst, now, 0
	case x.persist == 0:
		x.persist, x.since, x.probes = x.rtt.out, now, 0
	}
	x.expires = x.c.later(now, x.persist)
}

// ask sends a probe and starts the timer of the next (RFC 9293 §3.8.6.1).
func (x *sender) ask(now sim.Time) (gaveUp bool) {
	if x.c.PersistRetries > 0 && x.probes >= x.c.PersistRetries {
		return true
	}
	most := x.c.PersistMost
	if most == 0 {
		most = x.c.RTOMost
	}
	x.persist = min(2*x.persist, max(most, x.persist))
	x.nxt, x.probe, x.rtt.timed = x.una, true, false
	x.probes++
	x.stats.Probes++
	x.expires = x.c.later(now, x.persist)
	if x.c.LastWait > 0 && x.probes == x.c.PersistRetries {
		x.expires = x.c.later(now, x.c.LastWait)
	}
	return false
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

// later returns the end of a timer. A coarse timer ends at a tick.
func (s *Spec) later(now, d sim.Time) sim.Time {
	t := s.Tick
	if t == 0 {
		return now.Later(d)
	}
	return (now - now%t).Later((d + t - 1) / t * t)
}
