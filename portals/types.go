package portals

import "fmt"

// NIKind is the kind of interface within its process, 0 to 3: bit 0 set for
// matching, bit 1 for logical addressing. It travels in every header.
type NIKind uint8

// The four interfaces of a process.
const (
	NINoMatchingPhysical NIKind = iota
	NIMatchingPhysical
	NINoMatchingLogical
	NIMatchingLogical
	niKinds
)

// Matching reports whether match bits select entries.
func (k NIKind) Matching() bool { return k&1 != 0 }

// Logical reports whether processes are named by rank.
func (k NIKind) Logical() bool { return k&2 != 0 }

// Wildcards and special identifiers.
const (
	NIDAny  uint32 = 0xffffffff // PTL_NID_ANY
	PIDAny  uint32 = 0xffffffff // PTL_PID_ANY
	RankAny uint32 = 0xffffffff // PTL_RANK_ANY; also the rank of a process outside the map
	UIDAny  uint32 = 0xffffffff // PTL_UID_ANY
	PTAny   uint32 = 0xffffffff // PTL_PT_ANY
	SizeMax uint64 = 1<<64 - 1  // PTL_SIZE_MAX
)

// IfaceDefault (PTL_IFACE_DEFAULT) is the only physical interface of a process.
const IfaceDefault uint32 = 0

// ID names a process (ptl_process_t): by NID and PID on physical interfaces, by
// Rank on logical ones. An interface ignores the other fields.
type ID struct {
	NID, PID, Rank uint32
}

// PhysID names a process physically.
func PhysID(nid, pid uint32) ID { return ID{NID: nid, PID: pid, Rank: RankAny} }

// RankID names a process by rank.
func RankID(rank uint32) ID { return ID{NID: NIDAny, PID: PIDAny, Rank: rank} }

// AnyID matches every process on either kind of interface.
var AnyID = ID{NID: NIDAny, PID: PIDAny, Rank: RankAny}

// List is one of the two lists of a portal table entry (ptl_list_t).
type List uint8

// The lists.
const (
	PriorityList List = iota // PTL_PRIORITY_LIST
	OverflowList             // PTL_OVERFLOW_LIST
)

// String returns "priority" or "overflow".
func (l List) String() string { return nameOf([]string{"priority", "overflow"}, int(l)) }

// SearchOp is the effect of a search on the headers it finds (ptl_search_op_t).
type SearchOp uint8

// Search operations.
const (
	SearchOnly   SearchOp = iota // PTL_SEARCH_ONLY
	SearchDelete                 // PTL_SEARCH_DELETE
)

// AckReq is the acknowledgement that an initiator requests (ptl_ack_req_t).
type AckReq uint8

// Acknowledgement requests.
const (
	NoAck AckReq = iota // PTL_NO_ACK_REQ
	Ack                 // PTL_ACK_REQ: full and counting event
	CTAck               // PTL_CT_ACK_REQ: counting event only
	OCAck               // PTL_OC_ACK_REQ: counts completed operations, whatever their result
	ackCount
)

// AckNames are the C names of acknowledgement requests without PTL_ and _REQ.
var AckNames = []string{"NO_ACK", "ACK", "CT_ACK", "OC_ACK"}

// String returns the C name without prefix and suffix.
func (a AckReq) String() string { return nameOf(AckNames, int(a)) }

// FailType is the outcome of an operation in an event (ptl_ni_fail_t).
type FailType uint8

// Fail types.
const (
	NIOK            FailType = iota // PTL_NI_OK
	NIUndeliverable                 // PTL_NI_UNDELIVERABLE: the network could not deliver
	NIDropped                       // PTL_NI_DROPPED: the target dropped the message
	NIPTDisabled                    // PTL_NI_PT_DISABLED: the portal table entry is disabled
	NIPermViolation                 // PTL_NI_PERM_VIOLATION: wrong user id
	NIOpViolation                   // PTL_NI_OP_VIOLATION: the entry does not accept the operation
	NINoMatch                       // PTL_NI_NO_MATCH: a search found nothing
	NISegv                          // PTL_NI_SEGV: inaccessible memory
	failCount
)

