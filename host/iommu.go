package host

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// IOMMU connects an SMMU to the bus of a node. It is the bus's Translator and
// assigns PDIDs and banks to processes. Its driver handles faults. Without a
// driver, an access to an absent page is Denied.
type IOMMU struct {
	smmu   smmu.SMMU // first: fields needed for a hit
	engine *sim.Engine
	bus    *Bus
	driver IOMMUDriver
	spaces []*AddressSpace // by PDID; 0 is unused
	banks  []*AddressSpace // by bank
	since  []sim.Time      // by bank: when its process got it
	free   *passage
	stale  []StaleAccess
	staled int
}

// IOMMUDriver is the part of an operating system that drives an IOMMU.
type IOMMUDriver interface {
	// Interrupt handles the rising interrupt line of a bank, see smmu.Interrupts.
	Interrupt(bank int)
	// Unbound handles an access to the memory of a process without a bank. The
	// access waits until IOMMU.Take gives the process a bank.
	Unbound(space *AddressSpace)
	// Unresolvable reports whether the driver has decided not to bring in the page
	// of a fault. Then the access ends with Denied. The driver may forget the
	// decision after its answer.
	Unresolvable(space *AddressSpace, addr uint64, write bool) bool
}

// StaleAccess is an access that used a translation after it was removed from
// the tables: an invalidation is missing (smmu.Spec.Stale "poison").
type StaleAccess struct {
	Rank int
	smmu.StaleInfo
}

// Error describes the stale translation.
func (s StaleAccess) Error() string {
	return fmt.Sprintf("rank %d at %v: the SMMU used a stale translation of %#x of PDID %d (bank %d): it had %s, the tables have %s; nobody has invalidated it",
		s.Rank, s.At, s.Addr, s.PDID, s.Bank, describe(s.Had), describe(s.Is))
}

func describe(e smmu.Entry) string {
	if e.Kind == smmu.Invalid {
		return "nothing"
	}
	mode := "read-only"
	if e.Write {
		mode = "writable"
	}
	if e.Kind == smmu.Table {
		mode = "table"
	}
	return fmt.Sprintf("%#x (%s)", e.Addr, mode)
}

// IOMMUConfig is the environment of an IOMMU.
type IOMMUConfig struct {
	Engine *sim.Engine
	Rank   int
	Spec   *smmu.Spec
	Bus    *Bus
	// Memory is the memory controller. It answers Latency after it has served the
	// bytes.
	Memory  *Server
	Latency sim.Time
	Watcher smmu.Watcher // nil: none
}

// NewIOMMU installs an SMMU between a bus and memory. It has an actor for its
// events.
func NewIOMMU(c *IOMMUConfig) *IOMMU {
	m := &IOMMU{engine: c.Engine, bus: c.Bus, spaces: make([]*AddressSpace, 1), banks: make([]*AddressSpace, c.Spec.Banks), since: make([]sim.Time, c.Spec.Banks)}
	id := c.Engine.Add(fmt.Sprintf("SMMU[%d]", c.Rank), m)
	m.smmu.Init(c.Engine, id, &smmu.Config{
		Spec: c.Spec, Memory: &walker{c.Engine, c.Memory, c.Latency}, Interrupts: m, Watcher: &staleWatcher{m, c.Rank, c.Watcher},
	})
	c.Bus.Translate(m)
	return m
}

// SMMU returns the device, for drivers and reports: its registers and counters.
func (m *IOMMU) SMMU() *smmu.SMMU { return &m.smmu }

// Drive sets the driver of the IOMMU.
func (m *IOMMU) Drive(d IOMMUDriver) { m.driver = d }

// Handle performs an event of the SMMU; it implements sim.Actor.
func (m *IOMMU) Handle(e *sim.Event) { m.smmu.Handle(e) }

// Interrupt implements smmu.Interrupts.
func (m *IOMMU) Interrupt(bank int) {
	if m.driver != nil {
		m.driver.Interrupt(bank)
		return
	}
	m.smmu.Write(bank, smmu.FSR, m.smmu.Bank(bank).Read(smmu.FSR))
	if m.smmu.Bank(bank).Read(smmu.SCTLR)&uint64(smmu.SCTLRCFCFG) != 0 {
		m.smmu.Write(bank, smmu.RESUME, 1)
	}
}

