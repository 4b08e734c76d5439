package inet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Addr is an IPv4 address.
type Addr [4]byte

// String returns the address in dotted decimal.
func (a Addr) String() string { return fmt.Sprintf("%d.%d.%d.%d", a[0], a[1], a[2], a[3]) }

// Protocols (RFC 790).
const (
	ProtocolTCP = 6
	ProtocolUDP = 17
)

// Bytes of headers without options.
const (
	HeaderBytes    = 20 // of IPv4
	UDPHeaderBytes = 8
	TCPHeaderBytes = 20
)

// MaxPacket is the most bytes of a packet, its header included.
const MaxPacket = 1<<16 - 1

// ErrMalformed is wrapped by every error about a malformed packet.
var ErrMalformed = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("inet: %w: "+format, append([]any{ErrMalformed}, args...)...)
}

const defaultTTL = 64 // RFC 1700

// Packet is a whole IPv4 packet without options. It is not a fragment and must
// not become one.
type Packet struct {
	Src, Dst Addr
	Protocol uint8
	ID       uint16
	TTL      uint8 // 0: 64
	Payload  []byte
}

// Append appends the packet to b. It panics if the packet is longer than
// MaxPacket: that is the sender's mistake.
func (p *Packet) Append(b []byte) []byte {
	n := HeaderBytes + len(p.Payload)
	if n > MaxPacket {
		panic(fmt.Sprintf("inet: packet of %d bytes", n)) //lint:panic programmer's mistake: senders know the MTU
	}
	ttl := p.TTL
	if ttl == 0 {
		ttl = defaultTTL
	}
	at := len(b)
	b = append(b, 0x45, 0) // version 4, five words
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = binary.BigEndian.AppendUint16(b, p.ID)
	b = append(b, 0x40, 0, ttl, p.Protocol, 0, 0) // do not fragment
	b = append(append(b, p.Src[:]...), p.Dst[:]...)
	binary.BigEndian.PutUint16(b[at+10:], ^fold(sum(0, b[at:at+HeaderBytes])))
	return append(b, p.Payload...)
}

// Parse reads a packet and checks its header. The payload stays in b.
func Parse(b []byte) (p Packet, err error) {
	be := binary.BigEndian
	switch {
	case len(b) < HeaderBytes:
		return p, malformed("packet of %d bytes", len(b))
	case b[0]>>4 != 4:
		return p, malformed("version %d", b[0]>>4)
	case b[0]&15 != HeaderBytes/4:
		return p, malformed("header of %d words, expected 5: no options", b[0]&15)
	case fold(sum(0, b[:HeaderBytes])) != 0xffff:
		return p, malformed("checksum of the header")
	case int(be.Uint16(b[2:])) < HeaderBytes || int(be.Uint16(b[2:])) > len(b):
		return p, malformed("length %d of %d bytes", be.Uint16(b[2:]), len(b))
	case be.Uint16(b[6:])&0x3fff != 0:
		return p, malformed("a fragment")
	}
	p = Packet{ID: be.Uint16(b[4:]), TTL: b[8], Protocol: b[9], Payload: b[HeaderBytes:be.Uint16(b[2:])]}
	copy(p.Src[:], b[12:])
	copy(p.Dst[:], b[16:])
	return p, nil
}

// Destination returns the destination address of a packet, as a router needs
// it. False: not an IPv4 packet.
func Destination(b []byte) (a Addr, ok bool) {
	if len(b) < HeaderBytes || b[0]>>4 != 4 {
		return a, false
	}
	copy(a[:], b[16:])
	return a, true
}

