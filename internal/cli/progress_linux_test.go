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

// control makes a request to a terminal.
func control(t *testing.T, file *os.File, request uintptr, argument unsafe.Pointer) {
	_, _, err := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument))
	require.Zero(t, err)
}

// terminal opens a pseudo terminal without columns. The test reads its output
// at screen.
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

// A terminal that reports no columns shows the progress all the same, including
// earlier measurements. Otherwise the lines have the reported width.
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

// A run that ends before the progress is shown writes nothing.
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
