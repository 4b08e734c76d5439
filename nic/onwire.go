package nic

import "github.com/spinsim/spinsim/fabric"

// WirePacket describes a packet of the network for a capture. It must not be
// kept, because the memory it points to is reused.
type WirePacket struct {
	// the message; nil: an acknowledgement of the transport, or a packet of a
	// fabric's own program
	Frame    *Frame
	Index    int  // of the packet in its message, from 0
	Reliable bool // the end-to-end transport has sent it
	// with Reliable: number of the packet among the packets to its target; in
	// an acknowledgement, the lower half of the first missing number
	Number uint64
}

// OnWire describes a packet.
func OnWire(p *fabric.Packet) WirePacket {
	switch ref := p.Ref.(type) {
	case *Frame:
		return WirePacket{Frame: ref, Index: int(p.Seq)}
	case *segment:
		return WirePacket{Frame: ref.f, Index: ref.i, Reliable: true, Number: ref.number}
	}
	return WirePacket{Reliable: p.Ref == any(acknowledges), Number: uint64(p.Seq)}
}

// Data is the packet's part of the payload; nil: there is none.
func (w *WirePacket) Data() []byte {
	f := w.Frame
	if f == nil || !f.Datagram && !f.carries(w.Index) {
		return nil
	}
	from, to := f.Span(w.Index)
	if f.Datagram {
		from, to = 0, f.Length
	}
	if from > to || to > f.Length {
		return nil
	}
	return f.part(from, to)
}
