// Package raid5 is the servers of a RAID-5 array on the network interface
// (sPIN'17 §5.3). Handlers of data servers write the data of clients and stream
// the difference to the parity server, whose handlers apply it. README.md
// describes the messages.
//
// With several parity servers, they keep a Reed-Solomon code, a [Code], and as
// many servers may fail.
//
// All entries of a server share one HPU memory: a [State], and behind it slots,
// locks, tables and buffers (see [State.Memory]).
//
// Handlers of the network interfaces or programs of the hosts serve the array;
// clients do the same in both cases.
//
// A host program uses it so:
//
//	array, err := raid5.New(cluster, raid5.Options{Layout: layout, Servers: nodes, Mode: raid5.Handlers, Clients: 1})
//	client, err := array.Open(p, 0)             // in a process, before it first waits
//	err = client.Write(offset, view)            // until every server, and parity, has it
//	err = client.Read(offset, view)
package raid5

import "structs"

// State is the HPU memory of a server.
type State struct {
	_ structs.HostLayout
	// bit i: buffer i is free
	Free       uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"`
	BufferSize uint32 `spin:"unit=bytes default=mtu"` // the largest payload of a packet
	// writes that may be under way, of all clients
	Slots uint32 `spin:"max=4096"`
	// portal table entry of servers
	PT uint32 `spin:"max=255"`
	// portal table entry of clients
	ReplyPT uint32 `spin:"max=255"`
	Index   uint32 `spin:"max=31"` // of this server
	// of the first parity server; NoParity: there is none
	Parity  uint32             `spin:"max=32"`
	Servers [MaxServers]Server // by number, data servers first
	Counts  Counts             // of the handlers
	Code    Code               // of several parity servers
	// with several parity servers, at a data server: its coefficient at each
	// parity server, divided by the previous server's
	Steps [MaxParity]uint8
}

// MaxServers is the largest number of servers of an array, MaxParity of parity
// servers among them; NoParity stands for no server.
const (
	MaxServers = 32
	MaxParity  = 8
	NoParity   = MaxServers
)

// Server is the address of a server.
type Server struct {
	_   structs.HostLayout
	NID uint32 // node
	PID uint32 // process
}

// Counts counts the work of a server's handlers.
type Counts struct {
	_       structs.HostLayout
	Written uint64 `spin:"unit=packets"` // data written
	Applied uint64 `spin:"unit=packets"` // differences applied to parity
	Settled uint64 // writes acknowledged to clients
	// packets to which the server's own bytes were added on their way, to read
	// or rebuild another server's bytes
	Folded  uint64 `spin:"unit=packets"`
	Filled  uint64 `spin:"unit=packets"` // written to rebuild the server's own bytes
	Refused uint64 // writes beyond the end of the server's memory
	Failed  uint64 `spin:"unit=packets"` // with memory that was absent
	Waits   uint64 // rounds in which a handler waited for a lock
}

// There is a lock for each LockBytes of a server's memory. Places whose
// distance is a multiple of Locks*LockBytes share one.
const (
	LockBytes = 4096
	Locks     = 256 // a power of two
	LockSize  = 16  // bytes of a Lock
	SlotSize  = 8   // bytes of a slot
)

// A handler that multiplies has a buffer and TableSize bytes for the products;
// there are at most MaxBuffers at a time.
const (
	TableSize  = 256
	MaxBuffers = 64
)

// Lock admits handlers one after the other, in the order of their tickets.
type Lock struct {
	_       structs.HostLayout
	Next    uint64 // ticket
	Serving uint64 // ticket
}

// Memory returns the size of a server's State with slots, locks, tables and
// buffers behind it, bytes.
func (s *State) Memory(buffers int) int64 {
	return int64(s.Slots)*SlotSize + Locks*LockSize + MaxBuffers*TableSize + int64(buffers)*int64((s.BufferSize+7)&^7)
}

