package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/file"
)

// Only one ends the program. A finished command is not ended, and a command
// that is being ended does not finish.
func TestACommandEndsOnce(t *testing.T) {
	// in its own process, because a program that is being ended writes no more
	// files
	if os.Getenv("ENDS_ONCE") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestACommandEndsOnce$")
		c.Env = append(os.Environ(), "ENDS_ONCE=1")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	var errs bytes.Buffer
	codes := make(chan int, 1)
	finished := &ending{over: make(chan struct{}), exit: func(code int) { codes <- code }}
	finished.finish()
	finished.end(ExitStopped, &errs, "x: interrupted")
	require.Empty(t, errs.String())
	require.Empty(t, codes)

	ended := &ending{over: make(chan struct{}), exit: func(code int) { codes <- code }}
	t.Chdir(t.TempDir())
	var outputs []Output
	for _, name := range []string{"old", "replaced", "overwritten", "new", "missing"} {
		outputs = append(outputs, Output{"--" + name, name})
	}
	for _, one := range outputs[:3] {
		require.NoError(t, os.WriteFile(one.Name, []byte("was"), 0o600))
	}
	ended.writes(append(outputs, Output{"--device", os.DevNull}))
	require.NoError(t, file.Write("replaced", []byte("is")))
	require.NoError(t, os.WriteFile("overwritten", []byte("is"), 0o600))
	require.NoError(t, file.Write("new", nil))
	ended.end(ExitStopped, &errs, "x: interrupted")
	require.Equal(t, "x: interrupted: not written, what older files of the names hold stays: --old old, --missing missing\n", errs.String())
	require.Equal(t, ExitStopped, <-codes)
	require.False(t, ended.mu.TryLock(), "finish would return")
}

// A broken line goes on below its last column. Lines of a paragraph are joined,
// lines of a list are not.
func TestFit(t *testing.T) {
	var out slender
	Fit(&out, func(to io.Writer) {
		_, err := io.WriteString(to, "A paragraph of a help text with lines that are long,\nand short.\n\n  name    what it is, in more words than fit\n  other   it\n\nFlags:\n      --set PATH=VALUE-of-a-profile   change one\n")
		require.NoError(t, err)
	})
	require.Equal(t, `A paragraph of a help text with lines
that are long, and short.

  name    what it is, in more words than
          fit
  other   it

Flags:
      --set PATH=VALUE-of-a-profile
     change one
`, out.String())
}

// slender is a terminal of 40 columns.
type slender struct{ bytes.Buffer }

func (*slender) Columns() int { return 40 }

// A line of an error that has a megabyte of the user's file is short, and what
// is left of it are whole characters.
func TestLongErrors(t *testing.T) {
	err := errors.Join(errors.New("a.yaml:3: first"), errors.New("a.yaml:4: mode: "+strings.Repeat("ä", 1<<20)+", expected spin"))
	text := short(err)
	require.Less(t, len(text), 3000)
	require.True(t, utf8.ValidString(text))
	require.True(t, strings.HasPrefix(text, "a.yaml:3: first\na.yaml:4: mode: ää"))
	require.True(t, strings.HasSuffix(text, "ä, expected spin"))
	require.Contains(t, text, " … 2094683 bytes … ")
}
