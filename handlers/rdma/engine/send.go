package engine

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
)

// Control is the firmware. It begins transfers and their blocks, and handles
// answers about blocks.
func Control[X Extension](h *spin.Header, s *rdma.State) spin.Code {
	m := rdma.HeaderOf(h.MatchBits)
	var x X
	if s.Ready == 0 {
		s.Ready = 1
		for i := range s.Blocks {
			s.Blocks[i].Timer = -1
		}
	}
	self := h.SourceNID == s.NID && h.SourcePID == s.PID
	switch {
	case m.Kind == rdma.KindWrite && self && h.UserHdrLen == uint32(unsafe.Sizeof(rdma.Descriptor{})):
		write[X](s, spin.At[rdma.Descriptor](h.UserHdr))
	case m.Kind == rdma.KindRead && h.UserHdrLen == uint32(unsafe.Sizeof(rdma.Descriptor{})):
		read[X](s, h, &m, spin.At[rdma.Descriptor](h.UserHdr))
	case m.Kind == rdma.KindTimeout && h.Type == spin.MsgSelf:
		expired[X](s, &m)
	case m.Kind == rdma.KindAck && Known(s, h, &m):
		acknowledged[X](s, &m)
	case m.Kind == rdma.KindNack && Known(s, h, &m):
		refused[X](s, &m, uint32(h.HdrData))
	case x.Control(s, h, &m):
	case m.Kind == rdma.KindAck, m.Kind == rdma.KindNack: // to an earlier transfer of the channel
		s.Sent.Outdated++
	default:
		s.Sent.Strange++
	}
	for s.Broken != 0 {
		channel := s.Broken - 1
		s.Broken = 0
		if s.Transfers[channel].Status == rdma.Ongoing {
			end[X](s, channel, s.BrokenStatus)
		}
	}
	return spin.Drop
}

// Known reports whether a message about a block comes from the block's
// destination.
func Known(s *rdma.State, h *spin.Header, m *rdma.Header) bool {
	if m.Slot >= rdma.Slots {
		return false
	}
	t := &s.Transfers[m.Slot/rdma.Outstanding]
	return t.NID == h.SourceNID && t.PID == h.SourcePID && (m.PDID == s.PDID || m.Kind == rdma.KindNack)
}

// write begins a transfer of this process.
func write[X Extension](s *rdma.State, d *rdma.Descriptor) {
	channel := d.Channel
	if channel >= rdma.Writes || s.Transfers[channel].Status == rdma.Ongoing {
		s.Sent.Busy++
		return
	}
	if status := begin[X](s, channel, d); status != rdma.Ongoing {
		end[X](s, channel, status)
		return
	}
	turn[X](s, channel)
}

// begin prepares a channel for a transfer, and returns Ongoing, or the reason
// why it is impossible.
func begin[X Extension](s *rdma.State, channel uint32, d *rdma.Descriptor) (status uint32) {
	t := &s.Transfers[channel]
	t.Source, t.Destination, t.Length, t.Offset = d.Source, d.Destination, d.Length, 0
	t.Notify = rdma.Notification{Address: d.Notify, Value: d.Value}
	t.NID, t.PID, t.Tag = d.NID, d.PID, d.Tag
	t.Next, t.Done, t.Outstanding, t.Asker = 0, 0, 0, 0
	if t.Peer = peerOf[X](s, d.NID, d.PID, channel); t.Peer == 0 {
		t.Status = rdma.Ongoing
		s.Sent.Transfers++
		return rdma.NoSpace
	}
	g := &peer[X](s, t.Peer).Generation
	*g++
	t.Generation = uint32(*g)
	t.Status = rdma.Ongoing
	s.Sent.Transfers++
	const top = 1 << rdma.AddressBits
	if d.Length > top || d.Source > top-d.Length || d.Destination > top-d.Length || d.Notify > top-8 || d.Notify%8 != 0 {
		return rdma.Illegal
	}
	t.Blocks = blocks(s, t)
	return rdma.Ongoing
}

