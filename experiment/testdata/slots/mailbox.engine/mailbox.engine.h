/* The state of slot mailbox.engine, as its host has it, and its messages. Numbers are little-endian. */
#pragma once
#include "spin.h"

/* State is the HPU memory of an interface. Behind it lie Peers peers. */
typedef struct {
	uint32_t pdid SPIN_FIELD("max=65535"); /* protection domain of the process: a register of the system */
	uint32_t nid SPIN_FIELD("default=rank"); /* node of the process */
	uint32_t pid; /* of the process on its node */
	uint32_t pt SPIN_FIELD("max=255"); /* portal table entry of the packetizer; the mailbox has the next */
	uint32_t depth SPIN_FIELD("default=256 min=1 max=65536"); /* messages that the mailbox can hold; a power of two */
	uint32_t peers SPIN_FIELD("default=min(64*ranks,1024) max=65535"); /* interfaces from which messages may come */
	uint32_t retries SPIN_FIELD("default=15 max=4095"); /* how often the packetizer sends a message again by itself */
	uint32_t back_off SPIN_FIELD("default=4"); /* retries after which time-outs double, up to 64 times */
	uint32_t sequence; /* the number before the first of every channel */
	uint32_t changed_ct SPIN_FIELD("unit=counter"); /* counts messages of the process that were answered or timed out; 0: none */
	uint32_t arrived_ct SPIN_FIELD("unit=counter"); /* counts messages in the mailbox; 0: none */
	uint32_t left SPIN_FIELD("max=1"); /* 1: nobody takes messages out of the mailbox any more */
	uint64_t timeout SPIN_FIELD("unit=ns default=100000 min=1 max=1000000000"); /* of a message, from each time it is sent */
	uint64_t pause SPIN_FIELD("unit=ns default=1000 min=1"); /* after that software sends a message again that found no room in a mailbox; it doubles, up to 64 times */
	uint64_t queue_start SPIN_FIELD("unit=bytes"); /* of the mailbox, in handler host memory */
	struct {
		uint64_t messages; /* launched */
		uint64_t retransmitted; /* sent again by the hardware, after a time-out or because a cell was damaged */
		uint64_t relaunched; /* sent again by software */
		uint64_t acked;
		uint64_t nacked; /* because of missing room, or for good */
		uint64_t timeouts;
		uint64_t timed_out; /* messages that were given up */
		uint64_t outdated; /* answers and time-outs of a message that is over */
		uint64_t busy; /* launches of a channel whose message was under way */
		uint64_t strange; /* messages from a wrong sender, or invalid ones */
	} sent;
	struct {
		uint64_t messages; /* that are in the queue, or were */
		uint64_t duplicates; /* copies of a message that was answered, or is on its way to the queue */
		uint64_t outdated; /* copies of a message before that */
		uint64_t damaged;
		uint64_t foreign; /* of another protection domain */
		uint64_t full; /* that found no room */
		uint64_t no_peer; /* of interfaces beyond the table */
		uint64_t denied; /* with a place in the queue that may not be written */
		uint64_t strange; /* invalid cells */
	} received;
	uint32_t ready; /* 1: it is set up */
	uint32_t head; /* messages that software has taken */
	uint32_t tail; /* messages that have come */
	uint32_t padding; /* 0 */
	struct {
		uint8_t payload[64];
		uint32_t status; /* Idle, Ongoing, Acked, Nacked or TimedOut */
		uint32_t code; /* of a negative acknowledgement */
		uint32_t sequence; /* of the message */
		uint32_t attempt; /* how often it was sent again */
		uint32_t left; /* retries that the hardware has left */
		int32_t timer; /* negative: none */
		uint32_t nid; /* of the mailbox */
		uint32_t pid;
		uint32_t pt;
		uint32_t length; /* bytes of payload */
		uint32_t stores; /* launches, of any kind, that have come: a load of the status bits is ordered behind them */
		uint32_t reserved; /* 0 */
	} channels[4];
} state_t;
_Static_assert(sizeof(state_t) == 688, "state_t");

