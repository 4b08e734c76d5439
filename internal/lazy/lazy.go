// Package lazy allocates large pieces of memory. Only bytes in use take memory
// of the machine, and the garbage collector does not count the rest.
package lazy

// small is the size in bytes below which ordinary memory is as good.
const small = 1 << 20

// Large reports whether Bytes returns a large piece for n bytes, which the
// caller must free.
func Large(n int) bool { return n >= small }

// Many is the number of nodes from which a run takes large pieces for all nodes,
// and has equal bytes once: with fewer nodes the pieces would stay empty. Tests
// change it, so that small runs do the same.
var Many = 256
