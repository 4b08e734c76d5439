// The RDMA engine with PART: page faults at the destination go into a FIFO, and
// blocks wait until they are asked for again (Psistakis et al., IEEE TPDS
// 2022).
//
//spin:library part 1.0
//spin:needs memory=256*88+min(256*ranks,65536)*44 spaces=entry,handler host_memory=768 entry_options=op_put
//spin:needs handler=control user_header=64
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/rdma/engine"
	"github.com/spinsim/spinsim/spin"
)

// faults is PART's extension of the engine.
type faults struct{ engine.Plain }

// state returns the state of part, which begins with the engine's.
func state(s *rdma.State) *part.State {
	return (*part.State)(unsafe.Add(unsafe.Pointer(s), -int(unsafe.Offsetof(part.State{}.RDMA))))
}

// Behind returns the place of contexts and peers.
func (faults) Behind(s *rdma.State) spin.Ptr { return spin.After(state(s)) }

// Fault pushes a fault, unless the previous entry is for the same block and
// page.
func (faults) Fault(s *rdma.State, p *spin.Payload, m *rdma.Header, address uint64) uint64 {
	x := state(s)
	page := address &^ (rdma.PageBytes - 1)
	switch {
	case x.Every == 0 && x.Tail != 0 && x.Source == p.SourceNID && x.SourcePID == p.SourcePID && x.Slot == m.Slot && x.Sequence == m.Sequence && x.Page == page:
		x.Faults.Merged++
	case x.Tail-x.Head >= x.Depth:
		x.Faults.Full++
		return rdma.NackNoContext // nobody will ask for it
	default:
		f := part.FaultRecord{NID: p.SourceNID, PID: p.SourcePID, Slot: m.Slot, Sequence: m.Sequence, PDID: m.PDID, Address: page}
		x.FIFO[x.Tail%part.Entries] = f.Encode()
		x.Source, x.SourcePID, x.Slot, x.Sequence, x.Page = p.SourceNID, p.SourcePID, m.Slot, m.Sequence, page
		x.Tail++
		x.Faults.Pushed++
		if x.FaultCT != 0 {
			spin.Counter(x.FaultCT).Inc(1, 0)
		}
	}
	return rdma.NackFault
}

// Paused cancels the time-out of a block, if only a request may send it again.
func (faults) Paused(s *rdma.State, slot uint32) {
	x := state(s)
	x.Faults.Paused++
	if x.NTO != 0 {
		engine.Wait(s, slot, x.Guard)
	}
}

// Control handles the explicit request to send a block again. A request with an
// old sequence number is void: a time-out was faster.
func (faults) Control(s *rdma.State, h *spin.Header, m *rdma.Header) bool {
	switch m.Kind {
	case part.KindUnreadable:
		if h.SourceNID != s.NID || h.SourcePID != s.PID {
			return false
		}
		engine.Refuse[faults](s, h.HdrData, rdma.PageBytes)
		return true
	case rdma.KindResume:
	default:
		return false
	}
	x := state(s)
	switch b := engine.Current(s, m); {
	case m.PDID != s.PDID || uint32(h.HdrData) != s.PDID || !engine.Known(s, h, m):
		x.Faults.Foreign++
	case b == nil:
		x.Faults.Outdated++
	default:
		x.Faults.Resumed++
		engine.Again[faults](s, m.Slot)
	}
	return true
}

// Cell passes on messages of the own process: to send a block again, with the
// entry of the FIFO as data, or that there is no page to send.
func (faults) Cell(s *rdma.State, p *spin.Payload, m *rdma.Header) bool {
	if p.SourceNID != s.NID || p.SourcePID != s.PID {
		return false
	}
	switch {
	case m.Kind == part.KindAskAgain && p.Length == uint32(unsafe.Sizeof(part.Entry{})):
		f, valid := spin.At[part.Entry](p.Base).Decode()
		if !valid {
			return false
		}
		r := rdma.Header{Kind: rdma.KindResume, Slot: f.Slot, Sequence: f.Sequence}
		engine.Tell(s, f.NID, f.PID, rdma.PTControl, &r, uint64(f.PDID))
		return true
	case m.Kind == part.KindUnreadable && p.Length == 8:
		r := rdma.Header{Kind: part.KindUnreadable}
		engine.Tell(s, s.NID, s.PID, rdma.PTControl, &r, *spin.At[uint64](p.Base))
		return true
	}
	return false
}

// control is the firmware: descriptors, acknowledgements, time-outs, requests
// to read, and to send a block again.
//
//go:wasmexport control
func control(h *spin.Header, s *part.State) spin.Code { return engine.Control[faults](h, &s.RDMA) }

// cells is the hardware: cells that arrive, the fault FIFO, and requests of the own process.
//
//go:wasmexport cells
func cells(p *spin.Payload, s *part.State) spin.Code { return engine.Cells[faults](p, &s.RDMA) }

func main() {}