// FailNames are the C names of fail types without PTL_NI_.
var FailNames = []string{
	"OK", "UNDELIVERABLE", "DROPPED", "PT_DISABLED", "PERM_VIOLATION", "OP_VIOLATION", "NO_MATCH", "SEGV",
}

// String returns the C name without its prefix.
func (f FailType) String() string { return nameOf(FailNames, int(f)) }

// StatusRegister is a status register of an interface (ptl_sr_index_t).
type StatusRegister uint8

// Status registers.
const (
	// PTL_SR_DROP_COUNT: requests dropped, including those that a disabled
	// entry refused
	SRDropCount            StatusRegister = iota
	SRPermissionViolations                // PTL_SR_PERMISSION_VIOLATIONS
	SROperationViolations                 // PTL_SR_OPERATION_VIOLATIONS
	srCount
)

// EventType is the type of a full event (ptl_event_kind_t).
type EventType uint8

// Event types, numbered as in the public header.
const (
	EventGet                 EventType = iota // PTL_EVENT_GET
	EventGetOverflow                          // PTL_EVENT_GET_OVERFLOW
	EventPut                                  // PTL_EVENT_PUT
	EventPutOverflow                          // PTL_EVENT_PUT_OVERFLOW
	EventAtomic                               // PTL_EVENT_ATOMIC
	EventAtomicOverflow                       // PTL_EVENT_ATOMIC_OVERFLOW
	EventFetchAtomic                          // PTL_EVENT_FETCH_ATOMIC
	EventFetchAtomicOverflow                  // PTL_EVENT_FETCH_ATOMIC_OVERFLOW
	EventReply                                // PTL_EVENT_REPLY
	EventSend                                 // PTL_EVENT_SEND
	EventAck                                  // PTL_EVENT_ACK
	EventPTDisabled                           // PTL_EVENT_PT_DISABLED
	EventLink                                 // PTL_EVENT_LINK
	EventAutoUnlink                           // PTL_EVENT_AUTO_UNLINK
	EventAutoFree                             // PTL_EVENT_AUTO_FREE
	EventSearch                               // PTL_EVENT_SEARCH
	eventCount
)

// EventNames are the C names of event types without PTL_EVENT_.
var EventNames = []string{
	"GET", "GET_OVERFLOW", "PUT", "PUT_OVERFLOW", "ATOMIC", "ATOMIC_OVERFLOW", "FETCH_ATOMIC",
	"FETCH_ATOMIC_OVERFLOW", "REPLY", "SEND", "ACK", "PT_DISABLED", "LINK", "AUTO_UNLINK", "AUTO_FREE", "SEARCH",
}

// String returns the C name without its prefix.
func (t EventType) String() string { return nameOf(EventNames, int(t)) }

// OpKind is the kind of a message.
type OpKind uint8

// Kinds of message.
const (
	OpPut OpKind = iota
	OpGet
	OpAtomic
	OpFetchAtomic
	OpSwap
	OpAck
	OpReply
	opKinds
)

var opKindNames = []string{"put", "get", "atomic", "fetch-atomic", "swap", "ack", "reply"}

// String returns the kind in lower case.
func (k OpKind) String() string { return nameOf(opKindNames, int(k)) }

// request reports whether the kind is matched at a target.
func (k OpKind) request() bool { return k <= OpSwap }

// fetches reports whether the target answers with data.
func (k OpKind) fetches() bool { return k == OpGet || k == OpFetchAtomic || k == OpSwap }

// carries reports whether the request has payload.
func (k OpKind) carries() bool { return k != OpGet && k.request() }

func (k OpKind) isAtomic() bool { return k == OpAtomic || k == OpFetchAtomic || k == OpSwap }

var deliveredEvent = [...]EventType{
	OpPut: EventPut, OpGet: EventGet, OpAtomic: EventAtomic, OpFetchAtomic: EventFetchAtomic, OpSwap: EventFetchAtomic,
}

