// ExaNeSt's packetizer and mailbox (TR-488 §4.4): messages of up to 64 bytes
// from a channel of one process to the queue of another, each of which is
// answered.
//
//spin:library mailbox 1.0
//spin:needs memory=min(64*ranks,1024)*48 entry_options=op_put
//spin:needs handler=packetizer user_header=64
//spin:needs handler=mailbox spaces=handler host_memory=256*80
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/spin"
)

// packetizer handles stores of the own process into its channels, and their
// answers.
//
//go:wasmexport packetizer
func packetizer(h *spin.Header, s *mailbox.State) spin.Code {
	m := mailbox.HeaderOf(h.MatchBits)
	if s.Ready == 0 {
		s.Ready = 1
		for i := range s.Channels {
			s.Channels[i].Timer = -1
			s.Channels[i].Sequence = s.Sequence
		}
	}
	if m.Channel >= mailbox.Channels {
		s.Sent.Strange++
		return spin.Drop
	}
	self := h.SourceNID == s.NID && h.SourcePID == s.PID
	if self && m.Kind <= mailbox.KindAgain {
		s.Channels[m.Channel].Stores++
	}
	switch {
	case m.Kind == mailbox.KindLaunch && self && m.Length <= mailbox.MaxPayload && h.UserHdrLen == m.Length:
		launch(s, h, &m)
	case m.Kind == mailbox.KindAgain && self:
		again(s, m.Channel)
	case m.Kind == mailbox.KindTimeout && h.Type == spin.MsgSelf:
		expired(s, m.Channel, uint32(h.HdrData), m.Attempt)
	case m.Kind == mailbox.KindAck || m.Kind == mailbox.KindNack:
		answered(s, h, &m)
	default:
		s.Sent.Strange++
	}
	return spin.Drop
}

// launch takes a message. Its sender cannot choose the protection domain, which
// is the purpose of PDIDs: transmit writes the register's.
func launch(s *mailbox.State, h *spin.Header, m *mailbox.Header) {
	c := &s.Channels[m.Channel]
	if c.Status == mailbox.Ongoing {
		s.Sent.Busy++
		return
	}
	copy(c.Payload[:], h.UserHeader())
	c.NID, c.PID, c.PT, c.Length = uint32(h.HdrData), uint32(h.HdrData>>32)&0xffff, uint32(h.HdrData>>48)&0xff, m.Length
	c.Sequence++
	c.Attempt = 0
	s.Sent.Messages++
	begin(s, m.Channel)
}

// again sends the message in a channel once more. A message that a mailbox has
// refused has its decision, and becomes a new one. Nobody knows the end of one
// that has timed out, so it stays the same message.
func again(s *mailbox.State, channel uint32) {
	c := &s.Channels[channel]
	switch c.Status {
	case mailbox.Nacked:
		c.Sequence++
		c.Attempt = 0
	case mailbox.TimedOut:
		c.Attempt++
	case mailbox.Ongoing:
		s.Sent.Busy++
		return
	default: // an answer has come after all
		changed(s)
		return
	}
	s.Sent.Relaunched++
	begin(s, channel)
}

func begin(s *mailbox.State, channel uint32) {
	c := &s.Channels[channel]
	c.Status, c.Code, c.Left = mailbox.Ongoing, 0, s.Retries
	transmit(s, channel)
}

// transmit makes a cell from a channel's message, and starts its timer.
func transmit(s *mailbox.State, channel uint32) {
	c := &s.Channels[channel]
	m := mailbox.Header{Kind: mailbox.KindCell, PDID: s.PDID, Channel: channel, PT: s.PT, Length: c.Length, Attempt: c.Attempt}
	op := spin.Op{
		TargetNID: c.NID, TargetPID: c.PID, PTIndex: c.PT, Options: spin.Datagrams, MatchBits: m.Bits(), HdrData: uint64(c.Sequence),
		Local: spin.AddrOf(&c.Payload), Length: uint64(mailbox.Words(c.Length)),
	}
	if spin.PutFromDevice(&op) == spin.Invalid { // no such node
		s.Sent.Nacked++
		end(s, channel, mailbox.Nacked, mailbox.NackIllegal)
		return
	}
	w := mailbox.Header{Kind: mailbox.KindTimeout, Channel: channel, Attempt: c.Attempt}
	op = spin.Op{PTIndex: s.PT, MatchBits: w.Bits(), HdrData: uint64(c.Sequence)}
	double := uint32(0)
	if tries := s.Retries - c.Left; tries > s.BackOff {
		double = min(tries-s.BackOff, 6)
	}
	// nic.handler_commands are used up: nobody would notice a loss
	if c.Timer = int32(spin.Timer(min(s.Timeout<<double, spin.MaxTimer), &op)); c.Timer < 0 {
		s.Sent.TimedOut++
		end(s, channel, mailbox.TimedOut, 0)
	}
}

