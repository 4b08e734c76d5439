// Package lazy gives out large pieces of memory of which only what is used takes any: not even the garbage collector's accounts grow.
package lazy

// small is the size below which ordinary memory does as well, in bytes.
const small = 1 << 20