// overflowEvent relies on the public numbering: the overflow event follows the
// communication event.
func (k OpKind) overflowEvent() EventType { return deliveredEvent[k] + 1 }

// HeaderFlags are hints to the transport.
type HeaderFlags uint8

// Header flags.
const (
	FlagUnordered  HeaderFlags = 1 << iota // the message may overtake others (OptMDUnordered)
	FlagUnreliable                         // the transport may lose the message (OptMDUnreliable)
)

// MaxOperand is the size in bytes of the largest datatype, and so of a swap's
// operand.
const MaxOperand = 32

// Header is the transmitted part of a message without its payload. The fields
// down to HdrData belong to a request. Acknowledgements and replies repeat some
// of them, as noted.
type Header struct {
	Kind   OpKind
	NI     NIKind // interface at both ends
	AckReq AckReq
	Op     AtomicOp // atomics and swaps
	Type   Datatype // atomics and swaps
	Flags  HeaderFlags

	Initiator ID // sender; both names on logical interfaces
	Target    ID // receiver; NID and PID always set
	UID       uint32
	PT        uint32
	MatchBits uint64
	RLength   uint64 // bytes requested
	// RemoteOffset is the offset requested. In an ack or reply it is the offset
	// that the operation used at the target.
	RemoteOffset uint64 // the last field that matching reads: the first 64 bytes
	HdrData      uint64
	Ref          uint64 // initiator's reference, returned in the ack or reply; 0 none

	Fail    FailType // ack, reply: what happened at the target
	List    List     // ack, reply: list the request matched in
	MLength uint64   // ack, reply: bytes manipulated; a reply carries as many

	Operand [MaxOperand]byte // swaps: the operand, one element of Type
}

// PartOf makes h the header of a separate message with n bytes, from offset on,
// of the put o. It ignores the operand, which only swaps have.
func (h *Header) PartOf(o *Header, offset, n uint64) {
	h.Kind, h.NI, h.AckReq, h.Op, h.Type, h.Flags = o.Kind, o.NI, o.AckReq, o.Op, o.Type, o.Flags
	h.Initiator, h.Target, h.UID, h.PT = o.Initiator, o.Target, o.UID, o.PT
	h.MatchBits, h.HdrData, h.Ref = o.MatchBits, o.HdrData, o.Ref
	h.RLength, h.RemoteOffset = n, o.RemoteOffset+offset
	h.Fail, h.List, h.MLength = o.Fail, o.List, o.MLength
}

// Event is a full event (ptl_event_t, Portals 4.x §3.13.2).
type Event struct {
	Type         EventType
	Fail         FailType
	List         List // list the message matched in, for communication and overflow events
	PTIndex      uint32
	Start        uint64 // target: address of the first byte of the message
	UserPtr      uint64 // value given with the operation or the entry
	HdrData      uint64
	MatchBits    uint64
	RLength      uint64 // bytes requested
	MLength      uint64 // bytes manipulated
	RemoteOffset uint64 // target: offset requested; initiator: offset used at the target
	UID          uint32 // user id of the initiator
	Initiator    ID
	AtomicOp     AtomicOp // atomic events
	AtomicType   Datatype // atomic events
}

// CTEvent is the value of a counting event (ptl_ct_event_t).
type CTEvent struct {
	Success uint64 // operations or bytes
	Failure uint64 // operations
}

// LE describes a list entry (ptl_le_t, Portals 4.x §3.11.1).
type LE struct {
	Start   uint64  // address of the memory
	Length  uint64  // bytes
	IOVec   []IOVec // the memory, with OptLEIOVec; Start and Length are ignored
	CT      Handle  // counter, or CTNone
	UID     uint32  // user allowed, or UIDAny
	Options EntryOptions
	Spin    *Spin // handlers, nil for none
}

