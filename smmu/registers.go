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
		first := retrying
		if v&1 != 0 {
			first = ending
		}
		s.slots.resume(b.held, first)
		b.stalled = 0
		b.fsr &^= FSRSS
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
		b.asked = b.InFlight() > 0
		if !b.syncing {
			b.turn()
		}
		return
	default:
		panic(fmt.Sprintf("smmu: write of register %#x", uint32(reg)))
	}
	s.changed(b)
	s.wakeLater(b)
	s.lines.tell()
}

// Invalidate makes a bank forget the page or block of an address (TLBIVAL).
// With leafOnly false it also forgets the way to the descriptor (TLBIVA), and
// walks that went that way begin again.
func (s *SMMU) Invalidate(bank int, va uint64, leafOnly bool) {
	s.count.Invalidations++
	s.banks[bank].inv++
	va &= 1<<bits48 - 1
	s.l1.invalidate(bank, va)
	s.walker.invalidate(bank, va, leafOnly)
}

// InvalidateBank makes a bank forget everything (TLBIASID).
func (s *SMMU) InvalidateBank(bank int) {
	s.count.Invalidations++
	s.banks[bank].inv++
	s.l1.invalidateBank(bank)
	s.walker.invalidateBank(bank)
}

// InvalidateAll makes every bank forget everything (TLBIALLNSNH).
func (s *SMMU) InvalidateAll() {
	s.count.Invalidations++
	for i := range s.banks {
		s.banks[i].inv++
	}
	s.l1.clear()
	s.walker.clear()
}
