package engine

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
)

// Cells is the hardware. It handles cells of arriving blocks, and messages
// about reads of this process.
func Cells[X Extension](p *spin.Payload, s *rdma.State) spin.Code {
	m := rdma.HeaderOf(p.MatchBits)
	var x X
	self := p.SourceNID == s.NID && p.SourcePID == s.PID
	switch m.Kind {
	case rdma.KindData, rdma.KindNotify:
		cell[X](s, p, &m)
	case rdma.KindGiveUp:
		givenUp[X](s, p, &m)
	case rdma.KindTaken:
		taken(s, p, &m, uint32(p.HdrData))
	case rdma.KindAskTimeout:
		if self {
			askExpired(s, &m)
		}
	case rdma.KindAsk:
		if self && p.Length == uint32(unsafe.Sizeof(rdma.Descriptor{})) {
			ask[X](s, spin.At[rdma.Descriptor](p.Base))
		} else {
			s.Received.Strange++
		}
	default:
		if !x.Cell(s, p, &m) {
			s.Received.Strange++
		}
	}
	return spin.Success
}

// refuse sends a negative acknowledgement.
func refuse(s *rdma.State, p *spin.Payload, m *rdma.Header, code uint64) {
	n := rdma.Header{Kind: rdma.KindNack, Slot: m.Slot, Sequence: m.Sequence}
	Tell(s, p.SourceNID, p.SourcePID, rdma.PTControl, &n, code)
}

// refuseOnce sends one negative acknowledgement for each sequence number of a
// block.
func refuseOnce(s *rdma.State, c *rdma.Context, p *spin.Payload, m *rdma.Header, code uint64) {
	if c.Refused != m.Sequence+1 {
		c.Refused = m.Sequence + 1
		refuse(s, p, m, code)
	}
}

// acknowledge reports that a block is complete.
func acknowledge(s *rdma.State, nid, pid, slot, base, sequence uint32) {
	a := rdma.Header{Kind: rdma.KindAck, Slot: slot, Sequence: sequence, Attempt: sequence - base}
	Tell(s, nid, pid, rdma.PTControl, &a, 0)
}

// cell takes a cell of a block, or the notification beside its last block.
func cell[X Extension](s *rdma.State, p *spin.Payload, m *rdma.Header) {
	if m.PDID != s.PDID {
		s.Received.Foreign++
		if p.Offset == 0 {
			refuse(s, p, m, rdma.NackForeign)
		}
		return
	}
	i := contextOf[X](s, p, m)
	if i == 0 {
		return
	}
	c := context[X](s, i)
	if p.Length == 0 {
		s.Received.Damaged++
		refuseOnce(s, c, p, m, rdma.NackCorrupt)
		return
	}
	if m.Kind == rdma.KindNotify {
		c.Notify = *spin.At[rdma.Notification](p.Base)
		c.Flags |= rdma.Notified
		whole[X](s, i, p)
		return
	}
	bit := uint64(1) << (p.Offset / uint64(s.MTU) & (rdma.MaxCells - 1))
	if c.Arrived&bit != 0 {
		s.Received.Duplicates++
		whole[X](s, i, p)
		return
	}
	address, rest := p.HostOffset, p.Bytes()
	if dropped(s, c, m, address) {
		s.Received.Dropped++
		return
	}
	c.Writing++
	use := c.Use
	// a write stays within one page, like a burst of the bus, so that the page
	// of a fault is known
	for len(rest) > 0 {
		n := min(len(rest), int(rdma.PageBytes-address%rdma.PageBytes))
		r := spin.DMAToHost(spin.MEHostMem|spin.TellFaults, address, rest[:n])
		if c.Use != use { // the block was given up meanwhile
			return
		}
		if unwritable[X](s, c, p, m, address, r) {
			c.Writing--
			return
		}
		address, rest = address+uint64(n), rest[n:]
	}
	c.Writing--
	s.Received.Cells++
	c.Arrived |= bit
	whole[X](s, i, p)
}

// dropped reports whether a cell comes behind one of its attempt that was
// refused, and would be, too.
func dropped(s *rdma.State, c *rdma.Context, m *rdma.Header, address uint64) bool {
	return s.Drop != 0 && c.Refused == m.Sequence+1 && (s.Drop == 2 || c.Page == address&^(rdma.PageBytes-1))
}

