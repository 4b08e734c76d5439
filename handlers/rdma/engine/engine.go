// Package engine is the protocol of the RDMA engine, for modules that react to
// page faults in different ways: rdma and part.
package engine

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
)

// Extension is the part that a module adds to the engine. The engine calls the
// methods of its zero value.
type Extension interface {
	// Behind returns the place of contexts and peers.
	Behind(s *rdma.State) spin.Ptr
	// Fault is called when memory at an address was absent for a cell, or for a
	// notification, of block h. It returns the code of the negative
	// acknowledgement.
	Fault(s *rdma.State, p *spin.Payload, h *rdma.Header, address uint64) uint64
	// Paused is called when a negative acknowledgement NackFault has come for a
	// block whose time-out is running.
	Paused(s *rdma.State, slot uint32)
	// Control handles a message to the firmware that the engine does not know,
	// and reports whether it did.
	Control(s *rdma.State, h *spin.Header, m *rdma.Header) bool
	// Cell does the same for the hardware.
	Cell(s *rdma.State, p *spin.Payload, m *rdma.Header) bool
}

// Plain adds nothing: a block that meets absent memory is sent again after its time-out.
type Plain struct{}

// Behind returns the place behind the state.
func (Plain) Behind(s *rdma.State) spin.Ptr { return spin.After(s) }

// Fault returns NackFault: memory was absent.
func (Plain) Fault(*rdma.State, *spin.Payload, *rdma.Header, uint64) uint64 { return rdma.NackFault }

// Paused lets the time-out run on.
func (Plain) Paused(*rdma.State, uint32) {}

// Control handles no message.
func (Plain) Control(*rdma.State, *spin.Header, *rdma.Header) bool { return false }

// Cell handles no message.
func (Plain) Cell(*rdma.State, *spin.Payload, *rdma.Header) bool { return false }

func context[X Extension](s *rdma.State, i uint32) *rdma.Context {
	var x X
	return spin.At[rdma.Context](x.Behind(s) + spin.Ptr((i-1)*rdma.ContextSize))
}

func peer[X Extension](s *rdma.State, i uint32) *rdma.Peer {
	var x X
	return spin.At[rdma.Peer](x.Behind(s) + spin.Ptr(s.Contexts*rdma.ContextSize+(i-1)*rdma.PeerSize))
}

// peerOf returns the peer for a channel of a process, counted from 1, and makes
// one if there is none; 0: the table is full.
func peerOf[X Extension](s *rdma.State, nid, pid, channel uint32) uint32 {
	if s.Peers == 0 {
		return 0
	}
	at := (nid*2654435761 ^ pid*40503 ^ channel*2246822519) % s.Peers
	for range s.Peers {
		p := peer[X](s, at+1)
		if p.Used == 0 {
			p.Used, p.NID, p.PID, p.Channel = 1, nid, pid, uint16(channel)
			return at + 1
		}
		if p.NID == nid && p.PID == pid && p.Channel == uint16(channel) {
			return at + 1
		}
		if at++; at == s.Peers {
			at = 0
		}
	}
	return 0
}

// takeContext returns a free context, counted from 1; 0: there is none.
func takeContext[X Extension](s *rdma.State) uint32 {
	i := s.FreeContext
	if i != 0 {
		s.FreeContext = context[X](s, i).Next
		return i
	}
	if s.ContextsUsed == s.Contexts {
		return 0
	}
	s.ContextsUsed++
	return s.ContextsUsed
}

// giveContext frees a context.
func giveContext[X Extension](s *rdma.State, i uint32) {
	c := context[X](s, i)
	c.Use++
	c.Flags = 0
	c.Next = s.FreeContext
	s.FreeContext = i
}

// Tell sends a message, which may get lost, to an entry of a process.
func Tell(s *rdma.State, nid, pid, pt uint32, m *rdma.Header, data uint64) {
	m.PDID = s.PDID
	op := spin.Op{TargetNID: nid, TargetPID: pid, PTIndex: pt, MatchBits: m.Bits(), HdrData: data, Options: spin.Datagrams}
	fill(s, &op)
	spin.PutFromDevice(&op)
}

// fill gives a message to PTCells some bytes, because without data no payload
// handler runs.
func fill(s *rdma.State, op *spin.Op) {
	if op.PTIndex == rdma.PTCells {
		op.Local, op.Length = spin.AddrOf(&s.MTU), 4
	}
}

// wake sets a message to self, and returns the timer, negative if there is none.
func wake(s *rdma.State, delay uint64, pt uint32, m *rdma.Header) int32 {
	op := spin.Op{PTIndex: pt, MatchBits: m.Bits()}
	fill(s, &op)
	return int32(spin.Timer(delay, &op))
}

// Cancel cancels a timer.
func Cancel(timer *int32) {
	if *timer >= 0 {
		spin.TimerCancel(spin.Result(*timer))
		*timer = -1
	}
}

// timeout returns how long to wait for an answer after a number of time-outs, in
// nanoseconds, at most spin.MaxTimer.
func timeout(s *rdma.State, expired uint32) uint64 {
	double := uint32(0)
	if expired > s.BackOff {
		double = min(expired-s.BackOff, 6)
	}
	return min(s.Timeout<<double, spin.MaxTimer)
}

// report writes the status of a channel, or of a request, to the host. Requests
// come after channels. It suspends, so it is the last action of a handler.
func report(s *rdma.State, place, status, tag uint32) {
	word := rdma.StatusWord(status, tag)
	spin.WriteHost(spin.HandlerHostMem, s.StatusOffset+8*uint64(place), unsafe.Pointer(&word), unsafe.Sizeof(word))
	if s.CompletedCT != 0 {
		spin.Counter(s.CompletedCT).Inc(1, 0)
	}
}
