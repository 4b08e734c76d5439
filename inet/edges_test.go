package inet_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// A device takes one packet at a time. The answer to a segment to a closed port
// uses the first place, and the SYN goes with the next.
func TestOutputOneByOne(t *testing.T) {
	l := newLAN(t, "linux", 2)
	a := l.order[0]
	s := inet.Segment{SrcPort: 1, DstPort: 9, Flags: inet.ACK}
	p := inet.Packet{Src: there, Dst: a.Addr, Protocol: inet.ProtocolTCP, Payload: s.Append(nil, there, a.Addr)}
	require.NoError(t, a.Input(0, p.Append(nil)))
	_, err := a.Dial(0, l.order[1].Addr, 80)
	require.NoError(t, err)
	var flags []uint8
	for more := true; more; {
		more = a.Output(0, 1, func(b []byte) {
			p, err := inet.Parse(b)
			require.NoError(t, err)
			s, err := inet.ParseTCP(&p)
			require.NoError(t, err)
			flags = append(flags, s.Flags)
		})
	}
	require.Equal(t, []uint8{inet.RST, inet.SYN}, flags)
	require.Equal(t, sim.Second, a.Deadline())
}

// RFC 6582 §3.2: the comparison with the last recovery is modulo 2^32. A stream
// without losses for 2 GiB enters fast retransmit like a young one.
func TestRecoveryOfOldStreams(t *testing.T) {
	for _, sack := range []bool{false, true} {
		const mss = 65000
		c := config(mss)
		c.SendBuffer, c.SACK = 1<<22, sack
		x := inet.Dial(c, 1, there, 2, 100)
		now, again, last := sim.Time(0), 0, uint32(101)
		output := func() {
			x.Output(now, math.MaxInt, func(s *inet.Segment) {
				if len(s.Data) > 0 && int32(s.Seq-last) < 0 {
					again++
				}
				last = max(last, s.Seq+uint32(len(s.Data)))
			})
		}
		ack := func(number uint32, blocks ...inet.Block) {
			s := inet.Segment{Seq: 7001, Ack: number, Flags: inet.ACK, Window: 65535, Told: uint8(len(blocks))}
			copy(s.Blocks[:], blocks)
			x.Input(now, &s)
			output()
		}
		output()
		x.Input(now, &inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535, MSS: mss, Scale: 1 + 8, Selective: true})
		piece := make([]byte, 1<<20)
		for last < 1<<31+1<<28 {
			x.Write(piece)
			output()
			ack(last)
		}
		x.Write(make([]byte, 10*mss))
		first := last
		output()
		for i := range uint32(4) {
			at := first + (i+1)*mss
			if sack {
				ack(first, inet.Block{From: at, To: at + mss})
			} else {
				ack(first)
			}
		}
		require.EqualValues(t, 1, x.Stats.Fast, "sack %v", sack)
		require.Positive(t, again)
	}
}

// A program reads whenever something comes, on hosts with a buffer of one byte.
// Reading nothing opens no window, and the two sides do not announce windows to
// each other for ever.
func TestReadingNothing(t *testing.T) {
	l := newLAN(t, "linux", 2, "receive_buffer=1B")
	listener, err := l.order[1].Listen(80, 1)
	require.NoError(t, err)
	x, err := l.order[0].Dial(0, l.order[1].Addr, 80)
	require.NoError(t, err)
	x.Write([]byte("ab"))
	var got []byte
	for i := 0; l.step(sim.Second); i++ {
		require.Less(t, i, 1000, "it does not stop")
		listener.Accept()
		for _, h := range l.order {
			for x := h.Next(); x != nil; x = h.Next() {
				var b [10]byte
				got = append(got, b[:x.Read(b[:])]...)
			}
		}
	}
	require.Equal(t, "ab", string(got))
	require.True(t, x.Established())
}

