//go:build linux && !race

// The race detector reserves more memory than any bound allows.

package floor

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain plays a program that ends in the way that $FLOOR_ENDS names.
func TestMain(m *testing.M) {
	switch os.Getenv("FLOOR_ENDS") {
	case "":
		os.Exit(m.Run())
	case "well":
		fmt.Fprintln(os.Stderr, "a warning")
		os.Exit(7)
	case "with a file of its own":
		_, err := io.Copy(os.Stdout, os.NewFile(3, "three"))
		fmt.Fprint(os.Stderr, err)
		os.Exit(0)
	case "without memory":
		var kept [][]byte
		for {
			kept = append(kept, make([]byte, 64<<20))
			fmt.Fprint(io.Discard, len(kept))
		}
	case "never":
		for n := 0; ; n++ {
			fmt.Fprint(io.Discard, n)
		}
	case "in a panic":
		panic(os.ErrInvalid)
	case "by its own signal":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "by a signal":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("ready")
		fmt.Fprintln(os.Stderr, <-signals)
		os.Exit(9)
	}
}

// bounded starts this test as a program that ends in a way, behind a bound.
func bounded(ulimit, ends string) (c *exec.Cmd, errs *bytes.Buffer) {
	errs = new(bytes.Buffer)
	c = exec.Command("sh", "-c", `ulimit `+ulimit+`; exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), "FLOOR_ENDS="+ends)
	c.Stderr = errs
	return c, errs
}

func status(err error) int {
	var s *exec.ExitError
	if errors.As(err, &s) {
		return s.ExitCode()
	}
	return 0
}

// A bounded program ends as it would without the bound, but for one that dies of
// memory or of its processor time: it has status 1 and says one line.
func TestEndsUnderBounds(t *testing.T) {
	const refused = "spinsim: ended: the system has refused it memory or a thread that ulimit does not allow\n"
	for _, k := range []struct {
		ulimit, ends string
		status       int
		said         string
	}{
		{"-v 8000000", "well", 7, "a warning\n"},
		{"-d 8000000", "well", 7, "a warning\n"},
		{"-v 2097152", "without memory", 1, refused},
		{"-d 524288", "without memory", 1, refused},
		{"-v 1000000", "well", 1, "spinsim: ulimit -v allows less than 1.75 GiB, expected at least 2 GiB\n"},
		{"-d 100000", "well", 1, "spinsim: ulimit -d allows less than 256 MiB, expected at least 512 MiB\n"},
		{"-n 8", "well", 1, "spinsim: ulimit -n allows less than 16 open files, expected at least 64\n"},
		{"-t 1", "never", 1, "spinsim: ended: ulimit -t allows it no more processor time\n"},
		{"-v 8000000", "by its own signal", -1, ""},
	} {
		c, errs := bounded(k.ulimit, k.ends)
		require.Equal(t, k.status, status(c.Run()), "%s: %s: %s", k.ulimit, k.ends, errs)
		require.Equal(t, k.said, errs.String(), "%s: %s", k.ulimit, k.ends)
	}
	c, errs := bounded("-v 8000000", "in a panic")
	require.Equal(t, 2, status(c.Run()))
	require.Contains(t, errs.String(), "panic: invalid argument\n\ngoroutine ", "a mistake of ours is shown")
}

// ready starts a bounded program that waits for a signal, and returns its output
// after its first line.
func ready(t *testing.T) (c *exec.Cmd, out io.Reader, errs *bytes.Buffer) {
	c, errs = bounded("-v 8000000", "by a signal")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	var word string
	_, err = fmt.Fscanln(out, &word)
	require.NoError(t, err)
	return c, out, errs
}

// A signal to the process that waits reaches the one that works.
func TestSignalsUnderBounds(t *testing.T) {
	c, _, errs := ready(t)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 9, status(c.Wait()))
	require.Equal(t, "terminated\n", errs.String())
}

// When the process that waits is killed, so is the one that works: its standard
// output ends.
func TestKilledUnderBounds(t *testing.T) {
	c, out, _ := ready(t)
	require.NoError(t, c.Process.Kill())
	_, err := io.ReadAll(out)
	require.NoError(t, err, "its output ends")
	require.Equal(t, -1, status(c.Wait()))
}

// What the user opens is there under its number.
func TestDescriptorsUnderBounds(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	_, err = w.WriteString("three")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	c, errs := bounded("-v 8000000", "with a file of its own")
	c.ExtraFiles = []*os.File{r}
	out, err := c.Output()
	require.NoError(t, err)
	require.Equal(t, "three", string(out))
	require.Equal(t, "<nil>", errs.String())
}
