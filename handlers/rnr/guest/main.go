// InfiniBand's reliable connection with page faults of the network interface
// (Lesokhin et al., ASPLOS'17, §4): RNR NACKs, rewinds, four faults at a time.
//
//spin:library rnr 1.0
//spin:needs memory=8*mtu+4096 spaces=entry,handler host_memory=832 entry_options=op_put
package main //lint:guest issue 12: it is both sides of a reliable connection

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/spin"
)

// hardware is the packet engine. A handler runs alone until it waits for a call
// of the device: the hardware has one pipeline.
//
//go:wasmexport hardware
func hardware(p *spin.Payload, s *rnr.State) spin.Code {
	h := rnr.HeaderOf(p.MatchBits)
	own := p.SourceNID == s.NID && p.SourcePID == s.PID && h.Kind >= rnr.KindPostSend
	peer := p.SourceNID == s.PeerNID && p.SourcePID == s.PeerPID && h.Kind < rnr.KindPostSend && s.Ready != 0
	switch {
	case s.Report.Error != 0:
		s.Stats.Dropped++
	case own:
		mine(s, p, &h)
	case !peer:
		s.Stats.Foreign++
	case p.Length == 0: // damaged on the way
		s.Stats.Dropped++
	case !sound(s, p, &h):
		broken(s, rnr.Invalid, rnr.Invalid)
	case h.Kind <= rnr.KindRead:
		arrived(s, p, &h)
	case s.Requester.Drops != 0: // there is no way to make the other end wait (NPF'17)
		s.Stats.Dropped++
	case h.Kind == rnr.KindResponse:
		response(s, p, &h)
	default:
		answer(s, p, &h)
	}
	return spin.Success
}

// sound reports whether a packet can come from an end of a connection: its data
// and the length in its header agree.
func sound(s *rnr.State, p *spin.Payload, h *rnr.Header) bool {
	left, carries := p.HdrData, min(p.HdrData, uint64(s.MTU))
	if left == 0 || h.Kind == rnr.KindRead {
		carries = 8
	}
	switch {
	case h.Kind == rnr.KindBroken:
		return left >= rnr.LocalAccess && left <= rnr.NoSpace
	case h.Kind > rnr.KindResponse:
		return true
	case h.Kind == 0 || uint64(p.Length) != carries || left > rnr.Addresses || p.HostOffset > rnr.Addresses-left:
		return false
	}
	return h.Flags&rnr.LastOne == 0 || left <= uint64(s.MTU)
}

// mine handles messages of the own process, driver and timers.
func mine(s *rnr.State, p *spin.Payload, h *rnr.Header) {
	q := &s.Requester
	switch h.Kind {
	case rnr.KindPostSend:
		w := sending(s, q.Posted)
		*w = *spin.At[rnr.WorkRequest](p.Base)
		if w.Kind == rnr.KindSend {
			w.Remote = q.Sends
			q.Sends++
		}
		w.First, w.Number = q.End, rnr.Packets(w.Length, s.MTU)
		q.End += w.Number
		q.Posted++
		send(s)
	case rnr.KindPostReceive:
		w := receiving(s, s.Responder.Posted)
		*w = *spin.At[rnr.WorkRequest](p.Base)
		w.First = 0
		s.Responder.Posted++
	case rnr.KindResume:
		if s.Single != 0 {
			s.InFlight &^= 1 << p.HdrData
		}
		resume(s, p.HdrData)
	case rnr.KindGo:
		transmit(s, requests)
	case rnr.KindRespond:
		transmit(s, responses)
	case rnr.KindRetry:
		expired(s)
	case rnr.KindUnpause:
		q.Paused = 0
		send(s)
	}
}

// firmware is slow, and handles faults only. It interrupts the driver, and
// learns from it that there may be another fault of a type.
//
//go:wasmexport firmware
func firmware(h *spin.Header, s *rnr.State) spin.Code {
	kind, bit := rnr.HeaderOf(h.MatchBits).Kind, uint64(1)<<(h.HdrData%rnr.Types)
	switch {
	case h.SourceNID != s.NID || h.SourcePID != s.PID:
		s.Stats.Foreign++
	case kind == rnr.KindFault:
		at := rnr.FaultsAt + h.HdrData%rnr.Types*rnr.FaultSize
		spin.WriteHost(spin.HandlerHostMem, at, unsafe.Pointer(&s.Faults[h.HdrData%rnr.Types]), rnr.FaultSize)
		spin.Counter(s.FaultCT).Inc(1, 0)
	case kind == rnr.KindResume && s.InFlight&bit != 0:
		spin.FAdd(&s.InFlight, -bit)
		// a side that has stopped meanwhile was not reported: let it meet the
		// absent page again
		if s.Missed&bit != 0 {
			s.Missed &^= bit
			self(s, rnr.KindResume, h.HdrData)
		}
	}
	return spin.Drop
}

