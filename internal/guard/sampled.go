//go:build !invariants

package guard

// always is whether each call of Close closes.
const always = false
