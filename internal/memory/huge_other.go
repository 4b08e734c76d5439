//go:build !linux

package memory

// HugePages does nothing here.
func HugePages() {}