// Match bits of a server's entries. A message's place in the server's memory is its remote offset.
const (
	WriteBits = 0x5200 // client to data server: new data
	// client to data server: new data; parity gets no message, because its
	// server has failed
	AloneBits = 0x5201
	// data server, or a client in place of a failed one, to parity server: old
	// data xor new data
	DeltaBits = 0x5202
	ReadBits  = 0x5203 // get
	// parity server to data server, or to the client in its place: a difference
	// was applied
	DoneBits   = 0x5204
	FailedBits = 0x5205 // likewise: a difference could not be applied
	FillBits   = 0x5206 // server to a server being rebuilt: its bytes
	// client to parity server: words that lock rows while a server has failed
	LockBits = 0x5207
	// client to the first server of a chain: send your bytes of the range in
	// the user header
	GatherBits = 0x5208
	// client to the program that owns a server's storage device: write a range
	// there
	SyncBits = 0x520a
	// server to the next one of a chain: add your bytes of a range, and pass it
	// on
	FoldBits = 0x5209
	// of a chain's match bits: bit i of the 32 above means that server i has
	// not yet added its bytes
	ChainShift = 16
	// of a chain's match bits: the receiver of the sum: a server being rebuilt,
	// or ToClient
	LastShift = 48
	ToClient  = 0xff
	KindMask  = 1<<ChainShift - 1
)

// With several parity servers, the 32 bits above ChainShift have other
// meanings. In WriteBits, bit i means that parity server i has failed and gets
// no message. In chains, bit i means that server i takes part. These chains
// have their own match bits: each server must know all members, and the lost
// server, to know the factor of its bytes.
const (
	CollectBits = 0x520b // as GatherBits
	BlendBits   = 0x520c // as FoldBits
	LostShift   = 56     // of a chain's match bits: the server whose bytes it computes
)

// Range is a part of the memory of each server. It is the user header of a
// message that begins a chain.
type Range struct {
	_              structs.HostLayout
	Offset, Length uint64 // bytes
}

// RangeSize is the size of a Range, bytes.
const RangeSize = 16

// Destination is the header data of a chain that ends at a client. The sum goes
// to the entry of its process, to the place of the chain's range in the servers
// plus Delta, modulo 2^36.
type Destination uint64

const deltaBits = 36

// NewDestination makes the destination for a client.
func NewDestination(nid, pid uint32, delta uint64) Destination {
	return Destination(nid)<<(pidBits+deltaBits) | Destination(pid)<<deltaBits | Destination(delta&(1<<deltaBits-1))
}

// NID returns the client's node.
func (d Destination) NID() uint32 { return uint32(d >> (pidBits + deltaBits)) }

// PID returns the client's process.
func (d Destination) PID() uint32 { return uint32(d>>deltaBits) & MaxPID }

// Place returns where in the client's entry a byte of the servers goes.
func (d Destination) Place(at uint64) uint64 { return (at + uint64(d)) & (1<<deltaBits - 1) }

// ReplyBits are the match bits of a client's entries, for the result of a write
// with a slot, and for the sum of a chain.
const (
	ReplyBits = 0x5300_0000
	SumBits   = 0x5400_0000
)

// Status of a write, in the header data of its acknowledgement.
const (
	OK      = 0
	Refused = 1 // beyond the end of the server's memory
	Failed  = 2 // the memory of a server was not there
)

// Ticket is the header data of a write and of all messages that follow from it:
// the client to answer, and the number of packets after which to answer.
type Ticket uint64

const (
	totalBits = 24
	slotBits  = 12
	pidBits   = 8
	nidBits   = 20
)

// Limits of tickets.
const (
	MaxPackets = 1<<totalBits - 1 // of a write, for a data server
	MaxSlots   = 1 << slotBits
	MaxPID     = 1<<pidBits - 1
	MaxNID     = 1<<nidBits - 1
)

// NewTicket makes the ticket of a write with a number of packets for a data
// server, by a process with its own slot.
func NewTicket(nid, pid, slot, packets uint32) Ticket {
	return Ticket(nid)<<(pidBits+slotBits+totalBits) | Ticket(pid)<<(slotBits+totalBits) | Ticket(slot)<<totalBits | Ticket(packets)
}

// Packets returns the number of packets.
func (t Ticket) Packets() uint32 { return uint32(t) & MaxPackets }

// Slot returns the write's slot.
func (t Ticket) Slot() uint32 { return uint32(t>>totalBits) & (MaxSlots - 1) }

// PID returns the client's process.
func (t Ticket) PID() uint32 { return uint32(t>>(totalBits+slotBits)) & MaxPID }

// NID returns the client's node.
func (t Ticket) NID() uint32 { return uint32(t >> (totalBits + slotBits + pidBits)) }
