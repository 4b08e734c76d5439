// Package mailbox is ExaNeSt's packetizer and mailbox (TR-488 §4.4; Ploumidis
// et al., FORTH-ICS, 2023) as a library of handlers: messages of up to 64 bytes
// from a channel of one process to the queue of another, with an answer for
// each.
//
// One instance is a virtual interface of both. Its HPU memory has two entries,
// which share the state:
//   - the packetizer (kind header): stores of the own process into its channels, answers, time-outs;
//   - the mailbox (kind payload): cells that arrive.
//
// README.md has the protocol; package exanet is what a host program uses.
package mailbox

import "structs"

// Sizes of the interface (TR-488 §4.4, §5.1).
const (
	Interfaces = 64 // virtual interfaces of a node, of packetizer and mailbox each
	Channels   = 4  // of an interface
	MaxPayload = 64 // bytes of a message
	Word       = 16 // bytes: cells are cut into 128-bit words
)

// EntrySize is what a message takes in the queue, bytes: one word about it, and its payload.
const EntrySize = Word + MaxPayload

// State is the HPU memory of an interface. Behind it lie Peers peers.
type State struct {
	_ structs.HostLayout // what its owner sets before the first message comes first

	PDID       uint32 `spin:"max=65535"`    // protection domain of the process: the system's register
	NID        uint32 `spin:"default=rank"` // node of the process
	PID        uint32 // of the process on its node
	PT         uint32 `spin:"max=255"`                              // portal table entry of the packetizer; the mailbox has the next
	Depth      uint32 `spin:"default=256 min=1 max=65536"`          // messages that the mailbox holds; a power of two
	Peers      uint32 `spin:"default=min(64*ranks,1024) max=65535"` // interfaces from which messages may come
	Retries    uint32 `spin:"default=15 max=4095"`                  // how often the packetizer sends a message again by itself
	BackOff    uint32 `spin:"default=4"`                            // retries after which time-outs double, up to 64 times
	Sequence   uint32 // the number before the first of every channel
	ChangedCT  uint32 `spin:"unit=counter"`                                // counts messages of the process that were answered or timed out; 0: none
	ArrivedCT  uint32 `spin:"unit=counter"`                                // counts messages in the mailbox; 0: none
	Left       uint32 `spin:"max=1"`                                       // 1: nobody takes messages out of the mailbox any more
	Timeout    uint64 `spin:"unit=ns default=100000 min=1 max=1000000000"` // of a message, from each time it is sent
	Pause      uint64 `spin:"unit=ns default=1000 min=1"`                  // after that software sends a message again for which a mailbox had no room; it doubles, up to 64 times
	QueueStart uint64 `spin:"unit=bytes"`                                  // of the mailbox, in handler host memory

	Sent     Sent     // what the packetizer has done
	Received Received // what the mailbox has done

	Ready    uint32            // 1: it is set up
	Head     uint32            // messages that software has taken
	Tail     uint32            // messages that have come
	Padding  uint32            // 0
	Channels [Channels]Channel // of the packetizer
}

// Sent counts what a packetizer has done.
type Sent struct {
	_             structs.HostLayout
	Messages      uint64 // launched
	Retransmitted uint64 // sent again by the hardware, after a time-out or because a cell was damaged
	Relaunched    uint64 // sent again because software wanted it
	Acked         uint64
	Nacked        uint64 // for want of room, or for good
	Timeouts      uint64
	TimedOut      uint64 // messages that were given up
	Outdated      uint64 // answers and time-outs of a message that is over
	Busy          uint64 // launches of a channel whose message was under way
	Strange       uint64 // messages of others than they should be from, or that mean nothing
}

// Received counts what a mailbox has done.
type Received struct {
	_          structs.HostLayout
	Messages   uint64 // that are in the queue, or were
	Duplicates uint64 // copies of a message that was answered, or is on its way to the queue
	Outdated   uint64 // copies of a message before that
	Damaged    uint64
	Foreign    uint64 // of another protection domain
	Full       uint64 // that found no room
	NoPeer     uint64 // of interfaces beyond the table
	Denied     uint64 // whose place in the queue is not to be written
	Strange    uint64 // cells that mean nothing
}

