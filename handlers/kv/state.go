// Package kv is a key-value store on the network interface (sPIN'17 §5.4): a
// hash table in host memory whose buckets handlers read by DMA. Options choose
// who serves: handlers on the server's network interface, its host, or the host
// for writes only, while clients read its memory.
//
// # How a request is served
//
// A request is 48 bytes, the key and the value. The header handler sees the
// first 256: it checks lengths, takes a block, hashes the key, and carries a
// short request out. For a longer request payload handlers write the packets
// into the block, in any order, and the completion handler goes on. To carry
// out a request, a handler enters the stripe (shared for a get; a waiting
// writer keeps new readers out), walks the bucket, writes item and link,
// leaves, and answers from the device. A get copies through HPU memory, because
// an item may be replaced before a put from host memory reads it.
//
// A handler hands a request over to the host if its walk is longer than Steps
// items, or its key longer than 208 B. The stripe goes with it (AtHost in its
// lock), and handlers that find the lock so send their requests after the
// first. The host sends Done to its own interface; after the last one the
// stripe belongs to handlers again. Handoffs have an era and words a turn,
// because messages may overtake each other. A stripe with more than Load items
// a bucket goes to the host without a request, so that the table grows, one
// stripe at a time. While requests come faster than the host works, the stripe
// stays there.
//
// Handlers take blocks from stacks that the host has filled, and give back half
// of a full stack. If the host has none either, clients are told Full. A
// request is sent back (Again), with nothing done, if there is no slot, block
// or room at the host (Limit), if its lock stayed taken, or if it has lost a
// packet.
//
// The store is linearizable: a stripe has one owner at a time, which changes it
// by one write of a link, and DMA keeps its order (docs/abi.md, Order). Its
// memory is locked, because pages must be there.
//
// A host program uses it so:
//
//	library, err := kv.Load(cluster)                                            // once for each cluster
//	server, err := library.Open(p, kv.Options{Memory: 64 << 20})                // in the server's process, before it first waits
//	err = server.Serve()                                                           // of a cluster.SpawnService
//	client, err := kv.Dial(p, []kv.Address{{NID: 0}}, kv.Options{…})      // in each client's process
//	version, err := client.Put(key, value)
//	value, version, err := client.Get(key)
package kv

import "structs"

// State is the HPU memory of a store. Behind it lie stripes, stacks of free
// blocks, slots and buffers, at the places in its fields.
type State struct {
	_ structs.HostLayout

	Stripes uint32 `spin:"max=65536"` // parts of the table, a power of 2
	// items of a bucket that a handler reads before it hands over to the host
	Steps uint32 `spin:"default=8"`
	// checks of a lock that is taken before the client must ask again
	Tries uint32 `spin:"default=1000"`
	// items for each bucket of a stripe above which the host makes the stripe
	// larger
	Load    uint32 `spin:"default=1"`
	Limit   uint32 `spin:"default=64"` // requests that may be at the host
	Low     uint32 // blocks in a stack, below which the host is asked for more
	Depth   uint32 // blocks that a stack has room for
	Slots   uint32 // long requests that may be arriving
	Buffers uint32 // as many as handlers may run at a time, up to 64
	Chunk   uint32 `spin:"unit=bytes default=mtu"` // largest payload of a packet

	StripesAt uint32 `spin:"unit=bytes"` // of the stripes, behind the state
	StacksAt  uint32 `spin:"unit=bytes"` // of the stacks, behind the state
	SlotsAt   uint32 `spin:"unit=bytes"` // the slots
	BuffersAt uint32 `spin:"unit=bytes"` // the buffers

	NID      uint32 // of the process that owns the store
	PID      uint32 // of that process
	HostPT   uint32 `spin:"max=255"` // of the host's entry for handoffs
	Pad      uint32 `spin:"max=0"`   // 0
	HostBits uint64 // with these match bits
	Held     uint64 // requests at the host
	Words    uint64 // a lock: a handler carries out a word of the host
	Free     uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free

	Counts Counts // of the handlers
}

// Counts counts the work of handlers.
type Counts struct {
	_      structs.HostLayout
	Served uint64 // requests answered by handlers alone
	Handed uint64 // requests handed over to the host
	Far    uint64 // walks that stopped after Steps items
	Keys   uint64 // of Handed: for a key that is longer than the user header
	// requests sent back: there was no memory or no block yet, a lock stayed
	// taken, there was no slot, too many requests were at the host, or a packet
	// was dropped
	Refused   uint64
	Illegal   uint64 // messages that are not requests
	Grown     uint64 // stripes that the host should make larger
	Refilled  uint64 // blocks that came from the host
	Returned  uint64 // blocks that went to it
	Reads     uint64 // items looked at
	Conflicts uint64 // checks of locks that were taken
}

// Stripe is a part of the table with its own buckets: the keys whose hashes
// have the same lowest bits.
type Stripe struct {
	_       structs.HostLayout
	Lock    uint64 // see the constants
	Table   uint64 // address of its buckets in the entry, and the logarithm of their number: a link
	Items   uint64
	Version uint64 // of the item that was written last
	GrowAt  uint64 // number of items above which the host is asked for more buckets
	Turn    uint64 // of the host's last word about this stripe
	Era     uint64 // how often it went to the host
	Spare   uint64
}

// StripeSize is the size of a Stripe, bytes.
const StripeSize = 64

// A lock has readers, or one writer, which may still see readers that are
// leaving. Or it has requests at the host, which then owns the stripe: a
// handler that finds it so adds its own request.
const (
	Writer = 1 << 0
	Reader = 1 << 8
	AtHost = 1 << 32
)

