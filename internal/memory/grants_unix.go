//go:build linux || darwin

package memory

import "syscall"

// grants reports whether the system gives n bytes in one piece now. It asks in
// the way that Go does. For example, a system without any limit refuses more
// than it has in memory and swap together.
func grants(n int64) bool {
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return false
	}
	return syscall.Munmap(b) == nil
}
