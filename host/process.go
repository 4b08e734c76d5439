package host

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/used"
)

// Process is the kernel's record of a process. Its exported methods are the
// system calls.
type Process struct {
	kernel *Kernel
	name   string
	space  *AddressSpace
	pager  pager
	exits  []func() // called by drivers' request when it ends
}

// Prot is a program's access right to a mapping.
type Prot uint8

// Access rights.
const (
	ProtNone  Prot = 0
	ProtRead  Prot = 1
	ProtWrite Prot = 3 // includes reading
)

// NewProcess returns a process without memory.
func (k *Kernel) NewProcess(name string) *Process {
	p := &Process{kernel: k, name: name, pager: pager{kernel: k, name: name}}
	p.pager.tables.init(k)
	p.space = NewAddressSpace(&p.pager)
	p.space.process, p.pager.space = p, p.space
	k.processes = append(k.processes, p)
	return p
}

// Name is the name given to NewProcess.
func (p *Process) Name() string { return p.name }

// Kernel returns the kernel of the process.
func (p *Process) Kernel() *Kernel { return p.kernel }

// Space returns the memory of the process, for programs and devices.
func (p *Process) Space() *AddressSpace { return p.space }

// Tables returns the page tables of the process.
func (p *Process) Tables() *Tables { return &p.pager.tables }

// Resident returns the number of its pages in memory.
func (p *Process) Resident() int { return p.pager.resident }

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
func (p *Process) Gone() bool { return p.pager.gone }

// span checks the range of a call and returns the bounds of its pages.
func (p *Process) span(what string, addr, n uint64) (start, end uint64, err error) {
	if top := uint64(1) << p.kernel.spec.AddressBits; addr > top || n > top-addr {
		return 0, 0, fmt.Errorf("process %s: %s of %d bytes at %#x: %w of %d bits", p.name, what, n, addr, ErrRange, p.kernel.spec.AddressBits)
	}
	return pageOf(addr), pageEnd(addr + n), nil
}

// Map makes a private anonymous mapping of n zeros, at least 1 (mmap). A page
// takes memory at its first write.
func (p *Process) Map(t *Thread, n int) (addr uint64, err error) {
	if n < 1 {
		return 0, fmt.Errorf("process %s: mmap of %d bytes, expected at least 1", p.name, n)
	}
	if err := p.pager.begin(t, "mmap"); err != nil {
		return 0, err
	}
	defer p.pager.lock.Unlock(t)
	p.kernel.cpu.Use(used.Map)
	run(t, p.kernel.spec.MapCall, "mmap")
	return p.mapAnonymous(n)
}

func (p *Process) mapAnonymous(n int) (addr uint64, err error) {
	if addr, err = p.place(n); err != nil {
		return 0, err
	}
	p.space.back(addr, n)
	if n > 0 { // a mapping of no bytes is not recorded
		p.pager.mappings = append(p.pager.mappings, mapping{start: addr, end: pageEnd(addr + uint64(n)), prot: ProtWrite})
	}
	return addr, nil
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

// Mapping returns the bounds of the mapping of an address, multiples of 4 KiB;
// ok is false if there is none.
func (p *Process) Mapping(addr uint64) (start, end uint64, ok bool) {
	m := p.pager.mappings.find(addr)
	if m == nil {
		return 0, 0, false
	}
	return m.start, m.end, true
}

// Present reports whether a device can use the page of an address without a
// fault. It takes no time.
func (p *Process) Present(addr uint64, write bool) bool {
	e := p.pager.tables.pte(pageOf(addr))
	return e.allows(write) && p.pager.tables.admitted(e)
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
	p.pager.lock.Lock(t, mmapLock)
	defer p.pager.lock.Unlock(t)
	spec := p.kernel.spec
	p.kernel.cpu.Use(used.Unmap)
	run(t, spec.UnmapCall, "munmap")
	run(t, spec.UnmapPage*simTime(p.pager.tables.count(addr, end)), "munmap")
	if err := p.pager.calm(t, addr, end); err != nil {
		return err
	}
	p.pager.drop(t, addr, end)
	return nil
}

// Populate touches the n bytes at addr, page by page, as a program does (madvise,
// MADV_POPULATE_READ and _WRITE).
func (p *Process) Populate(t *Thread, addr, n uint64, write bool) error {
	if _, _, err := p.span("madvise", addr, n); err != nil {
		return err
	}
	for va := addr; va < addr+n; va += PageBytes {
		for absent := p.pager.Touch(va, 1, write); absent.Count > 0; absent = p.pager.Touch(va, 1, write) {
			if err := p.pager.Fault(t, absent, write); err != nil {
				return err
			}
		}
	}
	return nil
}

// AtExit makes f run at the end of the process, after everything else. Drivers
// close what they have opened for the process (Linux: release of a file).
// Children of Fork do not inherit it.
func (p *Process) AtExit(f func()) { p.exits = append(p.exits, f) }

// Exit ends the process and frees all its memory.
func (p *Process) Exit(t *Thread) error {
	p.pager.lock.Lock(t, mmapLock)
	defer p.pager.lock.Unlock(t)
	last := p.space.next
	p.kernel.cpu.Use(used.Unmap)
	run(t, p.kernel.spec.UnmapPage*simTime(p.pager.tables.count(0, last)), "exit")
	if err := p.pager.calm(t, 0, last); err != nil {
		return err
	}
	p.pager.drop(t, 0, last)
	p.pager.tables.notifiers = nil
	if !p.pager.gone {
		p.pager.gone = true
		k := p.kernel
		k.tables.free(p.pager.tables.root)
		k.processes = slices.DeleteFunc(k.processes, func(q *Process) bool { return q == p })
	}
	for _, f := range p.exits {
		f()
	}
	p.exits = nil
	return nil
}
