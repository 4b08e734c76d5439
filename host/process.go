package host

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/poison"
)

// Process is the kernel's record of a process: its mappings and the state of
// each page (mm_struct). It is the page table of its AddressSpace and, for
// devices, its smmu.Tables.
type Process struct {
	kernel      *Kernel
	name        string
	space       *AddressSpace
	mappings    []mapping // sorted by address
	regions     map[uint64]*region
	directories [2]map[uint64]*directory
	latest      *region // region of the latest access
	root        uint64  // physical address of the first table
	notifiers   []Notifier
	lock        Mutex // protects mappings
	// pages that devices with their own tables have lost and that are not paid for
	expelled int
	resident int     // entries with a page, own or shared
	held     []frame // by the fault being resolved
	large    [][]byte
	splits   int // splits of huge pages that are not paid for
	gone     bool
	exits    []func() // called by drivers' request when it ends
	hollowed bool     // some pages were freed but not their addresses: their bytes may be not zero
}

// mapping is adjacent pages that were mapped together and have the same
// attributes (vm_area_struct).
type mapping struct {
	start, end uint64
	prot       Prot
	locked     bool
	unforked   bool // DontFork
	shared     bool
	file       *File  // nil: anonymous and private
	first      uint32 // index of the file's page at start
}

// Prot is a program's access right to a mapping.
type Prot uint8

// Access rights.
const (
	ProtNone  Prot = 0
	ProtRead  Prot = 1
	ProtWrite Prot = 3 // includes reading
)

func (m *mapping) allows(write bool) bool {
	if write {
		return m.prot == ProtWrite
	}
	return m.prot&ProtRead != 0
}

// NewProcess returns a process without memory.
func (k *Kernel) NewProcess(name string) *Process {
	p := &Process{kernel: k, name: name, regions: map[uint64]*region{}}
	for i := range p.directories {
		p.directories[i] = map[uint64]*directory{}
	}
	p.root = k.newTable(p, nil)
	p.space = NewAddressSpace(p)
	p.space.process = p
	k.processes = append(k.processes, p)
	return p
}

// Name is the name given to NewProcess.
func (p *Process) Name() string { return p.name }

// Kernel returns the kernel of the process.
func (p *Process) Kernel() *Kernel { return p.kernel }

// Space returns the memory of the process, for programs and devices.
func (p *Process) Space() *AddressSpace { return p.space }

// Resident returns the number of its pages in memory.
func (p *Process) Resident() int { return p.resident }

// alloc is AddressSpace.Alloc: an anonymous mapping that takes no time.
func (p *Process) alloc(n int) uint64 {
	addr, err := p.mapAnonymous(n)
	if err != nil {
		// programmer's mistake: sizes are checked where they are read
		panic(fmt.Sprintf("host: allocation of %d bytes: %v", n, err))
	}
	return addr
}

// Gone reports whether Exit has ended the process: it has no memory and gets
// none.
func (p *Process) Gone() bool { return p.gone }

// span checks the range of a call and returns the bounds of its pages.
func (p *Process) span(what string, addr, n uint64) (start, end uint64, err error) {
	if top := uint64(1) << p.kernel.spec.AddressBits; addr > top || n > top-addr {
		return 0, 0, fmt.Errorf("process %s: %s of %d bytes at %#x: %w of %d bits", p.name, what, n, addr, ErrRange, p.kernel.spec.AddressBits)
	}
	return pageOf(addr), pageEnd(addr + n), nil
}

// begin takes the lock for a call that makes mappings. After an error the lock
// is not taken.
func (p *Process) begin(t *Thread, what string) error {
	p.lock.Lock(t, mmapLock)
	if p.gone {
		p.lock.Unlock(t)
		return fmt.Errorf("process %s: %s: %w", p.name, what, ErrGone)
	}
	return nil
}

// Map makes a private anonymous mapping of n zeros, at least 1 (mmap). A page
// takes memory at its first write.
func (p *Process) Map(t *Thread, n int) (addr uint64, err error) {
	if n < 1 {
		return 0, fmt.Errorf("process %s: mmap of %d bytes, expected at least 1", p.name, n)
	}
	if err := p.begin(t, "mmap"); err != nil {
		return 0, err
	}
	defer p.lock.Unlock(t)
	run(t, p.kernel.spec.MapCall, "mmap")
	return p.mapAnonymous(n)
}

