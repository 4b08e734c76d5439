package mpi

import "encoding/binary"

// A message of the packetizer has 24 B of control and then its own data. With
// 32 B of user data this makes the 56 B of TR-488 §5.2.1.
const (
	controlBytes = 24
	exanetEager  = 32
	rtsBytes     = controlBytes + 8  // and the address of the data
	ctsBytes     = controlBytes + 16 // and the addresses of buffer and notification
	packetBytes  = controlBytes + exanetEager
)

// Kinds of packets.
const (
	packetEager = 1 + iota
	packetRTS   // request to send: a large or synchronous message
	packetCTS   // clear to send, if the sender's process starts the transfer
	packetDone  // acknowledgement: the message is received
)

// packet is a decoded message of the packetizer.
type packet struct {
	kind     uint8
	wanted   bool // eager: the sender waits until it has matched (synchronous)
	env      envelope
	length   int
	sequence uint32 // eager, RTS: number from this sender to this receiver
	id       uint32 // the sender's request
	address  uint64 // RTS: where the data is; CTS: where the buffer is
	notify   uint64 // CTS
	data     [exanetEager]byte
}

func (p packet) envelope() envelope { return p.env }

// status returns the status of a receive of the message.
func (p *packet) status() Status {
	return Status{Source: p.env.source, Tag: p.env.tag, Bytes: p.length, Sequence: p.sequence & sequenceMask}
}

// bytes returns the length of the encoded packet.
func (p *packet) bytes() int {
	switch p.kind {
	case packetEager:
		return controlBytes + p.length
	case packetRTS:
		return rtsBytes
	case packetCTS:
		return ctsBytes
	}
	return controlBytes
}

// encode writes the packet: kind 1 B, flags 1, context 2, source 4, tag 4,
// length 4, sequence 4, request 4.
func (p *packet) encode(b *[packetBytes]byte) []byte {
	le := binary.LittleEndian
	b[0], b[1] = p.kind, 0
	if p.wanted {
		b[1] = 1
	}
	le.PutUint16(b[2:], p.env.context)
	le.PutUint32(b[4:], uint32(p.env.source))
	le.PutUint32(b[8:], p.env.tag)
	le.PutUint32(b[12:], uint32(p.length))
	le.PutUint32(b[16:], p.sequence)
	le.PutUint32(b[20:], p.id)
	switch p.kind {
	case packetEager:
		copy(b[controlBytes:], p.data[:p.length])
	case packetRTS, packetCTS:
		le.PutUint64(b[controlBytes:], p.address)
		le.PutUint64(b[controlBytes+8:], p.notify)
	}
	return b[:p.bytes()]
}

func (p *packet) decode(b *[packetBytes]byte) {
	le := binary.LittleEndian
	*p = packet{
		kind: b[0], wanted: b[1] != 0, env: envelope{context: le.Uint16(b[2:]), source: int(le.Uint32(b[4:])), tag: le.Uint32(b[8:])},
		length: int(le.Uint32(b[12:])), sequence: le.Uint32(b[16:]), id: le.Uint32(b[20:]),
	}
	switch p.kind {
	case packetEager:
		copy(p.data[:], b[controlBytes:])
	case packetRTS, packetCTS:
		p.address, p.notify = le.Uint64(b[controlBytes:]), le.Uint64(b[controlBytes+8:])
	}
}
