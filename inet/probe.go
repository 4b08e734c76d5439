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
func (x *sender) expectProbe(now sim.Time) {
	x.tail.at = Never
	if !x.c.TailLossProbe || !x.sack.on || x.tail.out || x.recovering || x.retries > 0 || len(x.sack.got) > 0 || after(x.recover, x.una) > 0 ||
		!x.open || x.una == x.top || x.persist > 0 {
		return
	}
	d := x.c.RTOInitial // there is no measurement
	if x.rtt.mean > 0 {
		d = x.rtt.mean.Later(x.rtt.mean)
		if x.top-x.una <= uint32(x.mss) { // the receiver of one segment may delay its acknowledgement
			d = d.Later(x.c.TailLossAckDelay)
		}
		d = max(d, x.c.TailLossLeast)
	}
	x.tail.at = min(now.Later(d), x.expires)
}

// probeTail returns the segment of the probe (RFC 8985 §7.3): the next one,
// whatever the congestion window. If there is none, or no window for it, it is
// the last one again.
func (x *sender) probeTail() (seq uint32, n int) {
	x.tail.due = false
	x.tail.out, x.tail.resent = true, false
	x.stats.TailProbes++
	left, room := int(after(x.dataEnd(), x.top)), int(after(x.una+x.wnd, x.top))
	n = min(x.mss, left, room)
	if n > 0 || left == 0 && x.closed && room > 0 {
		x.nxt = x.top
		return x.top, max(n, 0)
	}
	x.tail.resent, x.rtt.timed = true, false // Karn
	seq = x.tail.segment
	if after(x.una, seq) > 0 {
		seq = x.una
	}
	return seq, int(min(x.top, x.dataEnd()) - seq)
}

// probeAnswered checks an acknowledgement for the result of a probe (RFC 8985
// §7.4). There are two cases with a loss. The probe arrived with a hole before
// it; the bytes of the hole were sent so much sooner that they are lost (§6.2,
// RACK: by more than any reordering). Or the probe has replaced the last
// segment, which was therefore lost; this loss is congestion like any other.
// gone is how many new bytes the acknowledgement covers; news reports whether
// its blocks are new.
func (x *sender) probeAnswered(s *Segment, gone uint32, news bool) {
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
