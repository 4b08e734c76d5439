// Package rdma is the transport of ExaNeSt's RDMA engine (TR-488 §4.5;
// Psistakis et al., IEEE TPDS 33(12), 2022, "P"; Psistakis, MSc thesis, 2019,
// "T") as a library of handlers: reliable writes and reads of any size between
// the virtual addresses of processes, without a host on the way.
//
// One instance serves a process: a page of channels, in the words of TR-488.
// Its HPU memory has two entries, which share the state:
//   - PTControl, served by the firmware (kind header): descriptors of the own
//     process, acknowledgements, time-outs, requests to read;
//   - PTCells, served by the hardware (kind payload): cells that arrive, and
//     the requests that the own process sends.
//
// README.md describes the protocol.
//
// A host program uses it so:
//
//	engine, err := rdma.Load(cluster)                     // once for each cluster
//	page, err := engine.Open(p, rdma.Options{PDID: 7})    // once for each process, before it first waits
//	t, err := page.Write(rdma.Transfer{NID: 1, Source: …, Destination: …, Length: …, Notify: …, Value: 1})
//	err = t.Wait()                                            // until the other side has acknowledged all of it
//	err = page.AwaitNotification(flag, 1)                     // at the other side: until all of it is there
package rdma

import "structs"

// Portal table entries of a process on its non-matching interface.
const (
	PTControl = 0
	PTCells   = 1
)

// Sizes of the engine (TR-488 §4.5: 16 pages with 32 write and 32 read
// channels; P: two blocks outstanding for each transfer).
const (
	Pages        = 16 // of a node: one for each process
	Writes       = 32 // channels for the process's own writes, from 0
	Reads        = 32 // channels for reads by others, from Writes
	Channels     = Writes + Reads
	Outstanding  = 2 // blocks of a transfer
	Slots        = Channels * Outstanding
	MaxBlock     = 16384
	MaxCells     = 64 // of a block
	SequenceMask = 1<<14 - 1
)

// AddressBits is the width of a virtual address, and of an entry of PTControl
// and PTCells.
const AddressBits = 39

// State is the HPU memory of a page. Behind it lie Contexts contexts and Peers peers.
type State struct {
	_ structs.HostLayout // the owner sets these fields before the first message

	PDID uint32 `spin:"max=65535"`    // protection domain of the process
	NID  uint32 `spin:"default=rank"` // node of the process
	PID  uint32 // of the process on its node
	// of a cell
	MTU uint32 `spin:"unit=bytes default=mtu"`
	// largest part of a transfer that is acknowledged by itself; a power of two
	Block uint32 `spin:"unit=bytes default=min(64*mtu,16384) min=1 max=16384"`
	// blocks end at multiples of Block at 0 their destination, 1 their source
	AlignSource uint32 `spin:"max=1"`
	// of a block, or of a request to read; after that the transfer fails
	Retries uint32 `spin:"default=1000 max=4095"`
	// time-outs of a block, or of a request, after which they double, up to 64
	// times
	BackOff uint32 `spin:"default=4"`
	// blocks of the page that the hardware has at once
	InFlight uint32 `spin:"default=16 min=1 max=128"`
	// blocks that may be arriving at once
	Contexts uint32 `spin:"default=256 max=65535"`
	// channels of other processes that may ever send to it or receive from it
	Peers uint32 `spin:"default=min(256*ranks,65536) max=1048576"`
	// the number before the first of every slot
	Sequence uint32 `spin:"max=16383"`
	// 1: a transfer sends no new block while one of its blocks has failed and is
	// not acknowledged (P §4.2: "the transfer can be suspended"); 0: its other
	// block goes on
	Suspend uint32 `spin:"max=1"`
	// 1: a page-fault NACK starts the time-out of its block again; 0: it runs on,
	// as in T's code
	Restart uint32 `spin:"max=1"`
	// which later cells of an attempt the hardware drops, without a look at memory,
	// once a negative acknowledgement is on its way: 0 none, 1 those of the same
	// page, 2 all. P §4.4: a page "may correspond to multiple failed AXI-write
	// requests"
	Drop     uint32 `spin:"max=2"`
	Reserved uint32 // 0
	// of a block, from its start
	Timeout uint64 `spin:"unit=ns default=1000000 min=1 max=1000000000"`
	// counts transfers of the process that have ended; 0: none
	CompletedCT uint32 `spin:"unit=counter"`
	// counts notifications that have been written here; 0: none
	NotifiedCT uint32 `spin:"unit=counter"`
	// in handler host memory: Channels words of 64 bits, the last state of each
	StatusOffset uint64 `spin:"unit=bytes"`

	Sent     Sent     // counts of the sending side
	Received Received // counts of the receiving side

	Ready        uint32 // 1: it is set up
	Broken       uint32 // 1 + a channel whose transfer cannot continue, and
	BrokenStatus uint32 // the reason
	Spare        uint32 // 0
	Waiting      uint32 // blocks at the hardware
	// the channel that is asked first when the hardware has room again
	NextTurn     uint32
	ContextsUsed uint32                 // number used so far
	FreeContext  uint32                 // the first of the freed ones, counted from 1
	Transfers    [Channels]ChannelState // by channel: writes of the process, then reads by others
	Blocks       [Slots]Block           // by transaction
	Requests     [Reads]Request         // reads by the process
}

