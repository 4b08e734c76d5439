package host

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Reasons why a process cannot have a page, or why a call fails. The error of
// an operation has more details and wraps one of them (errors.Is).
var (
	ErrNoMapping  = errors.New("no mapping")
	ErrPermission = errors.New("no permission")
	ErrNoMemory   = errors.New("out of memory")
	ErrRange      = errors.New("beyond the address space")
	ErrGone       = errors.New("the process has ended")
	ErrLocked     = errors.New("the memory is locked")
)

// Kernel is the operating system of a node: its memory, the address spaces of
// its processes, and its background work.
type Kernel struct {
	spec      *OSSpec
	engine    *sim.Engine
	cpu       *CPU
	memory    physical
	tables    tablePages
	processes []*Process
	stats     KernelStats
	storage   *Storage // nil: none
	swap      swapSpace
	files     []*File

	kswapd     *Thread
	khugepaged *Thread
	jobs       []job     // for khugepaged
	asleep     bool      // kswapd
	failures   int       // of kswapd, in a row
	evicting   int       // number of evicting threads
	short      []*Thread // threads that wait for them
}

// KernelStats counts the work of a kernel.
type KernelStats struct {
	Absent     int64 // pages provided at their first touch or pin
	Zero       int64 // pages mapped to the page of zeros
	Copies     int64 // pages copied on write
	Dirtied    int64 // writes that made a clean page dirty
	Minor      int64 // faults without storage: all of the above
	Pinned     int64 // pages pinned by get_user_pages
	PinsHeld   int64 // pages pinned now; a page pinned twice counts twice
	Unmapped   int64 // present pages that were unmapped
	Shortages  int64 // times that a thread had to free memory for its own allocation
	Major      int64 // faults that waited for storage
	SwappedIn  int64 // pages
	SwappedOut int64
	FileReads  int64 // pages
	FileWrites int64
	Scanned    int64 // pages that reclaim looked at
	Reclaimed  int64 // pages that reclaim freed
	SwapFull   int64 // pages that found no room in swap
	Early      int64 // pages on storage when programs began, not in the counts above
	Migrated   int64 // pages
	Huge       int64 // huge pages provided at a first touch
	Collapsed  int64 // regions collapsed to a huge page
	Splits     int64 // huge pages split into small ones
	SwapUsed   int   // pages, now
	FreePages  int   // now
	TotalPages int
	TablePages int // pages of tables, now
}

// NewKernel returns a kernel for the cores cpu, without processes. The spec
// must be valid and On.
func NewKernel(eng *sim.Engine, cpu *CPU, spec *OSSpec) *Kernel {
	k := &Kernel{spec: spec, engine: eng, cpu: cpu}
	k.memory.init(int(spec.Memory / PageBytes))
	return k
}

// Attach gives the kernel a storage device, for files and swap. The spec must be valid and On.
func (k *Kernel) Attach(name string, spec *StorageSpec) *Storage {
	k.storage = newStorage(k.engine, name, k.cpu, k.spec.KernelCore, spec)
	k.swap.total = int(spec.Swap / PageBytes)
	return k.storage
}

// Spec returns the spec of the kernel.
func (k *Kernel) Spec() *OSSpec { return k.spec }

// CPU returns the cores of the kernel.
func (k *Kernel) CPU() *CPU { return k.cpu }

// Stats returns its counts.
func (k *Kernel) Stats() KernelStats {
	s := k.stats
	s.FreePages, s.TotalPages, s.TablePages, s.SwapUsed = k.memory.free, k.memory.total, k.tables.used, k.swap.used
	return s
}

// run makes a thread work for d; without a thread it takes no time.
func run(t *Thread, d sim.Time, what string) {
	if t != nil && d > 0 {
		t.Run(d, what)
	}
}

func (k *Kernel) outOfMemory(p *pager) error {
	return fmt.Errorf("process %s: %w: %v of %v free, %v kept for the kernel, the process has %v, of which %v are being touched at once; %v of %v swap used", p.name,
		ErrNoMemory, pagesSize(k.memory.free), k.spec.Memory, k.spec.WatermarkMin, pagesSize(p.resident), pagesSize(len(p.held)),
		pagesSize(k.swap.used), pagesSize(k.swap.total))
}

func pagesSize(n int) sim.Size { return sim.Size(n) * PageBytes }

// mmapLock names waits for pager.lock.
const mmapLock = "the lock of an address space"

// Mutex admits one thread at a time, in the order of arrival, as mmap_lock
// does. The zero value is free.
type Mutex struct {
	owner   *Thread
	waiting []*Thread
}

// Lock waits for the mutex; what describes the wait. t is nil before programs
// begin, when no thread waits.
func (m *Mutex) Lock(t *Thread, what string) {
	if t == nil {
		return
	}
	if m.owner == nil {
		m.owner = t
		return
	}
	m.waiting = append(m.waiting, t)
	for m.owner != t {
		t.Wait(what)
	}
}

// Unlock admits the next thread. The caller must be the thread that has locked
// it.
func (m *Mutex) Unlock(t *Thread) {
	if t == nil {
		return
	}
	m.owner = nil
	if len(m.waiting) > 0 {
		m.owner = m.waiting[0]
		m.waiting = append(m.waiting[:0], m.waiting[1:]...)
		m.owner.Wake()
	}
}
