package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/sim"
)

// MemoryFlag bounds the memory of a command. The default is the memory that the
// machine has available, if that is known, because the kernel ends a program
// that takes more without an error.
type MemoryFlag struct {
	text  string
	given bool
	bytes int64
}

// Register adds the flag.
func (f *MemoryFlag) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.text, "memory-limit", "", "refuse or end runs that need more memory than this `SIZE`; 0: no limit (default: the available memory of the machine)")
}

// leastMemory is the smallest limit.
const leastMemory = sim.Size(64 << 20)

// Read checks the flag and sets the limit of the command from now on.
func (f *MemoryFlag) Read(c *cobra.Command) error {
	watch := watchOf(c.Context())
	f.bytes = watch.limit.Load()
	if f.given = c.Flags().Changed("memory-limit"); !f.given {
		return nil
	}
	size, err := sim.ParseSize(f.text)
	if err == nil && size != 0 && size < leastMemory {
		err = fmt.Errorf("%v, expected 0 (no limit) or at least %v, about what the program takes itself", size, leastMemory)
	}
	if err != nil {
		return fmt.Errorf("--memory-limit: %w", err)
	}
	f.bytes = int64(size)
	watch.set(f.bytes, true)
	return nil
}

// Bytes is the limit. 0: none.
func (f *MemoryFlag) Bytes() int64 { return f.bytes }

// Check returns an error if need, in bytes, is more than the limit. what names
// the work and its flags.
func (f *MemoryFlag) Check(what string, need int64) error {
	if f.bytes <= 0 || need <= f.bytes {
		return nil
	}
	return f.Refused(what, need)
}

// Refused is the error of work that needs more bytes than the limit. It counts
// as bad input only if the user has given the limit: otherwise the same input
// is good on a larger machine.
func (f *MemoryFlag) Refused(what string, need int64) error {
	err := fmt.Errorf("%s needs about %s of memory, %s", what, sim.Size(need).Rounded(), thereIs(f.bytes, f.given))
	if f.given {
		return BadInput(err)
	}
	return err
}

// leastLeft is how many bytes a run may hold in any case.
const leastLeft = 16 << 20

// Beside is how many bytes each of several runs may hold until its end, besides
// the bytes that they all need themselves. limit is for all of them; 0: none.
func Beside(limit, need int64, runs int) int64 {
	if limit <= 0 {
		return 0
	}
	// half: the garbage collector takes as much
	return max(leastLeft, (limit-need-int64(leastMemory))/int64(2*runs))
}

// thereIs describes how much memory there may be, and where this limit comes
// from.
func thereIs(limit int64, given bool) string {
	if given {
		return fmt.Sprintf("--memory-limit is %s", sim.Size(limit).Rounded())
	}
	return fmt.Sprintf("%s are available (--memory-limit 0 tries it all the same)", sim.Size(limit).Rounded())
}

// memoryWatch ends a command that takes more memory than its limit.
type memoryWatch struct {
	limit atomic.Int64 // bytes; 0: none
	given atomic.Bool  // by the user
	undo  func()       // nil: nothing to undo
}

type watchKey struct{}

// watchOf returns the watch of a command.
func watchOf(ctx context.Context) *memoryWatch {
	if w, is := ctx.Value(watchKey{}).(*memoryWatch); is {
		return w
	}
	return &memoryWatch{} // a command without Execute
}

// MemoryLimit is how many bytes the command of a context may take. 0: no limit.
func MemoryLimit(ctx context.Context) int64 { return watchOf(ctx).limit.Load() }

// margin: 1/margin of the available memory is left for other programs, and for
// what the command takes between two looks.
const margin = 16

// newMemoryWatch makes a watch whose limit is the available memory.
func newMemoryWatch() *memoryWatch {
	memory.CollectLate()
	w := &memoryWatch{}
	there := memory.Available()
	w.set(there-there/margin, false)
	return w
}