// unwritable reports whether a write to memory has failed, and refuses the cell
// if so.
func unwritable[X Extension](s *rdma.State, c *rdma.Context, p *spin.Payload, m *rdma.Header, address uint64, r spin.Result) bool {
	switch {
	case !r.Failed():
		return false
	case r == spin.Fault:
		s.Received.Faults++
		c.Page = address &^ (rdma.PageBytes - 1)
		var x X
		refuseOnce(s, c, p, m, x.Fault(s, p, m, address))
	default:
		s.Received.Denied++
		refuseOnce(s, c, p, m, rdma.NackDenied)
	}
	return true
}

// contextOf returns the context of a cell's block, and takes one for a new
// block. 0: the cell is not wanted.
func contextOf[X Extension](s *rdma.State, p *spin.Payload, m *rdma.Header) uint32 {
	if m.Slot >= rdma.Slots || s.MTU == 0 || cellsOf(s, p, m) > rdma.MaxCells || m.Kind == rdma.KindData && p.Offset >= p.MLength || m.Attempt > rdma.SequenceMask/2 {
		s.Received.Strange++
		return 0
	}
	who := peerOf[X](s, p.SourceNID, p.SourcePID, m.Slot/rdma.Outstanding)
	if who == 0 {
		s.Received.NoPeer++
		refuse(s, p, m, rdma.NackNoPeer)
		return 0
	}
	from := peer[X](s, who)
	base := (m.Sequence - m.Attempt) & rdma.SequenceMask
	if over(s, from, p, m, base) {
		return 0
	}
	i := uint32(from.Active[m.Slot%rdma.Outstanding])
	if i == 0 {
		return newContext[X](s, p, m, who)
	}
	c := context[X](s, i)
	switch age := rdma.After(base, c.Base); {
	case age < 0 || age == 0 && rdma.After(m.Sequence, c.Sequence) < 0:
		s.Received.Outdated++
		return 0
	case age > 0: // its source has given up the previous block
		release[X](s, i)
		return newContext[X](s, p, m, who)
	}
	c.Sequence = m.Sequence
	return i
}

// cellsOf returns how many cells the block of a cell has. The notification
// beside a block has that number, too.
func cellsOf(s *rdma.State, p *spin.Payload, m *rdma.Header) uint32 {
	length := p.MLength
	if m.Kind == rdma.KindNotify {
		length = p.HdrData >> 48
	}
	return uint32((length + uint64(s.MTU) - 1) / uint64(s.MTU))
}

// over reports whether the block of a cell is already complete. If it was sent
// again its acknowledgement was lost, so over sends another one.
func over(s *rdma.State, from *rdma.Peer, p *spin.Payload, m *rdma.Header, base uint32) bool {
	done := uint32(from.Done[m.Slot%rdma.Outstanding])
	if done == 0 {
		return false
	}
	age := rdma.After(base, done-1)
	if age > 0 {
		return false
	}
	s.Received.Duplicates++
	if again := uint32(from.Again[m.Slot%rdma.Outstanding]); age == 0 && rdma.After(m.Sequence, again-1) > 0 {
		from.Again[m.Slot%rdma.Outstanding] = uint16(m.Sequence + 1)
		acknowledge(s, p.SourceNID, p.SourcePID, m.Slot, base, m.Sequence)
	}
	return true
}

// newContext takes a context for the block of the first cell to arrive. 0:
// there is none, or the cell belongs to a transfer that is over.
func newContext[X Extension](s *rdma.State, p *spin.Payload, m *rdma.Header, who uint32) uint32 {
	from := peer[X](s, who)
	generation := uint32(p.HdrData>>32) & 0xffff
	in := &from.Incoming
	if age := int16(uint16(generation) - in.Generation); age < 0 {
		s.Received.Outdated++
		return 0
	} else if age > 0 {
		*in = rdma.Incoming{Generation: uint16(generation)}
	}
	i := takeContext[X](s)
	if i == 0 && !m.Last {
		i = reclaim[X](s)
	}
	if i == 0 {
		s.Received.NoContext++
		if p.Offset == 0 {
			refuse(s, p, m, rdma.NackNoContext)
		}
		return 0
	}
	c := context[X](s, i)
	*c = rdma.Context{
		Peer: who, Slot: m.Slot, Base: (m.Sequence - m.Attempt) & rdma.SequenceMask, Sequence: m.Sequence, Cells: cellsOf(s, p, m), Blocks: uint32(p.HdrData),
		Generation: generation, Use: c.Use,
	}
	if m.Last {
		c.Flags = rdma.LastBlock
	}
	from.Active[m.Slot%rdma.Outstanding] = uint16(i)
	return i
}

