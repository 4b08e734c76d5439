package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Report lists failures on a node that did not end the run.
type Report struct {
	Errors       []HandlerError // the first 100 handlers that failed, in order of time
	ErrorsBeyond int            // how many more failed
	// the first 100 messages that the node has lost, in order of time; messages
	// given up at once count as one
	Losses       []LostMessage
	LossesBeyond int

	first *VanishedError // the first message with bytes that have no fate
}

// Kept is how many failures of a kind a Report keeps. It counts the others.
const Kept = 100

// HandlerError is a handler that trapped, was killed, or returned an error or
// an illegal code.
type HandlerError struct {
	Rank    int
	At      sim.Time
	Program string
	// "header", "payload" or "completion"; empty: one of them, which had ended
	Handler string
	Err     error
}

// Error names rank, program, handler, time and cause.
func (e HandlerError) Error() string {
	return fmt.Sprintf("rank %d at %v: %s of %s: %v", e.Rank, e.At, e.Who(), e.Program, e.Err)
}

// Who names the handler in its program, such as "payload handler".
func (e HandlerError) Who() string {
	if e.Handler == "" {
		return "a handler"
	}
	return e.Handler + " handler"
}

// Unwrap returns the cause.
func (e HandlerError) Unwrap() error { return e.Err }

// LostMessage is a message that was lost, wholly or in part. A node loses it
// for lack of room, of a process or of memory; the network loses it by a fault.
// Its event and its acknowledgement, if any, carry a fail type. PTL_NI_SEGV:
// memory could not be read or written. PTL_NI_UNDELIVERABLE: there is no such
// process or no way to it. PTL_NI_DROPPED: any other cause. Data that could not
// be read is lost at its source.
type LostMessage struct {
	Rank      int      // of the node that lost it
	At        sim.Time // when it lost the first packet
	Number    uint64   // of the message among the messages of its source, from 1
	Kind      portals.OpKind
	Initiator portals.ID // the sender
	Target    portals.ID
	PT        uint32
	MatchBits uint64
	Packets   int    // that were dropped or not acknowledged
	Of        int    // packets of the message
	Bytes     uint64 // of payload in the lost packets that would have been delivered
	Length    uint64 // bytes that would have been delivered
	// The full resource and its field in the profile, the error of the memory,
	// or the fault of the network.
	Cause string
	Brief string // the message and its fate, in a few words

	// Unacknowledged: a reliable transport has given the packets up. Nobody
	// knows whether they arrived.
	Unacknowledged bool
	// More is how many other messages between the same two processes a
	// transport has given up together with this one. Their packets and bytes
	// are counted here, too.
	More int
}

// Error describes the loss, its place and its cause.
func (l LostMessage) Error() string {
	what := fmt.Sprintf("%s %v from rank %d", article(l.Kind), l.Kind, l.Initiator.NID)
	verb, entry := "were dropped", fmt.Sprintf(" (portal table index %d, match bits %#x)", l.PT, l.MatchBits)
	switch {
	case l.More > 0:
		what = fmt.Sprintf("%d messages from rank %d to rank %d", l.More+1, l.Initiator.NID, l.Target.NID)
		verb, entry = "were not acknowledged, they are undeliverable", ""
	case l.Unacknowledged:
		what += fmt.Sprintf(" to rank %d", l.Target.NID)
		verb = "were not acknowledged, it is undeliverable"
	}
	return fmt.Sprintf("rank %d at %v: %d of %d packets (%d of %d B) of %s %s: %s%s", l.Rank, l.At, l.Packets, l.Of, l.Bytes, l.Length, what, verb, l.Cause, entry)
}

// beyondLink explains a full packet buffer of a network without contention:
// packets of many sources arrive at once there, faster than a link carries
// them, and no handlers keep up with that.
func (e *env) beyondLink() string {
	if !e.fabric.NoContention {
		return ""
	}
	return ": with fabric.no_contention packets arrive faster than a link carries them; a larger buffer holds them"
}

// Messages is how many lost messages a list stands for.
func Messages(list []LostMessage) (n int) {
	for i := range list {
		n += 1 + list[i].More
	}
	return n
}

func article(k portals.OpKind) string {
	if k == portals.OpAck || k == portals.OpAtomic {
		return "an"
	}
	return "a"
}

// OfHeader fills in the fields that a header gives.
func (l *LostMessage) OfHeader(h *portals.Header) {
	l.Kind, l.Initiator, l.Target, l.PT, l.MatchBits = h.Kind, h.Initiator, h.Target, h.PT, h.MatchBits
}

