// Package inet is as much of the Internet protocols as measurements of IP over a network need: headers of IPv4 (RFC 791), UDP (RFC 768) and TCP (RFC 9293) with
// their checksums, and connections like those of TCP. It has no clock and sends nothing: whoever uses it says what time it is, gives it segments, and takes
// what it wants to send.
//
// A connection has the window and cumulative acknowledgements of RFC 9293, the timer of RFC 6298, slow start, congestion avoidance, fast retransmit and fast recovery of RFC
// 5681, with RFC 6582's partial acknowledgements, and the window scale of RFC 7323. It has no urgent data, no selective acknowledgements, no time
// stamps and no reset: who comes to a port where nobody listens is not answered.
package inet
