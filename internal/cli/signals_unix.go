//go:build linux || darwin

package cli

import (
	"os"
	"syscall"
)

// ends are the signals that end a command. SIGXCPU comes from a soft limit of
// the processor's time, which some batch systems set; a kill follows it.
var ends = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGXCPU}