func (r *Report) handlerFailed(e HandlerError) {
	if len(r.Errors) == Kept {
		r.ErrorsBeyond++
		return
	}
	r.Errors = append(r.Errors, e)
}

// lost records a lost message.
func (r *Report) lost(e *env, h *portals.Header, l *LostMessage) {
	if len(r.Losses) == Kept {
		r.LossesBeyond++
		return
	}
	l.Rank = int(e.rank)
	l.OfHeader(h)
	if l.Brief == "" {
		l.Brief = fmt.Sprintf("%d of %d packets of message %d of rank %d were dropped: %s", l.Packets, l.Of, l.Number, h.Initiator.NID, l.Cause)
	}
	r.Losses = append(r.Losses, *l)
}

// undeliverable records a message that a transport has given up. Messages given
// up at the same time become one.
func (r *Report) undeliverable(e *env, h *portals.Header, l *LostMessage) {
	for i := len(r.Losses) - 1; i >= 0 && r.Losses[i].At == l.At; i-- {
		if o := &r.Losses[i]; o.Unacknowledged && o.Initiator == h.Initiator && o.Target == h.Target && o.Cause == l.Cause {
			o.More++
			o.Packets += l.Packets
			o.Of += l.Of
			o.Bytes += l.Bytes
			o.Length += l.Length
			return
		}
	}
	l.Unacknowledged = true
	r.lost(e, h, l)
}

// Messages is how many messages the node has lost.
func (r *Report) Messages() int { return Messages(r.Losses) + r.LossesBeyond }

func (e *env) describe(l *loss) string {
	switch l.cause {
	case packetBufferFull:
		if l.tenant != "" {
			return fmt.Sprintf("the packet buffer had no more room for tenant %[1]s (tenants.%[1]s.packet_buffer)", l.tenant)
		}
		return fmt.Sprintf("the packet buffer was full (nic.packet_buffer, %v)%s", e.spec.PacketBuffer, e.beyondLink())
	case handlersWaiting:
		if l.tenant != "" {
			return fmt.Sprintf("too many handlers of tenant %[1]s waited for an HPU (tenants.%[1]s.waiting_handlers)", l.tenant)
		}
		return fmt.Sprintf("too many handlers waited for an HPU (hpu.waiting_handlers, %d)", e.hpu.WaitingHandlers)
	case messageMemoryFull:
		return "as many messages were being handled as the entry has memory for"
	case noMemory:
		return fmt.Sprintf("there is no memory at %#x", l.address)
	case unreadable:
		return fmt.Sprintf("memory at %#x could not be read: %s", l.address, e.refusal(l.status, l.tries))
	default:
		return fmt.Sprintf("memory at %#x could not be written: %s", l.address, e.refusal(l.status, l.tries))
	}
}

// refusal describes the result of an access to memory that has failed after a
// number of retries.
func (e *env) refusal(s host.Status, tries int) string {
	if s == host.Fault && tries > 0 {
		return fmt.Sprintf("%v, %d times (nic.fault_tries, %d)", s, tries+1, e.spec.FaultTries)
	}
	return s.String()
}

// loss is the loss of a message, noted at one end.
type loss struct {
	cause   fate // of the first packet
	at      sim.Time
	packets int
	bytes   uint64
	tenant  string // whose budget was the cause; empty: the device had no room

	// If the cause is memory:
	address uint64
	status  host.Status
	tries   int
}

// add counts lost packets and their bytes that would have been delivered. The
// first call sets the cause.
func (l *loss) add(why loss, packets int, bytes uint64) {
	if l.cause == noFate {
		*l = why
	}
	l.packets += packets
	l.bytes += bytes
}

// lose counts lost packets of the message and their bytes that would have been
// delivered. The first call sets the cause.
func (in *inbound) lose(why loss, packets int, bytes uint64) {
	if !in.lossy {
		in.lost, in.lossy = loss{}, true
	}
	in.lost.add(why, packets, bytes)
}

// damaged reports whether the message has lost bytes that it should deliver,
// or, if it has no bytes, the whole message.
func (in *inbound) damaged() bool {
	return in.lossy && (in.lost.bytes > 0 || in.d.MLength == 0)
}

// failure is the fail type of a message that is damaged.
func (l *loss) failure() portals.FailType {
	switch l.cause {
	case unreadable, unwritable, noMemory:
		return portals.NISegv
	}
	return portals.NIDropped
}