// RFC 9293 §3.8.6.1: probes of a closed window go on as long as there are
// answers, even if there is only a FIN to send. A side that has filled the
// window and closed does not give up.
func TestCloseIntoClosedWindow(t *testing.T) {
	for _, set := range inet.Sets() {
		l := newLAN(t, set, 2, "receive_buffer=3000B", "time_wait=1s")
		listener, err := l.order[1].Listen(80, 1)
		require.NoError(t, err)
		x, err := l.order[0].Dial(0, l.order[1].Addr, 80)
		require.NoError(t, err)
		l.run(sim.Millisecond)
		y := listener.Accept()
		require.Equal(t, 3000, x.Write(make([]byte, 3000)))
		l.run(5 * sim.Second)
		require.Zero(t, x.Unacknowledged())
		x.Close()
		l.run(20_000 * sim.Second)
		require.NoError(t, x.Err(), set)
		require.Equal(t, 3000, y.Read(make([]byte, 4000)))
		l.run(20_200 * sim.Second)
		n, ended := y.Readable()
		require.Zero(t, n)
		require.True(t, ended)
		require.True(t, x.Done())
	}
}

// Next returns no connection that the program does not have: neither one that
// waits for Accept nor one whose handshake has failed. Earlier events become
// news with Accept.
func TestNextBeforeAccept(t *testing.T) {
	l := newLAN(t, "linux", 2, "syn_ack_retries=1")
	a, b := l.order[0], l.order[1]
	listener, err := b.Listen(80, 3)
	require.NoError(t, err)
	x, err := a.Dial(0, b.Addr, 80)
	require.NoError(t, err)
	x.Write([]byte("hello"))
	syn := inet.Segment{SrcPort: 5, DstPort: 80, Flags: inet.SYN, Window: 100}
	p := inet.Packet{Src: inet.Addr{10, 0, 0, 99}, Dst: b.Addr, Protocol: inet.ProtocolTCP, Payload: syn.Append(nil, inet.Addr{10, 0, 0, 99}, b.Addr)}
	require.NoError(t, b.Input(0, p.Append(nil)))
	l.run(10 * sim.Second)
	require.Equal(t, 1, b.Conns(), "nobody has acknowledged the SYN of the other")
	require.Nil(t, b.Next())
	y := listener.Accept()
	require.NotNil(t, y)
	require.Same(t, y, b.Next())
	require.Nil(t, b.Next())
	var read [10]byte
	require.Equal(t, 5, y.Read(read[:]))
}

// Queues without a reader have a limit: datagrams without bytes, datagrams that
// a device has no room for, and answers to segments without a connection.
func TestQueuesHaveEnds(t *testing.T) {
	l := newLAN(t, "linux", 1, "receive_buffer=1000B", "send_buffer=1000B")
	h := l.order[0]
	u, err := h.UDP(9)
	require.NoError(t, err)
	d := inet.Datagram{SrcPort: 1, DstPort: 9}
	empty := inet.Packet{Src: there, Dst: h.Addr, Protocol: inet.ProtocolUDP, Payload: d.Append(nil, there, h.Addr)}
	s := inet.Segment{SrcPort: 1, DstPort: 9, Flags: inet.ACK}
	stray := inet.Packet{Src: there, Dst: h.Addr, Protocol: inet.ProtocolTCP, Payload: s.Append(nil, there, h.Addr)}
	for range 5000 {
		require.NoError(t, h.Input(0, empty.Append(nil)))
		require.NoError(t, h.Input(0, stray.Append(nil)))
	}
	n := 0
	for _, is := u.Receive(); is; _, is = u.Receive() {
		n++
	}
	require.Equal(t, 125, n, "each takes the bytes of its header: 8")
	require.EqualValues(t, 5000-125, u.Dropped)
	sent := 0
	h.Output(0, math.MaxInt, func([]byte) { sent++ })
	require.Equal(t, 1000, sent)
	require.EqualValues(t, 1000, h.Stats.Refused)
	for range 125 {
		require.NoError(t, u.Send(there, 1, nil))
	}
	require.ErrorIs(t, u.Send(there, 1, nil), inet.ErrNoRoom)
	h.Output(0, math.MaxInt, func([]byte) {})
	require.NoError(t, u.Send(there, 1, make([]byte, 1400)), "one always has room")
	require.ErrorIs(t, u.Send(there, 1, nil), inet.ErrNoRoom)
	require.NoError(t, h.Input(0, empty.Append(nil)))
	_, is := u.Receive()
	require.True(t, is, "there is room again")
}