// Sent counts the work of the sending side.
type Sent struct {
	_             structs.HostLayout
	Transfers     uint64 // begun
	Completed     uint64
	Failed        uint64
	Blocks        uint64 // sent for the first time
	Retransmitted uint64 // and again
	Timeouts      uint64
	Acks          uint64 // that ended a block
	Nacks         uint64 // of the present sequence number
	Outdated      uint64 // acknowledgements, time-outs and requests of a number that is over
	Busy          uint64 // descriptors and requests for which there was no channel
	Strange       uint64 // messages from a wrong sender, or invalid ones
}

// Received counts the work of the receiving side.
type Received struct {
	_          structs.HostLayout
	Cells      uint64 // that were written
	Blocks     uint64 // that are whole
	Transfers  uint64 // notified
	Duplicates uint64 // cells that had come before, or whose block is complete
	Outdated   uint64 // cells of a sequence number that is over
	Damaged    uint64
	Foreign    uint64 // cells and requests of another protection domain
	Faults     uint64 // cells whose memory was absent
	Denied     uint64 // cells with memory that they may not write
	NoContext  uint64 // cells whose block found no free context
	NoPeer     uint64 // cells of processes beyond the table
	Dropped    uint64 // cells behind one whose memory was absent (State.Drop)
	Strange    uint64 // invalid cells
}

// ChannelState is the firmware's state of a channel.
type ChannelState struct {
	_           structs.HostLayout
	Source      uint64
	Destination uint64
	Length      uint64
	Notify      Notification // for the receiver, in the form of its cell
	Offset      uint64       // of the first byte that was not sent
	Blocks      uint32       // in all
	Next        uint32       // the first that was not sent
	Done        uint32       // acknowledged
	Outstanding uint32       // that occupy a slot
	NID         uint32       // of the receiver
	PID         uint32
	Status      uint32 // Idle, Ongoing or how the last transfer ended
	Generation  uint32 // counts transfers of the channel to one receiver, 16 bits
	Tag         uint32 // of its owner
	Asker       uint32 // of a read: 1 + the number of the request at the reader, else 0
	AskSequence uint32 // and its sequence number
	Peer        uint32 // the receiver's, counted from 1
}

// Notification is written when all of a transfer has landed. This is its form
// in messages.
type Notification struct {
	_           structs.HostLayout
	Address     uint64 // of 8 bytes of the receiver; 0: none
	Value       uint64
	Asker       uint32 // of a read: as in Transfer
	AskSequence uint32
}

// Block is a slot of a channel: a transaction. Its number is its place.
type Block struct {
	_        structs.HostLayout
	Offset   uint64 // in the transfer
	Length   uint32
	Sequence uint32 // of the last attempt; for one receiver it continues from block to block
	Attempt  uint32 // how often it was sent again
	Timer    int32  // negative: none
	State    uint32 // 0 free, 1 with the hardware
	Last     uint32 // 1: of its transfer
	Expired  uint32 // time-outs
	Failed   uint32 // 1: a negative acknowledgement or a time-out has come, and no acknowledgement
}

// Request is the requester's state of a read.
type Request struct {
	_          structs.HostLayout
	Descriptor Descriptor
	Sequence   uint32 // for one process it continues from request to request
	Attempt    uint32 // how often it was sent again since its last answer
	Timer      int32  // negative: none
	Status     uint32
	Taken      uint32 // 1: the other side serves it, and is asked ever more rarely
	Reserved   uint32 // 0
}

// Descriptor describes a transfer in 64 bytes. A process writes it for its
// channel, and a request to read carries it.
type Descriptor struct {
	_           structs.HostLayout
	Source      uint64 // address of the first byte, at the node of the data
	Destination uint64 // at the other
	Length      uint64
	Notify      uint64 // address of 8 bytes at the destination, of the same process; 0: none
	Value       uint64 // value to write there
	NID         uint32 // the other side: the target of a write, the source of a read
	PID         uint32
	Channel     uint32 // of a write: 0 to Writes - 1; of a read: the request, 0 to Reads - 1
	Tag         uint32 // comes back in the status
	Sequence    uint32 // of a request, by the requester
	Reserved    uint32
}

