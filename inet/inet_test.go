package inet_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/sim"
)

var (
	here  = inet.Addr{10, 0, 0, 1}
	there = inet.Addr{10, 0, 0, 2}
)

// Another implementation reads the written packets, and writes the same bytes
// for the same fields, checksums included.
func TestHeadersAreThoseOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
		port, id := rapid.Uint16().Draw(t, "port"), rapid.Uint16().Draw(t, "id")
		ip := &layers.IPv4{Version: 4, IHL: 5, TTL: 64, Id: id, Flags: layers.IPv4DontFragment, SrcIP: net.IP(here[:]), DstIP: net.IP(there[:])}
		p := inet.Packet{Src: here, Dst: there, ID: id}
		var transport gopacket.SerializableLayer
		if rapid.Bool().Draw(t, "udp") {
			d := inet.Datagram{SrcPort: port, DstPort: 80, Data: data}
			p.Protocol, p.Payload = inet.ProtocolUDP, d.Append(nil, here, there)
			ip.Protocol = layers.IPProtocolUDP
			udp := &layers.UDP{SrcPort: layers.UDPPort(port), DstPort: 80}
			require.NoError(t, udp.SetNetworkLayerForChecksum(ip))
			transport = udp
			got, err := inet.ParseUDP(&p)
			require.NoError(t, err)
			require.Equal(t, port, got.SrcPort)
			require.Equal(t, string(data), string(got.Data))
		} else {
			s := inet.Segment{SrcPort: port, DstPort: 80, Seq: rapid.Uint32().Draw(t, "seq"), Ack: rapid.Uint32().Draw(t, "ack"), Flags: inet.ACK | inet.PSH, Window: id, Data: data}
			if rapid.Bool().Draw(t, "syn") {
				s.Flags, s.MSS, s.Scale, s.Selective = inet.SYN, 1460, 8, true
			} else {
				for range rapid.IntRange(0, len(s.Blocks)).Draw(t, "blocks") {
					s.Blocks[s.Told] = inet.Block{From: rapid.Uint32().Draw(t, "from"), To: rapid.Uint32().Draw(t, "to")}
					s.Told++
				}
			}
			p.Protocol, p.Payload = inet.ProtocolTCP, s.Append(nil, here, there)
			ip.Protocol = layers.IPProtocolTCP
			tcp := &layers.TCP{
				SrcPort: layers.TCPPort(port), DstPort: 80, Seq: s.Seq, Ack: s.Ack, Window: s.Window,
				SYN: s.Flags&inet.SYN != 0, ACK: s.Flags&inet.ACK != 0, PSH: s.Flags&inet.PSH != 0,
			}
			tcp.Options = options(&s)
			require.NoError(t, tcp.SetNetworkLayerForChecksum(ip))
			transport = tcp
			got, err := inet.ParseTCP(&p)
			require.NoError(t, err)
			require.Equal(t, string(data), string(got.Data))
			s.Data, got.Data = nil, nil
			require.Equal(t, s, got)
		}
		buffer := gopacket.NewSerializeBuffer()
		require.NoError(t, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, transport, gopacket.Payload(data)))
		mine := p.Append(nil)
		require.Equal(t, buffer.Bytes(), mine)
		read(t, mine, &p)
	})
}

// options returns the options of a segment in the form of the other
// implementation.
func options(s *inet.Segment) (all []layers.TCPOption) {
	nop := layers.TCPOption{OptionType: layers.TCPOptionKindNop}
	if s.MSS != 0 {
		all = []layers.TCPOption{
			{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: binary.BigEndian.AppendUint16(nil, 1460)},
			nop,
			{OptionType: layers.TCPOptionKindWindowScale, OptionLength: 3, OptionData: []byte{7}},
			nop, nop,
			{OptionType: layers.TCPOptionKindSACKPermitted, OptionLength: 2},
		}
	}
	if s.Told > 0 {
		var told []byte
		for _, k := range s.Blocks[:s.Told] {
			told = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(told, k.From), k.To)
		}
		all = []layers.TCPOption{nop, nop, {OptionType: layers.TCPOptionKindSACK, OptionLength: uint8(2 + len(told)), OptionData: told}}
	}
	return all
}