// A backlog counts connections in the handshake and connections that wait for
// Accept. A failed handshake frees its place.
func TestBacklog(t *testing.T) {
	l := newLAN(t, "linux", 2, "syn_ack_retries=1")
	a, b := l.order[0], l.order[1]
	k, err := b.Listen(80, 2)
	require.NoError(t, err)
	for i := range 3 {
		_, err = a.Dial(l.now, b.Addr, 80)
		require.NoError(t, err)
		l.run(l.now + 10*sim.Millisecond)
		require.EqualValues(t, max(0, i-1), b.Stats.Overflow)
	}
	for k.Accept() != nil {
	}
	l.run(l.now + 2*sim.Second) // the third SYN comes again
	require.NotNil(t, k.Accept())
	silent := func(port uint16) {
		syn := inet.Segment{SrcPort: port, DstPort: 80, Flags: inet.SYN, Window: 100}
		p := inet.Packet{Src: inet.Addr{10, 0, 0, 99}, Dst: b.Addr, Protocol: inet.ProtocolTCP, Payload: syn.Append(nil, inet.Addr{10, 0, 0, 99}, b.Addr)}
		require.NoError(t, b.Input(l.now, p.Append(nil)))
	}
	before := b.Stats.Overflow
	for port := range uint16(3) {
		silent(100 + port)
	}
	require.Equal(t, before+1, b.Stats.Overflow)
	l.run(l.now + 10*sim.Second)
	silent(200)
	silent(201)
	require.Equal(t, before+1, b.Stats.Overflow)
}

// Timers that end together are handled in the order in which connections were
// made.
func TestTimersInOrder(t *testing.T) {
	h := newLAN(t, "linux", 1).order[0]
	var ports [2][]uint16
	for i := range ports {
		if i == 0 {
			for range 20 {
				_, err := h.Dial(0, there, 80)
				require.NoError(t, err)
			}
		} else {
			h.Expire(h.Deadline())
		}
		h.Output(sim.Time(i)*sim.Second, math.MaxInt, func(b []byte) {
			p, err := inet.Parse(b)
			require.NoError(t, err)
			s, err := inet.ParseTCP(&p)
			require.NoError(t, err)
			ports[i] = append(ports[i], s.SrcPort)
		})
	}
	require.Len(t, ports[0], 20)
	require.Equal(t, ports[0], ports[1])
}

// RFC 9293 §3.4.1: the first sequence number of a connection grows by one in 4 us.
func TestFirstNumbersGrow(t *testing.T) {
	var first [2]uint32
	for i, now := range []sim.Time{sim.Second, sim.Second + 4*sim.Millisecond} {
		h := newLAN(t, "linux", 1).order[0]
		_, err := h.Dial(now, there, 80)
		require.NoError(t, err)
		h.Output(now, 1, func(b []byte) {
			p, err := inet.Parse(b)
			require.NoError(t, err)
			s, err := inet.ParseTCP(&p)
			require.NoError(t, err)
			first[i] = s.Seq
		})
	}
	require.EqualValues(t, 1000, first[1]-first[0])
}

// Of a receiver that reports one block for every other byte, 256 blocks are
// kept.
func TestBlocksHaveAnEnd(t *testing.T) {
	c := config(mss)
	c.SACK = true
	x := inet.Dial(c, 1, there, 2, 100)
	output := func() { x.Output(0, math.MaxInt, func(*inet.Segment) {}) }
	output()
	x.Input(0, &inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535, MSS: mss, Scale: 1, Selective: true})
	x.Write(make([]byte, 4000))
	output()
	for i := range uint32(1000) {
		s := inet.Segment{Seq: 7001, Ack: 101, Flags: inet.ACK, Window: 65535, Told: 1}
		s.Blocks[0] = inet.Block{From: 102 + 2*i, To: 103 + 2*i}
		x.Input(0, &s)
		output()
		require.NoError(t, x.Check())
	}
}

// Closing twice does not take the port from its next owner.
func TestCloseTwice(t *testing.T) {
	h := newLAN(t, "linux", 1).order[0]
	u, err := h.UDP(9)
	require.NoError(t, err)
	u.Close()
	_, err = h.UDP(9)
	require.NoError(t, err)
	u.Close()
	_, err = h.UDP(9)
	require.ErrorIs(t, err, inet.ErrInUse)
	require.ErrorIs(t, u.Send(there, 1, nil), inet.ErrClosed)
	k, err := h.Listen(9, 1)
	require.NoError(t, err)
	k.Close(0)
	_, err = h.Listen(9, 1)
	require.NoError(t, err)
	k.Close(0)
	_, err = h.Listen(9, 1)
	require.ErrorIs(t, err, inet.ErrInUse)
}

