package nic

import (
	"fmt"
)

// account is the books of a NIC: where the bytes of messages are, and their
// fates. Each byte that is posted gets one fate, at the node where it ends. The
// account also compares the bytes that leave each stage with the bytes that
// enter the next, so a byte lost between two stages is found there.
//
// A message has its own count, inbound.settled. When the message ends, every
// byte of it must have exactly one fate.
type account struct {
	came   int64 // bytes that receive was given, each byte once
	posted int64 // bytes of messages that begin here
	sent   int64 // bytes of posted that have left for the wire, each byte once
	// bytes that have left for the wire, with repeats and the transport's own
	// packets
	wired   int64
	unwired int64  // bytes that came from the wire, with second copies
	out, in uint32 // packets of wired and of unwired
	of      [fates]int64

	unsent int64 // bytes of posted that never leave: their fate is known here
	absent int64 // bytes among the fates here that never came: their source gave them up
	// bytes of unwired that receive is not given: second copies, damaged
	// packets, the transport's acknowledgements
	again int64
	// bytes of a user header that were offered to its handler and then
	// deposited as well: they have one fate
	copies  int64
	givenUp int64 // bytes that a transport has sent without an acknowledgement, and given up
	dropped int64 // packets that host memory did not take
	_       [16]byte
}

// fate is how a byte of a message ended.
type fate uint8

// Fates. The first three are the intended ones.
const (
	noFate            fate = iota
	deposited              // in host memory
	offered                // to a handler
	answered               // in HPU memory, where a handler waited for it
	declined               // a header handler has dropped the message
	truncated              // the entry has less room, or takes no more data
	refused                // no entry takes the message
	nobody                 // there is no such process, interface or node
	unwanted               // the initiator of a swap does not want the old values
	packetBufferFull       // the packet buffer had no room for the packet
	handlersWaiting        // the queue of handlers had no room for its handler
	messageMemoryFull      // there was no memory for the handlers' state of the message
	unreadable             // the bus refused to read host memory
	unwritable             // the bus refused to write host memory
	ignored                // the SMMU let the write end well, without memory
	damaged                // on the way
	failed                 // the header handler failed, or its memory is gone
	unaligned              // the user header of an atomic leaves a fraction of an element
	undelivered            // the transport got no acknowledgement
	fates                  = iota - 1

	// noMemory is the cause of a loss, not a fate: a descriptor names memory
	// that does not exist, so its bytes are unreadable.
	noMemory fate = fates + 1
)

var fateNames = [fates]string{
	"deposited", "offered to a handler", "answers for a handler", "dropped by a header handler", "truncated", "refused: no entry", "refused: no such process",
	"answers that nobody wants", "dropped: packet buffer full", "dropped: too many handlers wait", "dropped: memory of messages full", "unreadable at the source",
	"unwritable", "ignored by the SMMU", "damaged on the way", "dropped: the handler failed", "dropped: an atomic behind an odd user header", "given up by the transport",
}

// settle gives n bytes of a message a fate.
func (e *env) settle(in *inbound, f fate, n int) {
	e.account.of[f-1] += int64(n)
	in.settled += uint32(n)
}

// settleRest gives a fate to the bytes of packet i that the entry does not
// take.
func (e *env) settleRest(in *inbound, i int) {
	from, to := in.frame.Span(i)
	if most := int(in.d.MLength); to > most {
		e.settle(in, truncated, to-max(from, most))
	}
}

// notWritten is the fate of bytes that were to be deposited but were not: their
// interface has closed, or there is no such memory.
func (in *inbound) notWritten() fate {
	if !in.d.Matched() {
		return refused
	}
	return unwritable
}

// settleOffered gives all bytes of packet i their fates: n were offered to a
// payload handler, and the entry does not take the others.
func (e *env) settleOffered(in *inbound, i, n int) {
	e.settle(in, offered, n)
	if in.spoiled {
		e.settle(in, damaged, in.payloadBytes(i))
	}
	e.settleRest(in, i)
}

// offeredTwice corrects the count when a header handler was given the user
// header and then has the whole message deposited, user header included.
func (e *env) offeredTwice(in *inbound) {
	user := in.userHeader()
	e.settle(in, offered, -user)
	e.account.copies += int64(user)
}

// userHeader is how many bytes of the user header the header handler is given:
// only those in the first packet.
func (in *inbound) userHeader() int { return min(int(in.skip), in.frame.Length, in.frame.MTU) }

// undealt is how many bytes of packet i lie behind the user header.
func (in *inbound) undealt(i int) int {
	from, to := in.frame.Span(i)
	return to - min(max(from, int(in.skip)), to)
}

// unsent gives a fate to bytes of a message that will never leave.
func (e *env) unsent(f fate, n int) {
	e.account.unsent += int64(n)
	e.account.of[f-1] += int64(n)
}

// over checks and closes the count of a message that ends at its target.
func (e *env) over(in *inbound) {
	if f := in.frame; in.settled != uint32(f.Length) {
		e.report.vanish(e, in)
	}
	e.core.releaseInbound(in)
}

// VanishedError is a message with bytes that have no fate, or two: they were
// not deposited, not offered to a handler and not lost for a known reason. The
// result of such a run is wrong.
type VanishedError struct {
	Message LostMessage // Bytes: how many have a fate, modulo 2^32, of Length
	// instead of a message: an access of a handler whose bytes the device did
	// not all move
	DMA string
}

// Error names the message, or the access.
func (e *VanishedError) Error() string {
	l := &e.Message
	if e.DMA != "" {
		return fmt.Sprintf("rank %d at %v: %d of %d B were moved by %s", l.Rank, l.At, l.Bytes, l.Length, e.DMA)
	}
	return fmt.Sprintf("rank %d at %v: %d of %d B of %s %v from rank %d (message %d, portal table index %d, match bits %#x) were deposited, offered to a handler or lost under a name; nobody knows of the others",
		l.Rank, l.At, l.Bytes, l.Length, article(l.Kind), l.Kind, l.Initiator.NID, l.Number, l.PT, l.MatchBits)
}

// vanish records a message with bytes that have no fate.
func (r *Report) vanish(e *env, in *inbound) {
	if r.first != nil {
		return
	}
	f := in.frame
	r.first = &VanishedError{Message: LostMessage{Rank: int(e.rank), At: e.now(), Number: f.Number, Bytes: uint64(in.settled), Length: uint64(f.Length)}}
	r.first.Message.OfHeader(&f.Header)
}

// gives counts a packet that leaves for the wire.
func (a *account) gives(bytes int) {
	a.out++
	a.wired += int64(bytes)
}

// takes counts a packet that comes from the wire.
func (a *account) takes(bytes int) {
	a.in++
	a.unwired += int64(bytes)
}
