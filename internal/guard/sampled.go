//go:build !invariants

package guard

// every is how often Close closes after many calls: one time of so many.
const every = 16
