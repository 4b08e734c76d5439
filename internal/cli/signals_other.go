//go:build !linux && !darwin

package cli

import (
	"os"
	"syscall"
)

// ends are the signals that end a command.
var ends = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
