package inet

import "github.com/spinsim/spinsim/sim"

// tail is the state of tail loss probes (RFC 8985 §7.1): when the last segments
// of a window are lost nothing comes behind them that would say so. A probe
// does.
type tail struct {
	at      sim.Time // when the next probe is due, PTO; Never: none
	due     bool     // it is to be sent
	out     bool     // one was sent, and its acknowledgement has not come
	resent  bool     // it was of bytes that had been sent before
	end     uint32   // TLP.end_seq: top behind it
	segment uint32   // where the last segment begins that was sent for the first time
}

// expectProbe starts the timer of a probe, or stops it (RFC 8985 §7.2): it is for flights of which
// nothing is missing as far as one knows, and does not come later than the time-out, whose place it
// takes then.
func (x *Conn) expectProbe(now sim.Time) {
	x.tail.at = Never
	if !x.c.TailLossProbe || !x.sack.on || x.tail.out || x.recovering || x.retries > 0 || len(x.sack.got) > 0 || after(x.recover, x.una) > 0 ||
		!x.synchronized() || x.una == x.top || x.persist > 0 {
		return
	}
	d := x.c.RTOInitial // there is no measurement
	if x.srtt > 0 {
		d = x.srtt.Later(x.srtt)
		if x.top-x.una <= uint32(x.mss) { // who has one segment may hold its acknowledgement back
			d = d.Later(x.c.TailLossAckDelay)
		}
		d = max(d, x.c.TailLossLeast)
	}
	x.tail.at = min(now.Later(d), x.expires)
}

// probeTimedOut is the end of that timer: a probe is sent, and the time-out begins again
// (RFC 8985 §7.3), so that it comes if that is lost, too.
func (x *Conn) probeTimedOut(now sim.Time) {
	x.tail.at, x.tail.due = Never, true
	x.arm(now)
}

// probeTail sends the probe (RFC 8985 §7.3): the next segment, whatever the
// congestion window is, or if there is none, or no window for it, the last one
// once more.
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

// probeAnswered looks at an acknowledgement for what it says of a probe (RFC
// 8985 §7.4): that it has come, with a hole before it, which was sent so much
// sooner that it is lost (§6.2, RACK: by more than any reordering); or that it
// has made up for the last segment, which was lost, then, and is congestion
// like any other. It has acknowledged so many bytes, and told news in blocks or
// not.
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
	case age > 0: // §7.4.2: it was the probe that came
		x.tail.out = false
		x.ssthresh = max((x.top-x.una+gone)/2, 2*uint32(x.mss))
		x.cwnd = min(x.cwnd, x.ssthresh)
	case gone == 0 && !news && s.Told == 0 && len(s.Data) == 0: // both have come
		x.tail.out = false
	}
}
