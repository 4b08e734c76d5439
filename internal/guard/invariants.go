//go:build invariants

package guard

func init() { Enable(1) }