// sum adds the 16-bit words of b, the last one padded with zero (RFC 1071).
func sum(s uint64, b []byte) uint64 {
	for ; len(b) >= 8; b = b[8:] {
		w := binary.BigEndian.Uint64(b)
		s += w>>48 + w>>32&0xffff + w>>16&0xffff + w&0xffff
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// pseudo is the sum of the pseudo header (RFC 768, RFC 9293 §3.1).
func pseudo(src, dst Addr, protocol uint8, n int) uint64 {
	return sum(sum(uint64(protocol)+uint64(n), src[:]), dst[:])
}

// Datagram is a UDP datagram.
type Datagram struct {
	SrcPort, DstPort uint16
	Data             []byte
}

// Append appends the datagram in the form sent from src to dst.
func (d *Datagram) Append(b []byte, src, dst Addr) []byte {
	at, n := len(b), UDPHeaderBytes+len(d.Data)
	b = binary.BigEndian.AppendUint16(b, d.SrcPort)
	b = binary.BigEndian.AppendUint16(b, d.DstPort)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(append(b, 0, 0), d.Data...)
	check := ^fold(sum(pseudo(src, dst, ProtocolUDP, n), b[at:]))
	if check == 0 { // 0 would mean: no checksum
		check = 0xffff
	}
	binary.BigEndian.PutUint16(b[at+6:], check)
	return b
}

// ParseUDP reads the datagram in a packet and checks it.
func ParseUDP(p *Packet) (d Datagram, err error) {
	b, be := p.Payload, binary.BigEndian
	switch {
	case len(b) < UDPHeaderBytes:
		return d, malformed("datagram of %d bytes", len(b))
	case int(be.Uint16(b[4:])) != len(b):
		return d, malformed("datagram of length %d in %d bytes", be.Uint16(b[4:]), len(b))
	case be.Uint16(b[6:]) != 0 && fold(sum(pseudo(p.Src, p.Dst, ProtocolUDP, len(b)), b)) != 0xffff:
		return d, malformed("checksum of a datagram")
	}
	return Datagram{be.Uint16(b), be.Uint16(b[2:]), b[UDPHeaderBytes:]}, nil
}

// Flags of a segment.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// Segment is a TCP segment.
type Segment struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16
	MSS              uint16 // option of a SYN; 0: none
	Scale            int    // option of a SYN, the shift + 1; 0: none
	Selective        bool   // option of a SYN: takes selective acknowledgements (RFC 2018 §2)
	Told             uint8  // number of Blocks in use
	Blocks           [mostTold]Block
	Data             []byte
}

// mostTold is the most blocks that fit a segment (RFC 2018 §3).
const mostTold = 4

// length returns how many sequence numbers the segment takes.
func (s *Segment) length() uint32 {
	n := uint32(len(s.Data))
	if s.Flags&SYN != 0 {
		n++
	}
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}

// Append appends the segment in the form sent from src to dst.
func (s *Segment) Append(b []byte, src, dst Addr) []byte {
	at := len(b)
	b = binary.BigEndian.AppendUint16(b, s.SrcPort)
	b = binary.BigEndian.AppendUint16(b, s.DstPort)
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Ack)
	b = append(b, 0, s.Flags)
	b = binary.BigEndian.AppendUint16(b, s.Window)
	b = append(b, 0, 0, 0, 0)
	if s.MSS != 0 {
		b = append(b, 2, 4, byte(s.MSS>>8), byte(s.MSS))
	}
	if s.Scale != 0 {
		b = append(b, 1, 3, 3, byte(s.Scale-1))
	}
	if s.Selective {
		b = append(b, 1, 1, 4, 2)
	}
	if s.Told > 0 {
		b = append(b, 1, 1, 5, 2+8*s.Told)
		for _, k := range s.Blocks[:s.Told] {
			b = binary.BigEndian.AppendUint32(b, k.From)
			b = binary.BigEndian.AppendUint32(b, k.To)
		}
	}
	b[at+12] = byte((len(b)-at)/4) << 4
	b = append(b, s.Data...)
	binary.BigEndian.PutUint16(b[at+16:], ^fold(sum(pseudo(src, dst, ProtocolTCP, len(b)-at), b[at:])))
	return b
}

// ParseTCP reads the segment in a packet and checks it.
func ParseTCP(p *Packet) (s Segment, err error) {
	b, be := p.Payload, binary.BigEndian
	if len(b) < TCPHeaderBytes {
		return s, malformed("segment of %d bytes", len(b))
	}
	header := int(b[12]>>4) * 4
	switch {
	case header < TCPHeaderBytes || header > len(b):
		return s, malformed("segment with a header of %d bytes in %d", header, len(b))
	case fold(sum(pseudo(p.Src, p.Dst, ProtocolTCP, len(b)), b)) != 0xffff:
		return s, malformed("checksum of a segment")
	}
	s = Segment{
		SrcPort: be.Uint16(b), DstPort: be.Uint16(b[2:]), Seq: be.Uint32(b[4:]), Ack: be.Uint32(b[8:]), Flags: b[13],
		Window: be.Uint16(b[14:]), Data: b[header:],
	}
	return s, s.options(b[TCPHeaderBytes:header])
}

// options reads the known options and ignores others (RFC 9293 §3.1).
func (s *Segment) options(b []byte) error {
	for len(b) > 0 && b[0] != 0 {
		if b[0] == 1 {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return malformed("option %d of a segment", b[0])
		}
		switch {
		case b[0] == 2 && b[1] == 4:
			s.MSS = binary.BigEndian.Uint16(b[2:])
		case b[0] == 3 && b[1] == 3:
			s.Scale = 1 + int(min(b[2], maxScale))
		case b[0] == 4 && b[1] == 2:
			s.Selective = true
		case b[0] == 5 && b[1] > 2 && (b[1]-2)%8 == 0:
			for s.Told = 0; int(s.Told) < min(mostTold, int(b[1]-2)/8); s.Told++ {
				at := 2 + 8*int(s.Told)
				s.Blocks[s.Told] = Block{binary.BigEndian.Uint32(b[at:]), binary.BigEndian.Uint32(b[at+4:])}
			}
		}
		b = b[b[1]:]
	}
	return nil
}
