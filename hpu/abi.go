package hpu

import "fmt"

// Op is an import of the handler ABI (docs/abi.md, Imports).
type Op uint8

// The imports of ABI version 1, in the order of docs/abi.md.
const (
	OpNone Op = iota
	OpDMAToHost
	OpDMAFromHost
	OpDMAToHostNB
	OpDMAFromHostNB
	OpDMACAS
	OpDMACASNB
	OpDMAFAdd
	OpDMAFAddNB
	OpDMATest
	OpDMAWait
	OpCAS
	OpFAdd
	OpYield
	OpPutFromHost
	OpPutFromDevice
	OpGetFromHost
	OpGetFromDevice
	OpAtomicFromHost
	OpAtomicFromDevice
	OpCTGet
	OpCTSet
	OpCTInc
	OpAck
	OpTimer
	OpToSelf
	OpNumHPUs
	OpMyHPU
	OpCycles
	OpLog
	OpTimerCancel
	OpAtomic32
	OpDMAToHostPosted
	OpHostWrite
	OpHostWriteNB
	OpWait32
	OpMyCluster
	OpNumClusters
	OpFlowID
	OpScratchpad
	OpMessageMemory
	OpDMAFAddTyped
	OpDMAFAddTypedNB
	OpNow
	OpTimerAt
	OpExpiries
	OpRuntimeBegin
	OpRuntimeEnd
	NumOps
)

// Results of actions; 0 and above is success (docs/abi.md, Imports).
const (
	OK           int64 = 0
	Fault        int64 = -1 // host page not present; a retry may succeed
	Denied       int64 = -2 // outside the range, or forbidden
	Invalid      int64 = -3 // an argument is wrong
	NoSpace      int64 = -4 // a limit of the device is reached
	NotSupported int64 = -5
)

// Code is the return code of a handler (docs/abi.md, Handlers; sPIN'17 §3).
type Code int32

// Return codes of handlers.
const (
	Success            Code = 0
	SuccessPending     Code = 1
	Drop               Code = 2
	DropPending        Code = 3
	ProcessData        Code = 4
	ProcessDataPending Code = 5
	Proceed            Code = 6
	ProceedPending     Code = 7
	Fail               Code = -1
	Segv               Code = -2
)

var codeNames = map[Code]string{
	Success: "SUCCESS", SuccessPending: "SUCCESS_PENDING", Drop: "DROP", DropPending: "DROP_PENDING", ProcessData: "PROCESS_DATA",
	ProcessDataPending: "PROCESS_DATA_PENDING", Proceed: "PROCEED", ProceedPending: "PROCEED_PENDING", Fail: "FAIL", Segv: "SEGV",
}

// Name is the code's name in docs/abi.md; "": there is no such code.
func (c Code) Name() string { return codeNames[c] }

// TellFaults in the space of a DMA call asks for FAULT at once. Without it, the
// device tries again after a page fault.
const TellFaults uint32 = 1 << 8

// Sizes of the records of the ABI, bytes.
const (
	HeaderSize     = 96
	PayloadSize    = 64
	CompletionSize = 72
	OperationSize  = 112
)

// Operation is the decoded operation record of a put, get, atomic or timer
// (docs/abi.md, Operation record).
type Operation struct {
	Local uint32 // HPU memory address
	// host memory of Offset: 0 the entry's range, 1 the handler host memory
	Space        uint32
	Offset       uint64 // bytes
	Length       uint64 // bytes
	TargetNID    uint32
	TargetPID    uint32
	PTIndex      uint32
	AckReq       uint32
	MatchBits    uint64
	RemoteOffset uint64 // bytes
	HdrData      uint64
	UserPtr      uint64
	MD           uint32
	Options      uint32
	AtomicOp     uint32
	Datatype     uint32
	Operand      uint32 // HPU memory address
	Fetch        uint32 // HPU memory address
	FetchOffset  uint64 // bytes; 2^64-1: none
	UserHdr      uint32 // HPU memory address
	UserHdrLen   uint32 // bytes
}

// Action is one call of a handler to its device. It is valid only during
// Device.Act. Its address ranges in HPU memory have been checked against the
// program's memory.
type Action struct {
	Op     Op
	Cycles int64  // charged to the handler since it started, with the cost of this call
	Space  uint32 // DMA: host memory, and TellFaults; atomic32: the operation
	Offset uint64 // DMA: bytes in the host memory
	// DMA, cas, fadd, atomic32, wait32, ct_get, log: HPU memory address
	// (dma_cas, dma_fadd: of the value found)
	Local uint32
	// DMA: bytes; 0 for dma_fadd_typed without such a number. log: bytes of the
	// line, at most MaxLogBytes
	Len uint32
	// compare (cas, dma_cas); increment (fadd, dma_fadd); operand (atomic32);
	// value (host_write); value to wait against (wait32); cluster (scratchpad);
	// success (ct_set, ct_inc); delay in ns (timer); time in ps (timer_at);
	// status (ack); handle (dma_test, dma_wait, timer_cancel); bytes before the
	// line was cut (log)
	A uint64
	// swap (cas, dma_cas); compare (atomic32); failure (ct_set, ct_inc);
	// datatype (dma_fadd_typed); period in ps (timer_at)
	B    uint64
	CT   uint32 // counter handle
	Desc Operation
}

// Line is the line of OpLog. It says how many bytes were left out.
func (a *Action) Line(p *Program) string {
	line := string(p.Present()[a.Local : a.Local+a.Len])
	if cut := a.A - uint64(a.Len); cut > 0 {
		line += fmt.Sprintf("… and %d bytes", cut)
	}
	return line
}

// Device carries out the actions of handlers. Package runtime, tests and
// `spinsim handler run` implement it.
type Device interface {
	// Act performs a for the handler that runs in c. If blocked is true, the
	// handler is suspended until Context.Resume, whose argument is then the
	// result of the call. Only actions with Op.MayBlock may block. Package hpu
	// executes OpCAS, OpFAdd and OpAtomic32 on the program's memory when Act
	// returns or, if blocked, at Resume.
	Act(c *Context, a *Action) (result int64, blocked bool)
}
