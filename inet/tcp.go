package inet

import (
	"github.com/spinsim/spinsim/sim"
)

// maxScale is the most that a window is shifted by (RFC 7323 §2.3).
const maxScale = 14

// Config is what a connection is made with.
type Config struct {
	MSS           int      // most bytes of a segment that the own side takes, without headers
	SendBuffer    int      // bytes that the program may be ahead of acknowledgements
	ReceiveBuffer int      // bytes that may have come and were not read
	RTOInitial    sim.Time // time-out before there is a measurement (RFC 6298 §2.1: 1 s)
	RTOMin        sim.Time // least (RFC 6298 §2.4: 1 s; systems have less)
	RTOMax        sim.Time // most, to which it doubles
	DelayedAck    sim.Time // most that an acknowledgement is held back for another segment (RFC 5681 §4.2: below 500 ms)
}

// Stats is what a connection has done.
type Stats struct {
	Segments      int64 // sent, all kinds
	Retransmitted int64 // of them, those with bytes that were sent before
	Timeouts      int64
	Fast          int64 // retransmissions that three duplicate acknowledgements began
	Received      int64 // bytes that came in order
	Reordered     int64 // segments that came before others of the stream
}

// Never is the deadline of a connection that waits for nothing.
const Never = sim.MaxTime

type connState uint8

const (
	listening connState = iota
	synSent
	synReceived
	established
)

// Conn is an end of a connection. Numbers are those of RFC 9293 §3.3: una, nxt and wnd of SND, rcv of RCV.
type Conn struct {
	Local, Remote uint16 // ports
	Peer          Addr
	Stats         Stats

	c     Config
	state connState
	mss   int // of segments that are sent

	iss, una, nxt, top uint32 // top: beyond all that was ever sent
	wnd, wl1, wl2      uint32
	shift, myShift     uint   // of windows that come, and that are told
	data               []byte // from base on
	base               uint32
	closed             bool // the program writes no more: a FIN follows the data
	cwnd, ssthresh     uint32
	duplicates         int
	recovering         bool
	recover            uint32
	again              bool // the first segment is to be sent once more
	probe              bool // a byte is to be sent whatever the window is

	rto, srtt, rttvar sim.Time
	timed             bool // a segment is being measured (RFC 6298 §3, Karn: none that was sent again)
	timedEnd          uint32
	timedAt           sim.Time
	expires           sim.Time // time-out, Never: none

	rcv      uint32
	pending  []byte // that came in order and was not read
	early    []piece
	finished bool // the other side's FIN has come, in order
	ackNow   bool
	unacked  int      // segments that have no acknowledgement yet
	ackAt    sim.Time // Never: none is held back
	told     uint32   // right edge of the window that was told last
}

// piece is data that came before its turn.
type piece struct {
	seq  uint32
	data []byte
	fin  bool
}

func newConn(c Config, iss uint32) *Conn {
	shift := uint(0)
	for c.ReceiveBuffer>>shift > 0xffff && shift < maxScale {
		shift++
	}
	return &Conn{c: c, iss: iss, una: iss, nxt: iss, top: iss, base: iss + 1, mss: defaultMSS, rto: c.RTOInitial, expires: Never, ackAt: Never, ssthresh: 1 << 30, myShift: shift}
}

// defaultMSS is that of a peer that says nothing (RFC 9293 §3.7.1).
const defaultMSS = 536

// Dial returns a connection that begins with a SYN, at the next Output.
func Dial(c Config, local uint16, peer Addr, remote uint16, iss uint32) *Conn {
	x := newConn(c, iss)
	x.Local, x.Remote, x.Peer, x.state = local, remote, peer, synSent
	return x
}

// Accept returns the connection that a SYN to a port asks for.
func Accept(c Config, peer Addr, s *Segment, iss uint32) *Conn {
	x := newConn(c, iss)
	x.Local, x.Remote, x.Peer, x.state = s.DstPort, s.SrcPort, peer, synReceived
	x.synced(s)
	return x
}

// synced takes the SYN of the other side.
func (x *Conn) synced(s *Segment) {
	x.rcv = s.Seq + 1
	x.mss = min(x.c.MSS, max(int(s.MSS), defaultMSS))
	if s.Scale == 0 {
		x.myShift = 0
	} else {
		x.shift = uint(s.Scale - 1)
	}
	x.wnd = uint32(s.Window) // that of a SYN is not scaled (RFC 7323 §2.2)
	// RFC 5681 §3.1, (1)
	switch {
	case x.mss > 2190:
		x.cwnd = uint32(2 * x.mss)
	case x.mss > 1095:
		x.cwnd = uint32(3 * x.mss)
	default:
		x.cwnd = uint32(4 * x.mss)
	}
	x.ackNow = true
}

// Established reports whether both sides have agreed.
func (x *Conn) Established() bool { return x.state == established }

// Write takes bytes to be sent, as many as the buffer has room for, and returns how many.
func (x *Conn) Write(b []byte) int {
	if x.closed {
		return 0
	}
	n := min(len(b), max(0, x.c.SendBuffer-len(x.data)))
	x.data = append(x.data, b[:n]...)
	return n
}

// Room is how many bytes Write would take.
func (x *Conn) Room() int { return max(0, x.c.SendBuffer-len(x.data)) }

// Close says that no more bytes will be written.
func (x *Conn) Close() { x.closed = true }

// Read moves bytes that have come to b and returns how many.
func (x *Conn) Read(b []byte) int {
	n := copy(b, x.pending)
	x.pending = x.pending[:copy(x.pending, x.pending[n:])]
	if edge := x.rcv + x.window()<<x.myShift; after(edge, x.told) >= int32(min(2*x.mss, x.c.ReceiveBuffer/2)) && x.state == established {
		x.ackNow = true // the window has opened by enough to be told (RFC 9293 §3.8.6.2.2)
	}
	return n
}

// Readable is how many bytes Read would move; ended: nothing will come behind them.
func (x *Conn) Readable() (n int, ended bool) { return len(x.pending), x.finished }

// Done reports whether all that was written, and the end of it, was acknowledged.
func (x *Conn) Done() bool { return x.closed && x.state == established && x.una == x.end()+1 }

// end is the sequence number behind all data: that of a FIN.
func (x *Conn) end() uint32 { return x.base + uint32(len(x.data)) }

// after returns by how much a sequence number is beyond another.
func after(a, b uint32) int32 { return int32(a - b) }

// window is what is told of the room for data, shifted.
func (x *Conn) window() uint32 {
	room := x.c.ReceiveBuffer - len(x.pending)
	return min(uint32(max(room, 0))>>x.myShift, 0xffff)
}
