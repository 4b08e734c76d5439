package cli

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// control is a request to a terminal.
func control(t *testing.T, file *os.File, request uintptr, argument unsafe.Pointer) {
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument))
	require.Zero(t, err)
}

// terminal is a pseudo terminal, which begins with no columns, and where its output is read.
func terminal(t *testing.T) (screen, file *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, screen.Close()) })
	var locked, number int32
	control(t, screen, syscall.TIOCSPTLCK, unsafe.Pointer(&locked))
	control(t, screen, syscall.TIOCGPTN, unsafe.Pointer(&number))
	file, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return screen, file
}

// A terminal that says it has no columns is told of progress all the same, with
// what was done before; one that says how many has lines of these.
func TestProgressOnTerminals(t *testing.T) {
	for _, columns := range []uint16{0, 60} {
		screen, file := terminal(t)
		control(t, file, syscall.TIOCSWINSZ, unsafe.Pointer(&[4]uint16{columns, columns}))
		begin := make(chan time.Time)
		g := newProgress(file, "slow", 4, begin)
		g.Step()
		begin <- time.Time{}
		g.Step()
		var shown strings.Builder
		for !strings.Contains(shown.String(), "2/4, about ") {
			b := make([]byte, 1000)
			n, err := screen.Read(b)
			require.NoError(t, err)
			shown.Write(b[:n])
		}
		require.Contains(t, shown.String(), "slow ")
		g.Stop()
	}
}

// What ends before it is shown writes nothing.
func TestQuickProgress(t *testing.T) {
	screen, file := terminal(t)
	g := newProgress(file, "quick", 4, nil)
	g.Step()
	g.Stop()
	_, err := file.WriteString("all")
	require.NoError(t, err)
	b := make([]byte, 100)
	n, err := screen.Read(b)
	require.NoError(t, err)
	require.Equal(t, "all", string(b[:n]))
}