// blocks counts the blocks of a transfer: at least one, which carries the notification.
func blocks(s *rdma.State, t *rdma.ChannelState) uint32 {
	from := border(s, t)
	size := uint64(s.Block)
	return max(1, uint32((from%size+t.Length+size-1)/size))
}

// border returns an address. Blocks end where it is a multiple of a block's
// size.
func border(s *rdma.State, t *rdma.ChannelState) uint64 {
	if s.AlignSource != 0 {
		return t.Source
	}
	return t.Destination
}

// turn gives blocks to the hardware: first of this channel, as many as the
// channel may have there, and then of others.
func turn[X Extension](s *rdma.State, channel uint32) {
	for range uint32(rdma.Outstanding) {
		next[X](s, channel)
	}
	for i := range uint32(rdma.Channels) {
		if s.Waiting >= s.InFlight {
			s.NextTurn = (s.NextTurn + i) % rdma.Channels
			return
		}
		next[X](s, (s.NextTurn+i)%rdma.Channels)
	}
}

// next sends the next block of a channel, if there is one, with a slot, and if
// the hardware has room.
func next[X Extension](s *rdma.State, channel uint32) {
	t := &s.Transfers[channel]
	if t.Status != rdma.Ongoing || t.Next == t.Blocks || t.Outstanding == rdma.Outstanding || s.Waiting >= s.InFlight || suspended(s, channel) {
		return
	}
	slot := channel * rdma.Outstanding
	for s.Blocks[slot].State != 0 {
		slot++
	}
	b := &s.Blocks[slot]
	size := uint64(s.Block)
	b.Offset, b.Attempt, b.State, b.Last, b.Expired, b.Failed = t.Offset, 0, 1, 0, 0, 0
	b.Length = uint32(min(size-(border(s, t)+t.Offset)%size, t.Length-t.Offset))
	b.Sequence = number(s, &peer[X](s, t.Peer).Sequence[slot%rdma.Outstanding])
	t.Offset += uint64(b.Length)
	if t.Next++; t.Next == t.Blocks {
		b.Last = 1
	}
	t.Outstanding++
	s.Waiting++
	s.Sent.Blocks++
	launch[X](s, slot)
}

// suspended reports whether a channel sends no new block, because one has failed.
func suspended(s *rdma.State, channel uint32) bool {
	if s.Suspend == 0 {
		return false
	}
	for slot := channel * rdma.Outstanding; slot < (channel+1)*rdma.Outstanding; slot++ {
		if b := &s.Blocks[slot]; b.State != 0 && b.Failed != 0 {
			return true
		}
	}
	return false
}

// number increments a sequence number; an unused one begins after
// State.Sequence. The word holds the number + 1.
func number(s *rdma.State, word *uint16) uint32 {
	n := s.Sequence
	if *word != 0 {
		n = uint32(*word - 1)
	}
	n = (n + 1) & rdma.SequenceMask
	*word = uint16(n + 1)
	return n
}

// launch gives a block to the hardware and starts its time-out.
func launch[X Extension](s *rdma.State, slot uint32) {
	b, t := &s.Blocks[slot], &s.Transfers[slot/rdma.Outstanding]
	m := rdma.Header{Kind: rdma.KindData, PDID: s.PDID, Slot: slot, Sequence: b.Sequence, Attempt: b.Attempt, Last: b.Last != 0}
	op := spin.Op{
		TargetNID: t.NID, TargetPID: t.PID, PTIndex: rdma.PTCells, Options: spin.Datagrams, MatchBits: m.Bits(), HdrData: uint64(t.Blocks) | uint64(t.Generation)<<32,
		Space: spin.MEHostMem, Offset: t.Source + b.Offset, RemoteOffset: t.Destination + b.Offset, Length: uint64(b.Length),
	}
	result := spin.OK
	if b.Last != 0 {
		n := op
		m.Kind = rdma.KindNotify
		n.MatchBits, n.Local, n.Length, n.RemoteOffset = m.Bits(), spin.AddrOf(&t.Notify), uint64(unsafe.Sizeof(t.Notify)), 0
		n.HdrData |= uint64(b.Length) << 48
		result = spin.PutFromDevice(&n)
	}
	if b.Length > 0 && !result.Failed() {
		result = spin.PutFromHost(&op)
	}
	Wait(s, slot, timeout(s, b.Expired)) // then a put that has found no room is sent again
	if result == spin.Invalid {          // no such node
		s.Broken, s.BrokenStatus = slot/rdma.Outstanding+1, rdma.Illegal
	}
}

