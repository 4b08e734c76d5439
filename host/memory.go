package host

import (
	"fmt"
	"math"
	"runtime"
	"sort"

	"github.com/spinsim/spinsim/internal/guard"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// AddressSpace is the memory of one process: ranges of bytes at 64-bit virtual
// addresses. Every range stands alone: no access runs from one into the next.
//
// Its bytes are always there; what may not be is a page, and that is the page
// table's business. Devices reach the bytes by Bytes, as portals.Memory asks:
// what a page fault of theirs means is decided before. Programs touch what they
// read or write (Touch), and reach the bytes by Cores until they wait (Settle).
type AddressSpace struct {
	// What the access of a device touches, in one line of the processor's cache.
	latest []byte   // the range found by the latest access: they come in runs
	start  uint64   // where it begins
	lent   int      // pages whose bytes are in another process's backing
	asked  sim.Time // when a device last wanted some of it
	pdid   uint16   // how devices name it; 0: they cannot

	asks    bool // there is a page table or a guard
	ranges  []memoryRange
	last    int // of latest
	next    uint64
	pages   PageTable
	process *Process     // whose it is, if there is an operating system
	guard   *guard.Space // nil: no test watches programs
	pieces  int          // of the guard
	tables  smmu.Tables  // of its pages
	parked  []*passage   // what devices wait for until it has a bank
	_       [16]byte     // it is a multiple of a line
}

type memoryRange struct {
	start  uint64
	data   []byte
	piece  int    // of the guard
	off    uint64 // of data in the piece
	shared bool   // with others
}

const (
	firstAddress = 1 << 16 // address 0 stays invalid, so that a forgotten address is found
	rangeAlign   = 1 << 12 // ranges begin on pages of their own
)

// NewAddressSpace returns an empty address space. With pages nil every page is
// there from the beginning, and a touch costs nothing.
func NewAddressSpace(pages PageTable) *AddressSpace {
	a := &AddressSpace{next: firstAddress, pages: pages, guard: guard.New()}
	a.asks = pages != nil || a.guard != nil
	if a.guard != nil {
		runtime.AddCleanup(a, (*guard.Space).Release, a.guard)
	}
	return a
}

// Alloc makes a new zeroed range of n bytes and returns its address. The bytes
// are the process's own until the end of the run. n below 0 or beyond the
// address space is a programmer's mistake and panics.
func (a *AddressSpace) Alloc(n int) (addr uint64) {
	if n < 0 || uint64(n) > math.MaxUint64-a.next-2*rangeAlign {
		// programmer's mistake: sizes are checked where they are read
		panic(fmt.Sprintf("host: allocation of %d bytes", n))
	}
	if a.process != nil {
		return a.process.alloc(n)
	}
	addr = a.next
	if a.guard != nil {
		a.append(addr, a.guard.Alloc(n), true)
	} else {
		memory.Ask(int64(n))
		a.append(addr, make([]byte, n), false)
	}
	return addr
}

// AllocAligned is Alloc at a multiple of align, a power of two; another is a
// programmer's mistake and panics.
func (a *AddressSpace) AllocAligned(n, align int) (addr uint64) {
	if align < 1 || align&(align-1) != 0 {
		// programmer's mistake
		panic(fmt.Sprintf("host: allocation at a multiple of %d, expected a power of two", align))
	}
	a.next = (a.next + uint64(align) - 1) &^ (uint64(align) - 1)
	return a.Alloc(n)
}

// append makes bytes a range at an address behind all others. guarded says that
// they are the guard's next piece.
func (a *AddressSpace) append(addr uint64, data []byte, guarded bool) {
	if a.guard != nil && !guarded {
		a.guard.Alloc(0) // a piece that is not watched
	}
	a.ranges = append(a.ranges, memoryRange{start: addr, data: data, piece: a.pieces})
	a.pieces++
	// a hole of at least a byte between ranges
	a.next = (addr + uint64(len(data)) + 2*rangeAlign - 1) &^ (rangeAlign - 1)
}

// share makes bytes that others have, too, a range, likewise.
func (a *AddressSpace) share(addr uint64, data []byte) {
	a.append(addr, data, false)
	a.ranges[len(a.ranges)-1].shared = true
}

// remove takes the addresses from start to end away. What is left of a range
// stays where it is, as ranges of their own.
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

// slice is a part of a range.
func (r *memoryRange) slice(from, to uint64) memoryRange {
	off := from - r.start
	return memoryRange{from, r.data[off : to-r.start : to-r.start], r.piece, r.off + off, r.shared}
}

// Bytes returns the n bytes at addr for a device, or false if they do not lie
// within one range. A length of 0 is valid at any address of a range and just
// behind its end.
func (a *AddressSpace) Bytes(addr, n uint64) ([]byte, bool) {
	if a.lent > 0 {
		a.process.materialise(addr, n)
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
		off, size = addr-r.start, uint64(len(r.data))
		if off > size || n > size-off {
			return nil, false
		}
		a.latest, a.start, a.last = r.data, r.start, i
	}
	return a.latest[off : off+n : off+n], true
}

// rangeOf returns the last range that begins at an address or before, -1 if there is none.
func (a *AddressSpace) rangeOf(addr uint64) int {
	return sort.Search(len(a.ranges), func(i int) bool { return a.ranges[i].start > addr }) - 1
}

// Cores returns the n bytes at addr for a program, or false as Bytes does. The
// program may use what it has touched, until it waits.
func (a *AddressSpace) Cores(addr, n uint64) ([]byte, bool) {
	b, ok := a.Bytes(addr, n)
	if !ok || a.guard == nil {
		return b, ok
	}
	r := &a.ranges[a.last]
	return a.guard.Cores(r.piece, b, r.off+addr-r.start), true
}

// Touch is for a program that is about to read or write n bytes, at least 1, at
// addr of one range. It returns the first pages among them that the program
// cannot have as they are, or the zero Pages: then it may go on. An address
// that is none is a programmer's mistake and panics.
func (a *AddressSpace) Touch(addr, n uint64, write bool) Pages {
	if !a.asks {
		return Pages{}
	}
	return a.touch(addr, n, write)
}

func (a *AddressSpace) touch(addr, n uint64, write bool) Pages {
	if _, ok := a.bytes(addr, n); !ok {
		// programmer's mistake
		panic(fmt.Sprintf("host: touch of %d bytes at %#x, which are none", n, addr))
	}
	if a.pages != nil {
		if absent := a.pages.Touch(addr, n, write); absent.Count > 0 {
			return absent
		}
	}
	if a.guard != nil {
		r := &a.ranges[a.last]
		a.guard.Open(r.piece, r.off+addr-r.start, n, write)
	}
	return Pages{}
}

// Prepare gives whoever prepares a program n bytes, to be set before it first
// waits; that takes no time. Of what is more than there is memory the program
// finds a part on storage when it begins. The error says why it cannot have
// them.
func (a *AddressSpace) Prepare(addr, n uint64) error {
	if _, ok := a.bytes(addr, n); !ok {
		// programmer's mistake
		panic(fmt.Sprintf("host: %d bytes at %#x are to be prepared, which are none", n, addr))
	}
	if a.process != nil {
		if err := a.process.prepare(addr, n); err != nil {
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
		r := &a.ranges[a.last]
		a.guard.Open(r.piece, r.off+addr-r.start, n, true)
	}
	return nil
}

// Store writes bytes for a process on a thread that need not be its own, such
// as a driver's, which brings in what is absent (copy_to_user). What it writes
// must lie in one range. The error says why it cannot be written, for instance
// because the process has ended.
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

// Fault gives a program pages that Touch has returned, on its thread, which
// works and perhaps waits meanwhile. With no thread that takes no time. The
// error says why the program cannot have them.
func (a *AddressSpace) Fault(t *Thread, p Pages, write bool) error { return a.pages.Fault(t, p, write) }

// PDID is how devices name the process (protection domain identifier, 16 bits); 0: they cannot.
func (a *AddressSpace) PDID() uint16 { return a.pdid }

// Settle notes that the program waits: what it has touched before it must touch again.
func (a *AddressSpace) Settle() {
	if a.guard != nil {
		a.guard.Close()
	}
}

// Watched reports whether programs are watched: what they do without a touch is
// a fault of the processor (package guard).
func (a *AddressSpace) Watched() bool { return a.guard != nil }

// Stray returns the address that a program has reached for in vain, from that
// of the instruction's fault; false if it is none here.
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

// Release ends the address space: nobody reaches its bytes any more.
func (a *AddressSpace) Release() {
	if a.guard != nil {
		a.guard.Release()
	}
	if a.process != nil {
		a.process.release()
	}
	a.ranges, a.latest = nil, nil
}
