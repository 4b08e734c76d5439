package inet

import "github.com/spinsim/spinsim/sim"

// defaultMSS is for a peer without the option (RFC 9293 §3.7.1).
const defaultMSS = 536

// leastMSS is the least MSS that is accepted. A hostile option could otherwise
// make empty segments (Linux: TCP_MIN_SND_MSS).
const leastMSS = 48

// sender is the sending side of a connection: what the program has written, how
// much of it the peer has, and which segment is next. The numbers follow RFC
// 9293 §3.3.1: una and wnd are SND.UNA and SND.WND, top is SND.NXT.
type sender struct {
	c     *Config
	stats *Stats
	open  bool // the handshake is done
	mss   int  // of segments to send

	iss, una, nxt, top uint32 // nxt: the next to send; top: beyond all that was ever sent
	wnd, wl1, wl2      uint32
	maxWnd             uint32 // the largest window that the peer has announced
	shift              uint   // of the peer's windows
	data               queue  // from base on
	base               uint32
	closed             bool // the program writes no more: a FIN follows the data
	congestion
	sack scoreboard
	tail tail
	rtt  estimator
	timers
}

// congestion is the state of RFC 5681, 6582 and 6675.
type congestion struct {
	cwnd, ssthresh uint32
	duplicates     int
	recovering     bool
	recover        uint32
	again          bool // the first segment is due for retransmission
	lastData       sim.Time
}

func (x *sender) init(c *Config, stats *Stats, iss uint32) {
	x.c, x.stats, x.mss = c, stats, defaultMSS
	x.iss, x.una, x.nxt, x.top, x.base = iss, iss, iss, iss, iss+1
	x.recover, x.ssthresh = iss, 1<<30
	x.expires, x.tail.at = Never, Never
	x.rtt.init(c)
}

// synced takes the peer's SYN.
func (x *sender) synced(s *Segment) {
	x.mss = defaultMSS
	if s.MSS != 0 {
		x.mss = max(int(s.MSS), leastMSS)
	}
	x.mss = min(x.c.MSS, x.mss)
	if s.Scale != 0 && x.c.WindowScale {
		x.shift = uint(s.Scale - 1)
	}
	x.sack.on = x.c.SACK && s.Selective
	x.wnd = uint32(s.Window) // the window of a SYN is not scaled (RFC 7323 §2.2)
	x.maxWnd = x.wnd
	x.cwnd = x.initialWindow()
}

// establish begins sending: the peer has acknowledged the SYN.
func (x *sender) establish(now sim.Time, s *Segment) {
	x.rtt.acknowledged(now, s.Ack)
	x.open, x.most, x.linear = true, x.c.Retries, 0
	x.una, x.nxt = s.Ack, s.Ack
	x.wl1, x.wl2 = s.Seq, s.Ack
	x.expires = Never
	x.retries, x.lastData = 0, now
	if x.c.RTOResets && x.rtt.mean == 0 {
		x.rtt.out = x.c.RTOInitial
	}
	if x.synLost {
		x.cwnd = uint32(x.mss) // RFC 5681 §3.1
		if x.c.RTOAfterSYN > 0 && x.c.RTOInitial < x.c.RTOAfterSYN {
			x.rtt.out = x.c.RTOAfterSYN // RFC 6298 §5.7
		}
	}
}

// stop makes the sender send nothing more.
func (x *sender) stop() {
	x.expires, x.tail.at = Never, Never
	x.again, x.probe, x.persist = false, false, 0
}

// dataEnd is the sequence number after all data: the FIN's.
func (x *sender) dataEnd() uint32 { return x.base + uint32(x.data.len()) }

// acknowledging returns the sequence number of a segment without data: the next
// one to send, or the end of the peer's window if it is lower.
func (x *sender) acknowledging() uint32 {
	if edge := x.una + x.wnd; after(x.top, edge) > 0 {
		return edge
	}
	return x.top
}

// repeat returns the first unacknowledged segment, which is to be sent again.
func (x *sender) repeat() (seq uint32, n int) {
	x.again = false
	n = max(0, min(x.mss, int(after(x.dataEnd(), x.una))))
	if x.sack.on {
		n = x.sack.gap(x.una, n)
		x.repeated(x.una, n)
	}
	x.rtt.timed = false // Karn
	return x.una, n
}

// next returns the next segment that is to be sent. ok is false if the windows
// allow none.
func (x *sender) next(now sim.Time) (seq uint32, n int, ok bool) {
	if x.recovering && x.sack.on {
		return x.nextSelective()
	}
	if x.sack.on {
		x.nxt = x.sack.skip(x.nxt) // after a time-out: skip acknowledged blocks
	}
	left := int(after(x.dataEnd(), x.nxt))
	if left < 0 || left == 0 && !x.closed { // the FIN is sent too
		return 0, 0, false
	}
	flight := int(x.nxt - x.una)
	// RFC 5681 §4.1
	if flight == 0 && x.top == x.una && x.c.RestartAfterIdle && now-x.lastData > x.rtt.out {
		x.cwnd = min(x.cwnd, x.initialWindow())
	}
	n = min(x.mss, left, int(x.allowed())-flight, int(x.wnd)-flight)
	if x.sack.on && x.nxt != x.top { // after a time-out: skip acknowledged blocks
		n = min(x.mss, left, int(x.allowed())-flight+x.sack.below(x.nxt), int(x.wnd)-flight)
		n = x.sack.gap(x.nxt, n)
	}
	if x.probe {
		n = max(n, min(left, 1))
	} else if left == 0 && int(x.wnd) <= flight {
		// A FIN also waits for a window, so that probes go on as long as there are
		// answers.
		return 0, 0, false
	}
	if left > 0 && n < 1 || n < x.mss && !x.probe && x.holdsBack(n, left, flight) {
		return 0, 0, false
	}
	x.probe = false
	return x.nxt, n, true
}

