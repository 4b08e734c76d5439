//go:build !invariants

package runtime

// invariants makes every node check its own books after every event: build tag invariants, on in CI.
const invariants = false