/* Sizes of the interface (TR-488 §4.4, §5.1). */
#define MAILBOX_INTERFACES 64 /* virtual interfaces of a node, of packetizer and mailbox each */
#define MAILBOX_CHANNELS 4 /* of an interface */
#define MAILBOX_MAX_PAYLOAD 64 /* bytes of a message */
#define MAILBOX_WORD 16 /* bytes: cells are cut into 128-bit words */

/* EntrySize is the size of a message in the queue, bytes: one word of
description, and its payload. */
#define MAILBOX_ENTRY_SIZE 80

/* Sent counts the work of a packetizer. */
typedef struct {
	uint64_t messages; /* launched */
	uint64_t retransmitted; /* sent again by the hardware, after a time-out or because a cell was damaged */
	uint64_t relaunched; /* sent again by software */
	uint64_t acked;
	uint64_t nacked; /* because of missing room, or for good */
	uint64_t timeouts;
	uint64_t timed_out; /* messages that were given up */
	uint64_t outdated; /* answers and time-outs of a message that is over */
	uint64_t busy; /* launches of a channel whose message was under way */
	uint64_t strange; /* messages from a wrong sender, or invalid ones */
} mailbox_sent_t;
_Static_assert(sizeof(mailbox_sent_t) == 80, "mailbox_sent_t");

/* Received counts the work of a mailbox. */
typedef struct {
	uint64_t messages; /* that are in the queue, or were */
	uint64_t duplicates; /* copies of a message that was answered, or is on its way to the queue */
	uint64_t outdated; /* copies of a message before that */
	uint64_t damaged;
	uint64_t foreign; /* of another protection domain */
	uint64_t full; /* that found no room */
	uint64_t no_peer; /* of interfaces beyond the table */
	uint64_t denied; /* with a place in the queue that may not be written */
	uint64_t strange; /* invalid cells */
} mailbox_received_t;
_Static_assert(sizeof(mailbox_received_t) == 72, "mailbox_received_t");

/* Channel is a channel of a packetizer: its registers, and the hardware's state
of the message in them. */
typedef struct {
	uint8_t payload[64];
	uint32_t status; /* Idle, Ongoing, Acked, Nacked or TimedOut */
	uint32_t code; /* of a negative acknowledgement */
	uint32_t sequence; /* of the message */
	uint32_t attempt; /* how often it was sent again */
	uint32_t left; /* retries that the hardware has left */
	int32_t timer; /* negative: none */
	uint32_t nid; /* of the mailbox */
	uint32_t pid;
	uint32_t pt;
	uint32_t length; /* bytes of payload */
	uint32_t stores; /* launches, of any kind, that have come: a load of the status bits is ordered behind them */
	uint32_t reserved; /* 0 */
} mailbox_channel_t;
_Static_assert(sizeof(mailbox_channel_t) == 112, "mailbox_channel_t");

/* Peer is an interface that has sent messages. */
typedef struct {
	uint32_t nid;
	uint32_t pid;
	uint32_t pt; /* of its packetizer */
	uint32_t used; /* bit i: channel i has sent something; bit 31: the peer is in use */
	uint32_t last[4]; /* sequence number of the last message of a channel with a decision */
	uint32_t answer[4]; /* that decision: Ongoing, Acked, or Nacked with the code in the upper 16 bits */
} mailbox_peer_t;
_Static_assert(sizeof(mailbox_peer_t) == 48, "mailbox_peer_t");

/* PeerSize is the size of a Peer, bytes. */
#define MAILBOX_PEER_SIZE 48

