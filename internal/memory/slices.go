package memory

import "unsafe"

// Make is make, for a slice that the user's input can make large. It asks first.
func Make[T any, N int | int64 | uint32](n N) []T {
	Ask(int64(n) * int64(unsafe.Sizeof(*new(T))))
	return make([]T, n)
}

// Append is append, for a slice that the user's input can make large. It asks
// when the slice grows.
func Append[T any](s []T, x T) []T {
	if len(s) == cap(s) {
		Ask(2 * int64(cap(s)) * int64(unsafe.Sizeof(x)))
	}
	return append(s, x)
}