// Wait sets the time-out of a block to a delay, in nanoseconds, and cancels the
// old one.
func Wait(s *rdma.State, slot uint32, delay uint64) {
	b := &s.Blocks[slot]
	Cancel(&b.Timer)
	w := rdma.Header{Kind: rdma.KindTimeout, PDID: s.PDID, Slot: slot, Sequence: b.Sequence}
	if b.Timer = wake(s, delay, rdma.PTControl, &w); b.Timer < 0 { // nic.handler_commands are used up
		s.Broken, s.BrokenStatus = slot/rdma.Outstanding+1, rdma.NoSpace
	}
}

// Again sends a block again, with the next sequence number. After too many
// attempts it gives up, because nobody receives it.
func Again[X Extension](s *rdma.State, slot uint32) {
	b := &s.Blocks[slot]
	Cancel(&b.Timer)
	if b.Attempt == s.Retries {
		end[X](s, slot/rdma.Outstanding, rdma.TimedOut)
		return
	}
	b.Attempt++
	b.Sequence = number(s, &peer[X](s, s.Transfers[slot/rdma.Outstanding].Peer).Sequence[slot%rdma.Outstanding])
	s.Sent.Retransmitted++
	launch[X](s, slot)
}

// Current returns the block that a message is about, nil if its sequence number is over.
func Current(s *rdma.State, m *rdma.Header) *rdma.Block {
	if m.Slot < rdma.Slots {
		if b := &s.Blocks[m.Slot]; b.State != 0 && b.Sequence == m.Sequence {
			return b
		}
	}
	s.Sent.Outdated++
	return nil
}

// expired handles a time-out.
func expired[X Extension](s *rdma.State, m *rdma.Header) {
	if b := Current(s, m); b != nil {
		b.Timer = -1
		b.Expired++
		b.Failed = 1
		s.Sent.Timeouts++
		Again[X](s, m.Slot)
	}
}

// acknowledged handles the acknowledgement of a block, whichever attempt it
// belongs to.
func acknowledged[X Extension](s *rdma.State, m *rdma.Header) {
	b := &s.Blocks[m.Slot]
	if age := rdma.After(b.Sequence, m.Sequence); b.State == 0 || age < 0 || age > int32(b.Attempt) {
		s.Sent.Outdated++
		return
	}
	Cancel(&b.Timer)
	b.State = 0
	s.Sent.Acks++
	s.Waiting--
	channel := m.Slot / rdma.Outstanding
	t := &s.Transfers[channel]
	t.Outstanding--
	if t.Done++; t.Done == t.Blocks {
		t.Status = rdma.Completed
	}
	turn[X](s, channel)
	if t.Status == rdma.Completed {
		s.Sent.Completed++
		told[X](s, channel)
	}
}

// refused handles a negative acknowledgement of a block.
func refused[X Extension](s *rdma.State, m *rdma.Header, code uint32) {
	b := Current(s, m)
	if b == nil {
		return
	}
	s.Sent.Nacks++
	b.Failed = 1
	switch code {
	case rdma.NackCorrupt:
		Again[X](s, m.Slot)
	case rdma.NackFault:
		if s.Restart != 0 {
			Wait(s, m.Slot, timeout(s, b.Expired))
		}
		var x X
		x.Paused(s, m.Slot)
	case rdma.NackDenied:
		end[X](s, m.Slot/rdma.Outstanding, rdma.Denied)
	case rdma.NackForeign:
		end[X](s, m.Slot/rdma.Outstanding, rdma.Foreign)
	case rdma.NackNoPeer:
		end[X](s, m.Slot/rdma.Outstanding, rdma.NoSpace)
	}
}

