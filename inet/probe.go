package inet

import "github.com/spinsim/spinsim/sim"

// tail is the state of tail loss probes (RFC 8985 §7.1). If the last segments
// of a window are lost, no later segment can show it. A probe can.
type tail struct {
	at      sim.Time // when the next probe is due, PTO; Never: none
	due     bool     // it is due to be sent
	out     bool     // one was sent and has no acknowledgement
	resent  bool     // it repeated bytes that had been sent before
	end     uint32   // TLP.end_seq: top after it
	segment uint32   // start of the last segment that was sent for the first time
}

// expectProbe starts or stops the timer of a probe (RFC 8985 §7.2). A probe is
// for a flight in which nothing is known to be missing. It comes no later than
// the time-out, which it then replaces.
func (x *Conn) expectProbe(now sim.Time) {
	x.tail.at = Never
	if !x.c.TailLossProbe || !x.sack.on || x.tail.out || x.recovering || x.retries > 0 || len(x.sack.got) > 0 || after(x.recover, x.una) > 0 ||
		!x.synchronized() || x.una == x.top || x.persist > 0 {
		return
	}
	d := x.c.RTOInitial // there is no measurement
	if x.srtt > 0 {
		d = x.srtt.Later(x.srtt)
		if x.top-x.una <= uint32(x.mss) { // the receiver of one segment may delay its acknowledgement
			d = d.Later(x.c.TailLossAckDelay)
		}
		d = max(d, x.c.TailLossLeast)
	}
	x.tail.at = min(now.Later(d), x.expires)
}

// probeTimedOut handles the end of that timer. It sends a probe and restarts
// the time-out (RFC 8985 §7.3), in case the probe is lost too.
func (x *Conn) probeTimedOut(now sim.Time) {
	x.tail.at, x.tail.due = Never, true
	x.arm(now)
}

// probeTail sends the probe (RFC 8985 §7.3): the next segment, whatever the
// congestion window. If there is none, or no window for it, it repeats the last
// segment.
func (x *Conn) probeTail(now sim.Time, emit func(*Segment)) {
	x.tail.due = false
	x.tail.out, x.tail.resent = true, false
	x.Stats.TailProbes++
	left, room := int(after(x.dataEnd(), x.top)), int(after(x.una+x.wnd, x.top))
	n := min(x.mss, left, room)
	if n > 0 || left == 0 && x.closed && room > 0 {
		x.nxt = x.top
		x.emitData(now, emit, x.top, max(n, 0))
	} else {
		x.tail.resent, x.timed = true, false // Karn
		from := x.tail.segment
		if after(x.una, from) > 0 {
			from = x.una
		}
		x.emitData(now, emit, from, int(min(x.top, x.dataEnd())-from))
	}
	x.tail.end = x.top
}

// probeAnswered checks an acknowledgement for the result of a probe (RFC 8985
// §7.4). There are two cases with a loss. The probe arrived with a hole before
// it; the bytes of the hole were sent so much sooner that they are lost (§6.2,
// RACK: by more than any reordering). Or the probe has replaced the last
// segment, which was therefore lost; this loss is congestion like any other.
// gone is how many new bytes the acknowledgement covers; news reports whether
// its blocks are new.
func (x *Conn) probeAnswered(s *Segment, gone uint32, news bool) {
	if !x.tail.out {
		return
	}
	age := after(s.Ack, x.tail.end)
	if n := len(x.sack.got); age < 0 && news && n > 0 && x.sack.got[n-1].To == x.tail.end {
		x.tail.out = false
		if !x.recovering {
			x.loses()
		}
		x.sack.late, x.sack.before = true, x.sack.got[n-1].From
		return
	}
	switch {
	case age < 0:
	case !x.tail.resent:
		x.tail.out = false
	case age > 0: // §7.4.2: the probe arrived, the segment did not
		x.tail.out = false
		x.ssthresh = max((x.top-x.una+gone)/2, 2*uint32(x.mss))
		x.cwnd = min(x.cwnd, x.ssthresh)
	case gone == 0 && !news && s.Told == 0 && len(s.Data) == 0: // both have arrived
		x.tail.out = false
	}
}
