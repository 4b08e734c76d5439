// Package engine is the RDMA engine's protocol, for modules that differ in what
// they do about page faults: rdma and part.
package engine

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/spin"
)

// Extension is what a module adds to the engine. The methods of its zero value are called.
type Extension interface {
	// Behind is where contexts and peers lie.
	Behind(s *rdma.State) spin.Ptr
	// Fault is told of a cell, or of a notification, of a block h whose memory
	// at an address was absent, and returns the code of the negative
	// acknowledgement.
	Fault(s *rdma.State, p *spin.Payload, h *rdma.Header, address uint64) uint64
	// Paused is told that a negative acknowledgement NackFault has come for a
	// block, whose time-out is running.
	Paused(s *rdma.State, slot uint32)
	// Control deals with a message to the firmware that the engine does not
	// know, and reports whether it did.
	Control(s *rdma.State, h *spin.Header, m *rdma.Header) bool
	// Cell likewise for the hardware.
	Cell(s *rdma.State, p *spin.Payload, m *rdma.Header) bool
}

// Plain adds nothing: a block that meets absent memory is sent again after its time-out.
type Plain struct{}

// Behind is where contexts and peers lie.
func (Plain) Behind(s *rdma.State) spin.Ptr { return spin.After(s) }

// Fault says that memory was absent.
func (Plain) Fault(*rdma.State, *spin.Payload, *rdma.Header, uint64) uint64 { return rdma.NackFault }

// Paused leaves the time-out running.
func (Plain) Paused(*rdma.State, uint32) {}

// Control knows no more messages.
func (Plain) Control(*rdma.State, *spin.Header, *rdma.Header) bool { return false }

// Cell knows no more messages.
func (Plain) Cell(*rdma.State, *spin.Payload, *rdma.Header) bool { return false }

func context[X Extension](s *rdma.State, i uint32) *rdma.Context {
	var x X
	return spin.At[rdma.Context](x.Behind(s) + spin.Ptr((i-1)*rdma.ContextSize))
}

func peer[X Extension](s *rdma.State, i uint32) *rdma.Peer {
	var x X
	return spin.At[rdma.Peer](x.Behind(s) + spin.Ptr(s.Contexts*rdma.ContextSize+(i-1)*rdma.PeerSize))
}

// peerOf finds a channel of a process, counted from 1, and makes one if there
// is none; 0: the table is full.
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

// takeContext returns a context that nobody uses, counted from 1; 0: there is none.
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

// giveContext gives a context back.
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

// fill gives a message to PTCells some bytes: without data no payload handler runs.
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

// Cancel takes a timer back.
func Cancel(timer *int32) {
	if *timer >= 0 {
		spin.TimerCancel(spin.Result(*timer))
		*timer = -1
	}
}

// timeout is how long to wait for an answer to an attempt, in nanoseconds: a
// timer can wait no longer than spin.MaxTimer.
func timeout(s *rdma.State, attempt uint32) uint64 {
	double := uint32(0)
	if attempt > s.BackOff {
		double = min(attempt-s.BackOff, 6)
	}
	return min(s.Timeout<<double, spin.MaxTimer)
}

// report writes the status of a channel, or of a request behind those, to the
// host. It suspends: it is the last thing that a handler does.
func report(s *rdma.State, place, status, tag uint32) {
	word := rdma.StatusWord(status, tag)
	spin.WriteHost(spin.HandlerHostMem, s.StatusOffset+8*uint64(place), unsafe.Pointer(&word), unsafe.Sizeof(word))
	if s.CompletedCT != 0 {
		spin.Counter(s.CompletedCT).Inc(1, 0)
	}
}
