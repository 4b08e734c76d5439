package smmu

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
)

// bank is a context bank: the state of the SMMU for one process.
type bank struct {
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
	// sync is answered, with its next ones, when no access of the other epoch is
	// in flight.
	sync  *Sync
	later *Sync    // they wait for the next epoch
	inv   uint32   // counts invalidations
	_     [20]byte // two lines of the processor's cache
}

// why is the reason why a slot is held, and how it continues.
type why uint8

const (
	behind   why = iota // a fault of its bank blocks it
	faulted             // its own fault
	retrying            // RESUME
	ending              // RESUME with 1
)

// stalls reports whether the bank stalls a transaction that faults.
func (b *bank) stalls() bool { return b.sctlr&SCTLRCFCFG != 0 }

// blocked reports whether a fault of the bank blocks every transaction.
func (s *SMMU) blocked(b *bank) bool {
	if b.fsr == 0 {
		return false
	}
	return b.sctlr&SCTLRHUPCF == 0 || b.stalls() && b.stalled >= s.spec.StallLimit
}

// changed updates the bank after a change that decides how transactions go on.
func (s *SMMU) changed(b *bank) {
	s.l1.forget()
	b.plain = b.tables != nil && b.sctlr&SCTLRM != 0 && !s.blocked(b)
	up := b.fsr != 0 && b.sctlr&SCTLRCFIE != 0
	if up && !b.asserted {
		s.rising = append(s.rising, int(b.index))
	}
	b.asserted = up
}

// tellLines reports the lines that have risen.
func (s *SMMU) tellLines() {
	for len(s.rising) > 0 {
		bank := s.rising[0]
		s.rising = append(s.rising[:0], s.rising[1:]...)
		if s.banks[bank].asserted {
			s.count.Interrupts++
			s.lines.Interrupt(bank)
		}
	}
}

// Assign gives a bank to the process of a PDID. SCTLR is then as the driver of
// Linux sets it (CFIE, CFRE, AFE, TRE and M), with CFCFG and HUPCF from the
// Spec; FSR is 0. The TLBs keep the entries of the previous process, so
// invalidate the bank first. It is an error if the bank or the PDID is taken.
func (s *SMMU) Assign(bank int, pdid uint16, tables Tables) error {
	if bank < 0 || bank >= len(s.banks) {
		return fmt.Errorf("smmu: bank %d, expected 0 to %d", bank, len(s.banks)-1)
	}
	if s.streams[bank] != 0 {
		return fmt.Errorf("smmu: bank %d is that of PDID %d", bank, s.streams[bank]-1)
	}
	if other := s.bankOf(pdid); other >= 0 {
		return fmt.Errorf("smmu: PDID %d has bank %d", pdid, other)
	}
	b := &s.banks[bank]
	s.streams[bank] = uint32(pdid) + 1
	b.tables = tables
	b.gen++
	b.fsr, b.far, b.fsynr = 0, 0, 0
	b.sctlr = SCTLRM | SCTLRTRE | SCTLRAFE | SCTLRCFRE | SCTLRCFIE
	if s.spec.OnFault == Stall {
		b.sctlr |= SCTLRCFCFG
	}
	if s.spec.HitUnderFault {
		b.sctlr |= SCTLRHUPCF
	}
	s.changed(b)
	return nil
}

// Release takes the process from a bank. Accesses that wait there for a
// translation, stalled ones too, are Denied. Accesses that were answered go on,
// see Sync. The TLBs keep their entries, so invalidate the bank. Release does
// nothing to a bank without a process.
func (s *SMMU) Release(bank int) {
	b := &s.banks[bank]
	if s.streams[bank] == 0 {
		return
	}
	s.streams[bank] = 0
	b.tables = nil
	b.gen++
	b.sctlr, b.fsr, b.stalled = 0, 0, 0
	s.changed(b)
	s.wakeLater(bank)
}

// BankOf returns the bank of a PDID, -1 if it has none.
func (s *SMMU) BankOf(pdid uint16) int { return s.bankOf(pdid) }

// Vacant returns the lowest bank without a process, -1 if there is none.
func (s *SMMU) Vacant() int {
	for i, stream := range s.streams {
		if stream == 0 {
			return i
		}
	}
	return -1
}

// Asserted reports whether the interrupt line of a bank is up: FSR is not 0, and CFIE is 1.
func (s *SMMU) Asserted(bank int) bool { return s.banks[bank].asserted }

// record notes a fault in the registers: in full if FSR is 0, else only that
// there was one more.
func (s *SMMU) record(b *bank, r *Request, va uint64, level int, kind Result) {
	first := b.fsr == 0
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
	if kind == Permission {
		s.count.PermissionFaults++
	} else {
		s.count.Faults++
	}
	if first {
		s.count.Recorded++
	}
	s.changed(b)
	if s.watch != nil {
		s.watch.Faulted(FaultInfo{Bank: int(r.bank), PDID: r.PDID, Flow: r.Flow, Addr: va, Write: r.Write, Level: level, Kind: kind, Recorded: first, At: s.engine.Now()})
	}
}

// abort records a fault of a bank that terminates, and returns the result for
// the device.
func (s *SMMU) abort(b *bank, r *Request, va uint64, level int, kind Result) Result {
	s.record(b, r, va, level, kind)
	return b.report(kind)
}

