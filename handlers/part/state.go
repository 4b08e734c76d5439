// Package part is the RDMA engine of package rdma with PART's answer to page
// faults at the destination (Psistakis et al., IEEE TPDS 33(12), 2022, "P";
// Psistakis, MSc thesis, 2019, "T"). A cell that cannot be written goes into a
// fault FIFO. The block then waits for an explicit request to send it again,
// instead of its time-out.
//
// This is the device's side. A driver or a test resolves faults: it takes
// entries out of the FIFO, brings the pages in and asks for the block
// (Page.Next, Page.Resume).
//
// The host side is the reaction of a node's kernel and its processes to page
// faults of RDMA (P, T). A fault interrupts the core of the SMMU's line. The
// kernel's handler (host.SMMUDriver) schedules the receive tasklet. For a fault
// at the source of a transfer it schedules the send tasklet first (T §3.2.1).
// The receive tasklet reads the fault FIFO. For each page of a block it brings
// in the pages that the [Policy] chooses, and it sends the process a netlink
// message. A thread of the process waits for these messages and asks the source
// for the block (P §4.4). The send tasklet brings in the pages that the policy
// chooses for the address in the SMMU's registers; its block comes again after
// its time-out (T §3.2.2).
//
// A host program uses it so:
//
//	parts, err := part.Load(cluster, part.Options{Policy: part.PIA})    // once for each cluster
//	page, err := parts.Open(p, rdma.Options{PDID: 7})                     // once for each process, before it first waits
package part

import (
	"structs"

	"github.com/spinsim/spinsim/handlers/rdma"
)

// Entries is the capacity of the fault FIFO (T).
const Entries = 512

// State is the HPU memory of a page: the engine's state, then the FIFO.
type State struct {
	_    structs.HostLayout
	RDMA rdma.State // of the engine

	// 1: a page-fault NACK cancels the time-out of its block (P: NTO)
	NTO uint32 `spin:"max=1"`
	// counts pushed entries, in place of an interrupt; 0: none
	FaultCT uint32 `spin:"unit=counter"`
	Depth   uint32 `spin:"default=512 min=1 max=512"` // entries for which the FIFO has room (T: 512)
	// 1: each cell whose memory is absent makes an entry; 0: none that equals the
	// last one (T)
	Every uint32 `spin:"max=1"`
	// with NTO: after this time a block is sent again without a request, which
	// may have been lost
	Guard uint64 `spin:"unit=ns default=100000000 min=1"`

	Faults    Faults         // counts
	Head      uint32         // entries that were taken
	Tail      uint32         // entries that were pushed
	FIFO      [Entries]Entry // entry i is at i modulo Entries
	Source    uint32         // of the last pushed entry: node and
	SourcePID uint32         // process,
	Slot      uint32         // transaction,
	Sequence  uint32         // sequence number and
	Page      uint64         // page
}

// Faults counts the engine's reactions to page faults.
type Faults struct {
	_        structs.HostLayout
	Pushed   uint64 // entries
	Merged   uint64 // faults of the entry that was pushed last
	Full     uint64 // faults for which the FIFO had no room: their blocks wait for the time-out
	Paused   uint64 // page-fault NACKs for a present block
	Resumed  uint64 // blocks that were asked for
	Outdated uint64 // requests with a sequence number that is over
	Foreign  uint64 // requests of another protection domain
}

// Entry is a fault, as the hardware shows it: 128 bits (T, Table 3.2).
//
//	word 0: 31:30 zero, 29:8 source node, 7:6 zero, 5:4 transaction [13:12], 3:1 zero, 0 valid
//	word 1: 31:20 transaction [11:0], 19:18 zero, 17:4 sequence number, 3:1 zero, 0 valid
//	word 2: 31:16 protection domain, 15:4 page [31:20], 3 zero, 2:1 1, 0 valid
//	word 3: 31:12 page [19:0], 11:1 process at the source, 0 valid
//
// The page is [31:28] process index, which is 0 here, [27] zero, [26:0] address
// [38:12]. The order of the words and the code in word 2 are our choice. So is
// the process at the source: the prototype has one firmware for all processes
// of a node.
type Entry struct {
	_     structs.HostLayout
	Words [4]uint32
}

// FaultRecord is the content of an entry.
type FaultRecord struct {
	NID      uint32 // source of the block
	PID      uint32 // 11 bits
	Slot     uint32 // transaction
	Sequence uint32
	PDID     uint32
	Address  uint64 // of the page
}

// maxPID is the largest process that an entry can name.
const maxPID = 1<<11 - 1

// Encode makes the entry of a fault.
func (f *FaultRecord) Encode() (e Entry) {
	page := uint32(f.Address>>12) & (1<<27 - 1)
	e.Words[0] = f.NID&(1<<22-1)<<8 | f.Slot>>12&3<<4 | 1
	e.Words[1] = f.Slot&(1<<12-1)<<20 | f.Sequence&rdma.SequenceMask<<4 | 1
	e.Words[2] = f.PDID&0xffff<<16 | page>>20<<4 | 1<<1 | 1
	e.Words[3] = page&(1<<20-1)<<12 | f.PID&maxPID<<1 | 1
	return e
}

// Decode is the inverse of Encode; false: the entry is not valid.
func (e *Entry) Decode() (f FaultRecord, valid bool) {
	w := &e.Words
	f.NID, f.PID = w[0]>>8&(1<<22-1), w[3]>>1&maxPID
	f.Slot, f.Sequence = w[0]>>4&3<<12|w[1]>>20, w[1]>>4&rdma.SequenceMask
	f.PDID = w[2] >> 16
	f.Address = uint64(w[2]>>4&(1<<12-1)<<20|w[3]>>12) & (1<<27 - 1) << 12
	return f, w[0]&w[1]&w[2]&w[3]&1 != 0
}

// KindUnreadable is a message of a process to its hardware, and from there to
// its firmware: the process does not have a page that must be sent. Its data is
// the page's address, 64 bits.
const KindUnreadable = rdma.KindResume + 2

// KindAskAgain is a message by which a process has its hardware ask for a
// block. Its data is the entry.
const KindAskAgain = rdma.KindResume + 1
