// Package portalscript runs small text scripts against package portals: append
// these entries, send these requests, print what happened and why. Messages
// move over an instant loop-back transport between n processes. The data-driven
// conformance tests and the explain command use the same text.
//
// A script is a list of lines; # begins a comment.
//
//	procs 2                              # two processes, 0 and 1
//	1: eq q 16                           # process 1: event queue q of 16 events
//	1: pt 0 eq=q FLOWCTRL                # portal table entry 0
//	1: me a pt=0 bits=7 start=0x100 len=64 OP_PUT USE_ONCE
//	0: md m start=0 len=64
//	0: fill 0 "hello"
//	0: put m len=5 to=1 pt=0 bits=7 ack=ACK
//	1: events q                          # prints and drains the queue
//	1: mem 0x100 5
//
// "1:" is process 1 and "1.b:" its interface b. Words in capitals are options
// with their C names. key=value are arguments. Names of objects are the
// script's own; "none" is no object, "#0x12345678" a raw handle and "1.q" the
// object q of process 1. Numbers are decimal or 0x hexadecimal; "max" is
// 2^64-1, and -1 counts down from 2^64. A failed call prints its return code.
//
// Messages are delivered at once, unless the script has the line "manual". Then
// "send" moves operations of a process into the network. "receive d" matches
// the next request and names its delivery. "land d" writes its bytes. "finish
// d" completes it. "answer" takes the next acknowledgement or reply, and "run"
// does all that is left.
//
// "explain on" prints every step: which entries were examined, why each did or
// did not match, what was delivered where, which events and counters followed.
package portalscript
