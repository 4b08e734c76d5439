package main

import (
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
)

// maxPieces is how many accesses a packet can need: one for each of its ranges,
// cut at the ends of pages, so that the page of a fault is known.
const maxPieces = 3 * rnr.MaxRanges

// pieces are accesses to memory that are under way.
type pieces struct {
	count   int
	handle  [maxPieces]spin.Handle
	address [maxPieces]uint64
}

// wait waits for the accesses, and returns their result and the address of the
// first that has failed.
func (m *pieces) wait() (result spin.Result, address uint64) {
	for i := range m.count {
		if r := m.handle[i].Wait(); r.Failed() && !result.Failed() {
			result, address = r, m.address[i]
		}
	}
	m.count = 0
	return result, address
}

// move begins to move bytes between HPU memory and ranges, from byte skip of those on.
func (m *pieces) move(list []rnr.Range, skip uint64, b []byte, in bool) {
	for i := range list {
		r := &list[i]
		if skip >= r.Length {
			skip -= r.Length
			continue
		}
		n := min(r.Length-skip, uint64(len(b)))
		m.span(r.Address+skip, b[:n], in)
		skip, b = 0, b[n:]
	}
}

// span begins to move bytes between HPU memory and an address.
func (m *pieces) span(address uint64, b []byte, in bool) {
	for len(b) > 0 && m.count < maxPieces {
		n := min(uint64(len(b)), rnr.PageBytes-address%rnr.PageBytes)
		i := m.count
		m.count++
		m.address[i] = address
		if in {
			m.handle[i] = spin.DMAToHostNB(spin.MEHostMem|spin.TellFaults, address, b[:n])
		} else {
			m.handle[i] = spin.DMAFromHostNB(spin.MEHostMem|spin.TellFaults, address, b[:n])
		}
		address, b = address+n, b[n:]
	}
}

// accept takes a packet with a number. It returns the place where it is noted
// while it flies. There is always room, except on devices that hold more
// handlers than Window.
func accept(l *rnr.Landing, number uint64) (place int, room bool) {
	for i := range l.Flying {
		if l.Flying[i] == 0 {
			l.Flying[i] = number + 1
			l.Next = number + 1
			return i, true
		}
	}
	return 0, false
}

// refuse goes back to a number: packets in flight behind it will come again.
func refuse(l *rnr.Landing, number uint64) {
	l.Next = number
	for i := range l.Flying {
		if l.Flying[i] > number {
			l.Flying[i] = 0
		}
	}
}

// settled moves Una to the first number that has not landed.
func settled(l *rnr.Landing) {
	una := l.Next
	for i := range l.Flying {
		if f := l.Flying[i]; f != 0 {
			una = min(una, f-1)
		}
	}
	l.Una = max(l.Una, una)
}

// flight is a packet whose data is on its way from memory.
type flight struct {
	pieces
	op     spin.Op
	number uint64
	turn   uint64
	fault  rnr.Fault // if it has one
	buffer uint32
}

// A side that sends data: requests or responses.
const (
	requests  = 0
	responses = 1
)

// transmit sends the packets of a side, until it is the turn of others. It
// fetches the data of some packets ahead of the one that leaves.
func transmit(s *rnr.State, side uint32) {
	flights := spin.Behind[[2][rnr.Ahead]flight](s, 2*rnr.Ahead*s.MTU)
	head, tail, open := 0, 0, 0
	for {
		for tail < rnr.Quantum && tail-head < rnr.Ahead && open+maxPieces <= rnr.Handles {
			f := &flights[side][tail%rnr.Ahead]
			f.buffer = (side*rnr.Ahead + uint32(tail%rnr.Ahead)) * s.MTU
			if side == requests && !request(s, f) || side == responses && !respondNext(s, f) {
				break
			}
			open += f.count
			tail++
		}
		if head == tail {
			break
		}
		f := &flights[side][head%rnr.Ahead]
		head++
		open -= f.count
		leave(s, side, f)
	}
	if side == requests {
		s.Requester.Busy = 0
		send(s)
		return
	}
	s.Responder.Busy = 0
	respond(s)
	acknowledge(s)
}

// leave sends a packet, or stops: absent local data can wait (NPF'17).
func leave(s *rnr.State, side uint32, f *flight) {
	result, address := f.wait()
	turn := &s.Requester.Turn
	if side == responses {
		turn = &s.Responder.Turn
	}
	switch {
	case *turn != f.turn || s.Report.Error != 0:
	case result == spin.Fault:
		f.fault.Address = address
		stop(s, side, f)
	case result.Failed():
		broken(s, rnr.LocalAccess, rnr.RemoteAccess)
	default:
		s.Stats.Packets++
		spin.PutFromDevice(&f.op)
		if side == requests {
			watch(s)
		}
	}
}

// stop makes the packets from this one on wait for memory.
func stop(s *rnr.State, side uint32, f *flight) {
	if side == requests {
		s.Requester.Stopped = 1
		back(s, f.number)
	} else {
		e := &s.Responder
		r := &s.Reads[f.fault.At%uint64(len(s.Reads))]
		if f.fault.At >= e.Last || f.number-r.First >= rnr.Packets(r.Length, s.MTU) {
			return // it was asked for again meanwhile
		}
		e.Stopped = 1
		e.Turn++
		for i := f.fault.At + 1; i < e.Last; i++ {
			s.Reads[i%uint64(len(s.Reads))].Sent = 0
		}
		e.First, r.Sent = f.fault.At, f.number-r.First
		f.fault.Length = r.Address + r.Length - f.fault.Address
	}
	fault(s, &f.fault)
}
