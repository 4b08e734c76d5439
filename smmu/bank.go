package smmu

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
)

// bank is a context bank: what the SMMU knows of a process.
type bank struct {
	// What a hit touches, side by side.
	inFlight [2]int32 // accesses that have been answered with OK and are not done, by epoch
	hits     uint64   // see SMMU.Hit
	epoch    uint8
	syncing  bool

	plain    bool // it translates, and no fault is in the way
	waking   bool // an event is on its way
	asserted bool // its interrupt line
	asking   bool // TLBSYNC has been written: as sync
	asked    bool // as later
	index    uint8
	tables   Tables
	far      uint64
	flow     uint64 // of the recorded fault
	sctlr    uint32
	fsr      uint32
	fsynr    uint32
	gen      uint32 // counts assignments and releases
	held     list   // stalled slots, in order
	stalled  int    // of these, how many because of their own fault
	// this one and those behind it are answered when no access of the other
	// epoch is in flight
	sync  *Sync
	later *Sync    // these wait for a turn
	inv   uint32   // counts invalidations
	_     [20]byte // two lines of the processor's cache
}

// why says why a slot is held, and how it goes on.
type why uint8

const (
	behind   why = iota // a fault of its bank is in the way
	faulted             // its own fault
	retrying            // RESUME
	ending              // RESUME with 1
)

// stalls reports whether the bank stalls what faults.
func (b *bank) stalls() bool { return b.sctlr&SCTLRCFCFG != 0 }

// blocked reports whether a fault of the bank is in the way of every transaction.
func (s *SMMU) blocked(b *bank) bool {
	if b.fsr == 0 {
		return false
	}
	return b.sctlr&SCTLRHUPCF == 0 || b.stalls() && b.stalled >= s.spec.StallLimit
}

// changed is called when something has changed that decides about the way of a transaction.
func (s *SMMU) changed(b *bank) {
	s.l1.forget()
	b.plain = b.tables != nil && b.sctlr&SCTLRM != 0 && !s.blocked(b)
	up := b.fsr != 0 && b.sctlr&SCTLRCFIE != 0
	if up && !b.asserted {
		s.rising = append(s.rising, int(b.index))
	}
	b.asserted = up
}

// tellLines tells of the lines that have risen.
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

// Assign gives a bank without a process to that of a PDID. SCTLR is then as the
// driver of Linux sets it (CFIE, CFRE, AFE, TRE and M), with CFCFG and HUPCF
// from the Spec; FSR is 0. The TLBs keep what they have of the process before:
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
// translation, stalled ones too, are Denied; those that have been answered go
// on, see Sync. The TLBs keep what they have: invalidate the bank. A bank
// without a process stays as it is.
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

// record notes a fault in the registers: all about it if FSR is 0, else that there was one more.
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

// abort records a fault of a bank that terminates, and returns what the device is told.
func (s *SMMU) abort(b *bank, r *Request, va uint64, level int, kind Result) Result {
	s.record(b, r, va, level, kind)
	return b.report(kind)
}

// report is what the device is told of a transaction that is not done.
func (b *bank) report(res Result) Result {
	if b.sctlr&SCTLRCFRE == 0 {
		return Ignored
	}
	return res
}

// terminated counts a transaction that ends because of another one's fault, and
// returns what the device is told.
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

// hold stalls a slot until the driver says how it goes on.
func (s *SMMU) hold(i int32, b *bank) {
	s.count.Stalled++
	s.slots[i].from, s.slots[i].why = s.engine.Now(), behind
	s.append(&b.held, i)
}

// wakeLater looks at what a bank holds in an event of its own: the driver may
// be in the middle of something.
func (s *SMMU) wakeLater(bank int) {
	b := &s.banks[bank]
	if !b.waking && b.held.first >= 0 {
		b.waking = true
		s.post(s.engine.Now(), kindWake, uint64(bank), nil)
	}
}

// resume says of the slots that a bank has stalled because of their faults how
// they go on: they are tried again, the first is terminated if first says so.
// It is the one in the registers.
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

// wake lets slots go on that a bank holds: those that the driver has resumed,
// and the others if no fault is in the way.
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

// unstall tells the watcher that a slot goes on.
func (s *SMMU) unstall(i int32) {
	if t := &s.slots[i]; s.watch != nil {
		s.watch.Stalled(StallInfo{Bank: int(t.bank), PDID: t.r.PDID, Flow: t.r.Flow, Addr: t.va, From: t.from, To: s.engine.Now()})
	}
}

// denied ends a slot whose bank is no longer that of its process.
func (s *SMMU) denied(i int32) {
	s.count.Denied++
	s.finish(i, Denied)
}

// Sync asks to be told when all accesses of a bank have been done that were
// answered with OK before.
type Sync struct {
	// Synced is told.
	Client SyncClient
	// Ref is the client's.
	Ref any

	next *Sync
}

// SyncClient is who waits for a Sync.
type SyncClient interface {
	// Synced is the end of a Sync. It comes in the event in which the last access is done.
	Synced(y *Sync)
}

// Sync reports whether no access of a bank is in flight: none that was answered
// with OK and has not been said to be Done. If not, y.Client is told when all
// those have been done; later ones do not matter. With it an operating system
// waits, after an invalidation, until a page may be given away. y is the SMMU's
// until then.
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

// turn begins an epoch for those who wait. There is no access of the one that begins.
func (s *SMMU) turn(b *bank) {
	b.syncing = b.later != nil || b.asked
	b.asking, b.asked = b.asked, false
	if !b.syncing {
		return
	}
	for y := b.later; y != nil; { // in order
		next := y.next
		y.next, b.sync = b.sync, y
		y = next
	}
	b.later = nil
	b.epoch ^= 1
}

// Done says that the access of a request that was answered with OK has been done.
func (s *SMMU) Done(r *Request) {
	if poison.On {
		r.land()
	}
	s.Landed(r.flight)
}

// synced tells those who wait that no access of their epoch is in flight any
// more, and goes on to the next.
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

// InFlight is how many accesses of a bank have been answered with OK and are not done.
func (s *SMMU) InFlight(bank int) int {
	b := &s.banks[bank]
	return int(b.inFlight[0] + b.inFlight[1])
}
