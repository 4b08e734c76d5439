package inet

import "github.com/spinsim/spinsim/sim"

// acknowledged takes an acknowledgement, which is no old one, and the window of
// its segment.
func (x *sender) acknowledged(now sim.Time, s *Segment) {
	wnd := uint32(s.Window) << x.shift
	gone := s.Ack - x.una
	news := x.sack.on && x.sack.update(s, s.Ack, x.top)
	if x.probes > 0 {
		x.probes, x.since = 0, now
	}
	switch {
	case gone > 0:
		x.advance(now, s.Ack, gone)
	case news, !x.sack.on && len(s.Data) == 0 && s.Flags&FIN == 0 && wnd == x.wnd && x.top != x.una && x.persist == 0:
		x.duplicate()
	}
	x.probeAnswered(s, gone, news)
	if gone > 0 {
		x.expectProbe(now)
	}
	if d := after(s.Seq, x.wl1); d > 0 || d == 0 && after(s.Ack, x.wl2) >= 0 {
		x.wl1, x.wl2 = s.Seq, s.Ack
		if x.persist > 0 && wnd > x.wnd { // resend the probe with the next bytes
			x.nxt, x.rtt.timed = x.una, false
			x.persist, x.expires = 0, Never
		}
		x.wnd, x.maxWnd = wnd, max(x.maxWnd, wnd)
	}
}

// advance releases the acknowledged bytes (RFC 5681 §3, RFC 6298 §5, RFC 6582
// §3.2, RFC 6675 §5).
func (x *sender) advance(now sim.Time, ack, n uint32) {
	x.rtt.acknowledged(now, ack)
	if gone := min(int(after(ack, x.base)), x.data.len()); gone > 0 {
		x.data.drop(gone)
		x.base += uint32(gone)
	}
	x.una = ack
	if !x.recovering && after(x.una, x.recover) > 1 {
		x.recover = x.una - 1 // stay near una, because numbers wrap
	}
	if after(x.una, x.nxt) > 0 {
		x.nxt = x.una
	}
	x.sack.forget(x.una)
	x.retries, x.persist = 0, 0
	if x.c.RTOResets {
		x.rtt.out = x.rtt.estimate()
	}
	x.expires = Never
	if x.una != x.top {
		x.arm(now) // RFC 6298 §5.3
	}
	mss := uint32(x.mss)
	switch {
	case x.recovering && after(ack, x.recover) >= 0:
		x.cwnd = x.ssthresh // RFC 6675 §5, (A)
		if !x.sack.on {
			x.cwnd = min(x.ssthresh, max(x.top-x.una, mss)+mss) // RFC 6582 §3.2, step 3, full
		}
		x.recovering, x.duplicates, x.sack.late = false, 0, false
	case x.recovering && x.sack.on:
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

// duplicateThreshold is DupThresh of RFC 5681 §3.2 and RFC 6675 §2.
const duplicateThreshold = 3

// duplicate handles an acknowledgement of nothing new (RFC 5681 §3.2), or one
// with news of bytes after a hole (RFC 6675 §5).
func (x *sender) duplicate() {
	mss := uint32(x.mss)
	x.duplicates++
	switch {
	case x.recovering:
		if !x.sack.on {
			x.cwnd += mss
		}
	// losses before the last recovery or time-out (RFC 6675 §5.1), or segments
	// that were sent twice (RFC 6582 §4.1)
	case after(x.una, x.recover) < 0, x.una == x.recover && !x.sack.on:
	case x.sack.on && (x.duplicates >= duplicateThreshold || x.sack.lost(x.una, mss)):
		x.loses()
	case !x.sack.on && x.duplicates == duplicateThreshold:
		flight := x.top - x.una
		if x.c.LimitedTransmit { // RFC 5681 §3.2, step 2: segments of limited transmit do not count
			flight -= min(flight, (duplicateThreshold-1)*mss)
		}
		x.ssthresh = max(flight/2, 2*mss)
		x.cwnd = x.ssthresh + duplicateThreshold*mss
		x.recovers()
	}
}

// loses begins a recovery by blocks (RFC 6675 §5, (4)).
func (x *sender) loses() {
	x.ssthresh = max((x.top-x.una)/2, uint32(2*x.mss))
	x.cwnd = x.ssthresh
	x.recovers()
	x.sack.begin(x.una)
}

// recovers begins a recovery: the first segment is sent again.
func (x *sender) recovers() {
	x.tail.at = Never
	x.recovering, x.recover, x.again = true, x.top, true
	x.stats.Fast++
}

// initialWindow is the initial window of RFC 5681 §3.1, (1), or of RFC 3390 and
// 6928 with the numbers of the Spec.
func (x *sender) initialWindow() uint32 {
	mss := x.mss
	switch {
	case x.c.InitialWindow > 0:
		return uint32(min(x.c.InitialWindow*mss, max(2*mss, x.c.InitialWindowBytes)))
	case mss > 2190:
		return uint32(2 * mss)
	case mss > 1095:
		return uint32(3 * mss)
	}
	return uint32(4 * mss)
}