// walker is the memory controller for table walks.
type walker struct {
	engine  *sim.Engine
	memory  *Server
	latency sim.Time
}

// Access implements smmu.Memory.
func (w *walker) Access(_ uint64, n int) sim.Time {
	_, served := w.memory.Reserve(w.engine.Now(), int64(n))
	return served + w.latency
}

// Largest number of processes whose memory devices can name: PDIDs have 16
// bits, and 0 is unused.
const maxPDID = 1<<16 - 1

// Admit gives a process the next PDID and, if there is one, a vacant bank. It
// fails if no PDID is left or, without a driver that shares banks, no bank.
func (m *IOMMU) Admit(space *AddressSpace, tables smmu.Tables) error {
	if len(m.spaces) > maxPDID {
		return fmt.Errorf("host: more than %d processes whose memory devices may reach", maxPDID)
	}
	bank := m.smmu.Vacant()
	if bank < 0 && m.driver == nil {
		return fmt.Errorf("host: smmu.banks is %d: there is no bank for process %d of the node, and no operating system (os.kind) that shares them", len(m.banks), len(m.spaces))
	}
	space.pdid, space.tables = uint16(len(m.spaces)), tables
	m.spaces = append(m.spaces, space)
	if bank >= 0 {
		m.assign(bank, space)
	}
	return nil
}

func (m *IOMMU) assign(bank int, space *AddressSpace) {
	if err := m.smmu.Assign(bank, space.pdid, space.tables); err != nil {
		panic("host: " + err.Error()) //lint:panic the bank was vacant, and a PDID is given once
	}
	m.banks[bank], m.since[bank] = space, m.engine.Now()
	m.unpark(space)
}

// Take gives a bank to a process. It invalidates the bank of its previous
// process, which must have no access in flight there (smmu.Sync).
func (m *IOMMU) Take(bank int, space *AddressSpace) {
	m.smmu.Release(bank)
	m.smmu.InvalidateBank(bank)
	m.assign(bank, space)
}

// BankOf returns the bank of a process, -1 if it has none at present.
func (m *IOMMU) BankOf(space *AddressSpace) int { return m.smmu.BankOf(space.pdid) }

// At returns the process that has a bank; nil: none.
func (m *IOMMU) At(bank int) *AddressSpace { return m.banks[bank] }

// Victim returns the bank whose process has been idle for longest. The process
// must have had the bank for at least hold and have no access in flight. -1:
// there is none. hold gives a process time to retry an access that failed for
// lack of a bank. Otherwise processes that take banks from each other might
// never progress.
func (m *IOMMU) Victim(hold sim.Time) int {
	victim := -1
	for i, space := range m.banks {
		if m.engine.Now()-m.since[i] >= hold && m.smmu.Bank(i).InFlight() == 0 && (victim < 0 || space.asked < m.banks[victim].asked) {
			victim = i
		}
	}
	return victim
}

// Stale returns the first accesses that used stale translations, and the number
// of all.
func (m *IOMMU) Stale() ([]StaleAccess, int) { return m.stale, m.staled }

const keptStale = 100 // accesses; the others are only counted

// staleWatcher records stale translations and passes everything to another
// Watcher.
type staleWatcher struct {
	iommu *IOMMU
	rank  int
	then  smmu.Watcher
}

func (w *staleWatcher) Walked(i smmu.WalkInfo) {
	if w.then != nil {
		w.then.Walked(i)
	}
}

func (w *staleWatcher) Faulted(f smmu.FaultInfo) {
	if w.then != nil {
		w.then.Faulted(f)
	}
}

func (w *staleWatcher) Stalled(t smmu.StallInfo) {
	if w.then != nil {
		w.then.Stalled(t)
	}
}

func (w *staleWatcher) Stale(s smmu.StaleInfo) {
	if w.iommu.staled++; w.iommu.staled <= keptStale {
		w.iommu.stale = append(w.iommu.stale, StaleAccess{w.rank, s})
	}
	if w.then != nil {
		w.then.Stale(s)
	}
}