// report returns the result for the device of a transaction that is not done.
func (b *bank) report(res Result) Result {
	if b.sctlr&SCTLRCFRE == 0 {
		return Ignored
	}
	return res
}

// terminated counts a transaction that ends because of another transaction's
// fault, and returns the result for the device.
func (s *SMMU) terminated(b *bank) Result {
	s.count.Terminated++
	return b.report(Terminated)
}

// fault ends or stalls a slot that has faulted.
func (s *SMMU) fault(i int32, b *bank, level int, kind Result) {
	t := &s.slots[i]
	if !b.stalls() {
		s.finish(i, s.abort(b, t.r, t.va, level, kind))
		return
	}
	b.stalled++
	s.record(b, t.r, t.va, level, kind)
	s.hold(i, b)
	t.why = faulted
}

// hold stalls a slot until the driver decides how it continues.
func (s *SMMU) hold(i int32, b *bank) {
	s.count.Stalled++
	s.slots[i].from, s.slots[i].why = s.engine.Now(), behind
	s.append(&b.held, i)
}

// wakeLater wakes the slots of a bank in an event of its own, because the
// driver may be in the middle of something.
func (s *SMMU) wakeLater(bank int) {
	b := &s.banks[bank]
	if !b.waking && b.held.first >= 0 {
		b.waking = true
		s.post(s.engine.Now(), kindWake, uint64(bank), nil)
	}
}

// resume continues the slots that a bank has stalled because of their faults.
// They are tried again. Only the first slot, whose fault is in the registers,
// may be terminated: the argument first is retrying or ending.
func (s *SMMU) resume(b *bank, first why) {
	for i := b.held.first; i >= 0; i = s.slots[i].next {
		if t := &s.slots[i]; t.why == faulted {
			t.why = first
			first = retrying
		}
	}
	b.stalled = 0
	b.fsr &^= FSRSS
}

// wake continues slots that a bank holds: slots that the driver has resumed, and
// the others if no fault blocks them.
func (s *SMMU) wake(bank int) {
	b := &s.banks[bank]
	held := b.held
	b.waking, b.held = false, none
	for held.first >= 0 {
		i := s.pop(&held)
		t := &s.slots[i]
		switch {
		case t.gen != b.gen:
			s.unstall(i)
			s.denied(i)
		case t.why == faulted, t.why == behind && s.blocked(b):
			s.append(&b.held, i)
		case t.why == ending:
			s.unstall(i)
			s.finish(i, s.terminated(b))
		default:
			s.unstall(i)
			s.enter(i)
		}
	}
}

// unstall reports to the watcher that a slot goes on.
func (s *SMMU) unstall(i int32) {
	if t := &s.slots[i]; s.watch != nil {
		s.watch.Stalled(StallInfo{Bank: int(t.bank), PDID: t.r.PDID, Flow: t.r.Flow, Addr: t.va, From: t.from, To: s.engine.Now()})
	}
}

// denied ends a slot whose bank has another process now, or none.
func (s *SMMU) denied(i int32) {
	s.count.Denied++
	s.finish(i, Denied)
}

// Sync is a request to report when the accesses of a bank that were answered
// with OK so far are done.
type Sync struct {
	// Synced of the Client is called.
	Client SyncClient
	// Ref is for the client's use.
	Ref any

	next *Sync
}

// SyncClient waits for a Sync.
type SyncClient interface {
	// Synced reports the end of a Sync, in the event in which the last access is
	// done.
	Synced(y *Sync)
}

// Sync reports whether no access of a bank is in flight: every access answered
// with OK is Done. If one is in flight, Sync returns false, and y.Client is
// called when all of them are done; later accesses do not matter. The operating
// system waits with it, after an invalidation, until it may give a page away. y
// belongs to the SMMU until then.
func (s *SMMU) Sync(bank int, y *Sync) (done bool) {
	b := &s.banks[bank]
	if b.inFlight[0]+b.inFlight[1] == 0 {
		return true
	}
	y.next = b.later
	b.later = y
	if !b.syncing {
		s.turn(b)
	}
	return false
}

// turn begins an epoch for the waiting Syncs. No access of that epoch is in
// flight.
func (s *SMMU) turn(b *bank) {
	b.syncing = b.later != nil || b.asked
	b.asking, b.asked = b.asked, false
	if !b.syncing {
		return
	}
	for y := b.later; y != nil; { // restores the order
		next := y.next
		y.next, b.sync = b.sync, y
		y = next
	}
	b.later = nil
	b.epoch ^= 1
}

// Done ends the access of a request that was answered with OK.
func (s *SMMU) Done(r *Request) {
	if poison.On {
		r.land()
	}
	s.Landed(r.flight)
}

// synced answers the Syncs whose epoch has no more accesses in flight, and
// begins the next epoch.
func (s *SMMU) synced(b *bank) {
	for b.syncing && b.inFlight[b.epoch^1] == 0 {
		y := b.sync
		b.sync = nil
		s.turn(b)
		for y != nil {
			next := y.next
			y.next = nil
			y.Client.Synced(y)
			y = next
		}
	}
}

// InFlight is the number of accesses of a bank that were answered with OK and
// are not done.
func (s *SMMU) InFlight(bank int) int {
	b := &s.banks[bank]
	return int(b.inFlight[0] + b.inFlight[1])
}
