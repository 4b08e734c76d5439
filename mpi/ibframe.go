package mpi

import "encoding/binary"

// frameBytes is what the library sends with each message, and says to others beside.
const frameBytes = 48

// kinds of frames.
const (
	frameEager = 1 + iota // a message, whose bytes follow
	frameRTS              // request to send: a large message
	frameCTS              // clear to send: a piece of it may be written
	frameFIN              // the piece has been written
	frameDone             // a synchronous message that is eager has been received
	frameBye              // the program has ended: no more messages
)

// frame is what one rank says to another.
type frame struct {
	kind     uint8
	wanted   bool // eager: the sender is to be told that it has matched (synchronous)
	env      envelope
	length   int    // bytes of the message; CTS: of the piece
	sequence uint32 // eager, RTS: among the messages of its sender to its receiver
	id       uint32 // of the sender's request
	ticket   uint32 // CTS, FIN: the receiver's name of the piece
	at       uint64 // CTS: where the piece begins in the message
	address  uint64 // CTS: where it goes
}

func (f frame) envelope() envelope { return f.env }

// status is that of a receive of the message.
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

// decode reads a frame.
func (f *frame) decode(b []byte) {
	le := binary.LittleEndian
	*f = frame{
		kind: b[0], wanted: b[1] != 0, env: envelope{context: le.Uint16(b[2:]), source: int(le.Uint32(b[4:])), tag: le.Uint32(b[8:])},
		length: int(le.Uint32(b[12:])), sequence: le.Uint32(b[16:]), id: le.Uint32(b[20:]), ticket: le.Uint32(b[24:]), at: le.Uint64(b[32:]), address: le.Uint64(b[40:]),
	}
}
