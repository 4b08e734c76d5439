// Package lazy allocates large pieces of memory. Only bytes in use take memory
// of the machine, and the garbage collector does not count the rest.
package lazy

// small is the size in bytes below which ordinary memory is as good.
const small = 1 << 20

// Large reports whether Bytes returns a large piece for n bytes, which the
// caller must free.
func Large(n int) bool { return n >= small }

// Shared is whether the nodes of a run have equal bytes once. Tests compare with
// runs where each node has its own.
var Shared = true
