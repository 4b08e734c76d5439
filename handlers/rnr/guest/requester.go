package main

import (
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
)

// may reports whether there is something to send.
func may(s *rnr.State) bool {
	q := &s.Requester
	if q.Sent >= q.End || q.Paused|q.Stopped != 0 || s.Ready == 0 || s.Report.Error != 0 {
		return false
	}
	w := at(s)
	if w.Kind != rnr.KindRead {
		return true
	}
	reads := 0
	for i := s.Report.Sent; i < q.Current; i++ {
		if sending(s, i).Kind == rnr.KindRead {
			reads++
		}
	}
	return reads < rnr.MaxReads
}

// at returns the work request of the next packet.
func at(s *rnr.State) *rnr.WorkRequest {
	q := &s.Requester
	for q.Current > s.Report.Sent && sending(s, q.Current).First > q.Sent {
		q.Current--
	}
	for w := sending(s, q.Current); q.Sent >= w.First+w.Number; w = sending(s, q.Current) {
		q.Current++
	}
	return sending(s, q.Current)
}

// send lets packets leave, if there are any and they are not leaving already.
func send(s *rnr.State) {
	if s.Requester.Busy == 0 && may(s) {
		s.Requester.Busy = 1
		self(s, rnr.KindGo, 0)
	}
}

// request makes the next packet.
func request(s *rnr.State, f *flight) bool {
	if !may(s) {
		return false
	}
	q := &s.Requester
	w := at(s)
	done := (q.Sent - w.First) * uint64(s.MTU)
	f.number, f.turn = q.Sent, q.Turn
	h := rnr.Header{Kind: w.Kind, PSN: uint32(q.Sent)}
	buffer := spin.After(s) + spin.Ptr(f.buffer)
	f.op = spin.Op{
		TargetNID: s.PeerNID, TargetPID: s.PeerPID, PTIndex: s.PeerPT, Options: spin.Datagrams, Local: buffer, Length: 8,
		RemoteOffset: w.Remote + done, HdrData: w.Length - done,
	}
	f.fault = rnr.Fault{Type: rnr.InitiatorWrite, Work: q.Current + 1, PSN: q.Sent, At: done}
	switch w.Kind {
	case rnr.KindRead:
		q.Sent = w.First + w.Number
		f.op.MatchBits = h.Bits()
		return true
	case rnr.KindSend:
		h.Number, f.op.RemoteOffset = uint32(w.Remote), done
	}
	q.Sent++
	if q.Sent == w.First+w.Number {
		h.Flags = rnr.WantAck | rnr.LastOne
	} else if (q.Sent-w.First)%rnr.AckEvery == 0 {
		h.Flags = rnr.WantAck
	}
	f.op.MatchBits = h.Bits()
	if n := min(uint64(s.MTU), w.Length-done); n > 0 {
		f.op.Length = n
		f.move(w.List[:w.Ranges], done, buffer.Bytes(uint32(n)), false)
	}
	return true
}

// back moves the next number back, or forward.
func back(s *rnr.State, number uint64) {
	q := &s.Requester
	if number < q.Sent {
		s.Stats.Again += q.Sent - number
	}
	q.Sent = number
	q.Turn++
}

// watch lets a time-out run while answers are missing.
func watch(s *rnr.State) {
	q := &s.Requester
	if q.Timer <= 0 && q.Landing.Una < q.Sent {
		q.Mark = q.Landing.Una
		q.Timer = later(s, s.Timeout, rnr.KindRetry)
	}
}

// expired handles a time-out.
func expired(s *rnr.State) {
	q := &s.Requester
	q.Timer = 0
	switch {
	case q.Landing.Una != q.Mark || q.Paused|q.Stopped|q.Drops != 0:
		q.Tries = 0
	case q.Landing.Next < q.Sent:
		s.Stats.Timeouts++
		if q.Tries++; q.Tries > s.Retries {
			broken(s, rnr.TimedOut, 0)
			return
		}
		q.Asked = 0
		back(s, q.Landing.Next)
		send(s)
	}
	watch(s)
}

