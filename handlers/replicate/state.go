// Package replicate is servers that keep copies of the same bytes, on the
// network interface. The first one writes the data of a client and passes each
// packet on, along a ring or down a tree. The last ones answer the client
// ("Building Blocks for Network-Accelerated Distributed File Systems", SC'22).
// README.md describes the messages.
//
// All entries of a server share one HPU memory: a [State], and behind it slots
// and locks (see [State.Memory]).
//
// Handlers of the network interfaces, programs of the hosts, or the client
// itself send the copies. Clients are the same in all three cases.
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
	Slots   uint32 `spin:"max=4096"` // writes that may be under way, of all clients
	PT      uint32 `spin:"max=255"`  // portal table entry of servers
	ReplyPT uint32 `spin:"max=255"`  // portal table entry of clients
	Index   uint32 `spin:"max=15"`   // of this server
	// 1: each server passes on to two others; 0: to the next one
	Tree    uint32             `spin:"max=1"`
	Epoch   uint32             // present one: capabilities for earlier ones are refused
	Bytes   uint64             `spin:"unit=bytes"` // of the memory
	Key     Key                // of capabilities
	Servers [MaxServers]Server // by number
	Counts  Counts             // of the handlers
}

// MaxServers is the largest number of copies.
const MaxServers = 16

// Server is the address of a server.
type Server = raid5.Server

// Counts counts the work of a server's handlers.
type Counts struct {
	_       structs.HostLayout
	Stored  uint64 `spin:"unit=packets"` // written
	Passed  uint64 `spin:"unit=packets"` // puts to other servers
	Settled uint64 // writes answered
	Refused uint64 // writes beyond the end of the memory, and packets that lie in two blocks
	Failed  uint64 `spin:"unit=packets"` // with memory that was absent
	Forged  uint64 // requests without a capability, or with a forged one
	Expired uint64 // requests whose capability has expired
	// requests of another process than the capability's, or for another range
	// or right
	Outside uint64
	Fetched uint64 // allowed reads
	Waits   uint64 // rounds in which a handler waited for a block
}

// There is a lock for each Block bytes of a server's memory. Places whose
// distance is a multiple of Locks*Block share one. A packet lies in one block.
const (
	Block    = 4096
	Locks    = 256
	LockSize = 16
	SlotSize = 8
)

// Lock admits handlers one after the other, in the order of their tickets.
type Lock = raid5.Lock

// Memory returns the size of a server's State with slots and locks behind it,
// bytes.
func (s *State) Memory() int64 { return int64(s.Slots)*SlotSize + Locks*LockSize }

// Match bits of a server's entries. Match bits of writes also have a bit for
// each server that is alive, above.
const (
	StoreBits = 0x5501 // client to the first server
	PassBits  = 0x5502 // server to server
	ReadBits  = 0x5503 // get
	AdmitBits = 0x5504 // client to the first server, if servers are guarded
	FetchBits = 0x5505 // client to a server, likewise: send bytes
	LiveShift = 16
	KindMask  = 1<<LiveShift - 1
)

// Match bits of a client's entries, with the slot below: for answers, and for
// bytes that it has asked for.
const (
	ReplyBits = 0x5600_0000
	DataBits  = 0x5700_0000
)

// Ticket is the header data of a write and of all messages that follow from it:
// the client to answer, and the number of packets after which to answer.
type Ticket = raid5.Ticket

// Status of a write, in the header data of its acknowledgement.
const (
	OK      = raid5.OK
	Refused = raid5.Refused // beyond the end of the memory
	Failed  = raid5.Failed  // the memory of a server was not there
	Denied  = 3             // the capability does not allow it
)

// Rank returns the rank of a server among those that are alive, from 0.
func Rank(live, index uint32) uint32 { return uint32(bits.OnesCount32(live & (1<<index - 1))) }

// Of returns the server with a rank among those that are alive; it must exist.
func Of(live, rank uint32) uint32 {
	for ; rank > 0; rank-- {
		live &= live - 1
	}
	return uint32(bits.TrailingZeros32(live))
}

// Next returns the ranks to which a rank passes a packet on: n of them from
// first on.
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

// Last returns how many ranks pass nothing on. They answer the client.
func Last(ranks uint32, tree bool) uint32 {
	if tree {
		return (ranks + 1) / 2
	}
	return 1
}
