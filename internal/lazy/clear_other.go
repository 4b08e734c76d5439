//go:build !linux

package lazy

// Clear does nothing; Free frees the memory.
func Clear([]byte) {}

// Huge does nothing.
func Huge([]byte) {}

// Prepare does nothing.
func Prepare(int) {}
