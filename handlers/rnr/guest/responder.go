package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
)

// arrived handles a packet of the other end's requester.
func arrived(s *rnr.State, p *spin.Payload, h *rnr.Header) {
	e := &s.Responder
	number := rnr.Full(h.PSN, e.Landing.Next)
	switch {
	case number > e.Landing.Next:
		s.Stats.Dropped++
		if e.Nacked == 0 {
			e.Nacked = 1
			s.Stats.Naks++
			tell(s, rnr.KindNak, e.Landing.Next, 0)
		}
	case number < e.Landing.Next:
		s.Stats.Duplicates++
		again(s, p, h, number)
	case h.Kind == rnr.KindRead:
		if ask(s, p, number) {
			s.Stats.Arrived++
			e.Nacked = 0
			e.Landing.Next = number + rnr.Packets(p.HdrData, s.MTU)
			settled(&e.Landing)
			respond(s)
		}
	default:
		store(s, p, h, number)
	}
}

// again handles a packet that has come before: its acknowledgement, or a
// response, was lost.
func again(s *rnr.State, p *spin.Payload, h *rnr.Header, number uint64) {
	e := &s.Responder
	if h.Kind == rnr.KindRead {
		if ask(s, p, number) {
			respond(s)
		}
		return
	}
	if h.Flags&rnr.WantAck != 0 {
		e.Acked = min(e.Acked, number) // AckAt is behind it since it has come first
		acknowledge(s)
	}
}

// ask takes a request to read. If requests from that number on had come before,
// they are asked for again.
func ask(s *rnr.State, p *spin.Payload, number uint64) bool {
	e := &s.Responder
	for e.Last > e.First {
		r := &s.Reads[(e.Last-1)%uint64(len(s.Reads))]
		if r.First+rnr.Packets(r.Length, s.MTU) <= number {
			break
		}
		e.Last--
	}
	if e.Last-e.First == rnr.MaxReads {
		s.Stats.Dropped++
		return false
	}
	s.Reads[e.Last%uint64(len(s.Reads))] = rnr.Read{Address: p.HostOffset, Length: p.HdrData, First: number}
	e.Last++
	return true
}

// store writes a packet to memory, or asks the other end to pause.
func store(s *rnr.State, p *spin.Payload, h *rnr.Header, number uint64) {
	e := &s.Responder
	f := rnr.Fault{Type: rnr.ResponderWrite, PSN: number}
	bytes := p.Base.Bytes(uint32(min(uint64(p.Length), p.HdrData)))
	var w *rnr.WorkRequest
	if h.Kind == rnr.KindSend {
		n := rnr.Full(h.Number, s.Report.Received)
		if n < s.Report.Received { // its receive has ended: the memory is the program's
			broken(s, rnr.Invalid, rnr.Invalid)
			return
		}
		if n >= e.Posted {
			s.Stats.NotReady++
			pause(s, number)
			return
		}
		w = receiving(s, n)
		f.Work, f.At = n+1, p.HostOffset
		if p.HostOffset+p.HdrData > w.Length {
			broken(s, rnr.TooLong, rnr.TooLong)
			return
		}
	}
	place, room := accept(&e.Landing, number)
	if !room {
		s.Stats.Dropped++
		return
	}
	s.Stats.Arrived++
	e.Nacked = 0
	if h.Flags&rnr.WantAck != 0 {
		e.AckAt = number + 1
	}
	if w != nil && h.Flags&rnr.LastOne != 0 {
		w.First, w.Number = number+1, p.HostOffset+p.HdrData
	}
	var m pieces
	if w != nil {
		m.move(w.List[:w.Ranges], p.HostOffset, bytes, true)
	} else {
		m.span(p.HostOffset, bytes, true)
	}
	result, address := m.wait()
	switch {
	// an earlier packet was refused meanwhile: this one comes again
	case e.Landing.Flying[place] != number+1:
	case result == spin.Fault:
		undo(s, number)
		f.Address = address
		f.Length = p.HostOffset + p.HdrData - address
		fault(s, &f)
		pause(s, number)
	case result.Failed():
		broken(s, rnr.LocalAccess, rnr.RemoteAccess)
	default:
		e.Landing.Flying[place] = 0
		landed(s)
	}
}

