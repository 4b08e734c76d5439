// Package inet are the Internet protocols of a host: IPv4 (RFC 791), UDP (RFC 768) and TCP (RFC 9293), with headers and checksums. It has no clock and sends nothing: whoever uses
// it says what time it is, gives it segments, and takes what it wants to send.
//
//	spec, err := inet.Load("linux")                           // or "lwip", "rfc"
//	x := inet.Dial(inet.Config{Spec: *spec, MSS: 1460}, ...)  // or Accept, for a SYN that has come
//	x.Input(now, &segment)                                    // a segment has come
//	x.Write(b), x.Read(b), x.Close()                          // the program
//	x.Expire(now)                                             // it is x.Deadline()
//	x.Output(now, most, func(s *inet.Segment) { ... })        // after each of these: what it sends
//
// A connection has the states of RFC 9293 with simultaneous open and close and half close, its checks of segments with the challenges of RFC 5961, probes of closed windows, avoidance of
// silly windows and Nagle's rule; congestion control of RFC 5681 with the recovery of RFC 6582, or, with selective acknowledgements (RFC 2018), RFC 6675; limited transmit (RFC 3042); the
// timer of RFC 6298; window scale (RFC 7323 §2). It has no urgent data, no time stamps (RFC 7323 §3), no keep-alives and no explicit congestion notification.
//
// What hosts do in ways of their own is a Spec: time-outs and their back-off, coarse timers, how often something is sent again before a connection fails, windows at the beginning. Sets of
// parameters for Linux and lwIP, and for the RFCs, are in folder sets, each value with its source. README.md lists the rules and the test of each.
package inet
