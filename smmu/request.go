package smmu

import "github.com/spinsim/spinsim/sim"

// Result is the end of a translation.
type Result uint8

// Ends of a translation. For the device all but OK and Ignored are an abort: it
// learns that the access was not done.
const (
	// OK: the client may do the access, until Done.
	OK Result = iota
	// Fault: there is no page (translation fault). The operating system may bring
	// it.
	Fault
	// Permission: the page may not be written (permission fault). The operating
	// system may change that, for example for copy on write.
	Permission
	// Terminated: the bank had an earlier fault and SCTLR.HUPCF is 0, or the
	// driver has terminated the stalled access. A retry may succeed.
	Terminated
	// Ignored: a fault or a termination with SCTLR.CFRE 0. The device does not
	// learn of it: it reads zeros, and its writes are lost.
	Ignored
	// Denied: no bank has the PDID, or the bank does not translate (SCTLR.M). A
	// retry never succeeds.
	Denied
	// Stale: with Spec.Stale Poison, the translation differed from the tables.
	// Somebody forgot to invalidate.
	Stale
)

// String returns the name of a result in traces and scripts.
func (r Result) String() string {
	return [...]string{"OK", "FAULT", "PERMISSION", "TERMINATED", "IGNORED", "DENIED", "STALE"}[r]
}

// Request is an access whose address needs a translation. The client fills in
// the exported fields and gives it to Translate. It belongs to the SMMU until
// the answer and, if the answer is OK, until Done.
//
// The range may cross pages. The SMMU looks it up in pieces, one for each page.
// A piece is a transaction, as a burst of AXI crosses no 4 KiB. The pieces of a
// request are translated at the same time, and each may fault. The request has
// one answer, when all pieces have one: OK, or else the result of the first
// piece that is not OK.
type Request struct {
	Addr   uint64 // virtual address of the first byte
	Length int    // bytes; with 0 the range touches no page and is OK
	// Frames, if not empty, gets the physical address of each page of the range,
	// from the TLBs. It needs a place for each page.
	Frames []uint64
	// Flow is the message of the access, for a Watcher.
	Flow   uint64
	Client Client
	// Op and Ref are for the client's use.
	Op    uint8
	Write bool
	PDID  uint16 // of the process
	Ref   any

	result Result
	bank   uint8
	flight Flight
	known  bool // at least one piece has been translated
	state  state
	open   int32  // pieces that wait for their translation
	gen    uint32 // of the bank
	inv    uint32 // of the bank when the first piece was translated
	at     uint64 // pieces from here on wait for their look-up
	end    uint64
	failed uint64
	next   *Request
}

// state is where a request is. It is kept only with the build tag invariants.
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

// land panics if the request was not answered with OK.
func (r *Request) land() {
	if r.state != flying {
		panic("smmu: Done of a request that is not in flight") //lint:panic a bug of the client
	}
	r.state = idle
}

// begin makes all of the request wait for its look-up in a bank.
func (r *Request) begin(b *Bank) {
	r.result, r.open, r.known, r.next = OK, 0, false, nil
	r.bank, r.gen = b.index, b.gen
	r.at, r.end = r.Addr, r.Addr+uint64(r.Length)
	if r.end < r.Addr {
		r.end = ^uint64(0)
	}
}

// lies notes that the page of va has been translated to frame.
func (r *Request) lies(b *Bank, va, frame uint64) {
	if !r.known {
		r.known, r.inv = true, b.inv
	}
	if n := int(va>>pageBits - r.Addr>>pageBits); n < len(r.Frames) {
		r.Frames[n] = frame
	}
}

// Failed returns the first address that was not translated, for a request with
// a result other than OK.
func (r *Request) Failed() uint64 { return r.failed }

// fail notes that the piece at va ended with res.
func (r *Request) fail(va uint64, res Result) {
	if r.result == OK || va < r.failed {
		r.result, r.failed = res, va
	}
}

// queue has requests in order.
type queue struct{ first, last *Request }

func (q *queue) push(r *Request) {
	r.next = nil
	if q.first == nil {
		q.first = r
	} else {
		q.last.next = r
	}
	q.last = r
}

func (q *queue) unshift(r *Request) {
	r.next = q.first
	q.first = r
	if r.next == nil {
		q.last = r
	}
}

func (q *queue) pop() *Request {
	r := q.first
	q.first, r.next = r.next, nil
	return r
}

// Client asks for a translation.
type Client interface {
	// Translated is the later answer to Translate. It comes in an event of the
	// SMMU's owner. r may be given to Translate again.
	Translated(r *Request, res Result)
}

// Entry is a descriptor of a table.
type Entry struct {
	Kind EntryKind
	// Write is true if a page may be written. All pages may be read.
	Write bool
	// Addr is the physical address of the table or of the page: a multiple of 4
	// KiB, or of a block's size.
	Addr uint64
}

// EntryKind is the kind of thing that a descriptor describes.
type EntryKind uint8

// Kinds of descriptors.
const (
	Invalid EntryKind = iota // nothing: translation fault
	Table                    // the table of the next level; at level 3: invalid
	Page                     // level 3: a page of 4 KiB; 2, 1: a block of 2 MiB, 1 GiB; 0: invalid
)

// Tables are the tables of a process in the memory of its operating system:
// Armv8, granules of 4 KiB, levels 0 to 3. Every table has 512 descriptors of 8
// bytes.
type Tables interface {
	// Root is the physical address of the first table (TTBR0).
	Root() uint64
	// Entry returns the descriptor for va in the table at the physical address
	// table, which is of the level. The SMMU calls it at the time at which the
	// walk has read the descriptor. The table may have been freed after the walk,
	// or the walk cache, read its address. In that case somebody has forgotten to
	// invalidate, and the walk finds what is there now.
	Entry(table uint64, level int, va uint64) Entry
}

// Memory is the memory controller of a node, for the walks.
type Memory interface {
	// Access begins to read n bytes of a table at the physical address addr, and
	// returns when they arrive, not before the present. It charges the bandwidth
	// that they take from others.
	Access(addr uint64, n int) (done sim.Time)
}

// Interrupts are the interrupt lines of an SMMU.
type Interrupts interface {
	// Interrupt is the rising line of a bank: SCTLR.CFIE is 1, and FSR is no
	// longer 0. The line stays up until FSR or CFIE is 0; an interrupt controller
	// looks at Asserted when the handler has returned. The call comes in the
	// event, or in the call of Translate or Write, in which the line rises, before
	// the answers of that event. It may read and write registers.
	Interrupt(bank int)
}
