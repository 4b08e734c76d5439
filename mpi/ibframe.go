package mpi

import "encoding/binary"

// frameBytes is the length of a frame, which goes with each message or alone.
const frameBytes = 48

// Kinds of frames.
const (
	frameEager = 1 + iota // a message, whose bytes follow
	frameRTS              // request to send: a large message
	frameCTS              // clear to send: a piece may be written
	frameFIN              // a piece has been written
	frameDone             // a synchronous eager message is received
	frameBye              // the program has ended: no more messages
)

// frame is a control record from one rank to another.
type frame struct {
	kind     uint8
	wanted   bool // eager: the sender waits until it has matched (synchronous)
	env      envelope
	length   int    // bytes of the message; CTS: of the piece
	sequence uint32 // eager, RTS: number from this sender to this receiver
	id       uint32 // the sender's request
	ticket   uint32 // CTS, FIN: the receiver's number for the piece
	at       uint64 // CTS: offset of the piece in the message
	address  uint64 // CTS: where the piece goes
}

func (f frame) envelope() envelope { return f.env }

// status returns the status of a receive of the message.
func (f *frame) status() Status {
	return Status{Source: f.env.source, Tag: f.env.tag, Bytes: f.length, Sequence: f.sequence & sequenceMask}
}

// encode writes the frame: kind 1 B, flags 1, context 2, source 4, tag 4,
// length 4, sequence 4, request 4, ticket 4, place 8, address 8; 4 B are spare.
func (f *frame) encode(b []byte) {
	le := binary.LittleEndian
	clear(b[:frameBytes])
	b[0] = f.kind
	if f.wanted {
		b[1] = 1
	}
	le.PutUint16(b[2:], f.env.context)
	le.PutUint32(b[4:], uint32(f.env.source))
	le.PutUint32(b[8:], f.env.tag)
	le.PutUint32(b[12:], uint32(f.length))
	le.PutUint32(b[16:], f.sequence)
	le.PutUint32(b[20:], f.id)
	le.PutUint32(b[24:], f.ticket)
	le.PutUint64(b[32:], f.at)
	le.PutUint64(b[40:], f.address)
}

func (f *frame) decode(b []byte) {
	le := binary.LittleEndian
	*f = frame{
		kind: b[0], wanted: b[1] != 0, env: envelope{context: le.Uint16(b[2:]), source: int(le.Uint32(b[4:])), tag: le.Uint32(b[8:])},
		length: int(le.Uint32(b[12:])), sequence: le.Uint32(b[16:]), id: le.Uint32(b[20:]), ticket: le.Uint32(b[24:]), at: le.Uint64(b[32:]), address: le.Uint64(b[40:]),
	}
}
