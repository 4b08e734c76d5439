package engine

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
)

// A request to read goes from a packetizer of the reader to the mailbox of the
// firmware at the data (TR-488 §4.5.1) until the firmware has answered. After
// that it goes ever more rarely until the data has arrived, because the reader
// must find out if the transfer fails there.
//
// Here the firmware is the mailbox, so there are differences from TR-488. Each
// of the 32 reads of a page may have a request under way, instead of four
// channels shared with messages. The firmware acknowledges a request and checks
// its PDID when it has a channel. A lost request takes a time-out of the page
// (1 ms, instead of 100 µs), and so does one that finds no channel, instead of
// a NACK. Without losses only the two or three cycles of a mailbox are missing.

// ask sends a request of this process.
func ask[X Extension](s *rdma.State, d *rdma.Descriptor) {
	if d.Channel >= rdma.Reads || s.Requests[d.Channel].Status == rdma.Ongoing {
		s.Sent.Busy++
		return
	}
	q := &s.Requests[d.Channel]
	q.Descriptor, q.Attempt, q.Status, q.Timer, q.Taken = *d, 0, rdma.Ongoing, -1, 0
	who := peerOf[X](s, d.NID, d.PID, d.Channel)
	if who == 0 {
		answered(s, d.Channel, rdma.NoSpace)
		return
	}
	q.Sequence = number(s, &peer[X](s, who).Ask)
	request(s, d.Channel)
}

// request sends a request, perhaps again.
func request(s *rdma.State, i uint32) {
	q := &s.Requests[i]
	m := rdma.Header{Kind: rdma.KindRead, PDID: s.PDID, Slot: i, Sequence: q.Sequence}
	op := spin.Op{
		TargetNID: q.Descriptor.NID, TargetPID: q.Descriptor.PID, PTIndex: rdma.PTControl, Options: spin.Datagrams, MatchBits: m.Bits(),
		Local: spin.AddrOf(&q.Descriptor), Length: uint64(unsafe.Sizeof(q.Descriptor)),
	}
	await(s, i)
	switch r := spin.PutFromDevice(&op); {
	case r == spin.Invalid: // no such node
		answered(s, i, rdma.Illegal)
	case q.Timer < 0:
		answered(s, i, rdma.NoSpace)
	}
}

// await sets the time-out of a request and cancels the old one. An expired one
// whose message has not been read remains.
func await(s *rdma.State, i uint32) {
	q := &s.Requests[i]
	Cancel(&q.Timer)
	after := q.Attempt
	if q.Taken != 0 {
		after = s.BackOff + 6 // the longest
	}
	w := rdma.Header{Kind: rdma.KindAskTimeout, PDID: s.PDID, Slot: i, Sequence: q.Sequence}
	q.Timer = wake(s, timeout(s, after), rdma.PTCells, &w)
}

// askExpired asks again.
func askExpired(s *rdma.State, m *rdma.Header) {
	if m.Slot >= rdma.Reads {
		return
	}
	q := &s.Requests[m.Slot]
	if q.Status != rdma.Ongoing || q.Sequence != m.Sequence {
		return
	}
	if q.Attempt >= s.Retries {
		answered(s, m.Slot, rdma.TimedOut)
		return
	}
	q.Attempt++
	request(s, m.Slot)
}

// taken handles the other side's answer to a request: that it is served, after
// which it is asked for rarely, or how it has ended.
func taken(s *rdma.State, p *spin.Payload, m *rdma.Header, status uint32) {
	if m.Slot >= rdma.Reads {
		s.Received.Strange++
		return
	}
	q := &s.Requests[m.Slot]
	if q.Status != rdma.Ongoing || q.Sequence != m.Sequence || q.Descriptor.NID != p.SourceNID || q.Descriptor.PID != p.SourcePID {
		s.Sent.Outdated++
		return
	}
	switch status {
	case rdma.Ongoing:
		q.Attempt, q.Taken = 0, 1
		if await(s, m.Slot); q.Timer < 0 {
			answered(s, m.Slot, rdma.NoSpace)
		}
	// everything has landed here, or its notification waits for memory: that
	// one reports it
	case rdma.Completed:
	default:
		answered(s, m.Slot, status)
	}
}

// landed ends a transfer that has arrived; asker is 1 + the request that it
// serves, or 0.
func landed(s *rdma.State, asker, sequence uint32) {
	if asker != 0 && asker <= rdma.Reads {
		if q := &s.Requests[asker-1]; q.Status == rdma.Ongoing && q.Sequence == sequence {
			answered(s, asker-1, rdma.Completed)
		}
	}
}

// answered ends a request.
func answered(s *rdma.State, i, status uint32) {
	q := &s.Requests[i]
	Cancel(&q.Timer)
	q.Status = status
	report(s, rdma.Channels+i, status, q.Descriptor.Tag)
}