func (p *Process) mapAnonymous(n int) (addr uint64, err error) {
	if addr, err = p.place(n); err != nil {
		return 0, err
	}
	p.back(addr, n)
	if n > 0 { // a mapping of no bytes is not recorded
		p.mappings = append(p.mappings, mapping{start: addr, end: pageEnd(addr + uint64(n)), prot: ProtWrite})
	}
	return addr, nil
}

// back allocates the process's own bytes for addresses.
func (p *Process) back(addr uint64, n int) {
	if p.space.guard != nil {
		p.space.append(addr, p.space.guard.Alloc(n), true)
	} else {
		data := lazy.Bytes(n)
		if lazy.Large(n) {
			p.large = append(p.large, data)
		}
		p.space.append(addr, data, false)
	}
	p.poison(addr, addr+uint64(n))
}

// place returns an address for n bytes. Large mappings begin on 2 MiB.
func (p *Process) place(n int) (uint64, error) {
	addr := p.space.next
	if n >= HugeBytes {
		addr = (addr + HugeBytes - 1) &^ (HugeBytes - 1)
	}
	if n < 0 || addr+uint64(n) >= 1<<p.kernel.spec.AddressBits || addr+uint64(n) < addr {
		return 0, fmt.Errorf("process %s: %w: no %d addresses of %d bits are left", p.name, ErrNoMemory, n, p.kernel.spec.AddressBits)
	}
	return addr, nil
}

func pageOf(addr uint64) uint64  { return addr &^ (PageBytes - 1) }
func pageEnd(addr uint64) uint64 { return (addr + PageBytes - 1) &^ (PageBytes - 1) }

// mapping returns the mapping of an address, nil if there is none. The result
// is valid until mappings change.
func (p *Process) mapping(va uint64) *mapping {
	i, _ := slices.BinarySearchFunc(p.mappings, va, func(m mapping, va uint64) int {
		if m.end <= va {
			return -1
		}
		return 1
	})
	if i < len(p.mappings) && p.mappings[i].start <= va {
		return &p.mappings[i]
	}
	return nil
}

// Mapping returns the bounds of the mapping of an address, multiples of 4 KiB;
// ok is false if there is none.
func (p *Process) Mapping(addr uint64) (start, end uint64, ok bool) {
	m := p.mapping(addr)
	if m == nil {
		return 0, 0, false
	}
	return m.start, m.end, true
}

// Present reports whether a device can use the page of an address without a
// fault. It takes no time.
func (p *Process) Present(addr uint64, write bool) bool {
	e := p.pte(pageOf(addr))
	return e.allows(write) && p.admitted(e)
}

// split splits the mapping of an address, so that one begins at the address.
func (p *Process) split(va uint64) {
	m := p.mapping(va)
	if m == nil || m.start == va {
		return
	}
	behind := *m
	behind.first += uint32((va - m.start) / PageBytes)
	m.end, behind.start = va, va
	i := slices.IndexFunc(p.mappings, func(o mapping) bool { return o.start > va })
	if i < 0 {
		i = len(p.mappings)
	}
	p.mappings = slices.Insert(p.mappings, i, behind)
}

// bytes returns the bytes of a page in the process's backing. The last page of
// a mapping may be shorter.
func (p *Process) bytes(va uint64) []byte {
	i := p.space.rangeOf(va)
	if i < 0 {
		return nil
	}
	r := &p.space.ranges[i]
	off := va - r.start
	end := min(off+PageBytes, uint64(len(r.data)))
	return r.data[off:end:end]
}

// Unmap removes n bytes at addr, a multiple of 4 KiB: pages and addresses
// (munmap). The range may have holes. Unmap returns when no device uses the
// pages any more.
func (p *Process) Unmap(t *Thread, addr, n uint64) error {
	if addr%PageBytes != 0 {
		return fmt.Errorf("process %s: munmap of %#x, expected a multiple of %d", p.name, addr, PageBytes)
	}
	addr, end, err := p.span("munmap", addr, n)
	if err != nil {
		return err
	}
	p.lock.Lock(t, mmapLock)
	defer p.lock.Unlock(t)
	spec := p.kernel.spec
	run(t, spec.UnmapCall, "munmap")
	run(t, spec.UnmapPage*simTime(p.count(addr, end)), "munmap")
	if err := p.calm(t, addr, end); err != nil {
		return err
	}
	p.drop(t, addr, end)
	return nil
}

// AtExit makes f run at the end of the process, after everything else. Drivers
// close what they have opened for the process (Linux: release of a file).
// Children of Fork do not inherit it.
func (p *Process) AtExit(f func()) { p.exits = append(p.exits, f) }

