package inet_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// sender is an end that sends. The test is its peer: it sees each segment and
// decides about acknowledgements.
type sender struct {
	t    *testing.T
	x    *inet.Conn
	now  sim.Time
	sent []inet.Segment
	iss  uint32
}

const mss = 1000

func newSender(t *testing.T) *sender {
	c := config(mss)
	c.SendBuffer = 1 << 20
	s := &sender{t: t, x: inet.Dial(c, 1, there, 2, 100), iss: 100}
	s.output()
	require.Equal(t, []int{1}, []int{len(s.sent)})
	s.now += 2 * trip
	s.input(&inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535, MSS: mss, Scale: 1 + 4})
	require.True(t, s.x.Established())
	s.tell(101, 65535)
	s.sent = nil
	return s
}

func (s *sender) output() {
	s.x.Output(s.now, math.MaxInt, func(g *inet.Segment) {
		c := *g
		c.Data = append([]byte(nil), g.Data...)
		s.sent = append(s.sent, c)
	})
}

func (s *sender) input(g *inet.Segment) {
	s.x.Input(s.now, g)
	s.output()
}

// tell acknowledges, with a window in units of the scale.
func (s *sender) tell(ack uint32, window uint16) {
	s.input(&inet.Segment{Seq: 7001, Ack: ack, Flags: inet.ACK, Window: window})
}

// segments returns the starts of the segments that were sent since the last
// call, in units of the MSS after the first byte.
func (s *sender) segments() (list []int) {
	for _, g := range s.sent {
		if len(g.Data) > 0 {
			list = append(list, int(g.Seq-s.iss-1)/mss)
		}
	}
	s.sent = nil
	return list
}

func (s *sender) write(segments int) {
	require.Equal(s.t, segments*mss, s.x.Write(make([]byte, segments*mss)))
	s.output()
}

func (s *sender) ack(segment int) { s.tell(s.iss+1+uint32(segment*mss), 65535) }

// RFC 5681 §3.1: the initial window of segments of up to 1,095 B is four. In
// slow start each acknowledgement allows one more segment in addition to those
// it acknowledges.
func TestSlowStart(t *testing.T) {
	s := newSender(t)
	s.write(100)
	require.Equal(t, []int{0, 1, 2, 3}, s.segments())
	s.ack(1)
	require.Equal(t, []int{4, 5}, s.segments())
	s.ack(3) // two segments: still one more
	require.Equal(t, []int{6, 7, 8}, s.segments())
}

// RFC 5681 §3.2, RFC 6582: the third duplicate acknowledgement repeats the
// first segment. Each further one allows another segment once half the flight
// has left. A partial acknowledgement repeats the next hole. A full one ends
// the recovery with the window at half the flight.
func TestFastRetransmit(t *testing.T) {
	s := newSender(t)
	s.write(200)
	s.segments()
	for i := 1; i <= 12; i++ {
		s.ack(i)
	}
	s.segments() // 12 to 27: 16 under way
	s.ack(12)
	s.ack(12)
	require.Empty(t, s.segments())
	s.ack(12)
	require.Equal(t, []int{12}, s.segments())
	require.EqualValues(t, 1, s.x.Stats.Fast)
	for range 5 {
		s.ack(12)
	}
	require.Empty(t, s.segments(), "window 8 + 3 + 5 = 16")
	s.ack(12)
	require.Equal(t, []int{28}, s.segments())
	s.ack(14) // 14 is lost too
	require.Equal(t, 14, s.segments()[0])
	s.ack(29)
	require.LessOrEqual(t, len(s.segments()), 8)
	require.EqualValues(t, 2, s.x.Stats.Retransmitted)
	require.Zero(t, s.x.Stats.Timeouts)
	s.now = s.x.Deadline()
}

