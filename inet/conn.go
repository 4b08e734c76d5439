package inet

import "github.com/spinsim/spinsim/sim"

// maxScale is the most that a window is shifted by (RFC 7323 §2.3).
const maxScale = 14

// defaultMSS is that of a peer that says nothing (RFC 9293 §3.7.1).
const defaultMSS = 536

// leastMSS is the least that is believed, so that a hostile option does not
// make segments of nothing (Linux: TCP_MIN_SND_MSS).
const leastMSS = 48

// Config is what a connection is made with.
type Config struct {
	Spec
	MSS int // most bytes of a segment that the own side takes, without headers: 1 to 65,495
}

// Stats is what a connection has done.
type Stats struct {
	Segments      int64 // sent, all kinds
	Retransmitted int64 // of them, those with bytes that were sent before
	Timeouts      int64 // of the retransmission timer
	Fast          int64 // recoveries that duplicate acknowledgements, or selective ones, began
	Received      int64 // bytes that came in order
	Reordered     int64 // segments that came before others of the stream
	Crowded       int64 // of them, those that there was no memory for
	Probes        int64 // of a closed window
	TailProbes    int64 // of the last segments (RFC 8985 §7)
	Challenges    int64 // acknowledgements that RFC 5961 has sent instead of believing a segment
	Dropped       int64 // segments that came and were not acceptable (RFC 9293 §3.10.7.4, first)
	// of them, those that another had been answered shortly before
	// (Spec.LimitUnacceptable)
	Unanswered int64
	Resets     int64 // sent
}

// Never is the deadline of a connection that waits for nothing.
const Never = sim.MaxTime

// Conn is an end of a connection. Numbers are those of RFC 9293 §3.3.1: una and
// wnd of SND, top its NXT, rcv of RCV.
type Conn struct {
	Local, Remote uint16 // ports
	Peer          Addr
	Stats         Stats

	c        Config
	state    State
	passive  bool // it began with the other side's SYN
	failure  *Failure
	finAcked bool
	finished bool // the other side's FIN has come, in order
	released bool // the program has gone
	mss      int  // of segments that are sent

	iss, una, nxt, top uint32 // nxt: what is sent next, top: beyond all that was ever sent
	wnd, wl1, wl2      uint32
	maxWnd             uint32 // the largest window that the other side has told
	shift, myShift     uint   // of windows that come, and that are told
	data               queue  // from base on
	base               uint32
	closed             bool // the program writes no more: a FIN follows the data
	congestion
	sack scoreboard
	tail tail
	timers

	irs    uint32
	rcv    uint32
	told   uint32 // right edge of the window that was told last
	came   queue  // in order, and was not read
	early  []piece
	held   int     // bytes that they take
	blocks []Block // of early, the latest first (RFC 2018 §4)
	ackNow bool

	unacked int // segments that have no acknowledgement yet
	out     Segment
	hosted  hosted
	reset   struct { // that is to be sent
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
	again          bool // the first segment is to be sent once more
	lastData       sim.Time
}

// timers are those of RFC 6298, of probes, of acknowledgements and of states.
type timers struct {
	rto, srtt, rttvar sim.Time
	sa, sv            int64 // estimator in ticks: eight times the mean, four times the deviation
	// a segment is being measured (RFC 6298 §3, Karn: none that was sent again)
	timed      bool
	timedEnd   uint32
	timedAt    sim.Time
	expires    sim.Time // time-out, Never: none
	armed      sim.Time // when it was started
	retries    int      // time-outs since something was acknowledged
	since      sim.Time // when what timed out first was sent
	synLost    bool
	persist    sim.Time // until the next probe; 0: the window is open
	probe      bool     // a byte is to be sent whatever the window is
	probes     int      // that were not answered
	ackAt      sim.Time // Never: no acknowledgement is held back
	linger     sim.Time // end of TIME-WAIT, of FIN-WAIT-2 or of SYN-RECEIVED; Never: none
	challenged sim.Time // when the next challenge may be sent
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

// Accept returns the connection that a SYN to a port asks for.
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

// synced takes the SYN of the other side.
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
	x.wnd = uint32(s.Window) // that of a SYN is not scaled (RFC 7323 §2.2)
	x.maxWnd = x.wnd
	x.cwnd = x.initialWindow()
	x.ackNow = true
}

// Write takes bytes to be sent, as many as the buffer has room for, and returns how many.
func (x *Conn) Write(b []byte) int {
	n := min(len(b), x.Room())
	x.data.append(b[:n])
	x.touch()
	return n
}

// Room is how many bytes Write would take.
func (x *Conn) Room() int {
	if x.closed || x.state == Closed {
		return 0
	}
	return max(0, x.c.SendBuffer-x.data.len())
}

// Unacknowledged is how many bytes were written that the other side has not acknowledged.
func (x *Conn) Unacknowledged() int { return x.data.len() }

// Close says that no more bytes will be written (CLOSE of RFC 9293 §3.10.4): a
// FIN follows what was written, also before the connection is established.
// Bytes still come and can be read.
func (x *Conn) Close() {
	x.closed = true
	x.touch()
}

// Release is Close for a program that will not read either, as close(2): bytes
// that it has not read, or that come, reset the connection (RFC 9293 §3.6.1),
// and FIN-WAIT-2 ends after Spec.FinWait2. A connection in SYN-SENT is
// forgotten.
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

// Abort ends the connection at once and resets it at the other side (RFC 9293 §3.10.5).
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

// Read moves bytes that have come to b and returns how many.
func (x *Conn) Read(b []byte) int {
	n := x.came.read(b)
	if !x.synchronized() || x.finished {
		return n
	}
	if edge := x.rcv + x.window()<<x.myShift; after(edge, x.told) >= int32(max(1, min(2*x.mss, x.c.ReceiveBuffer/2))) {
		x.ackNow = true // the window has opened by enough to be told (RFC 9293 §3.8.6.2.2)
		x.touch()
	}
	return n
}

// Readable is how many bytes Read would move; ended: nothing will come behind them.
func (x *Conn) Readable() (n int, ended bool) {
	return x.came.len(), x.finished || x.state == Closed
}

// dataEnd is the sequence number behind all data: that of a FIN.
func (x *Conn) dataEnd() uint32 { return x.base + uint32(x.data.len()) }

// after returns by how much a sequence number is beyond another.
func after(a, b uint32) int32 { return int32(a - b) }

// MSS is the most bytes of a segment to the other side.
func (x *Conn) MSS() int { return x.mss }

// Window returns the congestion window, the slow start threshold and the other
// side's window in bytes.
func (x *Conn) Window() (congestion, threshold, told uint32) { return x.cwnd, x.ssthresh, x.wnd }

// queue is a queue of bytes. It keeps its memory: in a stream that flows nothing is allocated.
type queue struct {
	b    []byte
	from int
}

func (q *queue) len() int { return len(q.b) - q.from }

func (q *queue) bytes() []byte { return q.b[q.from:] }

func (q *queue) append(b []byte) {
	// what is moved is less than what was taken out since the last time
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
