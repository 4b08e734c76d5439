package smmu

import "fmt"

// Register is the offset of a register of a context bank, in bytes (SMMUv2, as
// in Linux's arm-smmu).
type Register uint32

// Registers of a context bank.
const (
	SCTLR Register = 0x000 // read, write: see SCTLRM and its neighbours
	// write: 0 retries the stalled transactions, 1 terminates the first one; see
	// FSRSS
	RESUME  Register = 0x008
	FSR     Register = 0x058 // read; write: clears the bits that are 1, SS excepted
	FAR     Register = 0x060 // read: the address of the fault recorded, 64 bits
	FARLow  Register = 0x060 // its bits 31 to 0, if read as 32 bits
	FARHigh Register = 0x064 // read: its bits 63 to 32, of which 16 are used
	FSYNR   Register = 0x068 // read: see FSYNRWNR
	// write: forget all entries for this address, and the way to the descriptor of
	// its page
	TLBIVA    Register = 0x600
	TLBIASID  Register = 0x610 // write: forget all entries of the bank
	TLBIVAL   Register = 0x620 // write: forget the page or block of this address
	TLBSYNC   Register = 0x7f0 // write: TLBSTATUS is about accesses answered before
	TLBSTATUS Register = 0x7f4 // read: 1 until all those accesses are done
)

// Bits of SCTLR.
const (
	SCTLRM     uint32 = 1 << 0 // the bank translates; 0: its accesses are Denied
	SCTLRTRE   uint32 = 1 << 1 // has no effect here
	SCTLRAFE   uint32 = 1 << 2 // has no effect here: pages have no access flag
	SCTLRCFRE  uint32 = 1 << 5 // a fault is an abort for the device
	SCTLRCFIE  uint32 = 1 << 6 // a fault raises the interrupt
	SCTLRCFCFG uint32 = 1 << 7 // 1: a transaction that faults is stalled, 0: terminated
	SCTLRHUPCF uint32 = 1 << 8 // other transactions are processed under a fault
)

// Bits of FSR.
const (
	FSRTF    uint32 = 1 << 1  // translation fault
	FSRPF    uint32 = 1 << 3  // permission fault
	FSRSS    uint32 = 1 << 30 // transactions are stalled; RESUME clears it
	FSRMULTI uint32 = 1 << 31 // there were more faults than the one recorded
)

// Bits of FSYNR.
const (
	FSYNRPLVL uint32 = 3      // the level of the descriptor
	FSYNRWNR  uint32 = 1 << 4 // it was a write
)

// Read returns a register of a bank. The host charges the driver's core for it.
// FAR has all 64 bits. Read panics for a bank or register that does not exist:
// that is a programmer's mistake.
func (s *SMMU) Read(bank int, reg Register) uint64 {
	b := &s.banks[bank]
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

// Flow is the flow, for timelines, of the fault in a bank's registers.
func (s *SMMU) Flow(bank int) uint64 { return s.banks[bank].flow }

// Write writes a register of a bank, with effect at once. A stalled transaction
// reacts in an event at the present time. The host charges the driver's core
// for it. Write panics for a bank or register that does not exist: that is a
// programmer's mistake.
func (s *SMMU) Write(bank int, reg Register, v uint64) {
	b := &s.banks[bank]
	switch reg {
	case SCTLR:
		b.sctlr = uint32(v) & (SCTLRM | SCTLRTRE | SCTLRAFE | SCTLRCFRE | SCTLRCFIE | SCTLRCFCFG | SCTLRHUPCF)
	case RESUME:
		if v&1 != 0 {
			s.resume(b, ending)
		} else {
			s.resume(b, retrying)
		}
	case FSR:
		b.fsr &^= uint32(v) &^ FSRSS
	case TLBIVA:
		s.Invalidate(bank, v, false)
		return
	case TLBIASID:
		s.InvalidateBank(bank)
		return
	case TLBIVAL:
		s.Invalidate(bank, v, true)
		return
	case TLBSYNC:
		b.asked = b.inFlight[0]+b.inFlight[1] > 0
		if !b.syncing {
			s.turn(b)
		}
		return
	default:
		panic(fmt.Sprintf("smmu: write of register %#x", uint32(reg)))
	}
	s.changed(b)
	s.wakeLater(bank)
	s.tellLines()
}

// Invalidate makes a bank forget the page or block of an address (TLBIVAL).
// With leafOnly false it also forgets the way to the descriptor (TLBIVA), and
// walks that went that way begin again.
func (s *SMMU) Invalidate(bank int, va uint64, leafOnly bool) {
	s.count.Invalidations++
	s.banks[bank].inv++
	va &= 1<<bits48 - 1
	s.l1.invalidate(bank, va)
	for level := lastLevel; level > 0; level-- {
		s.l2.invalidate(bank, va, level)
	}
	if leafOnly {
		return
	}
	s.tables.invalidate(bank, va, lastLevel-1)
	for i := range s.walks {
		if w := &s.walks[i]; w.first >= 0 && int(w.bank) == bank && w.level > s.top && (w.va^va)>>shift(w.level-1) == 0 {
			w.restart = true
		}
	}
}

// InvalidateBank makes a bank forget everything (TLBIASID).
func (s *SMMU) InvalidateBank(bank int) {
	s.count.Invalidations++
	s.banks[bank].inv++
	s.l1.invalidateBank(bank)
	s.l2.invalidateBank(bank)
	s.tables.invalidateBank(bank)
	for i := range s.walks {
		if w := &s.walks[i]; w.first >= 0 && int(w.bank) == bank && w.level > s.top {
			w.restart = true
		}
	}
}

// InvalidateAll makes every bank forget everything (TLBIALLNSNH).
func (s *SMMU) InvalidateAll() {
	s.count.Invalidations++
	s.l1.clear()
	s.l2.clear()
	s.tables.clear()
	for i := range s.banks {
		s.banks[i].inv++
	}
	for i := range s.walks {
		if w := &s.walks[i]; w.first >= 0 && w.level > s.top {
			w.restart = true
		}
	}
}