// missing returns the first number of a response that has not come, from Next
// up to a number, or that number if there is none.
func missing(s *rnr.State, number uint64) uint64 {
	q := &s.Requester
	for i := s.Report.Sent; i < q.Posted; i++ {
		w := sending(s, i)
		if w.First >= number {
			break
		}
		if w.Kind == rnr.KindRead && w.First+w.Number > q.Landing.Next {
			return max(w.First, q.Landing.Next)
		}
	}
	return number
}

// upTo takes everything before a number as acknowledged, except responses that
// have not come. It reports whether there are none.
func upTo(s *rnr.State, number uint64) bool {
	q := &s.Requester
	first := missing(s, number)
	if first > q.Landing.Next {
		q.Landing.Next = first
		if q.Sent < first {
			back(s, first)
		}
	}
	return first == number
}

// lost asks again for a read whose response has not come, though something
// after it has.
func lost(s *rnr.State) {
	q := &s.Requester
	if q.Asked != q.Landing.Next+1 { // once
		q.Asked = q.Landing.Next + 1
		back(s, q.Landing.Next)
	}
}

// answer handles an answer of the other end to requests.
func answer(s *rnr.State, p *spin.Payload, h *rnr.Header) {
	q := &s.Requester
	number := rnr.Full(h.PSN, q.Landing.Next)
	switch h.Kind {
	case rnr.KindBroken:
		broken(s, p.HdrData, 0)
		return
	case rnr.KindAck:
		if number++; number > q.Landing.Next && number <= q.End && !upTo(s, number) {
			lost(s)
		}
	case rnr.KindNak, rnr.KindRNR:
		if number < q.Landing.Next || number > q.Sent {
			return // for a packet that has been acknowledged since
		}
		if una := rnr.Full(uint32(p.HostOffset), q.Landing.Next); una > q.Landing.Next && una <= number {
			upTo(s, una)
		}
		back(s, number)
		if h.Kind == rnr.KindRNR && q.Paused == 0 && later(s, min(p.HdrData, rnr.MaxPause), rnr.KindUnpause) > 0 {
			q.Paused, q.Tries = 1, 0
		}
	}
	finish(s)
}

// finish reports ended work requests to the host.
func finish(s *rnr.State) {
	q := &s.Requester
	settled(&q.Landing)
	before := s.Report.Sent
	for s.Report.Sent < q.Posted {
		if w := sending(s, s.Report.Sent); w.First+w.Number > q.Landing.Una {
			break
		}
		s.Report.Sent++
	}
	q.Current = max(q.Current, s.Report.Sent)
	if q.Landing.Una == q.End && q.Timer > 0 {
		spin.TimerCancel(spin.Result(q.Timer - 1))
		q.Timer = 0
	}
	send(s)
	if s.Report.Sent != before {
		report(s)
	}
}

// response handles a packet of a read's data.
func response(s *rnr.State, p *spin.Payload, h *rnr.Header) {
	q := &s.Requester
	l := &q.Landing
	number := rnr.Full(h.PSN, l.Next)
	var w *rnr.WorkRequest
	i := s.Report.Sent
	for ; i < q.Posted; i++ {
		if w = sending(s, i); number-w.First < w.Number {
			break
		}
	}
	if number < l.Next || i == q.Posted || w.Kind != rnr.KindRead {
		s.Stats.Duplicates++
		return
	}
	if !upTo(s, number) {
		s.Stats.Dropped++
		lost(s)
		finish(s)
		return
	}
	place, room := accept(l, number)
	if !room {
		s.Stats.Dropped++
		return
	}
	if q.Sent < l.Next {
		back(s, l.Next)
	}
	s.Stats.Arrived++
	done := (number - w.First) * uint64(s.MTU)
	if p.HdrData != w.Length-done {
		broken(s, rnr.Invalid, rnr.Invalid)
		return
	}
	var m pieces
	m.move(w.List[:w.Ranges], done, p.Base.Bytes(uint32(min(uint64(p.Length), p.HdrData))), true)
	result, address := m.wait()
	switch {
	case l.Flying[place] != number+1:
	case result == spin.Fault:
		refuse(l, number)
		q.Drops = 1
		fault(s, &rnr.Fault{Type: rnr.InitiatorRead, Work: i + 1, Address: address, PSN: number, At: done})
	case result.Failed():
		broken(s, rnr.LocalAccess, rnr.RemoteAccess)
	default:
		l.Flying[place] = 0
		finish(s)
	}
}
