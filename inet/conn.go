package inet

import "github.com/spinsim/spinsim/sim"

// maxScale is the largest shift of a window (RFC 7323 §2.3).
const maxScale = 14

// defaultMSS is for a peer without the option (RFC 9293 §3.7.1).
const defaultMSS = 536

// leastMSS is the least MSS that is accepted. A hostile option could otherwise
// make empty segments (Linux: TCP_MIN_SND_MSS).
const leastMSS = 48

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

// Conn is an end of a connection. The numbers follow RFC 9293 §3.3.1: una and
// wnd are SND.UNA and SND.WND, top is SND.NXT, rcv is RCV.NXT.
type Conn struct {
	Local, Remote uint16 // ports
	Peer          Addr
	Stats         Stats

	c        Config
	state    State
	passive  bool // it began with the peer's SYN
	failure  *Failure
	finAcked bool
	finished bool // the peer's FIN has come, in order
	released bool // the program has called Release
	mss      int  // of segments to send

	iss, una, nxt, top uint32 // nxt: the next to send; top: beyond all that was ever sent
	wnd, wl1, wl2      uint32
	maxWnd             uint32 // the largest window that the peer has announced
	shift, myShift     uint   // of the peer's windows, and of this side's
	data               queue  // from base on
	base               uint32
	closed             bool // the program writes no more: a FIN follows the data
	congestion
	sack scoreboard
	tail tail
	timers

	irs    uint32
	rcv    uint32
	told   uint32 // right edge of the window announced last
	came   queue  // received in order, and not read
	early  []piece
	held   int     // bytes of memory in early
	blocks []Block // of early, the latest first (RFC 2018 §4)
	ackNow bool

	unacked int // segments received without an acknowledgement yet
	out     Segment
	hosted  hosted
	reset   struct { // a reset to send
		due, ack    bool
		seq, number uint32
	}
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

// timers are the timers of RFC 6298, of probes, acknowledgements and states.
type timers struct {
	rto, srtt, rttvar sim.Time
	sa, sv            int64 // estimator in ticks: eight times the mean, four times the deviation
	// a segment is being measured (RFC 6298 §3, Karn: not a retransmission)
	timed      bool
	timedEnd   uint32
	timedAt    sim.Time
	expires    sim.Time // time-out; Never: none
	armed      sim.Time // when it was started
	retries    int      // time-outs since the last new acknowledgement
	since      sim.Time // when the segment that timed out was first sent
	synLost    bool
	persist    sim.Time // until the next probe; 0: the window is open
	probe      bool     // send a byte, whatever the window
	probes     int      // without an answer
	ackAt      sim.Time // Never: no delayed acknowledgement
	linger     sim.Time // end of TIME-WAIT, of FIN-WAIT-2 or of SYN-RECEIVED; Never: none
	challenged sim.Time // when the next challenge is allowed
}

func newConn(c *Config, iss uint32) *Conn {
	x := &Conn{c: *c, iss: iss, una: iss, nxt: iss, top: iss, base: iss + 1, mss: defaultMSS}
	x.recover, x.ssthresh = iss, 1<<30
	x.rto, x.expires, x.ackAt, x.linger, x.tail.at = c.RTOInitial, Never, Never, Never, Never
	if c.Tick > 0 {
		x.sv = int64(c.RTOInitial / c.Tick)
	}
	if c.WindowScale {
		for c.ReceiveBuffer>>x.myShift > 0xffff && x.myShift < maxScale {
			x.myShift++
		}
	}
	return x
}

// Dial returns a connection that begins with a SYN, at the next Output.
func Dial(c Config, local uint16, peer Addr, remote uint16, iss uint32) *Conn {
	x := newConn(&c, iss)
	x.Local, x.Remote, x.Peer, x.state = local, remote, peer, SynSent
	return x
}

// Accept returns the connection for a SYN to a port.
func Accept(c Config, now sim.Time, peer Addr, s *Segment, iss uint32) *Conn {
	x := newConn(&c, iss)
	x.Local, x.Remote, x.Peer, x.state, x.passive = s.DstPort, s.SrcPort, peer, SynReceived, true
	if c.SynReceivedMost > 0 {
		x.linger = x.later(now, c.SynReceivedMost)
	}
	x.synced(s)
	if len(s.Data) > 0 || s.Flags&FIN != 0 { // RFC 9293 §3.10.7.2: kept until the handshake is done
		x.take(now, &Segment{Seq: s.Seq + 1, Flags: s.Flags & FIN, Data: s.Data})
	}
	return x
}

// synced takes the peer's SYN.
func (x *Conn) synced(s *Segment) {
	x.irs, x.rcv = s.Seq, s.Seq+1
	x.told = x.rcv
	x.mss = defaultMSS
	if s.MSS != 0 {
		x.mss = max(int(s.MSS), leastMSS)
	}
	x.mss = min(x.c.MSS, x.mss)
	if s.Scale == 0 || !x.c.WindowScale {
		x.myShift = 0
	} else {
		x.shift = uint(s.Scale - 1)
	}
	x.sack.on = x.c.SACK && s.Selective
	x.wnd = uint32(s.Window) // the window of a SYN is not scaled (RFC 7323 §2.2)
	x.maxWnd = x.wnd
	x.cwnd = x.initialWindow()
	x.ackNow = true
}

// Write takes bytes to send while the buffer has room, and returns how many it
// took.
func (x *Conn) Write(b []byte) int {
	n := min(len(b), x.Room())
	x.data.append(b[:n])
	x.touch()
	return n
}

// Room returns how many bytes Write would take.
func (x *Conn) Room() int {
	if x.closed || x.state == Closed {
		return 0
	}
	return max(0, x.c.SendBuffer-x.data.len())
}

// Unacknowledged returns how many written bytes the peer has not acknowledged.
func (x *Conn) Unacknowledged() int { return x.data.len() }

// Close ends writing (CLOSE of RFC 9293 §3.10.4). A FIN follows the written
// bytes, even if Close comes before the connection is established. Bytes still
// arrive and can be read.
func (x *Conn) Close() {
	x.closed = true
	x.touch()
}

// Release is Close for a program that will not read either, like close(2).
// Bytes that it has not read, or that arrive later, reset the connection (RFC
// 9293 §3.6.1). FIN-WAIT-2 ends after Spec.FinWait2. A connection in SYN-SENT
// is forgotten.
func (x *Conn) Release(now sim.Time) {
	x.released = true
	x.touch()
	if x.came.len() > 0 && x.state != Closed {
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
		x.sendReset(x.top, true)
	}
	x.fail(now, ErrAborted)
}

// Read moves received bytes to b and returns how many.
func (x *Conn) Read(b []byte) int {
	n := x.came.read(b)
	if !x.synchronized() || x.finished {
		return n
	}
	if edge := x.rcv + x.window()<<x.myShift; after(edge, x.told) >= int32(max(1, min(2*x.mss, x.c.ReceiveBuffer/2))) {
		x.ackNow = true // the window has opened by enough to announce it (RFC 9293 §3.8.6.2.2)
		x.touch()
	}
	return n
}

// Readable returns how many bytes Read would move. If ended, no bytes follow
// them.
func (x *Conn) Readable() (n int, ended bool) {
	return x.came.len(), x.finished || x.state == Closed
}

// dataEnd is the sequence number after all data: the FIN's.
func (x *Conn) dataEnd() uint32 { return x.base + uint32(x.data.len()) }

// after returns how far a sequence number is beyond another.
func after(a, b uint32) int32 { return int32(a - b) }

// MSS is the most bytes of a segment to the peer.
func (x *Conn) MSS() int { return x.mss }

// Window returns the congestion window, the slow start threshold and the peer's
// window in bytes.
func (x *Conn) Window() (congestion, threshold, told uint32) { return x.cwnd, x.ssthresh, x.wnd }

// queue is a queue of bytes. It keeps its memory, so a steady stream allocates
// nothing.
type queue struct {
	b    []byte
	from int
}

func (q *queue) len() int { return len(q.b) - q.from }

func (q *queue) bytes() []byte { return q.b[q.from:] }

func (q *queue) append(b []byte) {
	// the bytes moved are fewer than the bytes removed since the last time
	if len(q.b)+len(b) > cap(q.b) && q.from >= q.len() && q.from > 0 {
		q.b = q.b[:copy(q.b, q.b[q.from:])]
		q.from = 0
	}
	q.b = append(q.b, b...)
}

func (q *queue) drop(n int) {
	if q.from += n; q.from == len(q.b) {
		q.b, q.from = q.b[:0], 0
	}
}

func (q *queue) read(b []byte) int {
	n := copy(b, q.bytes())
	q.drop(n)
	return n
}
