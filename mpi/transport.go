package mpi

import "github.com/spinsim/spinsim/runtime"

// Transport says what carries the messages.
type Transport string

// The transports. Over Portals, Options.Matching says who matches.
const (
	Portals    Transport = "portals"    // puts, gets and match entries of the device
	ExaNet     Transport = "exanet"     // packetizer, mailbox and RDMA engine of ExaNeSt
	InfiniBand Transport = "infiniband" // reliable connections (handlers/rnr)
)

// Transports lists the transports; the first is that of options that name none.
func Transports() []Transport { return []Transport{Portals, ExaNet, InfiniBand} }

// transport carries the messages of one rank. It is the seam of the package:
// communicators, requests and collectives are above and know nothing of
// devices; what moves bytes, and matches, is below. It is called by the rank's
// program only, in which it may spend time: it charges what its own work costs.
//
// Of a request it reads what the interface has set (addr, length, peer, env,
// synchronous and typed; of a send also status) and sets status of a receive,
// whose source is a rank of the world, before it calls Rank.complete, after
// which the request is not its own any more. Messages of one rank to another
// match in the order of sending (MPI 4.1 §3.5). It counts what it does in
// Rank.stats: Large, Unexpected, Copied and so on; sends and completed receives
// are counted above.
type transport interface {
	// alloc returns n zeroed bytes that can be sent from and received into.
	alloc(n int) (runtime.View, error)
	// own checks that all bytes of a view, which is memory of the process, come from one alloc.
	own(v runtime.View) error
	// limit is the length of the largest message, bytes.
	limit() int
	// send starts to send q.length bytes at q.addr to q.peer. The request is
	// complete when its memory may be used again; if it is synchronous, not
	// before the message has matched a receive.
	send(q *Request) error
	// receive starts to receive up to q.length bytes to q.addr; q.env says of
	// whom, and may have wildcards. A message that is longer is an error that
	// wraps ErrTruncate (Rank.fits).
	receive(q *Request) error
	// probe looks for the earliest message that has come, has no receive and is
	// one that a receive with env would take. It does not wait.
	probe(env envelope) (status Status, found bool, err error)
	// awaitProbe waits until there may be more to find than at the last probe,
	// and acts on what has happened.
	awaitProbe() error
	// step waits until something happens and acts on it.
	step() error
	// ready reports whether step would find something without waiting.
	ready() bool
	// quiet reports whether nothing of what the rank has sent still needs it.
	quiet() bool
	// ended is called once when the program has ended, before quiet is asked
	// whether the rank may leave, and leave once when it may: it gives back
	// what the rank has of others, in time of its own.
	ended() error
	leave() error
	// lost is an error if messages for the rank were refused for good. It is
	// asked when the run is over.
	lost() error
}

// carrier makes the transports of the ranks of a world, and has what does not
// differ between them. It does not change in a run.
type carrier interface {
	// attach makes the transport of a rank, in its process, before its program begins.
	attach(r *Rank) (transport, error)
}

// carriers makes carriers: one line for each transport.
var carriers = map[Transport]func(*World) (carrier, error){
	Portals:    newPortalsCarrier,
	ExaNet:     newExaNetCarrier,
	InfiniBand: newInfiniBandCarrier,
}

// envelope is what a message is matched by (MPI 4.1 §3.2.3): the context of its
// communicator, its source, a rank of the world, and its tag. In that of a
// receive source may be AnySource and tag AnyTag.
type envelope struct {
	source  int
	tag     uint32
	context uint16
}

// takes reports whether a receive with the envelope takes a message.
func (e envelope) takes(message envelope) bool {
	return e.context == message.context && (e.source == message.source || e.source == AnySource) && (e.tag == message.tag || e.tag == AnyTag)
}