// ME describes a match list entry (ptl_me_t, Portals 4.x §3.12.1).
type ME struct {
	Start      uint64  // address of the memory
	Length     uint64  // bytes
	IOVec      []IOVec // the memory, with OptMEIOVec; Start and Length are ignored
	CT         Handle  // counter, or CTNone
	UID        uint32  // user allowed, or UIDAny
	Options    EntryOptions
	MatchID    ID     // initiator accepted, with wildcards
	MatchBits  uint64 // compared with the request's
	IgnoreBits uint64 // 1 bits are not compared
	MinFree    uint64 // with MANAGE_LOCAL: unlink when fewer bytes are left; 0 never
	Spin       *Spin  // handlers, nil for none
}

// MD describes a memory descriptor (ptl_md_t, Portals 4.x §3.10.1).
type MD struct {
	Start   uint64  // address of the memory
	Length  uint64  // bytes
	IOVec   []IOVec // the memory, with OptMDIOVec; Start and Length are ignored
	Options MDOptions
	EQ      Handle // event queue, or EQNone
	CT      Handle // counter, or CTNone
}

// Handlers are the function identifiers of a sPIN entry, 0 for none (sPIN'17
// §2). The package does not interpret them.
type Handlers struct {
	Header, Payload, Completion uint32
}

// Spin is P4sPIN's part of an entry (sPIN'17 §2). This package checks its limits
// and interprets nothing else.
type Spin struct {
	Device       any // the device's own data about it
	Handlers     Handlers
	HPUMem       uint32 // handle of the HPU memory, from the device
	HPUMemOffset uint64 // offset of the entry's state in the HPU memory, bytes
	UserHdrLen   uint64 // bytes of payload that are user header
	FirstPacket  bool   // the header handler sees the whole first packet (docs/abi.md, Header record)
	LastPacket   bool   // the completion handler sees the last packet (docs/abi.md, Completion record)
	InitialState []byte // copied into HPU memory at installation
	// second host range of the handlers; with OptMEHandlerIOVec its vectors, of
	// Length bytes in all
	HostMem     Region
	Scratchpads Scratchpads
	PerMessage  MessageMemory
	Stamp       Stamp // where handlers see the initiator's user id
}

// Stamp is a field of the match bits in which handlers see the initiator's user
// id instead of the initiator's bits, so a program cannot choose it. Matching
// happens before. The entry refuses a user id that does not fit into the field.
// The zero value is no field.
type Stamp struct {
	Shift uint8 // the lowest of the bits
	Bits  uint8 // how many; Shift+Bits is at most 64
}

// On returns match bits with the user id.
func (s Stamp) On(matchBits uint64, uid uint32) uint64 {
	mask := (uint64(1)<<s.Bits - 1) << s.Shift
	return matchBits&^mask | uint64(uid)<<s.Shift&mask
}

// fits says that no bit of a user id is lost in the stamp.
func (s Stamp) fits(uid uint32) bool { return s.Bits == 0 || uint64(uid)>>s.Bits == 0 }

// Scratchpads are HPU memory of an entry's handlers, one for each cluster of HPUs
// (docs/abi.md, Memories of clusters and messages). Cluster i has the one at
// Offset + i*Bytes. The zero value is none.
type Scratchpads struct {
	Offset uint64 // in HPU memory, bytes, a multiple of 16
	Bytes  uint64 // of each, a multiple of 16
}

// MessageMemory is HPU memory with a piece for each message that handlers are
// working on. The message's header handler initialises it. The zero value is
// none.
type MessageMemory struct {
	Offset   uint64 // of the first piece in HPU memory, bytes, a multiple of 16
	Bytes    uint64 // of each piece, a multiple of 16
	Messages uint32 // number of pieces; a message without a free one is dropped
}

// String returns nid/pid, or the rank where only that is set.
func (id ID) String() string {
	if id.NID == NIDAny && id.PID == PIDAny {
		return wild(id.Rank)
	}
	return wild(id.NID) + "/" + wild(id.PID)
}

func wild(v uint32) string {
	if v == RankAny {
		return "any"
	}
	return fmt.Sprint(v)
}
