// Package inet are the Internet protocols of a host: IPv4 (RFC 791), UDP (RFC
// 768) and TCP (RFC 9293), with headers and checksums. It has no clock and
// sends nothing: whoever uses it says what time it is, gives it segments, and
// takes what it wants to send.
//
//	spec, err := inet.Load("linux")                           // or "lwip", "rfc"
//	x := inet.Dial(inet.Config{Spec: *spec, MSS: 1460}, ...)  // or Accept, for a SYN that has come
//	x.Input(now, &segment)                                    // a segment has come
//	x.Write(b), x.Read(b), x.Close()                          // the program
//	x.Expire(now)                                             // it is x.Deadline()
//	x.Output(now, most, func(s *inet.Segment) { ... })        // after each of these: what it sends
//
// A Host is an address with its connections, listeners and sockets of UDP, and
// takes and gives packets of IPv4:
//
//	h := inet.NewHost(addr, inet.HostConfig{Spec: *spec, MTU: 1500})
//	l, err := h.Listen(11211, 128)
//	h.Input(now, packet)                                      // a packet has come
//	for x := l.Accept(); x != nil; x = l.Accept() { ... }     // connections that are established
//	for x := h.Next(); x != nil; x = h.Next() { ... }         // those on which something has happened: x.Read, x.Write, x.Close, x.Err
//	h.Expire(now)                                             // it is h.Deadline()
//	h.Output(now, most, func(packet []byte) { ... })          // after each of these: what it sends
//
// A connection has the states of RFC 9293 with simultaneous open and close and
// half close, its checks of segments with the challenges of RFC 5961, probes of
// closed windows, avoidance of silly windows and Nagle's rule; congestion
// control of RFC 5681 with the recovery of RFC 6582, or, with selective
// acknowledgements (RFC 2018), RFC 6675; limited transmit (RFC 3042); the timer
// of RFC 6298; window scale (RFC 7323 §2). It has no urgent data, no time
// stamps (RFC 7323 §3), no keep-alives and no explicit congestion notification.
//
// What hosts do in ways of their own is a Spec: time-outs and their back-off,
// coarse timers, how often something is sent again before a connection fails,
// windows at the beginning. Sets of parameters for Linux and lwIP, and for the
// RFCs, are in folder sets, each value with its source. README.md lists the
// rules and the test of each.
package inet
