// Package portals implements the Portals 4 network programming interface
// (Barrett et al., "The Portals 4.x Network Programming Interface", cited here
// as Portals 4.x §n) as a pure state machine.
//
// The package decides what happens: which entry a request matches, where its
// bytes land, which full events and counting events follow, which operations
// leave. It does not decide when: there is no time, no goroutine and no I/O in
// it. A transport (package runtime, or the instant loop-back of internal/portalscript)
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
// Programs see an [NI]: the API of the standard, [NI.PTAlloc], [NI.MEAppend],
// [NI.Put], [NI.EQGet] and so on, with the C name in each comment.
//
// The transport sees the same interface as a [Port], from [NI.Port]. At the
// initiator, [Port.NextOp] gives the next [Op] to transmit, [Port.Sent] says
// that its source memory is reusable, [Port.Release] gives the Op back, and
// [Port.Acked] and [Port.ReplyTo] take what comes home. At the target,
// [Port.Receive] matches a header and returns a [Delivery], [Port.Write] lands
// bytes and [Port.Finish] completes the message. [Port.Issue] sends what a
// handler asks for, and [Port.DisableForFlowControl] says that the device itself
// has run out of something. A program has no way to any of them, and a transport
// that holds ports only has none to a program's objects.
//
// An interface is not safe for concurrent use: a node owns its state.
package portals
