package spin

import "unsafe"

// Ptr is the address of a byte of HPU memory, for use in records. In wasm it is
// an offset in the module's memory. Natively the device under test gives
// addresses to Go variables as they are needed, so that the same source runs
// both ways. Arithmetic within one variable works in both.
type Ptr uint32

// Bytes returns the n bytes at p. A range outside the module's memory, or
// natively outside every known variable, ends the handler with Segv.
func (p Ptr) Bytes(n uint32) []byte { return unsafe.Slice(resolve(p, n), n) }

// At returns the T at p.
func At[T any](p Ptr) *T {
	var zero T
	return (*T)(unsafe.Pointer(resolve(p, uint32(unsafe.Sizeof(zero)))))
}

// Addr returns the address of b's first byte. In TinyGo a variable whose
// address is taken here cannot live on the stack, so use a part of the state or
// of the packet.
func Addr(b []byte) Ptr { return address(unsafe.SliceData(b), uintptr(len(b))) }

// AddrOf returns the address of *v, with the restriction of [Addr].
func AddrOf[T any](v *T) Ptr {
	return address((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// After returns the address behind *v. There the rest of the HPU memory begins
// if v is a state at the head of an area of varying size.
func After[T any](v *T) Ptr { return AddrOf(v) + Ptr(unsafe.Sizeof(*v)) }

// View returns b as a slice of T, as many as are complete. T must not contain pointers.
func View[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/unsafe.Sizeof(zero))
}
