// Package raid5 is the servers of a RAID-5 array on the network interface
// (sPIN'17 §5.3): data servers, whose handlers write what clients send and
// stream the difference to the parity server, whose handlers apply it.
// README.md says who tells whom what.
//
// With several parity servers what they keep is a Reed-Solomon code, a [Code],
// and so many servers may fail.
//
// All entries of a server share one HPU memory: a [State], and behind it slots,
// locks, tables and buffers (see [State.Memory]).
//
// With one parity server the array is RAID-5 (sPIN'17 §5.3), with several it
// has a Reed-Solomon code. Handlers of the network interfaces or programs of
// the hosts serve it; clients do the same in both cases.
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
	_          structs.HostLayout
	Free       uint64             `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free
	BufferSize uint32             `spin:"unit=bytes default=mtu"`               // the largest payload of a packet
	Slots      uint32             `spin:"max=4096"`                             // writes that may be under way, of all clients
	PT         uint32             `spin:"max=255"`                              // portal table entry of servers
	ReplyPT    uint32             `spin:"max=255"`                              // portal table entry of clients
	Index      uint32             `spin:"max=31"`                               // of this server
	Parity     uint32             `spin:"max=32"`                               // of the first parity server; NoParity: there is none
	Servers    [MaxServers]Server // by number, data servers first
	Counts     Counts             // what the handlers have done
	Code       Code               // with several parity servers: what they keep
	Steps      [MaxParity]uint8   // likewise, of a data server: its coefficient at each parity server, divided by that at the one before
}

// MaxServers is how many servers an array has at most, of them MaxParity for
// parity; NoParity is no number of one.
const (
	MaxServers = 32
	MaxParity  = 8
	NoParity   = MaxServers
)

// Server is where one is.
type Server struct {
	_   structs.HostLayout
	NID uint32 // node
	PID uint32 // process
}

// Counts are what the handlers of a server have done.
type Counts struct {
	_       structs.HostLayout
	Written uint64 `spin:"unit=packets"` // data that was written
	Applied uint64 `spin:"unit=packets"` // differences that were applied to parity
	Settled uint64 // writes that were acknowledged to clients
	Folded  uint64 `spin:"unit=packets"` // to which the server's own bytes were added on their way, to read or rebuild what another had
	Filled  uint64 `spin:"unit=packets"` // that were written to rebuild the server's own bytes
	Refused uint64 // writes beyond the end of the server's memory
	Failed  uint64 `spin:"unit=packets"` // whose memory was not there
	Waits   uint64 // rounds in which a handler waited for a lock
}

// A lock is for each LockBytes of a server's memory; those that are a multiple
// of Locks*LockBytes apart share one.
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

// Memory is what a server's State takes with slots, locks, tables and buffers
// behind it, bytes, at a number of buffers.
func (s *State) Memory(buffers int) int64 {
	return int64(s.Slots)*SlotSize + Locks*LockSize + MaxBuffers*TableSize + int64(buffers)*int64((s.BufferSize+7)&^7)
}

// Match bits of a server's entries. A message's place in the server's memory is its remote offset.
const (
	WriteBits  = 0x5200 // client to data server: new data
	AloneBits  = 0x5201 // client to data server: new data, and parity need not hear of it, since its server has failed
	DeltaBits  = 0x5202 // data server, or client in the place of one that has failed, to parity server: old data xor new data
	ReadBits   = 0x5203 // get
	DoneBits   = 0x5204 // parity server to data server, or to the client in its place: a difference was applied
	FailedBits = 0x5205 // likewise: a difference could not be applied
	FillBits   = 0x5206 // server to one that is rebuilt: its bytes
	LockBits   = 0x5207 // client to parity server: words for who wants some rows for itself, while a server has failed
	GatherBits = 0x5208 // client to the first of a chain of servers: send what you have of the range in the user header
	SyncBits   = 0x520a // client to the program that has a server's storage device: write a range there
	FoldBits   = 0x5209 // server to the next one of a chain: add what you have of a range, and pass it on
	ChainShift = 16     // of a chain's match bits: bit i of the 32 above says that server i is still to add its bytes
	LastShift  = 48     // of a chain's match bits: who gets the sum: a server that is rebuilt, or ToClient
	ToClient   = 0xff
	KindMask   = 1<<ChainShift - 1
)

// With several parity servers bit i of the 32 above ChainShift says of
// WriteBits that parity server i has failed, and need not hear of it; of chains
// that server i takes part: they have names of their own, since each server
// must know all of them to know what it multiplies its bytes by, and what is
// lost.
const (
	CollectBits = 0x520b // as GatherBits
	BlendBits   = 0x520c // as FoldBits
	LostShift   = 56     // of a chain's match bits: the server whose bytes it computes
)

// Range is a part of the memory of each server: the user header of what begins a chain.
type Range struct {
	_              structs.HostLayout
	Offset, Length uint64 // bytes
}

// RangeSize is that of a Range, bytes.
const RangeSize = 16

// Destination is the header data of a chain that ends at a client: the sum goes
// to the entry of its process, to the place of the chain's in the servers plus
// Delta, modulo 2^36.
type Destination uint64

const deltaBits = 36

// NewDestination is that of a client.
func NewDestination(nid, pid uint32, delta uint64) Destination {
	return Destination(nid)<<(pidBits+deltaBits) | Destination(pid)<<deltaBits | Destination(delta&(1<<deltaBits-1))
}

// NID is the client's node.
func (d Destination) NID() uint32 { return uint32(d >> (pidBits + deltaBits)) }

// PID is the client's process.
func (d Destination) PID() uint32 { return uint32(d>>deltaBits) & MaxPID }

// Place is where in the client's entry a byte of the servers goes.
func (d Destination) Place(at uint64) uint64 { return (at + uint64(d)) & (1<<deltaBits - 1) }

// ReplyBits are the match bits of a client's entries: what has become of a
// write with a slot, and the sum of a chain.
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

// Ticket is the header data of a write and of all that follows from it: who is
// told when how many packets are done.
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

// NewTicket is that of a write of so many packets for a data server, by a
// process that gives it a slot of its own.
func NewTicket(nid, pid, slot, packets uint32) Ticket {
	return Ticket(nid)<<(pidBits+slotBits+totalBits) | Ticket(pid)<<(slotBits+totalBits) | Ticket(slot)<<totalBits | Ticket(packets)
}

// Packets is how many there are.
func (t Ticket) Packets() uint32 { return uint32(t) & MaxPackets }

// Slot is the write's.
func (t Ticket) Slot() uint32 { return uint32(t>>totalBits) & (MaxSlots - 1) }

// PID is the client's process.
func (t Ticket) PID() uint32 { return uint32(t>>(totalBits+slotBits)) & MaxPID }

// NID is the client's node.
func (t Ticket) NID() uint32 { return uint32(t >> (totalBits + slotBits + pidBits)) }
