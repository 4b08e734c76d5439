//go:build linux && !cgo

package floor

import "syscall"

// least are the smallest limits with which Go comes to the first line of the
// program. See also floor_cgo.go.
var least = []struct {
	resource int
	least    uint64
	line     string
}{
	{syscall.RLIMIT_AS, 1792 << 20, "spinsim: ulimit -v allows less than 1.75 GiB, expected at least 2 GiB\n"},
	{syscall.RLIMIT_DATA, 256 << 20, "spinsim: ulimit -d allows less than 256 MiB, expected at least 512 MiB\n"},
	{syscall.RLIMIT_NOFILE, 16, "spinsim: ulimit -n allows less than 16 open files, expected at least 64\n"},
}

func init() {
	for _, l := range least {
		var is syscall.Rlimit
		if err := syscall.Getrlimit(l.resource, &is); err == nil && is.Cur < l.least {
			_, _ = syscall.Write(2, []byte(l.line))
			syscall.Exit(1)
		}
	}
}