/* Entry is the word in front of a message in the queue. It is written last: the
message is there when Turn has the value for this place. */
typedef struct {
	uint32_t turn; /* 1 + the number of the message among all of the mailbox */
	uint32_t nid; /* of the sender */
	uint32_t pid;
	uint16_t pt; /* of its packetizer */
	uint16_t length; /* bytes */
} mailbox_entry_t;
_Static_assert(sizeof(mailbox_entry_t) == 16, "mailbox_entry_t");

/* Kinds of messages, in the lower bits of the match bits. */
#define MAILBOX_KIND_LAUNCH 1 /* from the own process: its payload was stored into the channel */
#define MAILBOX_KIND_AGAIN 2 /* from the own process: the message in the channel once more */
#define MAILBOX_KIND_CELL 3 /* a message */
#define MAILBOX_KIND_ACK 4 /* it is in the mailbox */
#define MAILBOX_KIND_NACK 5 /* it is not, with a code */
#define MAILBOX_KIND_TIMEOUT 6 /* of a channel */

/* Codes of a negative acknowledgement. */
#define MAILBOX_NACK_DAMAGED 1 /* the packetizer sends the message again */
#define MAILBOX_NACK_FULL 2 /* the mailbox has no room */
#define MAILBOX_NACK_FOREIGN 3 /* the mailbox belongs to another protection domain */
#define MAILBOX_NACK_NO_PEER 4 /* its table of interfaces is full */
#define MAILBOX_NACK_ILLEGAL 5 /* no such node; the packetizer itself sends this */
#define MAILBOX_NACK_LEFT 6 /* the mailbox has no room, and nobody takes messages out of it any more */

/* Status of a channel (TR-488: ongoing, acknowledged, negatively acknowledged, timed out). */
#define MAILBOX_IDLE 0
#define MAILBOX_ONGOING 1
#define MAILBOX_ACKED 2
#define MAILBOX_NACKED 3
#define MAILBOX_TIMED_OUT 4

/* Go: Header is the content of a message's match bits.

type Header struct {
	Kind    uint32
	PDID    uint32
	Channel uint32
	PT      uint32 // of the packetizer
	Length  uint32 // bytes of payload
	Code    uint32
	Attempt uint32
} */

/* PDIDShift is the place of the PDID's 16 bits in match bits. In cells the
device writes them: the entry of a mailbox stamps cells with the user id of
the sending process. */
#define MAILBOX_PDID_SHIFT 4

/* Go: Bits encodes a header: kind 4 bits, PDID 16, channel 4, portal table entry 8,
length 8, code 8, attempt 16.

func (h *Header) Bits() uint64 {
	return uint64(h.Kind) | uint64(h.PDID&0xffff)<<PDIDShift | uint64(h.Channel&0xf)<<20 | uint64(h.PT&0xff)<<24 | uint64(h.Length&0xff)<<32 |
		uint64(h.Code&0xff)<<40 | uint64(h.Attempt&0xffff)<<48
} */

/* Go: HeaderOf decodes match bits.

func HeaderOf(b uint64) Header {
	return Header{
		Kind: uint32(b & 0xf), PDID: uint32(b >> PDIDShift & 0xffff), Channel: uint32(b >> 20 & 0xf), PT: uint32(b >> 24 & 0xff), Length: uint32(b >> 32 & 0xff),
		Code: uint32(b >> 40 & 0xff), Attempt: uint32(b >> 48),
	}
} */

/* Go: Destination packs the mailbox of a channel into 64 bits, which are stored
last: node 32 bits, process 16, portal table entry 8.

func Destination(nid, pid, pt uint32) uint64 {
	return uint64(nid) | uint64(pid&0xffff)<<32 | uint64(pt&0xff)<<48
} */

/* Go: After returns by how much a sequence number is newer than another, negative if it is older.

func After(a, b uint32) int32 { return int32(a - b) } */

/* Go: Words returns how many bytes of a cell a payload takes: at least a word.

func Words(n uint32) uint32 { return max(Word, (n+Word-1)&^(Word-1)) } */