// Channel is a channel of a packetizer: its registers and what the hardware
// knows of the message in them.
type Channel struct {
	_        structs.HostLayout
	Payload  [MaxPayload]byte
	Status   uint32 // Idle, Ongoing, Acked, Nacked or TimedOut
	Code     uint32 // of a negative acknowledgement
	Sequence uint32 // of the message
	Attempt  uint32 // how often it was sent again
	Left     uint32 // retries of the hardware's that are left
	Timer    int32  // negative: none
	NID      uint32 // of the mailbox
	PID      uint32
	PT       uint32
	Length   uint32 // bytes of payload
	Stores   uint32 // launches, of any kind, that have come: a load of the status bits is ordered behind them
	Reserved uint32 // 0
}

// Peer is an interface that has sent messages.
type Peer struct {
	_      structs.HostLayout
	NID    uint32
	PID    uint32
	PT     uint32           // of its packetizer
	Used   uint32           // bit i: something has come from channel i; bit 31: the peer is in use
	Last   [Channels]uint32 // sequence number of the last message of a channel that was decided on
	Answer [Channels]uint32 // and how: Ongoing, Acked, or Nacked and above it, in 16 bits, the code
}

// PeerSize is that of a Peer, bytes.
const PeerSize = 16 + 8*Channels

// Entry is the word in front of a message in the queue. It is written last:
// when Turn is that of the place, the message is there.
type Entry struct {
	_      structs.HostLayout
	Turn   uint32 // 1 + the number of the message among all of the mailbox
	NID    uint32 // of the sender
	PID    uint32
	PT     uint16 // of its packetizer
	Length uint16 // bytes
}

// Kinds of messages, in the lower bits of the match bits.
const (
	KindLaunch  = 1 + iota // of the own process: its payload is what was stored into the channel
	KindAgain              // of the own process: the message in the channel once more
	KindCell               // a message
	KindAck                // it is in the mailbox
	KindNack               // it is not, with a code
	KindTimeout            // of a channel
)

// Codes of a negative acknowledgement.
const (
	NackDamaged = 1 + iota // the packetizer sends the message again
	NackFull               // the mailbox has no room
	NackForeign            // the mailbox belongs to another protection domain
	NackNoPeer             // its table of interfaces is full
	NackIllegal            // no such node; the packetizer itself says so
	NackLeft               // the mailbox has no room, and nobody takes messages out of it any more
)

// Status of a channel (TR-488: ongoing, acknowledged, negatively acknowledged, timed out).
const (
	Idle = iota
	Ongoing
	Acked
	Nacked
	TimedOut
)

// Header is what the match bits of a message say.
type Header struct {
	Kind    uint32
	PDID    uint32
	Channel uint32
	PT      uint32 // of the packetizer
	Length  uint32 // bytes of payload
	Code    uint32
	Attempt uint32
}

// PDIDShift is where in the match bits the 16 bits of the PDID begin. In cells
// the device writes them: the entry of a mailbox has them stamped with the user
// id of the process that the message is from.
const PDIDShift = 4

// Bits encodes a header: kind 4 bits, PDID 16, channel 4, portal table entry 8,
// length 8, code 8, attempt 16.
func (h *Header) Bits() uint64 {
	return uint64(h.Kind) | uint64(h.PDID&0xffff)<<PDIDShift | uint64(h.Channel&0xf)<<20 | uint64(h.PT&0xff)<<24 | uint64(h.Length&0xff)<<32 |
		uint64(h.Code&0xff)<<40 | uint64(h.Attempt&0xffff)<<48
}

// HeaderOf decodes match bits.
func HeaderOf(b uint64) Header {
	return Header{
		Kind: uint32(b & 0xf), PDID: uint32(b >> PDIDShift & 0xffff), Channel: uint32(b >> 20 & 0xf), PT: uint32(b >> 24 & 0xff), Length: uint32(b >> 32 & 0xff),
		Code: uint32(b >> 40 & 0xff), Attempt: uint32(b >> 48),
	}
}

// Destination packs the mailbox that a channel is to send to into 64 bits, as
// they are stored last: node 32 bits, process 16, portal table entry 8.
func Destination(nid, pid, pt uint32) uint64 {
	return uint64(nid) | uint64(pid&0xffff)<<32 | uint64(pt&0xff)<<48
}

// After returns by how much a sequence number is newer than another, negative if it is older.
func After(a, b uint32) int32 { return int32(a - b) }

// Words is how many bytes of a cell a payload takes: at least a word.
func Words(n uint32) uint32 { return max(Word, (n+Word-1)&^(Word-1)) }
