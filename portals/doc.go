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
//
// # Decisions
//
// These are our choices where the standard leaves room. The numbers are the
// points of Portals 4.x that the scripts in
// internal/portalscript/testdata/conformance prove.
//
//   - 1: ONLY_USE_ONCE and ONLY_TRUNCATE are hints (§3.7.1): an entry that
//     does not keep them works like any other.
//   - 1, 4: A granted limit is the smaller of the desired limit and the
//     device's. The minima of §3.6.1 (max_pt_index 63, write-after-write 64,
//     write-after-read 8) raise the device's limit, not the desired one. A
//     negative count, max_triggered_ops 0, and 0 for the ordered and volatile
//     sizes mean the device's limit; max_fetch_atomic_size 0 means the granted
//     max_atomic_size.
//   - 2.2: A USE_ONCE append that takes a header posts the overflow event and
//     AUTO_UNLINK, no LINK; its handle is stale. A header can be taken while
//     its message is arriving; the events then come when the message is
//     complete.
//   - 2.2, 2.3: An append or a search takes an unexpected header of any user
//     and operation (§3.12.2). For a request, user id and operation are
//     checked on the matching entry; a violation stops the search.
//   - 2.4: On a locally managed entry events come in the order of matching; a
//     pending message leaves that order. AUTO_UNLINK follows the entry's last
//     communication event. MAY_ALIGN is not used. An append with
//     LOCAL_INC_UH_RLENGTH that falls below min_free while it takes headers is
//     used up: it gets AUTO_UNLINK, and further headers stay.
//   - 2.5: GET is posted when the reply has left (Sent): the memory will not
//     be read again.
//   - 2.6: If the SEND of a request fails, everything that the request asked
//     for fails: ACK, the counter of acknowledgements (OC_ACK, too) and REPLY.
//     ACK implies SEND: if the answer is faster, SEND is posted first. An
//     acknowledgement that nobody would notice is not requested. OC_ACK counts
//     one success, whatever happened at the target.
//   - 2.8: With flow control Receive reserves a queue slot for every event
//     that a message will need. Without room the portal table entry is
//     disabled and the message refused. PT_DISABLED always has room. An append
//     or delete search whose overflow events have no room returns NO_SPACE and
//     does nothing. LINK, SEARCH, and failures of entries with SUCCESS_DISABLE
//     and no handlers can be lost; the next event then comes with EQ_DROPPED.
//   - 2.8: Requests refused by a disabled entry count in DROP_COUNT. PTDisable
//     is complete when every matched message is complete; a get is complete
//     when its reply has left.
//   - 2.9: SEARCH/NO_MATCH is posted only if nothing was found. With
//     EVENT_CT_OVERFLOW a search without USE_ONCE counts one failure at its
//     end, as in Portals 4.3.
//   - 2.11: The result is NO_SPACE exactly while max_triggered_ops are
//     pending, also for an operation that would fire at once. A triggered
//     append that fails posts LINK with DROPPED; a triggered unlink of an
//     entry in use waits for its end.
//   - 2.12: CTPoll returns when the successes reach the test or a failure was
//     counted. Polls prefer the lowest index, but pass one that is ready over
//     at most eight times. Waiting on an object that is freed ends with
//     ARG_INVALID, after NIFini with NO_INIT; ABORTED means Abort.
//   - 2.13: A queue without flow control overwrites its oldest event; one of a
//     flow-controlled entry loses the new one.
//   - 2.17: A truncated atomic works on whole elements, which need no
//     alignment. MIN and MAX leave the target unchanged if a NaN leaves the
//     order undefined. Complex products follow C11 Annex G. A NaN from a sum
//     or product is the default NaN of x86-64. long double is the x86-64
//     format, in software.
//   - 2.18: A handle is 3 bits of kind, 2 of interface, 27 of serial number;
//     it repeats after 2^27 others. The zero handle is EQNone, CTNone and
//     InvalidHandle.
//   - 3: sPIN fields are passed on and not interpreted, except for their
//     limits. Outcome.Pending holds event, counters, answer and queue slots
//     until the second Finish. With Outcome.Waits a message ends without event
//     and count, and a USE_ONCE entry returns to its place, with its age.
package portals
