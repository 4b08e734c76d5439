// Package inetscript runs an end of a connection on lists of segments, in the
// manner of packetdrill: which segments come and what the program does is
// given, each with its time, and what the end sends is what the script says, at
// exactly the time that it says: time is virtual.
//
//	# RFC 6298 §5.5: the time-out doubles
//	set rfc nagle=false mss=1000
//	+0     dial
//	+0     > S 0:0(0) win 65535 <mss 1000,sackOK,wscale 2>
//	+100ms < S. 0:0(0) ack 1 win 65535 <mss 1000>
//	+0     > . 1:1(0) ack 1 win 65535
//	+0     write 500
//	+0     > P. 1:501(500) ack 1 win 65535
//	+1s    > P. 1:501(500) ack 1 win 65535
//	+2s    > P. 1:501(500) ack 1 win 65535
//	+0     ? state retransmitted
//	= state ESTABLISHED, retransmitted 2
//
// A script begins with "set": a set of parameters of package inet (Sets),
// overrides, and mss. Times are after the line before. Sequence numbers are
// behind the first one of who sends. Flags are S, F, R, P and "." for ACK.
// Windows are as they stand in the segment, not scaled. What the end does:
//
//	dial        opens actively          listen      opens passively: the next segment is a SYN
//	write n     writes n bytes          read n      reads as many
//	close       CLOSE: a FIN            release     close(2)
//	abort       ABORT: a reset          wait        time passes
//	? names     prints facts in a line "=": state cwnd ssthresh rto srtt retransmitted timeouts fast probes tail challenges dropped received readable room mss error
//
// Lines ">", "=" and "!" (how the connection has failed) are what happens; Run
// writes them anew, so that "go test -rewrite" makes them of a script that has
// none.
package inetscript
