package inet

import "github.com/spinsim/spinsim/sim"

// maxScale is the largest shift of a window (RFC 7323 §2.3).
const maxScale = 14

// Config is the parameters of a connection.
type Config struct {
	Spec
	MSS int // most bytes of a segment that this side accepts, without headers: 1 to 65,495
}

// Stats is the totals of a connection.
type Stats struct {
	Segments      int64 // sent, all kinds
	Retransmitted int64 // of them, segments with bytes that were sent before
	Timeouts      int64 // of the retransmission timer
	Fast          int64 // recoveries after duplicate or selective acknowledgements
	Received      int64 // bytes received in order
	Reordered     int64 // segments received before their turn
	Crowded       int64 // of them, segments for which there was no memory
	Probes        int64 // of a closed window
	TailProbes    int64 // for the last segments (RFC 8985 §7)
	Challenges    int64 // acknowledgements sent instead of accepting a segment (RFC 5961)
	Dropped       int64 // segments received that were not acceptable (RFC 9293 §3.10.7.4, first)
	// of them, segments soon after another answer (Spec.LimitUnacceptable)
	Unanswered int64
	Resets     int64 // sent
}

// Never is the deadline of a connection without a timer.
const Never = sim.MaxTime

// Conn is an end of a connection: the state machine of RFC 9293 between a
// sender and a receiver.
type Conn struct {
	Local, Remote uint16 // ports
	Peer          Addr
	Stats         Stats

	c        Config
	state    State
	passive  bool // it began with the peer's SYN
	failure  *Failure
	finAcked bool
	released bool // the program has called Release

	snd        sender
	rcv        receiver
	linger     sim.Time // end of TIME-WAIT, of FIN-WAIT-2 or of SYN-RECEIVED; Never: none
	challenged sim.Time // when the next challenge is allowed
	reset      reset
	out        Segment
	hosted     hosted
}

// reset is a reset to send.
type reset struct {
	due, ack    bool
	seq, number uint32
}

func newConn(c *Config, iss uint32) *Conn {
	x := &Conn{c: *c, linger: Never}
	x.snd.init(&x.c, &x.Stats, iss)
	x.rcv.init(&x.c, &x.Stats)
	return x
}

// Dial returns a connection that begins with a SYN, at the next Output.
func Dial(c Config, local uint16, peer Addr, remote uint16, iss uint32) *Conn {
	x := newConn(&c, iss)
	x.Local, x.Remote, x.Peer, x.state = local, remote, peer, SynSent
	x.snd.most, x.snd.linear = c.SynRetries, c.SynLinear
	return x
}

// Accept returns the connection for a SYN to a port.
func Accept(c Config, now sim.Time, peer Addr, s *Segment, iss uint32) *Conn {
	x := newConn(&c, iss)
	x.Local, x.Remote, x.Peer, x.state, x.passive = s.DstPort, s.SrcPort, peer, SynReceived, true
	x.snd.most = c.SynAckRetries
	if c.SynReceivedMost > 0 {
		x.linger = x.c.later(now, c.SynReceivedMost)
	}
	x.synced(s)
	if len(s.Data) > 0 || s.Flags&FIN != 0 { // RFC 9293 §3.10.7.2: kept until the handshake is done
		x.take(now, &Segment{Seq: s.Seq + 1, Flags: s.Flags & FIN, Data: s.Data})
	}
	return x
}

// synced takes the peer's SYN.
func (x *Conn) synced(s *Segment) {
	x.snd.synced(s)
	x.rcv.synced(s)
}

// Write takes bytes to send while the buffer has room, and returns how many it
// took.
func (x *Conn) Write(b []byte) int {
	n := min(len(b), x.Room())
	x.snd.data.append(b[:n])
	x.touch()
	return n
}

// Room returns how many bytes Write would take.
func (x *Conn) Room() int {
	if x.snd.closed || x.state == Closed {
		return 0
	}
	return max(0, x.c.SendBuffer-x.snd.data.len())
}

// Unacknowledged returns how many written bytes the peer has not acknowledged.
func (x *Conn) Unacknowledged() int { return x.snd.data.len() }

// Close ends writing (CLOSE of RFC 9293 §3.10.4). A FIN follows the written
// bytes, even if Close comes before the connection is established. Bytes still
// arrive and can be read.
func (x *Conn) Close() {
	x.snd.closed = true
	x.touch()
}

// Release is Close for a program that will not read either, like close(2).
// Bytes that it has not read, or that arrive later, reset the connection (RFC
// 9293 §3.6.1). FIN-WAIT-2 ends after Spec.FinWait2. A connection in SYN-SENT
// is forgotten.
func (x *Conn) Release(now sim.Time) {
	x.released = true
	x.touch()
	if x.rcv.came.len() > 0 && x.state != Closed {
		x.Abort(now)
		return
	}
	x.Close()
	if x.state == SynSent {
		x.end()
	}
	if x.state == FinWait2 && x.c.FinWait2 > 0 {
		x.linger = now.Later(x.c.FinWait2)
	}
}

// Abort ends the connection at once and sends a reset to the peer (RFC 9293
// §3.10.5).
func (x *Conn) Abort(now sim.Time) {
	x.touch()
	switch x.state {
	case Closed:
		return
	case SynSent, Closing, LastAck, TimeWait:
	default:
		x.sendReset(x.snd.top, true)
	}
	x.fail(now, ErrAborted)
}

// Read moves received bytes to b and returns how many.
func (x *Conn) Read(b []byte) int {
	n := x.rcv.came.read(b)
	if x.Established() && x.rcv.opened(x.snd.mss) {
		x.rcv.ackNow = true
		x.touch()
	}
	return n
}

// Readable returns how many bytes Read would move. If ended, no bytes follow
// them.
func (x *Conn) Readable() (n int, ended bool) {
	return x.rcv.came.len(), x.rcv.finished || x.state == Closed
}

// after returns how far a sequence number is beyond another.
func after(a, b uint32) int32 { return int32(a - b) }

// Window returns the congestion window, the slow start threshold and the peer's
// window in bytes.
func (x *Conn) Window() (congestion, threshold, told uint32) {
	return x.snd.cwnd, x.snd.ssthresh, x.snd.wnd
}

// RTO returns the current time-out and the smoothed round trip, 0 before the
// first measurement.
func (x *Conn) RTO() (rto, rtt sim.Time) { return x.snd.rtt.out, x.snd.rtt.mean }

// MSS is the most bytes of a segment to the peer.
func (x *Conn) MSS() int { return x.snd.mss }
