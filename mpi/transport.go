package mpi

import "github.com/spinsim/spinsim/runtime"

// Transport selects the network and protocol for the messages.
type Transport string

// The transports. Over Portals, Options.Matching selects who matches.
const (
	Portals    Transport = "portals"    // puts, gets and match entries of the device
	ExaNet     Transport = "exanet"     // packetizer, mailbox and RDMA engine of ExaNeSt
	InfiniBand Transport = "infiniband" // reliable connections (handlers/rnr)
)

// Transports lists the transports; the first is the default.
func Transports() []Transport { return []Transport{Portals, ExaNet, InfiniBand} }

// memory is what a rank sends from and receives to.
type memory interface {
	// alloc returns n zeroed bytes.
	alloc(n int) (runtime.View, error)
	// adopt makes other memory of the process usable. Its addresses are above
	// those of earlier memory.
	adopt(addr, n uint64) error
	// own checks that all bytes of a view, memory of the process, come from one
	// alloc or adopt.
	own(v runtime.View) error
}

// transport carries the messages of one rank. It is the boundary inside this
// package: above are communicators, requests and collective operations, without
// any device; below, bytes move and messages match. Only the rank's program
// calls it. The calls may take time: a transport charges for its own work.
//
// A transport reads the fields of a request that the caller has set: addr,
// length, peer, env, synchronous and typed, and for a send also status. For a
// receive it sets status, with a rank of the world as the source. Then it calls
// Rank.complete, and must not use the request afterwards. Messages from one
// rank to another match in the order of sending (MPI 4.1 §3.5). The transport
// counts in Rank.stats: Large, Unexpected, Copied and so on. The caller counts
// sends and completed receives.
type transport interface {
	// usable is the memory for sends and receives.
	usable() memory
	// limit returns the length of the largest message, in bytes.
	limit() int
	// send starts to send q.length bytes at q.addr to q.peer. The request is
	// complete when its memory may be used again. A synchronous one also waits
	// until the message has matched a receive.
	send(q *Request) error
	// receive starts to receive up to q.length bytes to q.addr. q.env, which
	// may have wildcards, selects the message. A longer message is an error
	// that wraps ErrTruncate (Request.fits).
	receive(q *Request) error
	// cancel withdraws a receive that no message has matched, and reports whether
	// it did. Otherwise the receive completes as if nobody had asked.
	cancel(q *Request) (bool, error)
	// probe looks for the earliest message that has come, has no receive, and
	// would match a receive with env. It does not wait.
	probe(env envelope) (status Status, found bool, err error)
	// awaitProbe waits until a probe may find more than the last one did, and
	// handles events.
	awaitProbe() error
	// step waits until something happens and handles it.
	step() error
	// ready reports whether step would find something without waiting.
	ready() bool
	// quiet reports whether no message still needs the rank that sent it.
	quiet() bool
	// ended is called once, when the program has ended. Then quiet is asked
	// whether the rank may leave. leave is called once, when it may. It gives
	// back what the rank holds, and may take time.
	ended() error
	leave() error
	// lost returns an error if messages for the rank were refused for good. It
	// is called when the run is over.
	lost() error
}

// carrier makes the transports of the ranks of a world, and holds the state
// that they share. It does not change in a run.
type carrier interface {
	// attach makes the transport of a rank. It runs in the rank's process,
	// before the program.
	attach(r *Rank) (transport, error)
}

var carriers = map[Transport]func(*World) (carrier, error){
	Portals:    newPortalsCarrier,
	ExaNet:     newExaNetCarrier,
	InfiniBand: newInfiniBandCarrier,
}

// envelope is the data by which a message is matched (MPI 4.1 §3.2.3): the
// context of its communicator, its source (a rank of the world) and its tag. In
// a receive, source may be AnySource and tag AnyTag.
type envelope struct {
	source  int
	tag     uint32
	context uint16
	// of a receive: bits of context and tag, as one number (Tagged), that need not agree
	ignore uint64
}

// takes reports whether a receive with envelope e takes a message.
func (e envelope) takes(message envelope) bool {
	if e.ignore != 0 {
		differ := uint64(e.context^message.context)<<sourceShift | uint64(e.tag^message.tag)
		return differ&^e.ignore == 0 && (e.source == message.source || e.source == AnySource)
	}
	return e.context == message.context && (e.source == message.source || e.source == AnySource) && (e.tag == message.tag || e.tag == AnyTag)
}