// Stack is a stack of free blocks of a class. Behind it lie words with their
// places.
type Stack struct {
	_     structs.HostLayout
	Lock  uint64
	Count uint32
	// answer while it is empty: Again if the host was asked for blocks, Full if
	// it had none; OK: it was not asked
	Empty uint32
}

// StackSize is the size of a Stack, bytes.
const StackSize = 16

// Slot is a long request during its arrival.
type Slot struct {
	_       structs.HostLayout
	Message uint64 // its number; 0: the slot is free
	Block   uint64 // where its bytes go
	NID     uint32
	PID     uint32
	Length  uint64 // of Head
	Head    [UserHeader]byte
}

// SlotSize is the size of a Slot, bytes.
const SlotSize = 32 + UserHeader

// UserHeader is the part of a message that the header handler reads, bytes: the
// request, and keys of up to ShortKey bytes.
const (
	UserHeader = 256
	ShortKey   = UserHeader - RequestSize
)

// Request begins a message to the store. Key and value follow.
type Request struct {
	_      structs.HostLayout
	Op     uint32
	Key    uint32 `spin:"unit=bytes"` // length
	Value  uint32 `spin:"unit=bytes"` // length
	PT     uint32 // for the answer
	Expect uint64 // Swap: the version to replace; 0: there must be no such key
	Bits   uint64 // match bits of the answer
	Tag    uint64 // returned in the answer's hdr_data
	Room   uint64 `spin:"unit=bytes"` // Get: longer values are not sent
}

// RequestSize is the size of a Request, and of an Item, bytes.
const RequestSize = 48

// Operations.
const (
	Get    = 1 + iota
	Put    // insert or replace
	Delete // with Expect 0, any version
	Swap   // replace the given version, or insert if there is none
	Done   // this and the next are words of the host to its own handlers
	Refill
)

// Limits of a store.
const (
	MaxKey   = 65535
	MaxClass = 14                             // of blocks
	MaxItem  = 64 << MaxClass                 // bytes of a block of that class
	MaxValue = MaxItem - RequestSize - MaxKey // with the longest key
)

// Item is a key with its value in host memory: the key follows, then the value.
// Only Next of an item ever changes.
type Item struct {
	_       structs.HostLayout
	Next    uint64 // link
	Hash    uint64
	Version uint64
	Key     uint32 // length
	Value   uint32 // length
	Check   uint64 // of key and value, for reads without a lock (one-sided reads)
	Spare   uint64
}

// A link names a block. The lowest 6 bits are the block's class, and the bits
// up to 47 its place in the entry, a multiple of 64. The bits above are a part
// of the hash, so that most other items of a bucket need not be read. 0 is no
// link.
const (
	classMask = 63
	placeMask = 1<<48 - 64
	tagShift  = 48
)

// Link makes a link.
func Link(place uint64, class uint32, hash uint64) uint64 {
	return hash>>tagShift<<tagShift | place | uint64(class)
}

// Place returns the place of a link's block, bytes.
func Place(link uint64) uint64 { return link & placeMask }

// Class returns the class of a link's block; for a table the logarithm of the
// number of buckets.
func Class(link uint64) uint32 { return uint32(link & classMask) }

// Alike reports whether the item of a link may have this hash.
func Alike(link, hash uint64) bool { return (link^hash)>>tagShift == 0 }

// ClassOf returns the smallest class whose blocks have n bytes.
func ClassOf(n uint64) uint32 {
	c := uint32(0)
	for uint64(64)<<c < n {
		c++
	}
	return c
}

// Bucket returns the place of the first link of items with a hash.
func Bucket(table, hash uint64) uint64 {
	return Place(table) + (hash>>16&(1<<Class(table)-1))*8
}

// Answer begins the first packet of an answer; the value follows. All packets
// have the hdr_data [AnswerData].
type Answer struct {
	_       structs.HostLayout
	Status  uint32
	Value   uint32 // length
	Version uint64
	Tag     uint64
}

// AnswerSize is the size of an Answer, bytes.
const AnswerSize = 24

// Status of answers.
const (
	OK       = iota
	NotFound // there is no such key
	Changed  // Swap: the key has another version, which the answer names; 0: there is no such key
	Again    // nothing was done: the client must ask again
	Full     // nothing was done: there is no memory for the item
	TooLong  // Get: the value has more than Room bytes
	Illegal  // the message is not a request
)

// Handoff is a message to the host; the first bytes of the request follow.
type Handoff struct {
	_      structs.HostLayout
	Kind   uint32
	Stripe uint32
	NID    uint32 // of the client
	PID    uint32
	// has the request from byte RequestSize on; 0: the whole request follows.
	// Asking: the class
	Block  uint64
	Fresh  uint32 // 1: the stripe goes to the host with it, and the following fields are valid
	Count  uint32 // Returning: number of links that follow
	Table  uint64
	Items  uint64
	Update uint64 // version that was written last
	Era    uint64 // of the stripe
}

// HandoffSize is the size of a Handoff, bytes.
const HandoffSize = 64

// Kinds of handoffs.
const (
	Serve     = 1 + iota // a request
	Growing              // of a stripe: it has too many items for its buckets
	Asking               // for blocks of a class
	Returning            // of blocks
)

// Word is a message of the host to its own handlers: Done or Refill.
type Word struct {
	_      structs.HostLayout
	Op     uint32
	Number uint32 // Done: the stripe; Refill: the class
	Count  uint32 // Done: requests that were processed; Refill: number of links that follow
	Empty  uint32 // Refill: new value of the stack's field
	Table  uint64 // Done: new values of the stripe's fields
	Items  uint64
	Update uint64
	GrowAt uint64
	Turn   uint64
}

// WordSize is the size of a Word, bytes; MostBlocks is the largest number of
// links in a Refill.
const (
	WordSize   = 56
	MostBlocks = (UserHeader - WordSize) / 8
)
