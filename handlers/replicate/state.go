// Package replicate is servers that keep copies of the same bytes, on the
// network interface: the first one writes what a client sends and passes each
// packet on, along a ring or down a tree, and the last ones tell the client
// ("Building Blocks for Network-Accelerated Distributed File Systems", SC'22).
// README.md says who tells whom what.
//
// All entries of a server share one HPU memory: a [State], and behind it slots
// and locks (see [State.Memory]).
//
// Handlers of the network interfaces pass writes on, or programs of the hosts,
// or the client itself. Clients are the same in all three cases.
//
// A host program uses it so:
//
//	group, err := replicate.New(cluster, replicate.Options{Servers: nodes, Bytes: 1 << 20, Mode: replicate.Handlers, Clients: 1})
//	client, err := group.Open(p, 0)             // in a process, before it first waits
//	err = client.Write(offset, view)            // until every server has it
//	err = client.Read(offset, view)             // of one of them
package replicate

import (
	"math/bits"
	"structs"

	"github.com/spinsim/spinsim/handlers/raid5"
)

// State is the HPU memory of a server.
type State struct {
	_       structs.HostLayout
	Slots   uint32             `spin:"max=4096"` // writes that may be under way, of all clients
	PT      uint32             `spin:"max=255"`  // portal table entry of servers
	ReplyPT uint32             `spin:"max=255"`  // portal table entry of clients
	Index   uint32             `spin:"max=15"`   // of this server
	Tree    uint32             `spin:"max=1"`    // 1: each server passes on to two others; 0: to the next one
	Epoch   uint32             // now: capabilities that hold until an earlier one are refused
	Bytes   uint64             `spin:"unit=bytes"` // of the memory
	Key     Key                // of capabilities
	Servers [MaxServers]Server // by number
	Counts  Counts             // what the handlers have done
}

// MaxServers is how many copies there are at most.
const MaxServers = 16

// Server is where one is.
type Server = raid5.Server

// Counts are what the handlers of a server have done.
type Counts struct {
	_       structs.HostLayout
	Stored  uint64 `spin:"unit=packets"` // that were written
	Passed  uint64 `spin:"unit=packets"` // puts to other servers
	Settled uint64 // writes of which clients were told
	Refused uint64 // writes beyond the end of the memory, and packets that lie in two blocks
	Failed  uint64 `spin:"unit=packets"` // whose memory was not there
	Forged  uint64 // requests without a capability, or with one that nobody has issued
	Expired uint64 // requests whose capability holds no more
	Outside uint64 // requests of another process, for another range or right than that of their capability
	Fetched uint64 // reads that were allowed
	Waits   uint64 // rounds in which a handler waited for a block
}

// A lock is for each Block bytes of a server's memory; those that are a
// multiple of Locks*Block apart share one. A packet lies in one block.
const (
	Block    = 4096
	Locks    = 256
	LockSize = 16
	SlotSize = 8
)

// Lock admits handlers one after the other, in the order of their tickets.
type Lock = raid5.Lock

// Memory is what a server's State takes with slots and locks behind it, bytes.
func (s *State) Memory() int64 { return int64(s.Slots)*SlotSize + Locks*LockSize }

// Match bits of a server's entries; those of writes have a bit for each server that is alive above.
const (
	StoreBits = 0x5501 // client to the first server
	PassBits  = 0x5502 // server to server
	ReadBits  = 0x5503 // get
	AdmitBits = 0x5504 // client to the first server, if they are guarded
	FetchBits = 0x5505 // client to a server, likewise: send bytes
	LiveShift = 16
	KindMask  = 1<<LiveShift - 1
)

// Match bits of a client's entries, with the slot below: answers, and bytes that it has asked for.
const (
	ReplyBits = 0x5600_0000
	DataBits  = 0x5700_0000
)

// Ticket is the header data of a write and of all that follows from it: whom to
// tell when how many packets are there.
type Ticket = raid5.Ticket

// Status of a write, in the header data of its acknowledgement.
const (
	OK      = raid5.OK
	Refused = raid5.Refused // beyond the end of the memory
	Failed  = raid5.Failed  // the memory of a server was not there
	Denied  = 3             // the capability does not allow it
)

// Rank is which of the servers that are alive a server is, from 0.
func Rank(live, index uint32) uint32 { return uint32(bits.OnesCount32(live & (1<<index - 1))) }

// Of is the server that is so many of those that are alive; there must be as many.
func Of(live, rank uint32) uint32 {
	for ; rank > 0; rank-- {
		live &= live - 1
	}
	return uint32(bits.TrailingZeros32(live))
}

// Next are the ranks to which a rank of so many passes a packet on: n of them
// from the first one on.
func Next(rank, ranks uint32, tree bool) (first, n uint32) {
	first, n = rank+1, 1
	if tree {
		first, n = 2*rank+1, 2
	}
	if first >= ranks {
		return first, 0
	}
	return first, min(n, ranks-first)
}

// Last is how many ranks of so many pass nothing on: these tell the client.
func Last(ranks uint32, tree bool) uint32 {
	if tree {
		return (ranks + 1) / 2
	}
	return 1
}
