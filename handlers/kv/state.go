// Package kv is a key-value store on the network interface (sPIN'17 §5.4): a
// hash table in host memory, whose buckets handlers walk by DMA. Options choose
// who serves: handlers on the server's network interface, its host, or its host
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
// A request is handed over to the host if its walk is longer than Steps items,
// or its key longer than 208 B. The stripe goes with it (AtHost in its lock),
// and handlers that find it so send their requests after the first. The host
// says Done by a message to its own interface; with the last one the stripe
// belongs to handlers again. Handoffs have an era and words a turn, because
// messages may overtake each other. A stripe with more than Load items a bucket
// goes to the host without a request: so the table grows, a stripe at a time.
// While requests come faster than the host works, the stripe stays there.
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
// blocks, slots and buffers, at the places it names.
type State struct {
	_ structs.HostLayout

	Stripes uint32 `spin:"max=65536"`    // parts of the table, a power of 2
	Steps   uint32 `spin:"default=8"`    // items of a bucket that a handler looks at, before it hands over to the host
	Tries   uint32 `spin:"default=1000"` // looks at a lock that is taken, before it has the client come again
	Load    uint32 `spin:"default=1"`    // items for each bucket of a stripe, above which the host makes it larger
	Limit   uint32 `spin:"default=64"`   // requests that the host may have at a time
	Low     uint32 // blocks in a stack, below which the host is asked for more
	Depth   uint32 // blocks that a stack has room for
	Slots   uint32 // long requests that may be arriving
	Buffers uint32 // as many as handlers may run at a time, up to 64
	Chunk   uint32 `spin:"unit=bytes default=mtu"` // largest payload of a packet

	StripesAt uint32 `spin:"unit=bytes"` // where the stripes lie, behind the state
	StacksAt  uint32 `spin:"unit=bytes"` // where the stacks lie, likewise
	SlotsAt   uint32 `spin:"unit=bytes"` // the slots
	BuffersAt uint32 `spin:"unit=bytes"` // the buffers

	NID      uint32 // the process that the store belongs to
	PID      uint32 // likewise
	HostPT   uint32 `spin:"max=255"` // where it takes what handlers hand over
	Pad      uint32 `spin:"max=0"`   // 0
	HostBits uint64 // with these match bits
	Held     uint64 // requests that the host has
	Words    uint64 // a handler carries out a word of the host: a lock
	Free     uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free

	Counts Counts // what handlers have done
}

// Counts are what handlers have done.
type Counts struct {
	_         structs.HostLayout
	Served    uint64 // requests that handlers have answered by themselves
	Handed    uint64 // requests that the host has been given
	Far       uint64 // walks that came to an end after Steps items
	Keys      uint64 // of Handed: because of a key that is longer than the user header
	Refused   uint64 // requests that were sent back: for want of memory, or to come again: a lock that stayed taken, no slot, too many at the host, a packet that was dropped, no block yet
	Illegal   uint64 // messages that are no requests
	Grown     uint64 // stripes that the host was asked to make larger
	Refilled  uint64 // blocks that came from the host
	Returned  uint64 // blocks that went to it
	Reads     uint64 // items looked at
	Conflicts uint64 // looks at locks that were taken
}

// Stripe is a part of the table with buckets of its own: those of the keys with
// the same lowest bits in their hashes.
type Stripe struct {
	_       structs.HostLayout
	Lock    uint64 // see the constants
	Table   uint64 // where its buckets lie in the entry, and the logarithm of their number: a link
	Items   uint64
	Version uint64 // of the item that was written last
	GrowAt  uint64 // items above which the host is to be asked for more buckets
	Turn    uint64 // of the host's last word about this stripe
	Era     uint64 // how often it has become the host's
	Spare   uint64
}

// StripeSize is that of a Stripe, bytes.
const StripeSize = 64

// A lock has readers, or one writer, which may find readers that have yet to
// leave; or requests at the host, to which the stripe then belongs: a handler
// that finds it so adds its own to them.
const (
	Writer = 1 << 0
	Reader = 1 << 8
	AtHost = 1 << 32
)

// Stack is a stack of free blocks of a class, with the words of their places behind it.
type Stack struct {
	_     structs.HostLayout
	Lock  uint64
	Count uint32
	Empty uint32 // what is answered while it is empty: Again if the host has been asked for blocks, Full if it had none; OK: it has not been asked
}

// StackSize is that of a Stack, bytes.
const StackSize = 16

// Slot is a long request that is arriving.
type Slot struct {
	_       structs.HostLayout
	Message uint64 // its number; 0: the slot is free
	Block   uint64 // where its bytes go
	NID     uint32
	PID     uint32
	Length  uint64 // of Head
	Head    [UserHeader]byte
}

// SlotSize is that of a Slot, bytes.
const SlotSize = 32 + UserHeader

// UserHeader is how many bytes of a message the header handler reads: the
// request and keys of up to ShortKey bytes.
const (
	UserHeader = 256
	ShortKey   = UserHeader - RequestSize
)