// RFC 6298: the first measurement makes the time-out the round trip plus four
// halves of it, at least the minimum. A time-out doubles it (5.5) and sends the
// first segment alone (RFC 5681 §3.1). An acknowledgement of a retransmission
// measures nothing (Karn).
func TestRetransmissionTimer(t *testing.T) {
	s := newSender(t)
	rto, rtt := s.x.RTO()
	require.Equal(t, 2*trip, rtt)
	require.Equal(t, sim.Millisecond, rto, "3 x 100 us is less than the least")
	s.write(50)
	s.segments()
	require.Equal(t, s.now+sim.Millisecond, s.x.Deadline())
	for doubled := range 3 {
		s.now = s.x.Deadline()
		s.x.Expire(s.now)
		s.output()
		require.Equal(t, []int{0}, s.segments())
		require.Equal(t, s.now+sim.Millisecond<<(doubled+1), s.x.Deadline())
	}
	s.now += 5 * sim.Millisecond
	s.ack(4)
	rto, rtt = s.x.RTO()
	require.Equal(t, 8*sim.Millisecond, rto, "it stays doubled until there is a measurement")
	require.Equal(t, 2*trip, rtt)
	require.Equal(t, []int{4, 5}, s.segments())
	s.now += sim.Millisecond
	s.ack(6)
	rto, rtt = s.x.RTO()
	require.Equal(t, (7*2*trip+sim.Millisecond)/8, rtt)
	require.Equal(t, rtt+3*trip+sim.Millisecond-2*trip, rto, "4 x (3/4 of half the first, and a quarter of the difference)")
}

// Congestion avoidance (RFC 5681 §3.1, (3)): beyond the threshold a window of
// acknowledgements opens the window by about a segment.
func TestCongestionAvoidance(t *testing.T) {
	s := newSender(t)
	s.write(500)
	at := 4
	for at < 40 {
		at++
		s.ack(at - 4)
	}
	s.segments()
	s.now = s.x.Deadline()
	s.x.Expire(s.now) // threshold: half of the flight
	s.output()
	first := s.segments()[0]
	count := func(from, n int) (sent int) { // acknowledges n segments one by one
		for i := 1; i <= n; i++ {
			s.ack(from + i)
			sent += len(s.segments())
		}
		return sent
	}
	require.Greater(t, count(first, 10), 15, "slow start")
	count(first+10, 20) // the threshold is 20
	first += 30
	for range 4 {
		n := count(first, 20)
		first += 20
		require.InDelta(t, 21, n, 1)
	}
}

// RFC 9293 §3.8.6: bytes that do not fit the window wait, and a closed window
// is probed. RFC 7323: windows are scaled.
func TestWindow(t *testing.T) {
	s := newSender(t)
	s.tell(101, 125) // 2,000 B
	s.write(10)
	require.Equal(t, []int{0, 1}, s.segments())
	s.tell(101+2000, 0)
	require.Empty(t, s.segments())
	require.NotEqual(t, inet.Never, s.x.Deadline())
	s.now = s.x.Deadline()
	s.x.Expire(s.now)
	s.output()
	require.Len(t, s.sent, 1)
	require.Len(t, s.sent[0].Data, 1, "a byte asks")
	s.sent = nil
	s.tell(101+2001, 125)
	require.Len(t, s.sent, 2)
	require.Zero(t, s.x.Stats.Timeouts)
}

// RFC 5681 §4.2: every second segment is acknowledged. A segment out of order,
// or one that fills a hole, is acknowledged at once, and a single one after a
// while.
func TestAcknowledgements(t *testing.T) {
	x := inet.Accept(config(mss), 0, here, &inet.Segment{SrcPort: 1, DstPort: 2, Seq: 99, Flags: inet.SYN, Window: 65535, MSS: mss, Scale: 1}, 500)
	now := sim.Time(0)
	var acks []uint32
	step := func() { x.Output(now, math.MaxInt, func(s *inet.Segment) { acks = append(acks, s.Ack) }) }
	data := func(segment int, flags uint8) {
		x.Input(now, &inet.Segment{Seq: 100 + uint32(segment*mss), Ack: 501, Flags: inet.ACK | flags, Window: 65535, Data: make([]byte, mss)})
		step()
	}
	step()
	require.Equal(t, []uint32{100}, acks)
	x.Input(now, &inet.Segment{Seq: 100, Ack: 501, Flags: inet.ACK, Window: 65535})
	step()
	acks = nil
	data(0, 0)
	require.Empty(t, acks)
	data(1, 0)
	require.Equal(t, []uint32{2100}, acks)
	data(3, 0)
	require.Equal(t, []uint32{2100, 2100}, acks)
	data(2, 0)
	require.Equal(t, []uint32{2100, 2100, 4100}, acks)
	data(4, 0)
	require.Len(t, acks, 3)
	require.Equal(t, now+config(mss).DelayedAck, x.Deadline())
	now = x.Deadline()
	x.Expire(now)
	step()
	require.EqualValues(t, 5100, acks[3])
	data(5, inet.PSH)
	require.EqualValues(t, 6100, acks[4])
	data(5, 0) // once more: the acknowledgement was lost
	require.EqualValues(t, 6100, acks[5])
	require.EqualValues(t, 6*mss, x.Stats.Received)
}
