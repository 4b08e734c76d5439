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

// Many is the number of nodes of a run, and of programs of a module, from which
// those that rest give back what they do not need: with fewer, getting it again
// is not worth it. Tests change it, so that small runs do the same.
var Many = 256
