package nic

import (
	"fmt"
)

// account holds the books of a NIC: where the bytes of messages are, and what
// became of them. Each byte that is posted ends in one fate, in the books of
// the node where it ends. What was handed over at one door must have come in at
// the next, so that a byte which vanishes in between is missed there.
//
// A message keeps a count of its own, inbound.settled. When the message ends,
// every byte of it must have a fate, once.
type account struct {
	came   int64 // that receive was given, each byte once
	posted int64 // of messages that begin here
	sent   int64 // of them, that have left for the wire, each byte once
	// that have left for the wire, repeats and what the transport says by
	// itself included
	wired   int64
	unwired int64  // that came from the wire, second copies included
	out, in uint32 // packets of these
	of      [fates]int64

	unsent int64 // of posted: their fate is known here, because they have never left
	absent int64 // of the fates here: bytes that have never come, because their source gave them up
	// of unwired: what receive is not given, such as a second copy, a damaged
	// packet, an acknowledgement of the transport
	again int64
	// bytes of a user header that were offered to its handler, and then
	// deposited as well: they have one fate
	copies  int64
	givenUp int64 // that a transport has sent in vain, as far as it knows
	dropped int64 // packets that host memory did not take
	_       [16]byte
}

// fate is what became of a byte of a message.
type fate uint8

// Fates. The first three are where bytes are meant to go.
const (
	noFate            fate = iota
	deposited              // in host memory
	offered                // to a handler
	answered               // in HPU memory, where a handler has waited for it
	declined               // a header handler has dropped the message
	truncated              // the entry has room for less, or takes no more
	refused                // no entry takes the message
	nobody                 // there is no such process, interface or node
	unwanted               // the initiator of a swap does not want the values before it
	packetBufferFull       // there was no room for the packet
	handlersWaiting        // nor for its handler
	messageMemoryFull      // nor for what its handlers remember of the message
	unreadable             // the bus has refused to read host memory
	unwritable             // or to write it
	ignored                // the SMMU has let the write end well, without memory
	damaged                // on its way
	failed                 // the header handler, or what it works on is gone
	unaligned              // the user header of an atomic leaves no whole elements
	undelivered            // the transport has got no acknowledgement
	fates                  = iota - 1

	// the cause of a loss, not a fate: there is no memory where a descriptor
	// says, so that its bytes are unreadable
	noMemory fate = fates + 1
)

var fateNames = [fates]string{
	"deposited", "offered to a handler", "answers for a handler", "dropped by a header handler", "truncated", "refused: no entry", "refused: no such process",
	"answers that nobody wants", "dropped: packet buffer full", "dropped: too many handlers wait", "dropped: memory of messages full", "unreadable at the source",
	"unwritable", "ignored by the SMMU", "damaged on the way", "dropped: the handler failed", "dropped: an atomic behind an odd user header", "given up by the transport",
}

// settle gives n bytes of a message their fate.
func (e *env) settle(in *inbound, f fate, n int) {
	e.account.of[f-1] += int64(n)
	in.settled += uint32(n)
}

// settleRest gives what the entry does not take of packet i its fate.
func (e *env) settleRest(in *inbound, i int) {
	from, to := in.frame.Span(i)
	if most := int(in.d.MLength); to > most {
		e.settle(in, truncated, to-max(from, most))
	}
}

// notWritten is why bytes that were to be deposited were not: their interface
// has closed, or there is no such memory.
func (in *inbound) notWritten() fate {
	if !in.d.Matched() {
		return refused
	}
	return unwritable
}

// settleOffered gives the bytes of packet i of which a payload handler was
// given n, and those that the entry does not take, their fates.
func (e *env) settleOffered(in *inbound, i, n int) {
	e.settle(in, offered, n)
	if in.spoiled {
		e.settle(in, damaged, in.payloadBytes(i))
	}
	e.settleRest(in, i)
}

// offeredTwice: a header handler that was given the user header has chosen to
// have all of the message deposited, user header included.
func (e *env) offeredTwice(in *inbound) {
	user := in.userHeader()
	e.settle(in, offered, -user)
	e.account.copies += int64(user)
}

// userHeader is how many bytes of it the header handler is given: it does not
// reach past the first packet.
func (in *inbound) userHeader() int { return min(int(in.skip), len(in.frame.Data), in.frame.MTU) }

// undealt is how many bytes of packet i are to be dealt with behind the user header.
func (in *inbound) undealt(i int) int {
	from, to := in.frame.Span(i)
	return to - min(max(from, int(in.skip)), to)
}

// unsent gives bytes of a message that will never leave their fate.
func (e *env) unsent(f fate, n int) {
	e.account.unsent += int64(n)
	e.account.of[f-1] += int64(n)
}

// over is the end of a message at its target.
func (e *env) over(in *inbound) {
	if f := in.frame; in.settled != uint32(len(f.Data)) {
		e.report.vanish(e, in)
	}
	e.core.releaseInbound(in)
}

// VanishedError is a message of which bytes have no fate, or two: they were
// neither deposited, nor offered to a handler, nor lost under a name. Such a
// run is wrong.
type VanishedError struct {
	Message LostMessage // Bytes is how many have a fate, modulo 2^32, of Length
	// instead of a message: an access of a handler, of which the device has not
	// moved all bytes
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

// vanish records a message of which bytes have no fate.
func (r *Report) vanish(e *env, in *inbound) {
	if r.first != nil {
		return
	}
	f := in.frame
	r.first = &VanishedError{Message: LostMessage{Rank: int(e.rank), At: e.now(), Number: f.Number, Bytes: uint64(in.settled), Length: uint64(len(f.Data))}}
	r.first.Message.OfHeader(&f.Header)
}

// gives counts a packet that leaves for the wire.
func (a *account) gives(bytes int) {
	a.out++
	a.wired += int64(bytes)
}

// takes counts a packet that has come from it.
func (a *account) takes(bytes int) {
	a.in++
	a.unwired += int64(bytes)
}