// allowed returns the congestion window, with the addition of limited transmit
// (RFC 3042, RFC 5681 §3.2, step 1; RFC 6675 §5, (3)).
func (x *sender) allowed() uint32 {
	if x.c.LimitedTransmit && !x.recovering && x.duplicates > 0 && x.nxt == x.top {
		return x.cwnd + uint32(min(x.duplicates, duplicateThreshold-1)*x.mss)
	}
	return x.cwnd
}

// holdsBack reports whether a segment that is not full waits (RFC 9293
// §3.8.6.2.1 and, for Nagle, §3.7.4).
func (x *sender) holdsBack(n, left, flight int) bool {
	if n == left { // all bytes that there are: (2)
		return x.c.Nagle && flight > 0 && !x.closed
	}
	// (3)
	return flight > 0 || n < int(x.maxWnd/2) && !x.sack.on || n < int(x.maxWnd/2) && x.sack.gap(x.nxt, x.mss) == x.mss
}

// nextSelective is NextSeg and step (C) of RFC 6675.
func (x *sender) nextSelective() (seq uint32, n int, ok bool) {
	mss := uint32(x.mss)
	if pipe := x.sack.pipe(x.una, x.top, mss); x.cwnd < pipe || x.cwnd-pipe < mss {
		return 0, 0, false
	}
	if hole, is := x.sack.hole(x.una, mss, false); is { // (1)
		return x.fill(hole)
	}
	fresh := min(x.mss, int(after(x.dataEnd(), x.top)), int(after(x.una+x.wnd, x.top)))
	fin := x.closed && x.top == x.dataEnd() && after(x.una+x.wnd, x.top) > 0
	if x.nxt = x.top; fresh > 0 || fin { // (2)
		if fresh > 0 && fresh < x.mss && fresh < int(after(x.dataEnd(), x.top)) {
			return 0, 0, false // silly
		}
		return x.top, max(fresh, 0), true
	}
	if hole, is := x.sack.hole(x.una, mss, true); is { // (3)
		return x.fill(hole)
	}
	if hole, is := x.sack.last(x.una, x.recover); is && !x.sack.rescue { // (4)
		x.sack.rescue = true
		again := x.sack.again
		if hole.To == x.dataEnd()+1 { // the FIN takes no room
			mss++
		}
		if hole.To-hole.From > mss {
			hole.From = hole.To - mss
		}
		seq, n, ok = x.fill(hole)
		x.sack.again = again
		return seq, n, ok
	}
	return 0, 0, false
}

// fill returns the first segment of a hole, which is to be sent again.
func (x *sender) fill(hole Block) (seq uint32, n int, ok bool) {
	n = min(x.mss, int(hole.To-hole.From), int(after(x.dataEnd(), hole.From)))
	x.repeated(hole.From, n)
	x.rtt.timed = false // Karn
	return hole.From, n, true
}

// repeated notes that n bytes from a sequence number on are sent again, and the
// FIN if they are the last.
func (x *sender) repeated(seq uint32, n int) {
	x.sack.again = seq + uint32(n)
	if x.sack.again == x.dataEnd() && x.closed {
		x.sack.again++
	}
}

// segment makes a segment of n bytes from a sequence number on, and of the FIN
// if they are the last. It returns how many sequence numbers it takes.
func (x *sender) segment(out *Segment, seq uint32, n int) (length int) {
	*out = Segment{Seq: seq, Flags: ACK}
	if at := int(seq - x.base); at < x.data.len() {
		out.Data = x.data.bytes()[at : at+n]
	}
	length = n
	if seq+uint32(n) == x.dataEnd() {
		if n > 0 {
			out.Flags |= PSH
		}
		if x.closed {
			out.Flags |= FIN
			length++
		}
	}
	if length > 0 && after(x.top, seq) > 0 {
		x.stats.Retransmitted++
	}
	return length
}

// sent notes that sequence numbers are in flight.
func (x *sender) sent(now sim.Time, seq uint32, n int) {
	end := seq + uint32(n)
	fresh := after(x.top, seq) <= 0
	if after(end, x.nxt) > 0 {
		x.nxt = end
	}
	if after(end, x.top) > 0 {
		x.top = end
	}
	if fresh && !x.rtt.timed {
		x.rtt.timed, x.rtt.end, x.rtt.at = true, end, now
	}
	if x.expires == Never {
		x.arm(now)
	}
	if fresh {
		x.tail.segment = seq
		x.expectProbe(now)
	}
}
