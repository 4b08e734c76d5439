package spin

// Code is the result of a handler. docs/abi.md (Handlers) lists the codes that
// each kind of handler may return; any other counts as Fail (sPIN'17 §3).
type Code int32

// Return codes of handlers.
const (
	Success Code = 0 // payload, completion
	// completion: like Success, but the match entry is not completed by this
	// message
	SuccessPending Code = 1
	// header: discard the rest of the message; payload: discard the packet
	Drop               Code = 2
	DropPending        Code = 3  // header: like Drop, the entry not completed
	ProcessData        Code = 4  // header: go on with payload handlers
	ProcessDataPending Code = 5  // header: like ProcessData, the entry not completed
	Proceed            Code = 6  // header: run no further handlers, take the default action
	ProceedPending     Code = 7  // header: like Proceed, the entry not completed
	Fail               Code = -1 // error: one event on the entry's queue, for the first of a message
	Segv               Code = -2 // likewise; also the end of a handler that traps
)

// Result is the result of an action: 0 or more is success.
type Result int32

// Results of actions (docs/abi.md, Imports).
const (
	OK Result = 0
	// host page not present, after all tries of the device or with TellFaults;
	// a retry may succeed
	Fault        Result = -1
	Denied       Result = -2 // outside the range, or forbidden
	Invalid      Result = -3 // an argument is wrong
	NoSpace      Result = -4 // a limit of the device
	NotSupported Result = -5
)

// Failed reports whether the action failed.
func (r Result) Failed() bool { return r < 0 }

// Space names one of the two host memory ranges a handler reaches (sPIN'17 §2).
type Space uint32

// The host memory of a match entry.
const (
	MEHostMem      Space = 0 // the range of the match entry
	HandlerHostMem Space = 1 // the handler host memory given with it
	// the first space that other processes have granted; DMA operations only
	Granted Space = 2
)

// TellFaults is added to the Space of a DMA operation, for example MEHostMem |
// TellFaults. The operation then ends with Fault as soon as it finds a page
// absent. Without it the device waits for the page, and so does the handler if
// it waits for the operation.
const TellFaults Space = 1 << 8

// MessageType is the kind of a request.
type MessageType uint32

// Kinds of requests.
const (
	MsgPut         MessageType = 0
	MsgGet         MessageType = 1
	MsgAtomic      MessageType = 2
	MsgFetchAtomic MessageType = 3
	MsgSwap        MessageType = 4
	MsgSelf        MessageType = 5 // a timer or a message to self
)

// HeaderFlags are the flags of a [Header].
type HeaderFlags uint32

// HeaderOverflow is set when the message matched in the overflow list.
const HeaderOverflow HeaderFlags = 1 << 0

// AckReq is the acknowledgement that a put or atomic asks for (Portals 4.x
// §3.15).
type AckReq uint32

// Acknowledgement requests.
const (
	NoAck AckReq = 0
	Ack   AckReq = 1 // an event with the delivered length
	CTAck AckReq = 2 // counted only
	OCAck AckReq = 3 // operation completed: counted only, without the delivered length
)

// OpOptions are the options of an [Op].
type OpOptions uint32

// CompleteEntry makes the end of the operation complete the pending match entry.
const CompleteEntry OpOptions = 1 << 0

// Datagrams makes each packet of a put a message of its own. The packet matches
// by itself, at its own place behind RemoteOffset, and does not affect the
// others. Nobody is told of a lost packet, and the run does not fail: the
// handlers must send it again. The same holds for data that the NIC cannot
// read: it sends nothing and does not wait. Offset and MLength of a payload
// handler are the place of the packet in the put and the length of the whole
// put; Length is 0 if the packet arrived damaged. There is no acknowledgement.
const Datagrams OpOptions = 1 << 1

// AtomicOp is an atomic operation of Portals (Portals 4.x §3.15).
type AtomicOp uint32

// Atomic operations, with the values of package portals.
const (
	OpMin AtomicOp = iota
	OpMax
	OpSum
	OpProd
	OpLOr
	OpLAnd
	OpBOr
	OpBAnd
	OpLXor
	OpBXor
	OpSwap
	OpCSwap
	OpCSwapNE
	OpCSwapLE
	OpCSwapLT
	OpCSwapGE
	OpCSwapGT
	OpMSwap
)

// Datatype is the element type of an atomic operation (Portals 4.x §3.15).
type Datatype uint32

// Element types, with the values of package portals.
const (
	TypeInt8 Datatype = iota
	TypeUint8
	TypeInt16
	TypeUint16
	TypeInt32
	TypeUint32
	TypeFloat
	TypeInt64
	TypeUint64
	TypeDouble
	TypeFloatComplex
	TypeDoubleComplex
	TypeLongDouble
	TypeLongDoubleComplex
)
