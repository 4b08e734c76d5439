// Package floor ends a program that was started with so little memory that Go
// would end it before it can look, with a list of all goroutines.
//
// It imports nothing but syscall, so Go prepares it before all packages that
// take memory.
package floor

import "syscall"

// least are the smallest limits with which Go always comes to the first line of
// the program. With cgo each thread reserves 72 MiB.
var least = []struct {
	resource int
	bytes    uint64
	line     string
}{
	{syscall.RLIMIT_AS, 1792 << 20, "spinsim: ulimit -v allows less than 1.75 GiB, expected at least 2 GiB\n"},
	{syscall.RLIMIT_DATA, 256 << 20, "spinsim: ulimit -d allows less than 256 MiB, expected at least 512 MiB\n"},
}

func init() {
	for _, l := range least {
		var is syscall.Rlimit
		if err := syscall.Getrlimit(l.resource, &is); err == nil && is.Cur < l.bytes {
			_, _ = syscall.Write(2, []byte(l.line))
			syscall.Exit(1)
		}
	}
}
