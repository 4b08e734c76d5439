package memcached

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Memory is the memory of a store. The store reports every read and write to
// it.
type Memory interface {
	// Alloc returns the address of n untouched bytes.
	Alloc(n int) (addr uint64)
	// Read reports a read of n bytes, at least 1, of memory from Alloc.
	Read(addr uint64, n int)
	// Write reports a write, likewise.
	Write(addr uint64, n int)
}

// ProcMemory is the memory of a process. Pages that the store touches must be
// present. The bytes themselves are in the store. So touched pages need no
// memory of the simulating computer. An access costs the memory latency for its
// first line, and the core's rate for the following lines. Take returns the
// sum.
type ProcMemory struct {
	p       *runtime.Proc
	spec    *host.Spec
	setting bool     // touches take no time: the process has not begun
	there   []uint64 // while setting: a bit for each touched page
	owed    sim.Time
}

// NewProcMemory returns the memory of a process. Until Begin, accesses take no
// time, and their pages are present when the process begins.
func NewProcMemory(p *runtime.Proc) *ProcMemory {
	return &ProcMemory{p: p, spec: &p.Reads(used.MemoryLatency).Host, setting: true}
}

// Begin ends the setup.
func (m *ProcMemory) Begin() { m.setting, m.there = false, nil }

// Take returns the time of all accesses since the last call. The core has not
// spent it yet.
func (m *ProcMemory) Take() (d sim.Time) {
	d, m.owed = m.owed, 0
	return d
}

// Alloc implements Memory.
func (m *ProcMemory) Alloc(n int) (addr uint64) { return m.p.Alloc(n).Addr() }

// Read implements Memory.
func (m *ProcMemory) Read(addr uint64, n int) { m.access(addr, n, false) }

// Write implements Memory.
func (m *ProcMemory) Write(addr uint64, n int) { m.access(addr, n, true) }

// setUp makes missing pages present.
func (m *ProcMemory) setUp(addr uint64, n int) {
	for page := addr / host.PageBytes; page <= (addr+uint64(n)-1)/host.PageBytes; page++ {
		for int(page/64) >= len(m.there) {
			m.there = append(m.there, make([]uint64, 1+len(m.there))...)
		}
		if bit := uint64(1) << (page % 64); m.there[page/64]&bit == 0 {
			m.there[page/64] |= bit
			at := max(addr, page*host.PageBytes)
			if v, err := m.p.View(at, 1); err == nil {
				v.Raw()
			}
		}
	}
}

func (m *ProcMemory) access(addr uint64, n int, write bool) {
	if m.setting {
		m.setUp(addr, n)
		return
	}
	v, err := m.p.View(addr, n)
	switch {
	case err != nil:
		panic(err) //lint:panic the store stays within what it has allocated
	case write:
		v.Write()
	default:
		v.Read()
	}
	line := int64(m.spec.LineBytes)
	behind := (int64(addr)+int64(n)+line-1)/line - int64(addr)/line - 1
	m.owed = m.owed.Plus(m.spec.MemoryLatency).Plus(m.spec.StreamTime(behind * line))
}
