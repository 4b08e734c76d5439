package port

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/inet"
)

// Addresses of the packets: rank 0 sends them, rank 1 has the handlers.
var (
	sender   = inet.Addr{10, 0, 0, 1}
	receiver = inet.Addr{10, 0, 0, 2}
)

const (
	fromPort = 4660
	toPort   = 22136
)

// Bytes of headers.
const (
	ethernetBytes = 14
	ipUDPBytes    = inet.HeaderBytes + inet.UDPHeaderBytes
)

// frame puts an Ethernet header in front of a packet.
func frame(src, dst byte, packet []byte) []byte {
	b := []byte{2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 0x08, 0x00} // local addresses; IPv4
	return append(b, packet...)
}

// plainUDP is a packet of PsPIN: fields as in IP and UDP, in the host's order,
// the version in the low half of the first byte, without checksums. So its
// handlers read it, and so its own generator writes it.
func plainUDP(id uint16, data []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, ipUDPBytes, ipUDPBytes+len(data))
	b[0] = 0x54
	le.PutUint16(b[2:], uint16(ipUDPBytes+len(data)))
	le.PutUint16(b[4:], id)
	b[8], b[9] = 64, inet.ProtocolUDP
	copy(b[12:], sender[:])
	copy(b[16:], receiver[:])
	le.PutUint16(b[20:], fromPort)
	le.PutUint16(b[22:], toPort)
	le.PutUint16(b[24:], uint16(inet.UDPHeaderBytes+len(data)))
	return append(b, data...)
}

// ip is an IPv4 packet from the sender.
func ip(id uint16, protocol uint8, payload []byte) []byte {
	p := inet.Packet{Src: sender, Dst: receiver, Protocol: protocol, ID: id, Payload: payload}
	return p.Append(nil)
}

// udp is an Ethernet frame with a UDP datagram.
func udp(id uint16, data []byte) []byte {
	d := inet.Datagram{SrcPort: fromPort, DstPort: toPort, Data: data}
	return frame(1, 2, ip(id, inet.ProtocolUDP, d.Append(nil, sender, receiver)))
}

// echo is an Ethernet frame with an ICMP echo request or, with kind 0, the
// answer (RFC 792).
func echo(kind byte, id uint16, data []byte) []byte {
	const protocolICMP = 1
	b := binary.BigEndian.AppendUint16([]byte{kind, 0, 0, 0, 0, 7}, id)
	b = append(b, data...)
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return frame(1, 2, ip(id, protocolICMP, b))
}

// checksum is the Internet checksum (RFC 1071).
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// segment is an IPv4 packet with a TCP segment of a connection.
func segment(id uint16, seq, ack uint32, flags uint8, data []byte) []byte {
	s := inet.Segment{SrcPort: fromPort, DstPort: toPort, Seq: seq, Ack: ack, Flags: flags, Window: 65535, Data: data}
	return ip(id, inet.ProtocolTCP, s.Append(nil, sender, receiver))
}

// answered is a packet with source and destination exchanged, as handlers that
// answer do it: at the offsets of two fields of n bytes each. Checksums of IP
// and UDP stay right, because sums do not depend on the order.
func answered(packet []byte, fields ...[3]int) []byte {
	b := append([]byte(nil), packet...)
	for _, f := range fields {
		for i := range f[2] {
			b[f[0]+i], b[f[1]+i] = b[f[1]+i], b[f[0]+i]
		}
	}
	return b
}

// exchanged answers a packet with UDP whose IP header begins at an offset.
func exchanged(packet []byte, at int) []byte {
	fields := [][3]int{{at + 12, at + 16, 4}, {at + inet.HeaderBytes, at + inet.HeaderBytes + 2, 2}}
	if at == ethernetBytes {
		fields = append(fields, [3]int{0, 6, 6})
	}
	return answered(packet, fields...)
}

// words is a payload of n words below 1,024, which differ between packets.
func words(packet, n int) (b []byte) {
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, uint32((packet*131+i*37+5)%1024))
	}
	return b
}