// Exit ends the process and frees all its memory.
func (p *Process) Exit(t *Thread) error {
	p.lock.Lock(t, mmapLock)
	defer p.lock.Unlock(t)
	last := p.space.next
	run(t, p.kernel.spec.UnmapPage*simTime(p.count(0, last)), "exit")
	if err := p.calm(t, 0, last); err != nil {
		return err
	}
	p.drop(t, 0, last)
	p.notifiers = nil
	p.leave()
	for _, f := range p.exits {
		f()
	}
	p.exits = nil
	return nil
}

// leave removes the process from the kernel's records.
func (p *Process) leave() {
	if p.gone {
		return
	}
	p.gone = true
	p.kernel.freeTable(p.root)
	p.kernel.processes = slices.DeleteFunc(p.kernel.processes, func(q *Process) bool { return q == p })
}

// release is AddressSpace.Release: the simulation of the process ends.
func (p *Process) release() {
	for _, b := range p.large {
		lazy.Free(b)
	}
	p.large = nil
}

// each calls f for each nonzero entry from start to end, in order; f may change
// the entry.
func (p *Process) each(start, end uint64, f func(va uint64, e pte)) {
	for _, base := range p.bases(start, end) {
		r := p.regions[base>>hugeBits]
		if r == nil {
			continue
		}
		for va := max(start, base); va < min(end, base+HugeBytes); va += PageBytes {
			if e := r.pte[va>>pageBits%hugePages]; e != (pte{}) {
				f(va, e)
			}
		}
	}
}

// bases returns the used regions between two addresses, in order.
func (p *Process) bases(start, end uint64) (all []uint64) {
	if (end-start)>>hugeBits < uint64(len(p.regions)) {
		for base := start &^ (HugeBytes - 1); base < end; base += HugeBytes {
			if p.regions[base>>hugeBits] != nil {
				all = append(all, base)
			}
		}
		return all
	}
	for _, r := range p.regions { //lint:maporder sorted below
		if r.base+HugeBytes > start && r.base < end {
			all = append(all, r.base)
		}
	}
	slices.Sort(all)
	return all
}

// count returns the number of present pages.
func (p *Process) count(start, end uint64) (n int) {
	p.each(start, end, func(uint64, pte) { n++ })
	return n
}

// calm waits until no page is in transfer.
func (p *Process) calm(t *Thread, start, end uint64) error {
	for busy := true; busy; {
		busy = false
		var at frame
		p.each(start, end, func(_ uint64, e pte) {
			if e.flags&pteBusy != 0 {
				busy, at = true, e.frame
			}
		})
		if busy {
			if err := p.kernel.memory.page(at).wait(t, "a page that is moved"); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop removes pages and addresses.
func (p *Process) drop(t *Thread, start, end uint64) {
	var frames []frame
	p.each(start, end, func(va uint64, e pte) {
		p.kernel.stats.Unmapped++
		if p.clear(va, e) {
			p.kernel.memory.page(e.frame).inHand = true
			frames = append(frames, e.frame)
		}
	})
	for _, base := range p.bases(start, end) {
		p.prune(p.regions[base>>hugeBits])
	}
	p.split(start)
	p.split(end)
	var files []*File // anonymous ones
	p.mappings = slices.DeleteFunc(p.mappings, func(m mapping) bool {
		gone := m.start >= start && m.end <= end
		if gone && m.file != nil && m.file.anonymous {
			files = append(files, m.file)
		}
		return gone
	})
	p.invalidate(start, end, true)
	p.drain(t, 1)
	p.forget(start, end)
	for _, f := range frames {
		p.kernel.putBack(f)
	}
	for _, f := range files {
		f.release(t)
	}
}

// forget removes the bytes of addresses.
func (p *Process) forget(start, end uint64) {
	p.poison(start, end)
	if p.space.guard == nil && !poison.On {
		p.parts(start, end, func(r memoryRange) { lazy.Clear(r.data) })
	}
	p.space.remove(start, end)
}

// poison overwrites the process's own bytes at some addresses, in tests.
func (p *Process) poison(start, end uint64) {
	if !poison.On {
		return
	}
	p.parts(start, end, func(r memoryRange) { poison.Bytes(r.data) })
}

// parts calls f for the process's own bytes at some addresses.
func (p *Process) parts(start, end uint64, f func(r memoryRange)) {
	for i := range p.space.ranges {
		r := &p.space.ranges[i]
		from, to := max(start, r.start), min(end, r.start+uint64(len(r.data)))
		if from < to && !r.shared {
			f(r.slice(from, to))
		}
	}
}
