package host

import (
	"fmt"
	"math"
	"runtime"
	"sort"

	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// AddressSpace is the memory of one process: ranges of bytes at 64-bit virtual
// addresses. No access crosses from one range into the next. The bytes always
// exist; whether a page is present is the matter of the page table. Devices
// access the bytes with Bytes, as portals.Memory requires; their page faults
// are handled before. Programs first touch what they read or write (Touch), and
// use the result of Cores until they wait (Settle).
type AddressSpace struct {
	// The fields of a device's access are in one cache line.
	latest []byte   // range of the latest access: accesses come in runs
	start  uint64   // beginning of latest
	lent   int      // pages whose bytes are in another process's backing
	asked  sim.Time // when a device last requested some of it
	pdid   uint16   // name for devices; 0: devices cannot name it
	asks   bool     // there is a page table or a guard
	// some pages were freed but not their addresses: their bytes may be not zero
	hollowed bool
	unopened int32 // ranges that have no bytes of their own

	ranges  []memoryRange
	next    uint64
	pages   PageTable
	process *Process     // owner, if there is an operating system
	guard   *guard.Space // nil: no test watches programs
	pieces  int          // of the guard
	tables  smmu.Tables  // of its pages
	parked  []*passage   // device accesses that wait for a bank
	large   [][]byte     // memory of the simulating computer to give back
	slab    *Slab        // nil: each range is allocated by itself
	offered *Page        // the next Deposit is perhaps of its bytes
	// not nil: programs may have changed copies of bytes that are elsewhere
	elsewhere *elsewhere
	_         [32]byte // pads to a multiple of a cache line
}

// From makes later allocations come from a slab.
func (a *AddressSpace) From(s *Slab) { a.slab = s }

type memoryRange struct {
	start  uint64
	data   []byte
	piece  int    // of the guard
	off    uint64 // of data in the piece
	shared bool   // with other processes
	// not nil: it has no bytes of its own
	written *written
}

const (
	firstAddress = 1 << 16 // address 0 stays invalid, so that a missing address is noticed
	rangeAlign   = 1 << 12 // every range begins on a new page
)

// NewAddressSpace returns an empty address space. With pages nil every page is
// present, and a touch costs nothing.
func NewAddressSpace(pages PageTable) *AddressSpace {
	a := &AddressSpace{next: firstAddress, pages: pages, guard: guard.New()}
	a.asks = pages != nil || a.guard != nil
	if a.guard != nil {
		runtime.AddCleanup(a, (*guard.Space).Release, a.guard)
	}
	return a
}

// Alloc makes a range of n zeroed bytes and returns its address. It exists
// until the end of the run. It panics if n is negative or exceeds the address
// space.
func (a *AddressSpace) Alloc(n int) (addr uint64) {
	if n < 0 || uint64(n) > math.MaxUint64-a.next-2*rangeAlign {
		// programmer's mistake: sizes are checked where they are read
		panic(fmt.Sprintf("host: allocation of %d bytes", n))
	}
	if a.process != nil {
		return a.process.alloc(n)
	}
	addr = a.next
	switch {
	case a.guard != nil:
		a.append(addr, a.guard.Alloc(n), n, true)
	case a.slab != nil && n >= leastWritten:
		a.append(addr, nil, n, false)
		a.ranges[len(a.ranges)-1].written = &written{size: uint64(n)}
		a.unopened++
	default:
		a.append(addr, a.slab.take(n), n, false)
	}
	return addr
}

// AllocAligned is Alloc at a multiple of align. It panics if align is not a
// power of two.
func (a *AddressSpace) AllocAligned(n, align int) (addr uint64) {
	if align < 1 || align&(align-1) != 0 {
		// programmer's mistake
		panic(fmt.Sprintf("host: allocation at a multiple of %d, expected a power of two", align))
	}
	a.next = (a.next + uint64(align) - 1) &^ (uint64(align) - 1)
	return a.Alloc(n)
}

// append adds n bytes as a range at an address after all others. guarded: they
// are the guard's next piece.
func (a *AddressSpace) append(addr uint64, data []byte, n int, guarded bool) {
	if a.guard != nil && !guarded {
		a.guard.Alloc(0) // an unwatched piece
	}
	a.ranges = append(a.ranges, memoryRange{start: addr, data: data, piece: a.pieces})
	a.pieces++
	// leaves at least one byte between ranges
	a.next = (addr + uint64(n) + 2*rangeAlign - 1) &^ (rangeAlign - 1)
}

// share adds bytes that other processes have, too, as a range after all others.
func (a *AddressSpace) share(addr uint64, data []byte) {
	a.append(addr, data, len(data), false)
	a.ranges[len(a.ranges)-1].shared = true
}

// remove removes the addresses from start to end. The rest of a range keeps its
// addresses, as ranges of its own.
func (a *AddressSpace) remove(start, end uint64) {
	kept := a.ranges[:0:0]
	for _, r := range a.ranges {
		stop := r.start + uint64(len(r.data))
		if end <= r.start || start >= stop {
			kept = append(kept, r)
			continue
		}
		if start > r.start {
			kept = append(kept, r.slice(r.start, start))
		}
		if end < stop {
			kept = append(kept, r.slice(end, stop))
		}
	}
	a.ranges, a.latest = kept, nil
}

// slice returns a part of a range.
func (r *memoryRange) slice(from, to uint64) memoryRange {
	off := from - r.start
	return memoryRange{from, r.data[off : to-r.start : to-r.start], r.piece, r.off + off, r.shared, nil}
}

// Bytes returns the n bytes at addr for a device, or false if they are not
// within one range. Length 0 is valid at any address of a range and directly
// after its end.
func (a *AddressSpace) Bytes(addr, n uint64) ([]byte, bool) {
	if a.lent > 0 {
		a.process.pager.materialise(addr, n)
	}
	return a.bytes(addr, n)
}

func (a *AddressSpace) bytes(addr, n uint64) ([]byte, bool) {
	off, size := addr-a.start, uint64(len(a.latest))
	if a.latest == nil || off > size || n > size-off {
		i := a.rangeOf(addr)
		if i < 0 {
			return nil, false
		}
		r := &a.ranges[i]
		off, size = addr-r.start, r.size()
		if off > size || n > size-off {
			return nil, false
		}
		switch {
		case r.written == nil:
		case r.written.of != nil:
			a.elsewhere = r.written.of
			return r.written.of.window(addr-r.start, n)
		default:
			a.open(r)
		}
		a.latest, a.start = r.data, r.start
	}
	return a.latest[off : off+n : off+n], true
}

// rangeOf returns the last range that begins at addr or before, -1 if there is
// none.
func (a *AddressSpace) rangeOf(addr uint64) int {
	return sort.Search(len(a.ranges), func(i int) bool { return a.ranges[i].start > addr }) - 1
}

// Map is Cores for later: the bytes are nil if the range has none of its own
// yet.
func (a *AddressSpace) Map(addr, n uint64) ([]byte, bool) {
	if a.writtenAt(addr, n) != nil {
		return nil, true
	}
	return a.Cores(addr, n)
}

// Cores returns the n bytes at addr for a program, or false as Bytes does. The
// program may use the bytes that it has touched, until it waits.
func (a *AddressSpace) Cores(addr, n uint64) ([]byte, bool) {
	b, ok := a.Bytes(addr, n)
	if !ok || a.guard == nil {
		return b, ok
	}
	r := &a.ranges[a.rangeOf(addr)]
	return a.guard.Cores(r.piece, b, r.off+addr-r.start), true
}

// Touch prepares a program's access to n bytes, at least 1, at addr within one
// range. It returns the first of their pages that need a Fault, or the zero
// Pages if the program may continue. It panics if the range does not exist.
func (a *AddressSpace) Touch(addr, n uint64, write bool) Pages {
	if !a.asks {
		return Pages{}
	}
	return a.touch(addr, n, write)
}

func (a *AddressSpace) touch(addr, n uint64, write bool) Pages {
	if !a.Has(addr, n) {
		// programmer's mistake
		panic(fmt.Sprintf("host: touch of %d bytes at %#x, which are none", n, addr))
	}
	if a.pages != nil {
		if absent := a.pages.Touch(addr, n, write); absent.Count > 0 {
			return absent
		}
	}
	if a.guard != nil {
		r := &a.ranges[a.rangeOf(addr)]
		a.guard.Open(r.piece, r.off+addr-r.start, n, write)
	}
	return Pages{}
}

// Prepare makes n bytes accessible for setting up, before the program first
// waits. It takes no time. If they exceed memory, a part is on storage when the
// program begins. It returns an error if the process cannot have them.
func (a *AddressSpace) Prepare(addr, n uint64) error {
	if !a.Has(addr, n) {
		// programmer's mistake
		panic(fmt.Sprintf("host: %d bytes at %#x are to be prepared, which are none", n, addr))
	}
	if a.process != nil {
		if err := a.process.pager.prepare(addr, n); err != nil {
			return err
		}
	} else if a.pages != nil {
		for absent := a.pages.Touch(addr, n, true); absent.Count > 0; absent = a.pages.Touch(addr, n, true) {
			if err := a.pages.Fault(nil, absent, true); err != nil {
				return err
			}
		}
	}
	if a.guard != nil {
		r := &a.ranges[a.rangeOf(addr)]
		a.guard.Open(r.piece, r.off+addr-r.start, n, true)
	}
	return nil
}

// Store writes bytes to the memory of a process on another thread, such as a
// driver's, and brings in absent pages (copy_to_user). They must lie in one
// range. It fails, for example, if the process has ended.
func (a *AddressSpace) Store(t *Thread, addr uint64, b []byte) error {
	n := uint64(len(b))
	to, ok := a.Bytes(addr, n)
	if ok && n > 0 && a.pages != nil {
		for absent := a.pages.Touch(addr, n, true); absent.Count > 0; absent = a.pages.Touch(addr, n, true) {
			if err := a.pages.Fault(t, absent, true); err != nil {
				return err
			}
		}
		to, ok = a.Bytes(addr, n)
	}
	if !ok {
		return fmt.Errorf("host: %d bytes at %#x: %w", n, addr, ErrNoMapping)
	}
	copy(to, b)
	return nil
}

// Fault provides pages that Touch returned. The thread t of the program works
// and may wait meanwhile; with t nil it takes no time. It returns an error if
// the program cannot have them.
func (a *AddressSpace) Fault(t *Thread, p Pages, write bool) error { return a.pages.Fault(t, p, write) }

// PDID returns the name of the process for devices (protection domain
// identifier, 16 bits); 0: it has none.
func (a *AddressSpace) PDID() uint16 { return a.pdid }

// Settle records that the program waits: it must touch again before its next
// access.
func (a *AddressSpace) Settle() {
	if a.guard != nil {
		a.guard.Close()
	}
	if a.elsewhere != nil {
		a.elsewhere.close()
		a.elsewhere = nil
	}
}

// Watched reports whether programs are watched: then an access without a touch
// is a fault of the processor (package guard).
func (a *AddressSpace) Watched() bool { return a.guard != nil }

// Stray converts the address of a processor fault to the virtual address that
// the program tried to access. false: it is not in this address space.
func (a *AddressSpace) Stray(fault uintptr) (addr uint64, ok bool) {
	if a.guard == nil {
		return 0, false
	}
	piece, off, ok := a.guard.Find(fault)
	for i := range a.ranges {
		if r := &a.ranges[i]; ok && r.piece == piece && off >= r.off && off-r.off < uint64(len(r.data)) {
			return r.start + off - r.off, true
		}
	}
	return 0, false
}

// Release ends the address space: its bytes must not be used any more.
func (a *AddressSpace) Release() {
	if a.guard != nil {
		a.guard.Release()
	}
	for _, b := range a.large {
		lazy.Free(b)
	}
	a.ranges, a.latest, a.large, a.unopened = nil, nil, nil, 0
}
