// Package portals implements the Portals 4 network programming interface
// (Barrett et al., "The Portals 4.x Network Programming Interface", cited here
// as Portals 4.x §n) as a pure state machine.
//
// The package decides what happens: which entry a request matches, where its
// bytes land, which full events and counting events follow, and which
// operations leave. It does not decide when: it has no time, no goroutine and
// no I/O. A transport (package runtime, or the instant loop-back of
// internal/portalscript) moves headers and bytes between interfaces and calls
// back at the times it has computed.
//
// # Objects
//
// A [Node] gives out process identifiers. A [Process] has up to four interfaces
// ([NI]): matching or not, with logical or physical addresses. All other
// objects belong to one interface. A [Handle] names them: a 32-bit value with
// kind, interface and serial number. A stale or foreign handle is
// [ErrArgInvalid]. Memory has 64-bit virtual addresses, and the package reaches
// it through the [Memory] interface.
//
// # The two sides of an interface
//
// Programs see an [NI]: the API of the standard, [NI.PTAlloc], [NI.MEAppend],
// [NI.Put], [NI.EQGet] and so on, with the C name in each comment.
//
// The transport sees the same interface as a [Port], from [NI.Port].
//
// At the initiator, [Port.NextOp] returns the next [Op] to transmit. The
// transport calls [Port.Sent] when its source memory may be reused, and
// [Port.Release] to give the Op back. [Port.Acked] and [Port.ReplyTo] take the
// answers.
//
// At the target, [Port.Receive] matches a header and returns a [Delivery].
// [Port.Write] stores bytes, and [Port.Finish] completes the message.
// [Port.Issue] sends a handler's operation. [Port.DisableForFlowControl]
// reports that the device itself has run out of a resource.
//
// A program cannot call these methods, and a transport that only has ports
// cannot reach a program's objects.
//
// An interface is not safe for concurrent use: a node owns its state.
package portals
