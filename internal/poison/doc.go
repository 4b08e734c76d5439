// Package poison finds uses of pooled objects after their release. Without the
// build tag invariants it does nothing: its types have no size and its
// functions are empty.
//
// With the tag a pool does not recycle an object. Instead it marks it,
// overwrites its memory, and forgets it. So an event or a pointer that comes
// too late finds a marked object rather than a new one in its place, and Live
// panics. Releasing an object twice panics, too.
package poison
