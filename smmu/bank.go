package smmu

import "fmt"

// Bank is a context bank: the state of the SMMU for one process.
type Bank struct {
	// A hit uses these fields, so they are side by side.
	inFlight [2]int32 // accesses answered with OK and not done, by epoch
	hits     uint64   // see SMMU.Hit
	epoch    uint8
	syncing  bool

	plain    bool // it translates, and no fault blocks it
	waking   bool // a kindWake event is pending
	asserted bool // its interrupt line
	asking   bool // sync includes a write of TLBSYNC
	asked    bool // later includes a write of TLBSYNC
	index    uint8
	tables   Tables
	far      uint64
	flow     uint64 // of the recorded fault
	sctlr    uint32
	fsr      uint32
	fsynr    uint32
	gen      uint32 // counts assignments and releases
	held     list   // stalled slots, in order
	stalled  int    // slots in held with their own fault
	limit    int    // of stalled
	// sync is answered, with its next ones, when no access of the other epoch is
	// in flight.
	sync  *Sync
	later *Sync // they wait for the next epoch

	terminated uint64  // transactions ended because of another one's fault
	inv        uint32  // counts invalidations
	_          [4]byte // two lines of the processor's cache
}

// stalls reports whether the bank stalls a transaction that faults.
func (b *Bank) stalls() bool { return b.sctlr&SCTLRCFCFG != 0 }

// blocked reports whether a fault blocks every transaction.
func (b *Bank) blocked() bool {
	if b.fsr == 0 {
		return false
	}
	return b.sctlr&SCTLRHUPCF == 0 || b.stalls() && b.stalled >= b.limit
}

// Asserted reports whether the interrupt line of the bank is up: FSR is not 0, and CFIE is 1.
func (b *Bank) Asserted() bool { return b.asserted }

// Read returns a register. The host charges the driver's core for it. FAR has
// all 64 bits. Read panics for a register that does not exist: that is a
// programmer's mistake.
func (b *Bank) Read(reg Register) uint64 {
	switch reg {
	case SCTLR:
		return uint64(b.sctlr)
	case FSR:
		return uint64(b.fsr)
	case FAR:
		return b.far
	case FARHigh:
		return b.far >> 32
	case FSYNR:
		return uint64(b.fsynr)
	case TLBSTATUS:
		return uint64(b2i(b.asking || b.asked))
	}
	panic(fmt.Sprintf("smmu: read of register %#x", uint32(reg)))
}

// Flow is the flow, for timelines, of the fault in the registers.
func (b *Bank) Flow() uint64 { return b.flow }

// record notes a fault in the registers: in full if FSR is 0, else only that
// there was one more.
func (b *Bank) record(r *Request, va uint64, level int, kind Result) (first bool) {
	first = b.fsr == 0
	if first {
		b.fsr = FSRTF
		if kind == Permission {
			b.fsr = FSRPF
		}
		b.far, b.flow = va&(1<<bits48-1), r.Flow
		b.fsynr = uint32(level) & FSYNRPLVL
		if r.Write {
			b.fsynr |= FSYNRWNR
		}
	} else {
		b.fsr |= FSRMULTI
	}
	if b.stalls() {
		b.fsr |= FSRSS
	}
	return first
}

// report returns the result for the device of a transaction that is not done.
func (b *Bank) report(res Result) Result {
	if b.sctlr&SCTLRCFRE == 0 {
		return Ignored
	}
	return res
}

// terminate counts a transaction that ends because of another transaction's
// fault, and returns the result for the device.
func (b *Bank) terminate() Result {
	b.terminated++
	return b.report(Terminated)
}

// outdated reports whether an invalidation came between the first and the last
// piece of a request. The first pieces then do not count.
func (b *Bank) outdated(r *Request) bool { return r.result == OK && r.known && r.inv != b.inv }
