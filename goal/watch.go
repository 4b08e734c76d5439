package goal

// watcher sees what a run does. Operations are numbered as in the simulator.
type watcher interface {
	// calc: the computation keeps its processor busy.
	calc(op uint32, t, end int64)
	// send: the operation keeps its processor busy until end and its network interface until gap.
	send(op uint32, t, end, gap int64)
	// recv: the receive is posted.
	recv(op uint32, t int64)
	// message: the message of the send keeps processor and network interface of the target busy.
	message(op uint32, t, end, gap int64)
	// matched: the message of a send and a receive have met.
	matched(recv, send uint32, t int64)
	// raised: the clocks of the sender of a rendezvous message go up to t, because of event by: an operation, or with
	// evMsg the message of one.
	raised(rank uint32, cpu, nic uint8, by uint32, t int64)
}
