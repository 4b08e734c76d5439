package host

import (
	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/internal/poison"
)

// back allocates the process's own bytes for addresses.
func (a *AddressSpace) back(addr uint64, n int) {
	if a.guard != nil {
		a.append(addr, a.guard.Alloc(n), n, true)
	} else {
		data := lazy.Bytes(n)
		if lazy.Large(n) {
			a.large = append(a.large, data)
		}
		a.append(addr, data, n, false)
	}
	spoil(a, addr, addr+uint64(n))
}

// page returns the bytes of a page in the process's backing: none if they are
// elsewhere. The last page of a mapping may be shorter.
func (a *AddressSpace) page(va uint64) []byte {
	i := a.rangeOf(va)
	if i < 0 {
		return nil
	}
	r := &a.ranges[i]
	if r.written != nil {
		return nil
	}
	off := va - r.start
	end := min(off+PageBytes, uint64(len(r.data)))
	return r.data[off:end:end]
}

// spoil overwrites the process's own bytes at some addresses, in tests.
func spoil(a *AddressSpace, start, end uint64) {
	if !poison.On {
		return
	}
	a.parts(start, end, func(r memoryRange) { poison.Bytes(r.data) })
}

// parts calls f for the process's own bytes at some addresses.
func (a *AddressSpace) parts(start, end uint64, f func(r memoryRange)) {
	for i := range a.ranges {
		r := &a.ranges[i]
		from, to := max(start, r.start), min(end, r.start+uint64(len(r.data)))
		if from < to && !r.shared {
			f(r.slice(from, to))
		}
	}
}

// forget removes the bytes of addresses.
func (a *AddressSpace) forget(start, end uint64) {
	spoil(a, start, end)
	if a.guard == nil && !poison.On {
		a.parts(start, end, func(r memoryRange) { lazy.Clear(r.data) })
	}
	a.remove(start, end)
}

// blank zeroes the bytes of a new page. If the process has never returned
// pages, the bytes are zeros already: a page is never written before it is
// present. Skipping the check saves two page faults of the simulating computer:
// one for the check, one for the first write after it.
func (a *AddressSpace) blank(va uint64) {
	if a.hollowed || poison.On {
		blank(a.page(va))
	}
}