// retransmit sends a message again, or gives it up.
func retransmit(s *mailbox.State, channel uint32) {
	c := &s.Channels[channel]
	if c.Left == 0 {
		s.Sent.TimedOut++
		end(s, channel, mailbox.TimedOut, 0)
		return
	}
	c.Left--
	c.Attempt++
	s.Sent.Retransmitted++
	transmit(s, channel)
}

// expired handles a time-out.
func expired(s *mailbox.State, channel, sequence, attempt uint32) {
	c := &s.Channels[channel]
	if c.Status != mailbox.Ongoing || c.Sequence != sequence || c.Attempt&0xffff != attempt {
		s.Sent.Outdated++
		return
	}
	c.Timer = -1
	s.Sent.Timeouts++
	retransmit(s, channel)
}

// answered handles an acknowledgement, positive or negative. It counts for all
// attempts of its message. The answer that a cell was damaged does not count if
// there has been another attempt since.
func answered(s *mailbox.State, h *spin.Header, m *mailbox.Header) {
	c := &s.Channels[m.Channel]
	if c.NID != h.SourceNID || c.PID != h.SourcePID || c.Sequence != uint32(h.HdrData) || c.Status != mailbox.Ongoing && c.Status != mailbox.TimedOut {
		s.Sent.Outdated++
		return
	}
	switch {
	case m.Kind == mailbox.KindAck:
		s.Sent.Acked++
		end(s, m.Channel, mailbox.Acked, 0)
	case m.Code != mailbox.NackDamaged:
		s.Sent.Nacked++
		end(s, m.Channel, mailbox.Nacked, m.Code)
	case c.Status == mailbox.Ongoing && c.Attempt&0xffff == m.Attempt:
		cancel(c)
		retransmit(s, m.Channel)
	default:
		s.Sent.Outdated++
	}
}

func cancel(c *mailbox.Channel) {
	if c.Timer >= 0 {
		spin.TimerCancel(spin.Result(c.Timer))
		c.Timer = -1
	}
}

// end sets the status bits of a channel.
func end(s *mailbox.State, channel, status, code uint32) {
	c := &s.Channels[channel]
	cancel(c)
	c.Status, c.Code = status, code
	changed(s)
}

func changed(s *mailbox.State) {
	if s.ChangedCT != 0 {
		spin.Counter(s.ChangedCT).Inc(1, 0)
	}
}

// deliver handles an arrived cell.
//
//go:wasmexport mailbox
func deliver(p *spin.Payload, s *mailbox.State) spin.Code {
	m := mailbox.HeaderOf(p.MatchBits)
	sequence := uint32(p.HdrData)
	if m.Kind != mailbox.KindCell || m.Channel >= mailbox.Channels || m.Length > mailbox.MaxPayload ||
		p.Length != 0 && p.Length != mailbox.Words(m.Length) {
		s.Received.Strange++
		return spin.Success
	}
	if m.PDID != s.PDID {
		s.Received.Foreign++
		answer(p, s, &m, mailbox.KindNack, mailbox.NackForeign)
		return spin.Success
	}
	if p.Length == 0 {
		s.Received.Damaged++
		answer(p, s, &m, mailbox.KindNack, mailbox.NackDamaged)
		return spin.Success
	}
	from := peerOf(s, p.SourceNID, p.SourcePID, m.PT)
	if from == nil {
		s.Received.NoPeer++
		answer(p, s, &m, mailbox.KindNack, mailbox.NackNoPeer)
		return spin.Success
	}
	if from.Used>>m.Channel&1 != 0 {
		if age := mailbox.After(sequence, from.Last[m.Channel]); age <= 0 {
			repeated(p, s, &m, from, age)
			return spin.Success
		}
	}
	from.Used |= 1 << m.Channel
	from.Last[m.Channel] = sequence
	if s.Tail-s.Head == s.Depth {
		s.Received.Full++
		code := uint32(mailbox.NackFull)
		if s.Left != 0 {
			code = mailbox.NackLeft
		}
		from.Answer[m.Channel] = mailbox.Nacked | code<<16
		answer(p, s, &m, mailbox.KindNack, code)
		return spin.Success
	}
	from.Answer[m.Channel] = mailbox.Ongoing
	enqueue(p, s, &m, from, sequence)
	return spin.Success
}

