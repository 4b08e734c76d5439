package host

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Reasons for which a process cannot have a page or a call fails; what an
// operation returns says more and is one of them (errors.Is).
var (
	ErrNoMapping  = errors.New("no mapping")
	ErrPermission = errors.New("no permission")
	ErrNoMemory   = errors.New("out of memory")
	ErrRange      = errors.New("beyond the address space")
	ErrGone       = errors.New("the process has ended")
	ErrLocked     = errors.New("the memory is locked")
)

// Kernel is the operating system of a node: its memory, the address spaces of
// its processes, and what it does on its own.
type Kernel struct {
	spec      *OSSpec
	engine    *sim.Engine
	cpu       *CPU
	memory    physical
	tables    []tablePage // pages of tables, by number
	processes []*Process
	stats     KernelStats
	storage   *Storage // nil: there is none
	swap      swapSpace
	files     []*File

	active, inactive lru
	kswapd           *Thread
	khugepaged       *Thread
	jobs             []job     // for it
	asleep           bool      // kswapd
	failures         int       // of kswapd in a row
	evicting         int       // threads that are
	short            []*Thread // that wait for them

	tablePages int // in use
}

// KernelStats counts what a kernel has done.
type KernelStats struct {
	Absent     int64 // pages that came when they were touched or pinned for the first time
	Zero       int64 // pages that got the page of zeros
	Copies     int64 // pages copied on write
	Dirtied    int64 // clean pages that were written
	Minor      int64 // faults without storage, all of the above
	Pinned     int64 // pages that get_user_pages has pinned
	PinsHeld   int64 // of those, now; a page that is pinned twice counts twice
	Unmapped   int64 // pages that were there and were unmapped
	Shortages  int64 // times that somebody had to free memory to get some
	Major      int64 // faults that waited for storage
	SwappedIn  int64 // pages
	SwappedOut int64
	FileReads  int64 // pages
	FileWrites int64
	Scanned    int64 // pages that reclaim has looked at
	Reclaimed  int64 // pages that it has freed
	SwapFull   int64 // pages that it could not write
	Early      int64 // pages that were on storage when programs began, in none of the counts above
	Migrated   int64 // pages
	Huge       int64 // huge pages that came at a first touch
	Collapsed  int64 // regions that became one
	Splits     int64 // huge pages that became small ones
	SwapUsed   int   // pages now
	FreePages  int   // now
	TotalPages int
	TablePages int // of tables, now
}

// NewKernel returns a kernel without a process, that of the cores cpu. The spec
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

// Spec is what it was made from.
func (k *Kernel) Spec() *OSSpec { return k.spec }

// CPU is the cores it runs on.
func (k *Kernel) CPU() *CPU { return k.cpu }

// Stats returns its counts.
func (k *Kernel) Stats() KernelStats {
	s := k.stats
	s.FreePages, s.TotalPages, s.TablePages, s.SwapUsed = k.memory.free, k.memory.total, k.tablePages, k.swap.used
	return s
}

// run has a thread work for d; without a thread it takes no time.
func run(t *Thread, d sim.Time, what string) {
	if t != nil && d > 0 {
		t.Run(d, what)
	}
}

func (k *Kernel) outOfMemory(p *Process) error {
	return fmt.Errorf("process %s: %w: %v of %v free, %v kept for the kernel, the process has %v, of which %v are being touched at once; %v of %v swap used", p.name,
		ErrNoMemory, pagesSize(k.memory.free), k.spec.Memory, k.spec.WatermarkMin, pagesSize(p.resident), pagesSize(len(p.held)),
		pagesSize(k.swap.used), pagesSize(k.swap.total))
}

func pagesSize(n int) sim.Size { return sim.Size(n) * PageBytes }

// mmapLock is what waits for Process.lock are called.
const mmapLock = "the lock of an address space"

// Mutex lets one thread at a time in, in the order in which they come, as
// mmap_lock does. Its zero value is free.
type Mutex struct {
	owner   *Thread
	waiting []*Thread
}

// Lock waits until the thread is the one, and says for what meanwhile; nil:
// before programs begin, when nobody waits.
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

// Unlock lets the next one in. The thread is the one that has locked it.
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