// Context is a block during its arrival.
type Context struct {
	_          structs.HostLayout
	Arrived    uint64 // bitmap of cells
	Notify     Notification
	Peer       uint32
	Slot       uint32
	Base       uint32 // sequence number of its first attempt
	Sequence   uint32 // the newest so far
	Cells      uint32
	Blocks     uint32 // of its transfer
	Generation uint32
	Use        uint32 // counts uses of the context
	Writing    uint32 // cells on their way to memory
	Flags      uint32
	Refused    uint32 // 1 + the sequence number of the last negative acknowledgement
	Next       uint32 // next free context, counted from 1
	Page       uint64 // of the last cell whose memory was absent
}

// Flags of a Context.
const (
	LastBlock  = 1 << iota // of its transfer
	Notified               // its notification has come
	Completing             // it is being written
	Ready                  // the last block is complete, and waits for the others
)

// Peer is a process's state of one channel number of one other process: the
// channel to it, the channel from it, and the requests to read with that number
// in both directions. It is never forgotten: with the last numbers it can tell
// a late copy from something new.
type Peer struct {
	_          structs.HostLayout
	NID        uint32
	PID        uint32
	Used       uint16 // 1
	Channel    uint16
	Generation uint16              // of the last transfer to it
	Asked      uint16              // 1 + sequence number of the last accepted request to read
	Sequence   [Outstanding]uint16 // of the last message to it
	Active     [Outstanding]uint16 // context of the arriving block, counted from 1
	Done       [Outstanding]uint16 // 1 + Base of the last whole block
	Again      [Outstanding]uint16 // 1 + sequence number of the last acknowledgement
	Incoming   Incoming
	Answer     uint16 // how the request to read has ended; 0: it has not
	Ask        uint16 // sequence number of the last request to read from it
}

// Incoming is a transfer that arrives by a channel.
type Incoming struct {
	_          structs.HostLayout
	Whole      uint32 // blocks
	Generation uint16
	Last       uint16 // context of the last block, which waits for the others, counted from 1
}

// Sizes of what lies behind the state, bytes.
const (
	ContextSize = 88
	PeerSize    = 28 + 8*Outstanding
)

// PageBytes is the size of a page: no write crosses its borders.
const PageBytes = 4096

// Kinds of messages, in the lower bits of the match bits.
const (
	KindData       = 1 + iota // cell of a block
	KindNotify                // the notification of a transfer, beside its last block
	KindWrite                 // descriptor of the own process
	KindRead                  // request of another process, in its own user header
	KindAck                   // of a block
	KindNack                  // of a block, with a code
	KindTimeout               // of a block
	KindAsk                   // descriptor of the own process: read
	KindAskTimeout            // of a request
	KindTaken                 // a request was taken, is served or has ended: its code is a status
	KindGiveUp                // of a block: its transfer has failed, and its context may be used again
	KindResume                // explicit request to send a block again (part)
)

// Codes of a negative acknowledgement (T: 1 is a page fault).
const (
	NackCorrupt   = 0
	NackFault     = 1
	NackDenied    = 2
	NackForeign   = 3
	NackNoContext = 4
	NackNoPeer    = 5
)

// Status of a channel or a request.
const (
	Idle    = iota
	Ongoing // a request: it was sent
	Completed
	TimedOut // no answer after all retries
	Denied   // memory that is absent or may not be written
	Foreign  // the other side has another protection domain
	NoSpace  // a limit of the device: handler_commands, or the table of peers, here or there
	Illegal  // an invalid descriptor
)

// Header is the content of a message's match bits.
type Header struct {
	Kind     uint32
	PDID     uint32
	Slot     uint32 // transaction; for a request its number
	Sequence uint32
	Attempt  uint32
	Last     bool
}

// PDIDShift is the place of the protection domain's 16 bits in match bits.
const PDIDShift = 4

// Bits encodes a header: kind 4 bits, PDID 16, transaction 14, sequence 14, attempt 14, last 1.
func (h *Header) Bits() uint64 {
	b := uint64(h.Kind) | uint64(h.PDID&0xffff)<<PDIDShift | uint64(h.Slot&SequenceMask)<<20 | uint64(h.Sequence&SequenceMask)<<34 | uint64(h.Attempt&SequenceMask)<<48
	if h.Last {
		b |= 1 << 62
	}
	return b
}

// HeaderOf decodes match bits.
func HeaderOf(b uint64) Header {
	return Header{
		Kind: uint32(b & 15), PDID: uint32(b >> PDIDShift & 0xffff), Slot: uint32(b >> 20 & SequenceMask), Sequence: uint32(b >> 34 & SequenceMask),
		Attempt: uint32(b >> 48 & SequenceMask), Last: b>>62&1 != 0,
	}
}

// After returns by how much one sequence number is newer than another, negative
// if it is older. They are less than 8192 apart.
func After(a, b uint32) int32 { return int32((a-b)<<18) >> 18 }

// StatusWord returns the word that the firmware writes for the owner of a
// channel: status, and the tag of the descriptor above it.
func StatusWord(status, tag uint32) uint64 { return uint64(status) | uint64(tag)<<32 }