// repeated handles a copy of a message with a decision. It gets the same
// answer, so that the first answer stays true.
func repeated(p *spin.Payload, s *mailbox.State, m *mailbox.Header, from *mailbox.Peer, age int32) {
	if age < 0 {
		s.Received.Outdated++
		return
	}
	s.Received.Duplicates++
	switch decision := from.Answer[m.Channel]; decision & 0xffff {
	case mailbox.Acked:
		answer(p, s, m, mailbox.KindAck, 0)
	case mailbox.Nacked:
		answer(p, s, m, mailbox.KindNack, decision>>16)
	}
}

// line is the state of a write by enqueue.
type line struct {
	entry   mailbox.Entry
	payload [mailbox.MaxPayload]byte
}

// enqueue writes a message to the end of the queue, and acknowledges it when it is there.
func enqueue(p *spin.Payload, s *mailbox.State, m *mailbox.Header, from *mailbox.Peer, sequence uint32) {
	at := s.Tail & (s.Depth - 1)
	s.Tail++
	l := line{entry: mailbox.Entry{Turn: s.Tail, NID: p.SourceNID, PID: p.SourcePID, PT: uint16(m.PT), Length: uint16(m.Length)}}
	copy(l.payload[:], p.Bytes())
	size := mailbox.Word + uintptr(p.Length)
	if spin.WriteHost(spin.HandlerHostMem, s.QueueStart+uint64(at)*mailbox.EntrySize, unsafe.Pointer(&l), size).Failed() {
		s.Received.Denied++ // the driver keeps the queue in memory: its owner has taken it away
		return
	}
	s.Received.Messages++
	if from.Last[m.Channel] == sequence {
		from.Answer[m.Channel] = mailbox.Acked
	}
	if s.ArrivedCT != 0 {
		spin.Counter(s.ArrivedCT).Inc(1, 0)
	}
	answer(p, s, m, mailbox.KindAck, 0)
}

// answer answers the packetizer of a cell.
func answer(p *spin.Payload, s *mailbox.State, m *mailbox.Header, kind, code uint32) {
	a := mailbox.Header{Kind: kind, PDID: s.PDID, Channel: m.Channel, Code: code, Attempt: m.Attempt}
	spin.PutFromDevice(&spin.Op{
		TargetNID: p.SourceNID, TargetPID: p.SourcePID, PTIndex: m.PT, MatchBits: a.Bits(), HdrData: uint64(uint32(p.HdrData)), Options: spin.Datagrams,
	})
}

// peerOf returns the peer for an interface, and makes one if there is none;
// nil: the table is full.
func peerOf(s *mailbox.State, nid, pid, pt uint32) *mailbox.Peer {
	if s.Peers == 0 {
		return nil
	}
	at := (nid*2654435761 ^ pid*40503 ^ pt*97) % s.Peers
	for range s.Peers {
		p := spin.At[mailbox.Peer](spin.After(s) + spin.Ptr(at*mailbox.PeerSize))
		if p.Used == 0 {
			p.Used, p.NID, p.PID, p.PT = 1<<31, nid, pid, pt
			return p
		}
		if p.NID == nid && p.PID == pid && p.PT == pt {
			return p
		}
		if at++; at == s.Peers {
			at = 0
		}
	}
	return nil
}

func main() {}