// fault notes that a side has met an absent page, and reports it unless a fault
// of its type is outstanding.
func fault(s *rnr.State, f *rnr.Fault) {
	s.Stats.Faults++
	bit := uint64(1) << f.Type
	if s.InFlight&bit != 0 {
		s.Missed |= bit
		return
	}
	s.InFlight |= bit
	s.Stats.Reported++
	f.Count = s.Stats.Reported
	s.Faults[f.Type] = *f
	op := spin.Op{TargetNID: s.NID, TargetPID: s.PID, PTIndex: s.PT + 1, MatchBits: rnr.KindFault, HdrData: f.Type}
	pending(s, spin.ToSelf(&op))
}

// resume continues after a fault. A receiver does nothing: refused packets come
// again.
func resume(s *rnr.State, of uint64) {
	q := &s.Requester
	switch {
	case of == rnr.InitiatorWrite:
		q.Stopped = 0
		send(s)
	case of == rnr.InitiatorRead && q.Drops != 0:
		q.Drops = 0
		s.Stats.Rewinds++
		back(s, q.Landing.Next)
		send(s)
	case of == rnr.ResponderRead:
		s.Responder.Stopped = 0
		respond(s)
	}
}

// broken ends the connection.
func broken(s *rnr.State, local, remote uint64) {
	if s.Report.Error != 0 {
		return
	}
	s.Report.Error = local
	if remote != 0 {
		tell(s, rnr.KindBroken, 0, remote)
	}
	report(s)
}

// report reports ended work requests to the host.
func report(s *rnr.State) {
	spin.WriteHost(spin.HandlerHostMem, 0, unsafe.Pointer(&s.Report), unsafe.Sizeof(s.Report))
	spin.Counter(s.DoneCT).Inc(1, 0)
}

// self is a message to the own hardware.
func self(s *rnr.State, kind, data uint64) {
	op := spin.Op{TargetNID: s.NID, TargetPID: s.PID, PTIndex: s.PT, MatchBits: kind, HdrData: data, Local: spin.AddrOf(&s.NID), Length: 8}
	pending(s, spin.ToSelf(&op))
}

// pending ends a connection if the device has no room for a message to itself:
// otherwise the connection would wait for ever.
func pending(s *rnr.State, r spin.Result) {
	if r.Failed() {
		broken(s, rnr.NoSpace, rnr.NoSpace)
	}
}

// later sends a message to self after a delay. It returns 1 + the timer, or 0.
func later(s *rnr.State, delay uint64, kind uint64) int64 {
	op := spin.Op{TargetNID: s.NID, TargetPID: s.PID, PTIndex: s.PT, MatchBits: kind, Local: spin.AddrOf(&s.NID), Length: 8}
	r := spin.Timer(delay, &op)
	pending(s, r)
	return max(int64(r)+1, 0)
}

// tell sends the other end a packet without data. It also carries the number
// before which everything has landed, because packets that are only accepted
// may have to come again.
func tell(s *rnr.State, kind uint32, number, data uint64) {
	h := rnr.Header{Kind: kind, PSN: uint32(number)}
	op := spin.Op{
		TargetNID: s.PeerNID, TargetPID: s.PeerPID, PTIndex: s.PeerPT, MatchBits: h.Bits(), HdrData: data, Options: spin.Datagrams,
		RemoteOffset: s.Responder.Landing.Una & rnr.PSNMask, Local: spin.AddrOf(&s.NID), Length: 8,
	}
	spin.PutFromDevice(&op)
}

func sending(s *rnr.State, number uint64) *rnr.WorkRequest { return &s.Send[number%rnr.MaxWork] }

func receiving(s *rnr.State, number uint64) *rnr.WorkRequest { return &s.Receive[number%rnr.MaxWork] }

func main() {}
