package mpirun

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// counted is the event of Compute.Instruction.
var counted = unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS, Size: unix.PERF_ATTR_SIZE_VER0, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}

// instructions counts what the main thread of a process carries out, the kernel
// left out. A counter is given back with close.
type instructions struct{ file *os.File }

func countInstructions(pid int) (instructions, error) {
	event := counted
	fd, err := unix.PerfEventOpen(&event, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return instructions{}, fmt.Errorf("mpirun: no counter of instructions: %w: does this machine have one, and may you use it (/proc/sys/kernel/perf_event_paranoid)?", err)
	}
	return instructions{os.NewFile(uintptr(fd), "instructions")}, nil
}

func (c instructions) read() (uint64, error) {
	var b [8]byte
	if _, err := c.file.Read(b[:]); err != nil {
		return 0, fmt.Errorf("mpirun: counter of instructions: %w", err)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

func (c instructions) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// possible is an error if this machine cannot measure the costs.
func (c *Compute) possible() error {
	if c.Instruction == 0 {
		return nil
	}
	own, err := countInstructions(0)
	if err != nil {
		return err
	}
	return own.close()
}
