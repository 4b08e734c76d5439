package inet

import (
	"math"

	"github.com/spinsim/spinsim/sim"
)

// Output passes up to most segments, which the connection may send now, to emit.
// emit must not keep them or their data. Output reports whether there may
// be more.
func (x *Conn) Output(now sim.Time, most int, emit func(*Segment)) (more bool) {
	last := x.Stats.Segments + min(int64(most), math.MaxInt64-x.Stats.Segments)
	if x.reset.due && most > 0 {
		x.reset.due = false
		x.Stats.Resets++
		x.out = Segment{Seq: x.reset.seq, Flags: RST}
		if x.reset.ack {
			x.out.Flags |= ACK
		}
		x.send(emit)
	}
	switch x.state {
	case Closed:
		return x.reset.due
	case SynSent, SynReceived:
		return x.begin(now, last, emit)
	}
	if x.snd.again && x.Stats.Segments < last {
		seq, n := x.snd.repeat()
		x.emitData(now, emit, seq, n)
		x.snd.arm(now)
	}
	if x.snd.tail.due && x.Stats.Segments < last {
		seq, n := x.snd.probeTail()
		x.emitData(now, emit, seq, n)
		x.snd.tail.end = x.snd.top
	}
	for x.Stats.Segments < last {
		seq, n, ok := x.snd.next(now)
		if !ok {
			break
		}
		x.emitData(now, emit, seq, n)
	}
	if x.Stats.Segments >= last {
		return true
	}
	if x.snd.expires == Never && x.snd.una == x.snd.nxt && (x.snd.data.len() > 0 || x.snd.closed && !x.finAcked) {
		x.snd.askLater(now)
	}
	if x.rcv.ackNow {
		x.acknowledge(emit)
	}
	return false
}

// acknowledge sends a segment without data.
func (x *Conn) acknowledge(emit func(*Segment)) {
	x.out = Segment{Seq: x.snd.acknowledging(), Flags: ACK}
	x.rcv.tell(&x.out)
	x.send(emit)
}

// begin is Output until the connection is established. It sends the SYN, and in
// SYN-RECEIVED the answer to a segment that was not acceptable or is
// challenged.
func (x *Conn) begin(now sim.Time, last int64, emit func(*Segment)) (more bool) {
	switch {
	case x.snd.nxt != x.snd.iss && (x.state != SynReceived || !x.rcv.ackNow):
	case x.Stats.Segments >= last:
		return true
	case x.snd.nxt == x.snd.iss:
		x.synchronize(now, emit)
	default:
		x.acknowledge(emit)
	}
	return false
}

// synchronize sends the SYN, with an acknowledgement if the peer's SYN has
// come.
func (x *Conn) synchronize(now sim.Time, emit func(*Segment)) {
	x.out = Segment{Seq: x.snd.iss, Flags: SYN, MSS: uint16(min(x.c.MSS, 0xffff)), Selective: x.c.SACK}
	if x.c.WindowScale {
		x.out.Scale = 1 + int(x.rcv.scale)
	}
	if x.state == SynReceived { // without an offer from the peer this side offers nothing
		x.out.Flags |= ACK
		x.out.Selective = x.snd.sack.on
		if x.rcv.scale == 0 && x.snd.shift == 0 {
			x.out.Scale = 0
		}
	}
	if after(x.snd.top, x.snd.iss) > 0 {
		x.Stats.Retransmitted++
	}
	x.send(emit)
	x.snd.sent(now, x.snd.iss, 1)
}

// emitData sends n bytes from a sequence number on, and the FIN after the last.
func (x *Conn) emitData(now sim.Time, emit func(*Segment), seq uint32, n int) {
	length := x.snd.segment(&x.out, seq, n)
	if length == 0 {
		return
	}
	if x.out.Flags&FIN != 0 {
		switch x.state {
		case Established:
			x.state = FinWait1
		case CloseWait:
			x.state = LastAck
		}
	}
	apart := false
	// options reduce the MSS (RFC 9293 §3.7.1)
	if told := len(x.rcv.blocks); len(x.out.Data)+8*min(told, mostTold)+4 <= x.snd.mss {
		x.rcv.tell(&x.out)
	} else if x.rcv.selective && told > 0 {
		apart = x.rcv.ackNow // new blocks go in a separate segment
	}
	x.snd.lastData = now
	x.send(emit)
	x.rcv.ackNow = apart
	x.snd.sent(now, seq, length)
}

// send completes the segment and emits it.
func (x *Conn) send(emit func(*Segment)) {
	s := &x.out
	s.SrcPort, s.DstPort = x.Local, x.Remote
	if s.Flags&RST != 0 {
		s.Ack = x.reset.number
	} else {
		x.rcv.acknowledge(s)
	}
	x.Stats.Segments++
	emit(s)
}
