package smmu

import "github.com/spinsim/spinsim/sim"

// Result is how a translation ended.
type Result uint8

// Ends of a translation. All but OK and Ignored are an abort for the device:
// what it learns is that the access was not done.
const (
	// OK: the access may be done, until Done.
	OK Result = iota
	// Fault: there is no page (translation fault). Its operating system may bring it.
	Fault
	// Permission: the page may not be written (permission fault). Its operating
	// system may change that, as for copy on write.
	Permission
	// Terminated: the bank had an earlier fault and SCTLR.HUPCF is 0, or the
	// driver has terminated the stalled access. A retry may succeed.
	Terminated
	// Ignored: a fault or a termination with SCTLR.CFRE 0. The device is not
	// told: what it reads is zeros, what it writes is lost.
	Ignored
	// Denied: no bank has the PDID, or the bank does not translate (SCTLR.M). No retry succeeds.
	Denied
	// Stale: with Spec.Stale Poison, the translation was no longer that of the
	// tables: somebody forgot to invalidate.
	Stale
)

// String names a result as traces and scripts do.
func (r Result) String() string {
	return [...]string{"OK", "FAULT", "PERMISSION", "TERMINATED", "IGNORED", "DENIED", "STALE"}[r]
}

// Request is an access whose address is to be translated. The client fills in
// the exported fields and gives it to Translate; it is the SMMU's until it is
// answered and, if the answer was OK, until Done.
//
// The range may cross pages. It is looked up in pieces that do not: a piece is
// a transaction, as a burst of AXI crosses no 4 KiB. The pieces of a request
// are translated at the same time, and each may fault. The request has one
// answer, when all pieces have one: OK, or the result of the first that is not.
type Request struct {
	Addr   uint64 // virtual address of the first byte
	Length int    // bytes; none touch no page and are OK
	// Frames, if it is not empty, gets the physical address of each page of the
	// range, as the TLBs have it. It needs a place for each.
	Frames []uint64
	// Flow is the message it belongs to, for a Watcher.
	Flow   uint64
	Client Client
	// Op and Ref are the client's.
	Op    uint8
	Write bool
	PDID  uint16 // whose memory it is
	Ref   any

	result Result
	bank   uint8
	flight Flight
	known  bool // a piece has been translated
	state  state
	open   int32  // pieces that wait for their translation
	gen    uint32 // of the bank
	inv    uint32 // of the bank when the first piece was translated
	at     uint64 // pieces from here on have not been looked up
	end    uint64
	failed uint64
	next   *Request
}

// state is where a request is. It is kept with the build tag invariants only.
type state uint8

const (
	idle state = iota
	asked
	flying
)

// mayAsk panics if the request is under way.
func (r *Request) mayAsk() {
	if r.state != idle {
		panic("smmu: a request is asked again before its end") //lint:panic a bug of the client
	}
}

// land panics if the request is not one that was answered with OK.
func (r *Request) land() {
	if r.state != flying {
		panic("smmu: Done of a request that is not in flight") //lint:panic a bug of the client
	}
	r.state = idle
}

// Failed returns the address from which on a request with a result other than
// OK was not translated.
func (r *Request) Failed() uint64 { return r.failed }

// fail notes that the piece at va ended with res.
func (r *Request) fail(va uint64, res Result) {
	if r.result == OK || va < r.failed {
		r.result, r.failed = res, va
	}
}

// Client is who asked for a translation.
type Client interface {
	// Translated is the answer that Translate has left open. It comes in an
	// event of the SMMU's owner; r may be given to Translate again.
	Translated(r *Request, res Result)
}

// Entry is a descriptor of a table.
type Entry struct {
	Kind EntryKind
	// Write says that a page may be written. All pages may be read.
	Write bool
	// Addr is the physical address of the table or of the page: a multiple of 4
	// KiB, of a block a multiple of its size.
	Addr uint64
}

// EntryKind is what a descriptor describes.
type EntryKind uint8

// Kinds of descriptors.
const (
	Invalid EntryKind = iota // nothing: translation fault
	Table                    // the table of the next level; of level 3: invalid
	Page                     // level 3: a page of 4 KiB; 2, 1: a block of 2 MiB, 1 GiB; 0: invalid
)

// Tables are the tables of a process as its operating system has them in
// memory: Armv8, granules of 4 KiB, levels 0 to 3. Every table has 512
// descriptors of 8 bytes.
type Tables interface {
	// Root is the physical address of the first table (TTBR0).
	Root() uint64
	// Entry is what the descriptor for va says in the table at the physical
	// address table, which is of the level. It is asked for at the time at
	// which the walk has read it. The table may have been freed since the walk,
	// or the walk cache, learnt of it: then somebody has forgotten to
	// invalidate, and what is there now is what a walk finds.
	Entry(table uint64, level int, va uint64) Entry
}

// Memory is the memory controller of a node, as walks use it.
type Memory interface {
	// Access begins to read n bytes of a table at the physical address addr,
	// and returns when they will be there, not before the present. It charges
	// the bandwidth they take from the others.
	Access(addr uint64, n int) (done sim.Time)
}

// Interrupts are the interrupt lines of an SMMU.
type Interrupts interface {
	// Interrupt is the rising line of a bank: SCTLR.CFIE is 1, and FSR is no
	// longer 0. The line stays up until FSR is 0 or CFIE is; an interrupt
	// controller looks at Asserted when the handler has returned. It is told in
	// the event, or in the call of Translate or Write, in which the line rises,
	// before the answers of that event, and may read and write registers.
	Interrupt(bank int)
}
