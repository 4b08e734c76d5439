// Delivers the first copy of each packet of a broadcast, and passes it on to
// all neighbours in a binomial graph (sPIN'17, "Further Use-Cases and
// Examples").
//
//spin:library ftbcast 1.0
//spin:needs spaces=entry entry_options=op_put
package main

import (
	"github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/spin"
)

// firstPayload delivers a packet that has not come before, and passes it on to
// the children. After the last packet the whole broadcast goes to all other
// neighbours. The root sends its broadcast to itself.
//
//go:wasmexport first_payload
func firstPayload(p *spin.Payload, s *ftbcast.State) spin.Code {
	if p.Length == 0 || p.HostOffset+uint64(p.Length) > s.Size || p.HostOffset%uint64(s.Packet) != 0 {
		return spin.Drop // it is damaged, or not part of the broadcast
	}
	if !first(s, p.HostOffset/uint64(s.Packet)) {
		return spin.Drop
	}
	ok := true
	if p.SourceNID != s.Rank { // otherwise it is already there
		ok = !spin.DMAToHost(spin.MEHostMem, p.HostOffset, p.Bytes()).Failed()
	}
	op := copies(s, p.HdrData)
	op.Local, op.Length, op.RemoteOffset = p.Base, uint64(p.Length), p.HostOffset
	if s.Packets == 1 {
		ok = pass(s, &op, 0, s.Neighbours, p.SourceNID, false) && ok
	} else {
		ok = pass(s, &op, 0, s.Children, p.SourceNID, false) && ok
		if spin.FAdd(&s.Got, 1)+1 == uint64(s.Packets) {
			op = copies(s, p.HdrData)
			op.Length = s.Size
			ok = pass(s, &op, s.Children, s.Neighbours, s.Rank, true) && ok
		}
	}
	if !ok {
		return spin.Fail
	}
	return spin.Success
}

// firstHeader passes a broadcast without payload on, if it has not come before.
//
//go:wasmexport first_header
func firstHeader(h *spin.Header, s *ftbcast.State) spin.Code {
	if h.Length > 0 || s.Got != 0 || !spin.CAS(&s.Got, 0, 1) {
		return spin.DropPending
	}
	op := copies(s, h.HdrData)
	if !pass(s, &op, 0, s.Neighbours, h.SourceNID, false) {
		return spin.Fail
	}
	return spin.Proceed
}

// first reports whether nobody has claimed the packet before, and claims it.
func first(s *ftbcast.State, packet uint64) bool {
	word := spin.At[uint64](spin.After(s) + spin.Ptr(packet/64*8))
	for bit := uint64(1) << (packet % 64); ; {
		seen := *word
		if seen&bit != 0 {
			return false
		}
		if spin.CAS(word, seen, seen|bit) {
			return true
		}
	}
}

// copies makes a put. Unless the transport repeats them, each of its packets
// may be lost, because others take other ways.
func copies(s *ftbcast.State, data uint64) spin.Op {
	op := spin.Op{PTIndex: s.PT, MatchBits: s.MatchBits, HdrData: data}
	if s.Reliable == 0 {
		op.Options = spin.Datagrams
	}
	return op
}

// pass puts to some neighbours, from the device or from host memory. It skips
// the one from which the packet has come.
func pass(s *ftbcast.State, op *spin.Op, i, to uint32, source uint32, host bool) bool {
	ok := true
	for ; i < to; i++ {
		if op.TargetNID = s.Neighbour[i]; op.TargetNID == source {
			continue
		}
		var r spin.Result
		if host {
			for r = spin.PutFromHost(op); r == spin.NoSpace; r = spin.PutFromHost(op) {
				spin.Yield() // as many commands of handlers are pending as allowed
			}
		} else {
			r = spin.PutFromDevice(op)
		}
		ok = ok && !r.Failed()
	}
	return ok
}

func main() {}
