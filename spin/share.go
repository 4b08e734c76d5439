package spin

import "math/bits"

// Handlers that run at the same time share HPU memory with these functions.

// Behind returns the T at bytes behind *v, where v is a state at the head of an
// area of varying size.
func Behind[T, S any](v *S, at uint32) *T { return At[T](After(v) + Ptr(at)) }

// Lock waits for a lock in HPU memory and takes it. The lock is 0 while nobody
// has it. Keep it for a short time only: a waiting handler uses its budget.
// Suspends.
func Lock(p *uint64) {
	for !CAS(p, 0, 1) {
		Yield()
	}
}

// Unlock gives a lock back.
func Unlock(p *uint64) { *p = 0 }

// Trylock takes a lock if nobody has it. Suspends.
func Trylock(p *uint64) bool { return CAS(p, 0, 1) }

// A lock for many readers or one writer lies in HPU memory. It is 0 while
// nobody has it, else the number of readers, or writer. A writer waits until
// there is no reader, so many readers can keep it waiting.
const writer = 1 << 63

// RLock takes a lock for reading and waits until no writer has it. Suspends.
func RLock(p *uint64) {
	for {
		if n := *p; n < writer && CAS(p, n, n+1) {
			return
		}
		Yield()
	}
}

// RUnlock gives back what [RLock] took. Suspends.
func RUnlock(p *uint64) { FAdd(p, ^uint64(0)) }

// WLock takes a lock of readers and writers for writing and waits until nobody has it. Suspends.
func WLock(p *uint64) {
	for !CAS(p, 0, writer) {
		Yield()
	}
}

// WUnlock gives back what [WLock] took. Suspends.
func WUnlock(p *uint64) { CAS(p, writer, 0) }

// Acquire takes one of up to 64 things and returns its number. *free has a bit
// for each thing that nobody has. It waits until there is one. Suspends.
func Acquire(free *uint64) uint32 {
	for {
		f := *free
		if f == 0 {
			Yield()
			continue
		}
		if CAS(free, f, f&(f-1)) {
			return uint32(bits.TrailingZeros64(f))
		}
	}
}

// Release gives thing i back. Its bit is 0 and nobody else sets it, so an
// addition sets it, without a loop. Suspends.
func Release(free *uint64, i uint32) { FAdd(free, 1<<i) }
