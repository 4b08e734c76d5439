// Package lazy gives out large pieces of memory of which only what is used
// takes any: not even the garbage collector's accounts grow.
package lazy

// small is the size below which ordinary memory does as well, in bytes.
const small = 1 << 20

// Large tells whether Bytes returns a large piece for so many bytes, which
// somebody has to give back.
func Large(n int) bool { return n >= small }