// Request is what a message to the store begins with. Key and value follow.
type Request struct {
	_      structs.HostLayout
	Op     uint32
	Key    uint32 `spin:"unit=bytes"` // length
	Value  uint32 `spin:"unit=bytes"` // length
	PT     uint32 // where the answer goes
	Expect uint64 // Swap: the version that is to be replaced; 0: the key is not to be there
	Bits   uint64 // match bits of the answer
	Tag    uint64 // the answer's hdr_data says it
	Room   uint64 `spin:"unit=bytes"` // Get: values that are longer are not sent
}

// RequestSize is that of a Request, and of an Item, bytes.
const RequestSize = 48

// Operations.
const (
	Get    = 1 + iota
	Put    // insert or replace
	Delete // with Expect 0, whatever is there
	Swap   // replace what has a version, or insert what is not there
	Done   // this and the next: words of the host to its own handlers
	Refill
)

// Limits of what a store takes.
const (
	MaxKey   = 65535
	MaxClass = 14                             // of blocks
	MaxItem  = 64 << MaxClass                 // bytes of a block of that class
	MaxValue = MaxItem - RequestSize - MaxKey // with the longest key
)

// Item is how a key and its value lie in host memory: the key follows, then the
// value. An item does not change but for Next.
type Item struct {
	_       structs.HostLayout
	Next    uint64 // link
	Hash    uint64
	Version uint64
	Key     uint32 // length
	Value   uint32 // length
	Check   uint64 // of key and value, for those who read without a lock (one-sided reads)
	Spare   uint64
}

// A link names a block: its class in the 6 bits below, its place in the entry
// in those up to bit 47, a multiple of 64; and above some bits of the hash, so
// that most other items of a bucket need not be read. 0 is no link.
const (
	classMask = 63
	placeMask = 1<<48 - 64
	tagShift  = 48
)

// Link makes one.
func Link(place uint64, class uint32, hash uint64) uint64 {
	return hash>>tagShift<<tagShift | place | uint64(class)
}

// Place is where the block of a link lies, bytes.
func Place(link uint64) uint64 { return link & placeMask }

// Class is that of the block of a link; of a table the logarithm of the number of buckets.
func Class(link uint64) uint32 { return uint32(link & classMask) }

// Alike tells whether the item of a link may have this hash.
func Alike(link, hash uint64) bool { return (link^hash)>>tagShift == 0 }

// ClassOf is the smallest class whose blocks have n bytes.
func ClassOf(n uint64) uint32 {
	c := uint32(0)
	for uint64(64)<<c < n {
		c++
	}
	return c
}

// Bucket is where the first link of the items with a hash lies.
func Bucket(table, hash uint64) uint64 {
	return Place(table) + (hash>>16&(1<<Class(table)-1))*8
}

// Answer is what the first packet of an answer begins with; the value follows.
// All packets have the hdr_data [AnswerData].
type Answer struct {
	_       structs.HostLayout
	Status  uint32
	Value   uint32 // length
	Version uint64
	Tag     uint64
}

// AnswerSize is that of an Answer, bytes.
const AnswerSize = 24

// Status of answers.
const (
	OK       = iota
	NotFound // there is no such key
	Changed  // Swap: the key has another version, which the answer names; 0: it is not there
	Again    // nothing was done: the client is to ask again
	Full     // nothing was done: there is no memory for the item
	TooLong  // Get: the value has more than Room bytes
	Illegal  // the message is no request
)

// Handoff is what the host is given; the first bytes of the request follow.
type Handoff struct {
	_      structs.HostLayout
	Kind   uint32
	Stripe uint32
	NID    uint32 // of the client
	PID    uint32
	Block  uint64 // that has the request from byte RequestSize on; 0: all of it follows. Asking: the class
	Fresh  uint32 // 1: the stripe has become the host's with it, with the fields that follow
	Count  uint32 // Returning: blocks, whose links follow
	Table  uint64
	Items  uint64
	Update uint64 // the version that was written last
	Era    uint64 // of the stripe
}

// HandoffSize is that of a Handoff, bytes.
const HandoffSize = 64

// Kinds of handoffs.
const (
	Serve     = 1 + iota // a request
	Growing              // of a stripe: it has too many items for its buckets
	Asking               // for blocks of a class
	Returning            // of blocks
)

// Word is what the host tells its own handlers by a message to itself: Done or Refill.
type Word struct {
	_      structs.HostLayout
	Op     uint32
	Number uint32 // Done: the stripe; Refill: the class
	Count  uint32 // Done: requests that have been dealt with; Refill: blocks, whose links follow
	Empty  uint32 // Refill: what the stack is to have
	Table  uint64 // Done: the stripe is to have these
	Items  uint64
	Update uint64
	GrowAt uint64
	Turn   uint64
}

// WordSize is that of a Word, bytes; MostBlocks is how many links a Refill has at most.
const (
	WordSize   = 56
	MostBlocks = (UserHeader - WordSize) / 8
)