// Refuse ends the transfers with data on a page of n bytes that the process
// does not have.
func Refuse[X Extension](s *rdma.State, page, n uint64) {
	for channel := range uint32(rdma.Channels) {
		t := &s.Transfers[channel]
		if t.Status == rdma.Ongoing && t.Source < page+n && page < t.Source+t.Length {
			end[X](s, channel, rdma.Denied)
		}
	}
}

// end ends a transfer that has failed, and forgets its blocks under way.
func end[X Extension](s *rdma.State, channel, status uint32) {
	t := &s.Transfers[channel]
	for slot := channel * rdma.Outstanding; slot < (channel+1)*rdma.Outstanding; slot++ {
		if b := &s.Blocks[slot]; b.State != 0 {
			Cancel(&b.Timer)
			b.State = 0
			s.Waiting--
			m := rdma.Header{Kind: rdma.KindGiveUp, Slot: slot, Sequence: b.Sequence, Attempt: b.Attempt}
			Tell(s, t.NID, t.PID, rdma.PTCells, &m, 0)
		}
	}
	t.Outstanding, t.Status = 0, status
	s.Sent.Failed++
	turn[X](s, channel)
	told[X](s, channel)
}

// told reports the end of a transfer to the process that has asked for it.
func told[X Extension](s *rdma.State, channel uint32) {
	t := &s.Transfers[channel]
	if t.Asker == 0 {
		report(s, channel, t.Status, t.Tag)
		return
	}
	// it exists since the request was taken
	if who := peerOf[X](s, t.NID, t.PID, t.Asker-1); who != 0 {
		peer[X](s, who).Answer = uint16(t.Status)
	}
	m := rdma.Header{Kind: rdma.KindTaken, Slot: t.Asker - 1, Sequence: t.AskSequence}
	Tell(s, t.NID, t.PID, rdma.PTCells, &m, uint64(t.Status))
}

// read handles a request to read: a write to the requester, by a channel for
// reads. A request is repeated until it is answered.
func read[X Extension](s *rdma.State, h *spin.Header, m *rdma.Header, d *rdma.Descriptor) {
	answer := rdma.Header{Kind: rdma.KindTaken, Slot: m.Slot, Sequence: m.Sequence}
	if m.PDID != s.PDID {
		s.Received.Foreign++
		Tell(s, h.SourceNID, h.SourcePID, rdma.PTCells, &answer, rdma.Foreign)
		return
	}
	who := uint32(0)
	if m.Slot < rdma.Reads {
		who = peerOf[X](s, h.SourceNID, h.SourcePID, m.Slot)
	}
	if who == 0 {
		s.Received.NoPeer++
		Tell(s, h.SourceNID, h.SourcePID, rdma.PTCells, &answer, rdma.NoSpace)
		return
	}
	p := peer[X](s, who)
	if before := p.Asked; before != 0 {
		age := rdma.After(m.Sequence, uint32(before-1))
		if age < 0 {
			s.Sent.Outdated++
			return
		}
		if age == 0 {
			status := uint32(p.Answer)
			if status == 0 {
				status = rdma.Ongoing
			}
			Tell(s, h.SourceNID, h.SourcePID, rdma.PTCells, &answer, uint64(status))
			return
		}
	}
	channel := uint32(rdma.Writes)
	for s.Transfers[channel].Status == rdma.Ongoing {
		if channel++; channel == rdma.Channels {
			s.Sent.Busy++ // it is repeated
			return
		}
	}
	p.Asked = uint16(m.Sequence + 1)
	p.Answer = 0
	d.NID, d.PID = h.SourceNID, h.SourcePID
	status := begin[X](s, channel, d)
	t := &s.Transfers[channel]
	t.Asker, t.AskSequence = m.Slot+1, m.Sequence
	t.Notify.Asker, t.Notify.AskSequence = t.Asker, t.AskSequence
	if status != rdma.Ongoing {
		end[X](s, channel, status)
		return
	}
	Tell(s, h.SourceNID, h.SourcePID, rdma.PTCells, &answer, rdma.Ongoing)
	turn[X](s, channel)
}
