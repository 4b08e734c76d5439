// Package inetscript runs an end of a connection on lists of segments, in the
// manner of packetdrill. A script gives the segments that arrive and the calls
// of the program, each with its time. The end must send the segments of the
// script at exactly their times: time is virtual.
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
// A script begins with "set", followed by a set of parameters of package inet
// (Sets), overrides, and mss. Times are relative to the line before. Sequence
// numbers are relative to the sender's first one. Flags are S, F, R, P and "."
// for ACK. Windows are unscaled, as in the segment. The calls of the program
// are:
//
//	dial        opens actively          listen      opens passively: the next segment is a SYN
//	write n     writes n bytes          read n      reads as many
//	close       CLOSE: a FIN            release     close(2)
//	abort       ABORT: a reset          wait        time passes
//	? names     prints facts in a line "=": state cwnd ssthresh rto srtt retransmitted timeouts fast probes tail challenges dropped received readable room mss error
//
// Lines with ">", "=" and "!" (the error of the connection) are outcomes. Run
// writes them anew, so that "go test -rewrite" adds them to a script without
// outcomes.
package inetscript
