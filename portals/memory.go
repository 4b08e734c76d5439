package portals

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/used"
)

// region checks and builds the memory of a descriptor or entry.
func (st *state) region(fn string, start, length uint64, iov []IOVec, vector bool) (Region, error) {
	if !vector {
		if iov != nil {
			return Region{}, invalid(fn, "vectors without the IOVEC option")
		}
		r, ok := contiguous(start, length)
		if !ok {
			return Region{}, invalid(fn, "memory of %d bytes at %#x wraps around", length, start)
		}
		return r, nil
	}
	st.proc.used.Add(used.Vectors)
	if len(iov) > st.limits.MaxIOVecs {
		return Region{}, invalid(fn, "%d vectors, largest number is %d", len(iov), st.limits.MaxIOVecs)
	}
	r, ok := vectored(iov)
	if !ok {
		return Region{}, invalid(fn, "vectors wrap around")
	}
	return r, nil
}

// Memory is the address space of a process. An interface reads and writes only
// through it.
type Memory interface {
	// Bytes returns the memory at addr, 1 to n bytes; n is at least 1. It
	// returns fewer than n where the backing store is not contiguous, and the
	// caller asks again for the rest. It returns false if addr is not
	// accessible. With write the caller stores into the slice: false then also
	// means that the memory is read-only. Without write, the caller only reads.
	// The caller uses the slice before its next call, and does not keep it.
	Bytes(addr, n uint64, write bool) ([]byte, bool)
	// Store copies b, at least 1 byte, to addr. It returns how many bytes: fewer
	// than all if memory is inaccessible.
	Store(addr uint64, b []byte) int
	// Accessible returns how many of the n bytes at addr can be read, or written.
	Accessible(addr, n uint64, write bool) uint64
}

// IOVec is one element of a scatter/gather list (ptl_iovec_t, Portals 4.x §3.10.2).
type IOVec struct {
	Base   uint64 // virtual address
	Length uint64 // bytes, 0 is legal
}

// Region is memory of a process: a contiguous range, or the concatenation of
// IOVec if that is not nil.
type Region struct {
	Start  uint64  // virtual address; unused with IOVec
	Length uint64  // bytes in all
	IOVec  []IOVec // never changed once the region is in use
}

// contiguous makes a region of one range. It returns false if the range wraps
// around.
func contiguous(start, length uint64) (Region, bool) {
	if _, carry := bits.Add64(start, length, 0); carry != 0 {
		return Region{}, false
	}
	return Region{Start: start, Length: length}, true
}

// vectored copies a scatter/gather list into a region. It returns false if a
// vector or the sum of the lengths wraps around.
func vectored(iov []IOVec) (Region, bool) {
	r := Region{IOVec: make([]IOVec, len(iov))}
	copy(r.IOVec, iov)
	for _, v := range iov {
		if _, carry := bits.Add64(v.Base, v.Length, 0); carry != 0 {
			return Region{}, false
		}
		sum, carry := bits.Add64(r.Length, v.Length, 0)
		if carry != 0 {
			return Region{}, false
		}
		r.Length = sum
	}
	return r, true
}

// Segments iterates over the address ranges of n bytes from offset off on. It
// stops at the end of the region.
func (r *Region) Segments(off, n uint64) SegIter {
	if off >= r.Length {
		return SegIter{}
	}
	n = min(n, r.Length-off)
	if r.IOVec == nil {
		return SegIter{addr: r.Start + off, first: n}
	}
	return SegIter{iov: r.IOVec, skip: off, left: n}
}

// Addr returns the address of the byte at offset off. Beyond the end it returns
// the address after the last byte.
func (r *Region) Addr(off uint64) uint64 {
	if r.IOVec == nil {
		return r.Start + min(off, r.Length)
	}
	end := uint64(0)
	for _, v := range r.IOVec {
		if off < v.Length {
			return v.Base + off
		}
		off -= v.Length
		end = v.Base + v.Length
	}
	return end
}

// SegIter walks over address ranges without allocating.
type SegIter struct {
	addr, first uint64
	iov         []IOVec
	skip, left  uint64
}

// Next returns the next range. ok is false if there is none; n is never 0.
func (it *SegIter) Next() (addr, n uint64, ok bool) {
	if it.first > 0 {
		n, it.first = it.first, 0
		return it.addr, n, true
	}
	for it.left > 0 && len(it.iov) > 0 {
		v := it.iov[0]
		it.iov = it.iov[1:]
		if it.skip >= v.Length {
			it.skip -= v.Length
			continue
		}
		n = min(v.Length-it.skip, it.left)
		addr = v.Base + it.skip
		it.left -= n
		it.skip = 0
		return addr, n, true
	}
	return 0, 0, false
}

// whole returns n bytes of the region from offset off on if they are contiguous
// in the usual way. After nil they may still be contiguous.
func (r *Region) whole(m Memory, off, n uint64) []byte {
	if r.IOVec != nil || off >= r.Length || n > r.Length-off || m == nil {
		return nil
	}
	b, ok := m.Bytes(r.Start+off, n, false)
	if !ok || uint64(len(b)) != n {
		return nil
	}
	return b
}

// writeMem copies data to the region at off. It returns how many bytes: fewer
// than all if memory is inaccessible or the region ends.
func writeMem(m Memory, r *Region, off uint64, data []byte) (written int) {
	it := r.Segments(off, uint64(len(data)))
	for addr, n, ok := it.Next(); ok && m != nil; addr, n, ok = it.Next() {
		k := m.Store(addr, data[:n])
		written += k
		data = data[n:]
		if uint64(k) < n {
			break
		}
	}
	return written
}

// readMem copies from the region at off into dst. It reports whether all bytes
// were accessible. It does not change dst for offsets beyond the region.
func readMem(m Memory, r *Region, off uint64, dst []byte) bool {
	if b := r.whole(m, off, uint64(len(dst))); b != nil {
		copy(dst, b)
		return true
	}
	it := r.Segments(off, uint64(len(dst)))
	for addr, n, ok := it.Next(); ok; addr, n, ok = it.Next() {
		for n > 0 {
			b, ok := bytesAt(m, addr, n, false)
			if !ok {
				return false
			}
			copy(dst, b)
			dst = dst[len(b):]
			addr += uint64(len(b))
			n -= uint64(len(b))
		}
	}
	return true
}

// bytesAt guards against a Memory that breaks its contract.
func bytesAt(m Memory, addr, n uint64, write bool) ([]byte, bool) {
	if m == nil {
		return nil, false
	}
	b, ok := m.Bytes(addr, n, write)
	if !ok || len(b) == 0 {
		return nil, false
	}
	if uint64(len(b)) > n {
		b = b[:n]
	}
	return b, true
}

// accessible reports whether n bytes of the region from offset off can be
// read, or written.
func accessible(m Memory, r *Region, off, n uint64, write bool) bool {
	it := r.Segments(off, n)
	for addr, n, ok := it.Next(); ok; addr, n, ok = it.Next() {
		if m == nil || m.Accessible(addr, n, write) < n {
			return false
		}
	}
	return true
}