// undo forgets packets from a number on.
func undo(s *rnr.State, number uint64) {
	e := &s.Responder
	refuse(&e.Landing, number)
	e.AckAt = min(e.AckAt, number)
	for e.Last > e.First && s.Reads[(e.Last-1)%uint64(len(s.Reads))].First > number {
		e.Last--
	}
	for i := s.Report.Received; i < e.Posted; i++ {
		if w := receiving(s, i); w.First > number {
			w.First = 0
		}
	}
}

// pause sends an RNR NACK: the other end sends from that number on after a
// time.
func pause(s *rnr.State, number uint64) {
	s.Responder.Nacked = 1
	if s.Pause == 0 { // a time-out repeats the packet
		return
	}
	s.Stats.RNR++
	tell(s, rnr.KindRNR, number, s.Pause)
}

// landed acknowledges packets, and reports ended receives to the host.
func landed(s *rnr.State) {
	e := &s.Responder
	settled(&e.Landing)
	before := s.Report.Received
	for s.Report.Received < e.Posted {
		w := receiving(s, s.Report.Received)
		if w.First == 0 || w.First > e.Landing.Una {
			break
		}
		at := rnr.LengthsAt + 8*(s.Report.Received%rnr.MaxWork)
		s.Report.Received++
		spin.WriteHost(spin.HandlerHostMem, at, unsafe.Pointer(&w.Number), 8)
	}
	respond(s)
	acknowledge(s)
	if s.Report.Received != before {
		report(s)
	}
}

// acknowledge answers packets that want an answer, after the responses to
// earlier reads.
func acknowledge(s *rnr.State) {
	e := &s.Responder
	if e.AckAt > e.Acked && e.Landing.Una >= e.AckAt && e.First == e.Last && e.Busy == 0 {
		e.Acked = e.Landing.Una
		tell(s, rnr.KindAck, e.Landing.Una-1, 0)
	}
}

// asked reports whether there is a request to read before which everything has
// landed. Then it sees the earlier writes, and its response acknowledges them.
func asked(s *rnr.State) bool {
	e := &s.Responder
	return e.First < e.Last && e.Stopped == 0 && s.Reads[e.First%uint64(len(s.Reads))].First <= e.Landing.Una && s.Report.Error == 0
}

// respond lets responses leave, if there are any and they are not leaving
// already.
func respond(s *rnr.State) {
	if e := &s.Responder; e.Busy == 0 && asked(s) {
		e.Busy = 1
		self(s, rnr.KindRespond, 0)
	}
}

// respondNext makes the next packet of a response.
func respondNext(s *rnr.State, f *flight) bool {
	e := &s.Responder
	if !asked(s) {
		return false
	}
	r := &s.Reads[e.First%uint64(len(s.Reads))]
	done := r.Sent * uint64(s.MTU)
	f.number, f.turn = r.First+r.Sent, e.Turn
	f.fault = rnr.Fault{Type: rnr.ResponderRead, PSN: f.number, At: e.First}
	h := rnr.Header{Kind: rnr.KindResponse, PSN: uint32(f.number)}
	buffer := spin.After(s) + spin.Ptr(f.buffer)
	f.op = spin.Op{
		TargetNID: s.PeerNID, TargetPID: s.PeerPID, PTIndex: s.PeerPT, Options: spin.Datagrams, MatchBits: h.Bits(), Local: buffer, Length: 8,
		HdrData: r.Length - done,
	}
	if n := min(uint64(s.MTU), r.Length-done); n > 0 {
		f.op.Length = n
		f.span(r.Address+done, buffer.Bytes(uint32(n)), false)
	}
	if r.Sent++; r.Sent == rnr.Packets(r.Length, s.MTU) {
		e.First++
	}
	return true
}
