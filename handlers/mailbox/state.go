// Package mailbox is ExaNeSt's packetizer and mailbox (TR-488 §4.4; Ploumidis
// et al., FORTH-ICS, 2023) as a library of handlers: messages of up to 64 bytes
// go from a channel of one process to the queue of another, and each is
// answered.
//
// One instance is a virtual interface of both. Its HPU memory has two entries,
// which share the state:
//   - the packetizer (kind header): stores of the own process into its
//     channels, answers, time-outs;
//   - the mailbox (kind payload): cells that arrive.
//
// README.md describes the protocol; host programs use package exanet.
package mailbox

import "structs"

// Sizes of the interface (TR-488 §4.4, §5.1).
const (
	Interfaces = 64 // virtual interfaces of a node, of packetizer and mailbox each
	Channels   = 4  // of an interface
	MaxPayload = 64 // bytes of a message
	Word       = 16 // bytes: cells are cut into 128-bit words
)

// EntrySize is the size of a message in the queue, bytes: one word of
// description, and its payload.
const EntrySize = Word + MaxPayload

// State is the HPU memory of an interface. Behind it lie Peers peers.
type State struct {
	_ structs.HostLayout // the owner sets these fields before the first message

	// protection domain of the process: a register of the system
	PDID uint32 `spin:"max=65535"`
	NID  uint32 `spin:"default=rank"` // node of the process
	PID  uint32 // of the process on its node
	// portal table entry of the packetizer; the mailbox has the next
	PT uint32 `spin:"max=255"`
	// messages that the mailbox can hold; a power of two
	Depth uint32 `spin:"default=256 min=1 max=65536"`
	// interfaces from which messages may come
	Peers uint32 `spin:"default=min(64*ranks,1024) max=65535"`
	// how often the packetizer sends a message again by itself
	Retries uint32 `spin:"default=15 max=4095"`
	// retries after which time-outs double, up to 64 times
	BackOff  uint32 `spin:"default=4"`
	Sequence uint32 // the number before the first of every channel
	// counts messages of the process that were answered or timed out; 0: none
	ChangedCT uint32 `spin:"unit=counter"`
	// counts messages in the mailbox; 0: none
	ArrivedCT uint32 `spin:"unit=counter"`
	// 1: nobody takes messages out of the mailbox any more
	Left uint32 `spin:"max=1"`
	// of a message, from each time it is sent
	Timeout uint64 `spin:"unit=ns default=100000 min=1 max=1000000000"`
	// after that software sends a message again that found no room in a
	// mailbox; it doubles, up to 64 times
	Pause uint64 `spin:"unit=ns default=1000 min=1"`
	// of the mailbox, in handler host memory
	QueueStart uint64 `spin:"unit=bytes"`

	Sent     Sent     // counts of the packetizer
	Received Received // counts of the mailbox

	Ready    uint32            // 1: it is set up
	Head     uint32            // messages that software has taken
	Tail     uint32            // messages that have come
	Padding  uint32            // 0
	Channels [Channels]Channel // of the packetizer
}

// Sent counts the work of a packetizer.
type Sent struct {
	_             structs.HostLayout
	Messages      uint64 // launched
	Retransmitted uint64 // sent again by the hardware, after a time-out or because a cell was damaged
	Relaunched    uint64 // sent again by software
	Acked         uint64
	Nacked        uint64 // because of missing room, or for good
	Timeouts      uint64
	TimedOut      uint64 // messages that were given up
	Outdated      uint64 // answers and time-outs of a message that is over
	Busy          uint64 // launches of a channel whose message was under way
	Strange       uint64 // messages from a wrong sender, or invalid ones
}

// Received counts the work of a mailbox.
type Received struct {
	_          structs.HostLayout
	Messages   uint64 // that are in the queue, or were
	Duplicates uint64 // copies of a message that was answered, or is on its way to the queue
	Outdated   uint64 // copies of a message before that
	Damaged    uint64
	Foreign    uint64 // of another protection domain
	Full       uint64 // that found no room
	NoPeer     uint64 // of interfaces beyond the table
	Denied     uint64 // with a place in the queue that may not be written
	Strange    uint64 // invalid cells
}

// Channel is a channel of a packetizer: its registers, and the hardware's state
// of the message in them.
type Channel struct {
	_        structs.HostLayout
	Payload  [MaxPayload]byte
	Status   uint32 // Idle, Ongoing, Acked, Nacked or TimedOut
	Code     uint32 // of a negative acknowledgement
	Sequence uint32 // of the message
	Attempt  uint32 // how often it was sent again
	Left     uint32 // retries that the hardware has left
	Timer    int32  // negative: none
	NID      uint32 // of the mailbox
	PID      uint32
	PT       uint32
	Length   uint32 // bytes of payload
	// launches, of any kind, that have come: a load of the status bits is
	// ordered behind them
	Stores   uint32
	Reserved uint32 // 0
}

// Peer is an interface that has sent messages.
type Peer struct {
	_    structs.HostLayout
	NID  uint32
	PID  uint32
	PT   uint32           // of its packetizer
	Used uint32           // bit i: channel i has sent something; bit 31: the peer is in use
	Last [Channels]uint32 // sequence number of the last message of a channel with a decision
	// that decision: Ongoing, Acked, or Nacked with the code in the upper 16
	// bits
	Answer [Channels]uint32
}

// PeerSize is the size of a Peer, bytes.
const PeerSize = 16 + 8*Channels

// Entry is the word in front of a message in the queue. It is written last: the
// message is there when Turn has the value for this place.
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
	KindLaunch  = 1 + iota // from the own process: its payload was stored into the channel
	KindAgain              // from the own process: the message in the channel once more
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
	NackIllegal            // no such node; the packetizer itself sends this
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

// Header is the content of a message's match bits.
type Header struct {
	Kind    uint32
	PDID    uint32
	Channel uint32
	PT      uint32 // of the packetizer
	Length  uint32 // bytes of payload
	Code    uint32
	Attempt uint32
}

// PDIDShift is the place of the PDID's 16 bits in match bits. In cells the
// device writes them: the entry of a mailbox stamps cells with the user id of
// the sending process.
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

// Destination packs the mailbox of a channel into 64 bits, which are stored
// last: node 32 bits, process 16, portal table entry 8.
func Destination(nid, pid, pt uint32) uint64 {
	return uint64(nid) | uint64(pid&0xffff)<<32 | uint64(pt&0xff)<<48
}

// After returns by how much a sequence number is newer than another, negative if it is older.
func After(a, b uint32) int32 { return int32(a - b) }

// Words returns how many bytes of a cell a payload takes: at least a word.
func Words(n uint32) uint32 { return max(Word, (n+Word-1)&^(Word-1)) }
