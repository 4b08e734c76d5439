package inet_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

// hostile runs an end of a connection against a random peer. Each twelve bytes
// are a segment near the expected one, or an action of the program, or time.
func hostile(t require.TestingT, b []byte) {
	if len(b) < 2 {
		return
	}
	spec, err := inet.Load(inet.Sets()[int(b[0])%len(inet.Sets())])
	require.NoError(t, err)
	spec.SendBuffer, spec.ReceiveBuffer = 1+int(b[1])*40, 1+int(b[1])*50
	spec.Nagle, spec.Challenge = b[0]&16 != 0, b[0]&32 != 0
	c := inet.Config{Spec: *spec, MSS: 1 + int(b[1])*8}
	const iss, irs = 1<<32 - 300, 1<<32 - 200
	var x *inet.Conn
	if b[0]&64 != 0 {
		x = inet.Accept(c, 0, here, &inet.Segment{Seq: irs, Flags: inet.SYN, Window: 3000, MSS: uint16(b[1]) * 5, Scale: int(b[0]) % 16, Selective: b[0]&128 != 0}, iss)
	} else {
		x = inet.Dial(c, 1, there, 2, iss)
	}
	now := sim.Time(0)
	segments := 0
	for b = b[2:]; len(b) >= 12 && segments < 20_000; b = b[12:] {
		v := binary.LittleEndian.Uint64(b[4:])
		switch b[0] % 8 {
		case 0:
			x.Write(make([]byte, v%5000))
		case 1:
			x.Read(make([]byte, v%5000))
		case 2:
			act(x, now, b[1])
		case 3:
			now += sim.Time(v % uint64(100*sim.Second))
			if x.Deadline() <= now {
				x.Expire(now)
			}
		default:
			s := inet.Segment{
				Seq: irs + 1 + uint32(int32(int16(v))), Ack: iss + 1 + uint32(int32(int16(v>>16))), Flags: b[1], Window: uint16(v >> 32),
				Data: make([]byte, int(v>>48)%3000), MSS: uint16(b[2]) * 7, Scale: int(b[3]) % 16, Selective: b[2]&1 != 0, Told: b[3] % 5,
			}
			for i := range s.Told {
				from := s.Ack + uint32(v>>(8*i)&0x3ff)
				s.Blocks[i] = inet.Block{From: from, To: from + uint32(b[2])*uint32(i+1)}
			}
			x.Input(now, &s)
		}
		for more := true; more; {
			more = x.Output(now, 7, func(s *inet.Segment) {
				segments++
				require.LessOrEqual(t, len(s.Data), max(c.MSS, 1))
			})
			require.Less(t, segments, 1_000_000, "it does not stop")
		}
		require.NoError(t, x.Check())
	}
}

func act(x *inet.Conn, now sim.Time, b byte) {
	switch b % 16 {
	case 0:
		x.Abort(now)
	case 1, 2:
		x.Release(now)
	case 3, 4, 5:
		x.Close()
	}
}

// For any segments and any program, a connection keeps its invariants and stops
// sending.
func FuzzConn(f *testing.F) {
	for _, set := range []byte{0x00, 0x31, 0x72, 0xd0} {
		b := []byte{set, 60}
		for i := range 40 {
			b = append(b, byte(i*7), inet.ACK|byte(i%3)*inet.SYN, byte(i), byte(i*3), byte(i*50), byte(i>>2), byte(i*100), 0, 0xff, 0x10, byte(i*90), 1)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { hostile(t, b) })
}

// For any packets, a host with a listener and a socket keeps its invariants,
// and all its connections end.
func FuzzHost(f *testing.F) {
	f.Add([]byte{0, 2, 0, 0, 0, 0, 0, 0, 1, 16, 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) { hostilePackets(t, b) })
}

// hostilePackets passes packets to a host: each eight bytes are a packet of one
// of a few peers, near the expected one.
func hostilePackets(t require.TestingT, b []byte) {
	spec, err := inet.Load("linux")
	require.NoError(t, err)
	h := inet.NewHost(there, inet.HostConfig{Spec: *spec, MTU: 1500})
	l, err := h.Listen(80, 3)
	require.NoError(t, err)
	_, err = h.UDP(80)
	require.NoError(t, err)
	var last inet.Segment // of the host
	now, sent := sim.Time(0), 0
	output := func() {
		for h.Output(now, 5, func(b []byte) {
			sent++
			if p, err := inet.Parse(b); err == nil {
				last, _ = inet.ParseTCP(&p)
			}
		}) {
			require.Less(t, sent, 1_000_000)
		}
	}
	for ; len(b) >= 8; b = b[8:] {
		s := inet.Segment{SrcPort: 1 + uint16(b[0])%4, DstPort: 80 + uint16(b[0]>>6), Flags: b[1], Seq: last.Ack + uint32(b[2])%8, Ack: last.Seq + uint32(b[3])%8, Window: uint16(b[4]) << 5, Data: make([]byte, b[5])}
		p := inet.Packet{Src: here, Dst: there, Protocol: inet.ProtocolTCP, Payload: s.Append(nil, here, there)}
		if b[6]&7 == 7 {
			d := inet.Datagram{DstPort: s.DstPort, Data: s.Data}
			p.Protocol, p.Payload = inet.ProtocolUDP, d.Append(nil, here, there)
		}
		require.NoError(t, h.Input(now, p.Append(nil)))
		if x := l.Accept(); x != nil {
			x.Write(make([]byte, int(b[6])*40))
		}
		x := h.Next()
		if x != nil {
			act(x, now, b[7])
		}
		output()
		if x != nil {
			require.NoError(t, x.Check())
		}
		if now += sim.Time(b[7]) * sim.Millisecond; b[6]&8 != 0 {
			h.Expire(now)
			output()
		}
	}
	l.Close(now)
	output()
	for i := 0; h.Deadline() != inet.Never; i++ { // there are no more answers
		require.Less(t, i, 10_000)
		now = max(now, h.Deadline())
		h.Expire(now)
		output()
	}
}
