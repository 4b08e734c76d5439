// Package portals implements the Portals 4 network programming interface
// (Barrett et al., "The Portals 4.x Network Programming Interface", cited here
// as Portals 4.x §n) as a pure state machine.
//
// The package decides what happens: which entry a request matches, where its
// bytes land, which full events and counting events follow, which operations
// leave. It does not decide when: there is no time, no goroutine and no I/O in
// it. A transport (package runtime, or the instant loop-back of portals/script)
// moves headers and bytes between interfaces and calls back at the times it
// computed.
//
// # Objects
//
// A [Node] hands out process identifiers. A [Process] owns up to four
// interfaces ([NI]): matching or not, logical or physical addressing. All
// other objects belong to one interface and are named by a [Handle], a 32-bit
// value with kind, interface and serial number; a stale or foreign handle is
// [ErrArgInvalid]. Memory is named by 64-bit virtual addresses and reached
// through the [Memory] interface.
//
// # The two sides of an interface
//
// The host's side is the API of the standard: [NI.PTAlloc], [NI.MEAppend],
// [NI.Put], [NI.EQGet] and so on, with the C name in each comment.
//
// The transport's side is small. At the initiator, [NI.NextOp] gives the next
// [Op] to transmit, [NI.Sent] says that its source memory is reusable,
// [NI.Release] gives the Op back, and [NI.Acked] and [NI.ReplyTo] take what
// comes home. At the target, [NI.Receive] matches a header and returns a
// [Delivery], [NI.Write] lands bytes and [NI.Finish] completes the message.
//
// An interface is not safe for concurrent use: a node owns its state.
package portals