// set sets the limit, in bytes. Near it the garbage collector works more,
// unless the user has set that. undo restores it.
func (w *memoryWatch) set(limit int64, given bool) {
	w.given.Store(given)
	w.limit.Store(limit)
	memory.Limit(limit)
	if os.Getenv("GOMEMLIMIT") != "" || limit <= 0 {
		return
	}
	before := debug.SetMemoryLimit(limit - limit/8)
	if w.undo == nil {
		w.undo = func() { debug.SetMemoryLimit(before) }
	}
}

// close restores what the watch has changed.
func (w *memoryWatch) close() {
	memory.Limit(0)
	if w.undo != nil {
		w.undo()
	}
}

// outgrown is the error of a command that has taken more memory than its limit.
type outgrown struct {
	taken, limit int64
	given        bool
	bound        string // the process's limit that was exceeded; "": the command's
}

// Error names the memory that was taken, and the limit.
func (e *outgrown) Error() string {
	if e.bound != "" {
		return fmt.Sprintf("ended: it has reserved %s of memory, and %s allows %s", sim.Size(e.taken).Rounded(), e.bound, sim.Size(e.limit).Rounded())
	}
	return fmt.Sprintf("ended: it has taken %s of memory, %s", sim.Size(e.taken).Rounded(), thereIs(e.limit, e.given))
}

// refusedError is the error of a command that is refused memory.
type refusedError struct {
	asked, limit int64 // bytes; no limit: the system has refused it
	given        bool
	bounds       []memory.Bound
}

// Error names the memory that was asked for, and the bounds.
func (e *refusedError) Error() string {
	if e.limit > 0 {
		return fmt.Sprintf("ended: it needs %s of memory more, %s", sim.Size(e.asked).Rounded(), thereIs(e.limit, e.given))
	}
	text := fmt.Sprintf("ended: the system has refused it %s of memory", sim.Size(e.asked).Rounded())
	for _, b := range e.bounds {
		text += fmt.Sprintf("; of the %s that %s allows it has reserved %s", sim.Size(b.Limit).Rounded(), b.Name, sim.Size(b.Taken).Rounded())
	}
	return text
}

// Room returns an error if the process may reserve very little memory. Go could
// end it at any moment, with a list of all goroutines instead of an error. So a
// program calls it before anything else.
func Room() error { return cramped(memory.Bounds()) }

func cramped(bounds []memory.Bound) error {
	for _, b := range bounds {
		if least := b.Taken + 2*memory.Spare; b.Limit < least {
			return fmt.Errorf("%s allows %s, and the program has reserved %s as it began: expected at least %s",
				b.Name, sim.Size(b.Limit).Rounded(), sim.Size(b.Taken).Rounded(), sim.Size(least).Rounded())
		}
	}
	return nil
}

// looksEvery is the real time between looks at the memory. A program can take
// only a little in that time.
const looksEvery = 20 * time.Millisecond

// look returns the reason why the command must end; nil: none.
func (w *memoryWatch) look() *outgrown {
	if limit := w.limit.Load(); limit > 0 {
		if taken := memory.Resident(); taken > limit {
			return &outgrown{taken: taken, limit: limit, given: w.given.Load()}
		}
	}
	for _, b := range memory.Bounds() {
		if b.Left() < max(b.Limit/margin, memory.Spare) {
			return &outgrown{taken: b.Taken, limit: b.Limit, bound: b.Name}
		}
	}
	return nil
}

// start looks at the memory until the command has finished. If it is too much,
// start cancels the command. It ends the program if the command does not end
// soon, or if it comes close to a bound of the process. For example, nothing
// interrupts a command while it makes a large cluster.
func (w *memoryWatch) start(cancel context.CancelCauseFunc, e *ending, name string, errs io.Writer) {
	ticker := time.NewTicker(looksEvery)
	defer ticker.Stop()
	var cause *outgrown
	var since time.Time
	for {
		select {
		case <-e.over:
			return
		case now := <-ticker.C:
			if cause == nil {
				if cause = w.look(); cause == nil {
					continue
				}
				since = now
				cancel(cause)
			}
			if now.Sub(since) > patience/3 || slices.ContainsFunc(memory.Bounds(), func(b memory.Bound) bool { return b.Left() < memory.Pressing }) {
				e.end(ExitFailed, errs, fmt.Sprintf("%s: %v", name, cause))
				return
			}
		}
	}
}
