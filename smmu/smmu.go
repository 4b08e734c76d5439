package smmu

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Kinds of events of an SMMU. The owner passes those from KindFirst up to
// KindEnd to Handle.
const (
	KindFirst  sim.Kind = 0xA00 + iota // A: slot: the second TLB has been looked up
	kindRead                           // A: walk: a descriptor has been read
	kindAnswer                         // *Request: the first TLB has answered
	kindWake                           // A: bank: its held slots may go on
	kindLookup = KindFirst
	KindEnd    = KindFirst + 0x100
)

// Config is the SMMU's parameters and connections.
type Config struct {
	Spec       *Spec
	Memory     Memory
	Interrupts Interrupts
	Watcher    Watcher // nil: none
}

// SMMU is the memory management unit between the devices of a node and its
// memory. It belongs to one actor: its events go there, and the clients of that
// actor call it. Its driver may call it from any actor's event of the same
// node.
type SMMU struct {
	// A hit uses these fields, so they are in one line of the processor's cache.
	banks []Bank
	l1    full

	engine  *sim.Engine
	id      sim.ID
	streams []uint32 // of each bank: PDID + 1, 0: none
	latest  int      // the bank found last
	instant bool     // a hit in l1 answers at once
	slots   slots
	walker  walker
	audit   audit
	count   Counters
	spec    Spec
	memory  Memory
	lines   lines
	watch   Watcher
	answers queue // to give
}

// Init makes s an SMMU without a process and with empty TLBs. Spec must be
// valid and On. The events go to the actor id.
func (s *SMMU) Init(eng *sim.Engine, id sim.ID, cfg *Config) {
	spec := *cfg.Spec
	*s = SMMU{
		engine: eng, id: id, spec: spec, memory: cfg.Memory, watch: cfg.Watcher,
		streams: make([]uint32, spec.Banks), banks: make([]Bank, spec.Banks),
		instant: spec.L1Latency == 0, lines: lines{to: cfg.Interrupts, rising: make([]*Bank, 0, spec.Banks)},
		audit: audit{on: spec.Stale == Poison, engine: eng, watch: cfg.Watcher, top: spec.top()},
	}
	for i := range s.banks {
		s.banks[i].held, s.banks[i].index, s.banks[i].limit = none, uint8(i), spec.StallLimit
	}
	s.slots.init(spec.Channels, spec.Outstanding)
	s.l1.init(spec.L1Entries)
	s.walker.init(&spec)
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
		return fmt.Errorf("smmu: bank %d belongs to PDID %d", bank, s.streams[bank]-1)
	}
	if other := s.BankOf(pdid); other >= 0 {
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
// see Bank.Sync. The TLBs keep their entries, so invalidate the bank. Release
// does nothing to a bank without a process.
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
	s.wakeLater(b)
}

// Bank returns a bank. It panics if there is none: that is a programmer's
// mistake.
func (s *SMMU) Bank(bank int) *Bank { return &s.banks[bank] }

// BankOf returns the bank of a PDID, -1 if it has none.
func (s *SMMU) BankOf(pdid uint16) int {
	want := uint32(pdid) + 1
	if s.streams[s.latest] == want {
		return s.latest
	}
	for i, stream := range s.streams {
		if stream == want {
			s.latest = i
			return i
		}
	}
	return -1
}

// Vacant returns the lowest bank without a process, -1 if there is none.
func (s *SMMU) Vacant() int { return slices.Index(s.streams, 0) }

// Handle carries out an event of a kind from KindFirst up to KindEnd.
func (s *SMMU) Handle(e *sim.Event) {
	switch e.Kind {
	case kindLookup:
		s.lookup(int32(e.A))
	case kindRead:
		s.read(&s.walker.walks[e.A])
	case kindWake:
		s.wake(int(e.A))
	case kindAnswer:
		r, _ := e.P.(*Request)
		s.answers.push(r)
	default:
		panic("smmu: an event of no SMMU") //lint:panic a bug of the owner
	}
	s.refill()
	s.admit()
	s.lines.tell()
	for s.answers.first != nil {
		r := s.answers.pop()
		if s.banks[r.bank].outdated(r) {
			s.redo(r)
			s.lines.tell()
			continue
		}
		s.banks[r.bank].answer(r)
		r.Client.Translated(r, r.result)
	}
}
