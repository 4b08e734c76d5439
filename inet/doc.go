// Package inet implements the Internet protocols of a host: IPv4 (RFC 791), UDP
// (RFC 768) and TCP (RFC 9293), with headers and checksums. It has no clock and
// no network: the caller passes the time and the segments that arrive, and
// takes the segments to send.
//
//	spec, err := inet.Load("linux")                           // or "lwip", "rfc"
//	x := inet.Dial(inet.Config{Spec: *spec, MSS: 1460}, ...)  // or Accept, for a SYN that has come
//	x.Input(now, &segment)                                    // a segment has come
//	x.Write(b), x.Read(b), x.Close()                          // the program
//	x.Expire(now)                                             // at x.Deadline()
//	x.Output(now, most, func(s *inet.Segment) { ... })        // after each of these calls: emits what is due
//
// A Host is an address with its connections, listeners and UDP sockets. It
// takes and gives IPv4 packets:
//
//	h := inet.NewHost(addr, inet.HostConfig{Spec: *spec, MTU: 1500})
//	l, err := h.Listen(11211, 128)
//	h.Input(now, packet)                                      // a packet has come
//	for x := l.Accept(); x != nil; x = l.Accept() { ... }     // established connections
//	for x := h.Next(); x != nil; x = h.Next() { ... }         // connections with news: x.Read, x.Write, x.Close, x.Err
//	h.Expire(now)                                             // at h.Deadline()
//	h.Output(now, most, func(packet []byte) { ... })          // after each of these calls: emits what is due
//
// A connection has the states of RFC 9293 with simultaneous open and close and
// half close, its checks of segments with the challenges of RFC 5961, probes of
// closed windows, avoidance of silly windows and Nagle's rule. It has the
// congestion control of RFC 5681 with the recovery of RFC 6582 or, with
// selective acknowledgements (RFC 2018), of RFC 6675; limited transmit (RFC
// 3042); the timer of RFC 6298; window scale (RFC 7323 §2). It has no urgent
// data, no time stamps (RFC 7323 §3), no keep-alives and no explicit congestion
// notification.
//
// A Spec holds the choices in which hosts differ: time-outs and their back-off,
// coarse timers, the number of retransmissions before a connection fails,
// initial windows. Folder sets has sets of parameters for Linux and lwIP, and
// for the RFCs, each value with its source. README.md lists the rules and the
// test of each.
package inet