// Nothing acknowledges a SYN that was not sent (RFC 9293 §3.10.7.3, §3.10.7.4).
// A peer that knows the number beforehand gets a reset, on both sides.
func TestAcknowledgedBeforeItIsSent(t *testing.T) {
	ack := inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535}
	x := inet.Dial(config(mss), 1, there, 2, 100)
	x.Input(0, &ack)
	require.Equal(t, inet.SynSent, x.State())
	y := inet.Accept(config(mss), 0, here, &inet.Segment{Seq: 6999, Flags: inet.SYN, Window: 65535}, 100)
	ack.Flags = inet.ACK
	y.Input(0, &ack)
	require.Equal(t, inet.SynReceived, y.State())
	for _, c := range []*inet.Conn{x, y} {
		var flags []uint8
		c.Output(0, math.MaxInt, func(s *inet.Segment) { flags = append(flags, s.Flags&^inet.ACK) })
		require.Equal(t, []uint8{inet.RST, inet.SYN}, flags)
	}
}

// Early single bytes take no more memory than twice the window, in any order.
// Every other byte is kept while there is room for it as a piece; bytes that
// follow each other are one piece. Refused bytes are not acknowledged in
// blocks, so the stream is whole after they come again.
func TestEarlyBytes(t *testing.T) {
	const window = 65535
	segment := func(at int) *inet.Segment {
		return &inet.Segment{Seq: uint32(7001 + at), Ack: 101, Flags: inet.ACK, Window: 65535, Data: []byte{byte(at)}}
	}
	for name, order := range map[string]func(i int) int{
		"every other":           func(i int) int { return 1 + 2*i },
		"every other backwards": func(i int) int { return window - 2 - 2*i },
		"one behind the other":  func(i int) int { return 1 + i },
	} {
		t.Run(name, func(t *testing.T) {
			c := config(mss)
			c.ReceiveBuffer, c.WindowScale = window, false
			x := inet.Dial(c, 1, there, 2, 100)
			x.Output(0, math.MaxInt, func(*inet.Segment) {})
			x.Input(0, &inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535, MSS: mss})
			for i := range window / 2 {
				x.Input(0, segment(order(i)))
				x.Output(0, math.MaxInt, func(*inet.Segment) {})
			}
			require.NoError(t, x.Check())
			if name == "one behind the other" {
				require.Equal(t, 1, x.Early())
				require.Zero(t, x.Stats.Crowded)
			} else {
				require.Equal(t, 2*window/65, x.Early(), "a byte, and 64 for the piece")
				require.EqualValues(t, window/2-2*window/65, x.Stats.Crowded)
			}
			for at := range window {
				x.Input(0, segment(at))
			}
			got := make([]byte, window)
			require.Equal(t, window, x.Read(got))
			for at, b := range got {
				require.Equal(t, byte(at), b, at)
			}
		})
	}
}

// A FIN that comes repeatedly before its turn is kept once.
func TestFINKeptOnce(t *testing.T) {
	s := newSender(t)
	for range 1000 {
		s.input(&inet.Segment{Seq: 8001, Ack: 101, Flags: inet.ACK | inet.FIN, Window: 100, Data: make([]byte, 500)})
		s.input(&inet.Segment{Seq: 8501, Ack: 101, Flags: inet.ACK | inet.FIN, Window: 100})
	}
	require.LessOrEqual(t, s.x.Early(), 2)
}

// The end of the handshake and the data of both SYNs come together, before
// anything is sent. The peer's SYN is acknowledged all the same.
func TestSimultaneousOpenAtOnce(t *testing.T) {
	x := inet.Dial(config(mss), 1, there, 2, 100)
	var last inet.Segment
	output := func() { x.Output(0, math.MaxInt, func(s *inet.Segment) { last = *s }) }
	output()
	x.Input(0, &inet.Segment{Seq: 7000, Flags: inet.SYN, Window: 65535})
	x.Input(0, &inet.Segment{Seq: 7000, Ack: 101, Flags: inet.SYN | inet.ACK, Window: 65535})
	require.True(t, x.Established())
	output()
	require.EqualValues(t, 7001, last.Ack)
	require.Equal(t, inet.Never, x.Deadline())
}