// whole ends a block whose cells are all in memory. The last block of a
// transfer ends after the others, and after the notification is in memory, so
// that all data is there when the notification comes. The notification is
// written once, because a block ends once.
func whole[X Extension](s *rdma.State, i uint32, p *spin.Payload) {
	c := context[X](s, i)
	if c.Writing > 0 || c.Arrived != 1<<c.Cells-1 || c.Flags&rdma.Completing != 0 {
		return
	}
	from := peer[X](s, c.Peer)
	in := &from.Incoming
	last, present := c.Flags&rdma.LastBlock != 0, uint32(in.Generation) == c.Generation
	if last {
		if c.Flags&rdma.Notified == 0 {
			return
		}
		if in.Whole != c.Blocks-1 {
			in.Last = uint16(i)
			c.Flags |= rdma.Ready
			return
		}
		if !notify[X](s, c, p) {
			return
		}
		in.Last = 0
	} else if present {
		in.Whole++
	}
	s.Received.Blocks++
	at := c.Slot % rdma.Outstanding
	from.Done[at], from.Again[at], from.Active[at] = uint16(c.Base+1), uint16(c.Sequence+1), 0
	asker, sequence := c.Notify.Asker, c.Notify.AskSequence
	acknowledge(s, from.NID, from.PID, c.Slot, c.Base, c.Sequence)
	giveContext[X](s, i)
	switch {
	case last:
		s.Received.Transfers++
		landed(s, asker, sequence)
	case present && in.Last != 0:
		whole[X](s, uint32(in.Last), p)
	}
}

// notify writes the notification of a transfer and reports whether it is in memory.
func notify[X Extension](s *rdma.State, c *rdma.Context, p *spin.Payload) bool {
	if c.Notify.Address == 0 {
		return true
	}
	c.Flags |= rdma.Completing
	use := c.Use
	r := spin.WriteHost(spin.MEHostMem|spin.TellFaults, c.Notify.Address, unsafe.Pointer(&c.Notify.Value), unsafe.Sizeof(c.Notify.Value))
	if c.Use != use {
		return false
	}
	c.Flags &^= rdma.Completing
	// this block may differ from the cell's block
	b := rdma.Header{PDID: s.PDID, Slot: c.Slot, Sequence: c.Sequence}
	if unwritable[X](s, c, p, &b, c.Notify.Address, r) {
		return false
	}
	if s.NotifiedCT != 0 {
		spin.Counter(s.NotifiedCT).Inc(1, 0)
	}
	return true
}

// reclaim takes the context of a last block that waits for other blocks of its
// transfer. Such a block has not been acknowledged and comes again. Otherwise
// last blocks could have all contexts, and the blocks for which they wait none.
// Last blocks do not take contexts from each other. So each context is with a
// block that will be complete, or with one that gives way to such a block.
func reclaim[X Extension](s *rdma.State) uint32 {
	for i := uint32(1); i <= s.Contexts; i++ {
		c := context[X](s, i)
		if c.Flags&(rdma.Ready|rdma.Completing) == rdma.Ready {
			release[X](s, i)
			return takeContext[X](s)
		}
	}
	return 0
}

// release frees the context of a block that is not complete for its transfer.
func release[X Extension](s *rdma.State, i uint32) {
	c := context[X](s, i)
	from := peer[X](s, c.Peer)
	if in := &from.Incoming; uint32(in.Last) == i {
		in.Last = 0
	}
	from.Active[c.Slot%rdma.Outstanding] = 0
	giveContext[X](s, i)
}

// givenUp ends a block whose transfer has failed at its source.
func givenUp[X Extension](s *rdma.State, p *spin.Payload, m *rdma.Header) {
	if m.Slot >= rdma.Slots || m.PDID != s.PDID {
		s.Received.Strange++
		return
	}
	who := peerOf[X](s, p.SourceNID, p.SourcePID, m.Slot/rdma.Outstanding)
	if who == 0 {
		s.Received.NoPeer++
		return
	}
	if i := uint32(peer[X](s, who).Active[m.Slot%rdma.Outstanding]); i != 0 && context[X](s, i).Base == (m.Sequence-m.Attempt)&rdma.SequenceMask {
		release[X](s, i)
	}
}
