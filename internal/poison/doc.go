// Package poison finds uses of pooled objects after they were given back.
// Without the build tag invariants it is nothing: its types have no size and
// its functions are empty.
//
// With the tag a pool does three things in place of recycling: it marks the
// object, overwrites what it holds, and forgets it. So an event or a pointer
// that comes too late finds a marked object rather than a later one in its
// place, and Live says so. A pool that is given the same object twice says so
// too.
package poison