// read reads a packet, and damages a bit of it: one of the checksums detects
// it.
func read(t *rapid.T, mine []byte, p *inet.Packet) {
	back, err := inet.Parse(mine)
	require.NoError(t, err)
	require.Equal(t, p.Payload, back.Payload)
	to, ok := inet.Destination(mine)
	require.True(t, ok)
	require.Equal(t, there, to)
	bit := rapid.IntRange(0, 8*len(mine)-1).Draw(t, "bit")
	mine[bit/8] ^= 1 << (bit % 8)
	if back, err = inet.Parse(mine); err != nil {
		return
	}
	if back.Protocol != inet.ProtocolUDP {
		_, err = inet.ParseTCP(&back)
		require.Error(t, err)
	} else if _, err = inet.ParseUDP(&back); err == nil {
		require.Zero(t, binary.BigEndian.Uint16(back.Payload[6:]), "no checksum, now")
	}
}

// Any bytes are read or refused.
func FuzzParse(f *testing.F) {
	s := inet.Segment{SrcPort: 1, DstPort: 2, Flags: inet.SYN, MSS: 1460, Scale: 3}
	f.Add((&inet.Packet{Src: here, Dst: there, Protocol: inet.ProtocolTCP, Payload: s.Append(nil, here, there)}).Append(nil))
	d := inet.Datagram{Data: []byte("x")}
	f.Add((&inet.Packet{Src: here, Dst: there, Protocol: inet.ProtocolUDP, Payload: d.Append(nil, here, there)}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := inet.Parse(b)
		if err != nil {
			require.ErrorIs(t, err, inet.ErrMalformed)
		}
		_, err = inet.ParseTCP(&p)
		if err != nil {
			require.ErrorIs(t, err, inet.ErrMalformed)
		}
		if _, err = inet.ParseUDP(&p); err != nil {
			require.ErrorIs(t, err, inet.ErrMalformed)
		}
		inet.Destination(b)
	})
}

// wire carries segments between two ends of a connection, with the faults of
// networks.
type wire struct {
	t        require.TestingT
	rng      *rand.Rand
	now      sim.Time
	ends     [2]*inet.Conn
	way      []flying
	lossy    float64
	late     sim.Time
	sent     int
	accept   inet.Config
	lose     func(n int, s *inet.Segment) bool // loses the n-th segment
	observed func(now sim.Time, side int, s *inet.Segment)
}

type flying struct {
	at   sim.Time
	side int
	s    inet.Segment
}

const trip = 50 * sim.Microsecond

func config(mss int) inet.Config {
	return inet.Config{MSS: mss, Spec: inet.Spec{
		SendBuffer: 1 << 16, ReceiveBuffer: 1 << 16, RTOInitial: 10 * sim.Millisecond, RTOLeast: sim.Millisecond, RTOMost: sim.Second,
		DelayedAck: 500 * sim.Microsecond, WindowScale: true, AckPushed: true,
	}}
}

func newWire(t require.TestingT, seed uint64, c, accept inet.Config) *wire {
	w := &wire{t: t, rng: rand.New(rand.NewPCG(seed, 1)), accept: accept}
	w.ends[0] = inet.Dial(c, 1000, there, 80, w.rng.Uint32()) // sequence numbers wrap somewhere
	return w
}

// output takes the segments of an end.
func (w *wire) output(side int) {
	if w.ends[side] == nil {
		return
	}
	w.ends[side].Output(w.now, math.MaxInt, func(s *inet.Segment) {
		w.sent++
		if w.observed != nil {
			w.observed(w.now, side, s)
		}
		if w.lose != nil && w.lose(w.sent, s) {
			return
		}
		for range 1 + w.chance() {
			if w.chance() == 0 {
				c := *s
				c.Data = append([]byte(nil), s.Data...)
				w.way = append(w.way, flying{w.now + trip + sim.Time(w.rng.Int64N(int64(w.late)+1)), 1 - side, c})
			}
		}
	})
}

func (w *wire) chance() int {
	if w.rng.Float64() < w.lossy {
		return 1
	}
	return 0
}

// step goes on to the next event. False: there is none.
func (w *wire) step() bool {
	at, first := inet.Never, -1
	for i := range w.way {
		if w.way[i].at < at {
			at, first = w.way[i].at, i
		}
	}
	for side, x := range w.ends {
		if x != nil && x.Deadline() < at {
			at, first = x.Deadline(), -2-side
		}
	}
	if at == inet.Never {
		return false
	}
	w.now = max(w.now, at)
	if first < 0 {
		side := -2 - first
		w.ends[side].Expire(w.now)
		w.output(side)
		return true
	}
	f := w.way[first]
	w.way = append(w.way[:first], w.way[first+1:]...)
	if w.ends[f.side] == nil {
		if f.s.Flags&inet.SYN == 0 {
			return true
		}
		w.ends[f.side] = inet.Accept(w.accept, w.now, here, &f.s, w.rng.Uint32())
	} else {
		w.ends[f.side].Input(w.now, &f.s)
	}
	w.output(f.side)
	return true
}
