package spintest

import (
	"fmt"
	"unsafe"

	"github.com/spinsim/spinsim/spin"
)

// region is Go memory with an address. It keeps the memory alive, so the memory
// does not move.
type region struct {
	base *byte
	size uintptr
	at   spin.Ptr
}

// memory gives addresses to Go memory. There are gaps between regions, so an
// access behind one region does not reach another.
type memory struct {
	regions []region
	next    spin.Ptr
}

const (
	firstAddress = 0x1_0000
	gap          = 64
	alignment    = 16
)

// add gives the n bytes at p an address.
func (m *memory) add(p *byte, n uintptr) spin.Ptr {
	if m.next == 0 {
		m.next = firstAddress
	}
	at := m.next
	m.regions = append(m.regions, region{p, n, at})
	m.next = (at + spin.Ptr(n) + gap + alignment - 1) &^ (alignment - 1)
	return at
}

// find returns the address of the n bytes at p, if a region holds them.
func (m *memory) find(p *byte, n uintptr) (spin.Ptr, bool) {
	at := uintptr(unsafe.Pointer(p))
	for _, r := range m.regions {
		base := uintptr(unsafe.Pointer(r.base))
		if at >= base && at+n <= base+r.size {
			return r.at + spin.Ptr(at-base), true
		}
	}
	return 0, false
}

// allocate returns n new bytes and their address.
func (m *memory) allocate(n int) ([]byte, spin.Ptr) {
	// These are words, so that Go aligns the bytes for all types of a state, as
	// a device does.
	words := make([]complex128, n/alignment+1)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
	return b, m.add(unsafe.SliceData(b), uintptr(n))
}

// Map gives b the address at. It is for tests that run a compiled module, whose
// memory begins at 0.
func (d *Device) Map(at spin.Ptr, b []byte) {
	d.memory.regions = append(d.memory.regions, region{unsafe.SliceData(b), uintptr(len(b)), at})
}

func newState[S any](m *memory, extra int) *S {
	var zero S
	b, _ := m.allocate(int(unsafe.Sizeof(zero)) + extra)
	return (*S)(unsafe.Pointer(unsafe.SliceData(b)))
}

// Address implements [spin.Device].
func (d *Device) Address(p *byte, n uintptr) spin.Ptr {
	if p == nil {
		return 0
	}
	if at, found := d.memory.find(p, n); found {
		return at
	}
	return d.memory.add(p, n)
}

// Resolve implements [spin.Device].
func (d *Device) Resolve(p spin.Ptr, n uint32) *byte {
	if n == 0 {
		return nil
	}
	for _, r := range d.memory.regions {
		if p >= r.at && uint64(p)+uint64(n) <= uint64(r.at)+uint64(r.size) {
			return (*byte)(unsafe.Add(unsafe.Pointer(r.base), p-r.at))
		}
	}
	panic(fmt.Sprintf("spintest: %d bytes at %#x are outside the handler's memory", n, p))
}

// bytes returns the n bytes at p.
func (d *Device) bytes(p spin.Ptr, n uint64) []byte {
	if n > 1<<32-1 {
		panic(fmt.Sprintf("spintest: %d bytes at %#x are outside the handler's memory", n, p))
	}
	return unsafe.Slice(d.Resolve(p, uint32(n)), n)
}
