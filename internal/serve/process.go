package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spinsim/spinsim/internal/file"
)

// Options bound what the page may start.
type Options struct {
	Host    string // address and port where the page is: no other name reaches it
	Program string // spinsim itself
	Build   string // its version, for the foot of the page
	Memory  int64  // bytes for all runs together; 0: no limit
	Threads int    // processors for all runs together
}

const (
	atOnce      = 2                // runs; others wait
	longest     = 10 * time.Minute // of a program: longer ones belong on the command line
	leastMemory = 64 << 20         // bytes that a program needs itself
	mostSaid    = 64 << 10         // bytes of errors that are shown
)

// Check returns an error if there is too little for the runs.
func (o *Options) Check() error {
	if o.Memory > 0 && o.perRun() < leastMemory {
		return fmt.Errorf("%d B for the page and %d runs, expected at least %d MiB", o.Memory, atOnce, (atOnce+1)*leastMemory>>20)
	}
	return nil
}

// perRun is how many bytes each of the runs at once may take, beside the server.
func (o *Options) perRun() int64 { return (o.Memory - leastMemory) / atOnce }

// limits are the flags that bound a comparison. No result depends on them.
func (o *Options) limits() []string {
	list := []string{"--quiet", "--time-limit=" + longest.String(), fmt.Sprintf("--threads=%d", max(1, o.Threads/atOnce))}
	if o.Memory > 0 {
		list = append(list, fmt.Sprintf("--memory-limit=%dB", o.perRun()))
	}
	return list
}

// said keeps the beginning of what a program says.
type said struct {
	kept bytes.Buffer // not embedded: io.Copy would write past the limit
	left int          // bytes that were not kept
}

// Write never fails.
func (s *said) Write(b []byte) (int, error) {
	kept := b[:min(len(b), mostSaid-s.kept.Len())]
	s.left += len(b) - len(kept)
	s.kept.Write(kept)
	return len(b), nil
}

// text is what was said, and how much is not there.
func (s *said) text() string {
	if s.left > 0 {
		return fmt.Sprintf("%s\n(%d more bytes)", s.kept.String(), s.left)
	}
	return s.kept.String()
}

// start runs the program in a folder until it ends. Its output goes to a file
// there; a program that fails may have written a part.
func (o *Options) start(ctx context.Context, folder, to string, words ...string) (status int, errs string) {
	out, err := file.Create(filepath.Join(folder, to))
	if err != nil {
		return 1, err.Error()
	}
	var text said
	c := exec.CommandContext(ctx, o.Program, words...) //nolint:gosec // itself, and words that were checked
	c.Dir, c.Stdout, c.Stderr, c.WaitDelay = folder, out, &text, time.Second
	err = c.Run()
	if late := out.Commit(); late != nil {
		return 1, late.Error()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, text.text()
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), text.text()
	}
	return 1, text.text() + err.Error()
}
