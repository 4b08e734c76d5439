package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/sim"
)

// patience is how long a command has to end after a signal. What it would still
// compute or wait for is lost either way.
const patience = 300 * time.Millisecond

// same is how long signals that follow the first are taken for the first. For
// example, timeout signals its child and then the group of its child.
const same = 100 * time.Millisecond

// longer is patience for a command that shows what it has measured so far.
const longer = 2 * time.Second

// onSignals cancels on the first signal. A second signal ends the program and
// removes incomplete files. So does a command that does not end within
// patience, for example while it reads from a pipe or sorts a schedule of
// millions. undo ends this. It does not return if the program is being ended,
// so that only one of the two, the caller or the signal, reports the end.
func onSignals(cancel func(), e *ending, name string, errs io.Writer) (undo func()) {
	signals := make(chan os.Signal, 2)
	for _, s := range ends {
		if !signal.Ignored(s) { // nohup, and shells for a command in the background, ignore it
			signal.Notify(signals, s)
		}
	}
	processors := goruntime.GOMAXPROCS(0)
	// one more, because a handler keeps its processor while it computes, and
	// there may be a handler on each
	goruntime.GOMAXPROCS(processors + 1)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-e.over:
			return
		}
		for settled := time.After(same); settled != nil; {
			select {
			case <-signals:
			case <-settled:
				settled = nil
			case <-e.over:
				return
			}
		}
		select {
		case <-signals:
		case <-time.After(patience):
		case <-e.showing:
			select {
			case <-signals:
			case <-time.After(longer):
			case <-e.over:
				return
			}
		case <-e.over:
			return
		}
		e.end(ExitStopped, errs, name+": interrupted")
	}()
	return func() {
		signal.Stop(signals)
		e.finish()
		cancel()
		goruntime.GOMAXPROCS(processors)
	}
}

// ending makes sure that only one of three ends the program: the finished
// command, a signal, or a lack of memory.
type ending struct {
	mu   sync.Mutex
	over chan struct{} // closed when the command has finished
	exit func(code int)

	cancel context.CancelCauseFunc // of the command's context

	outputs   []awaited  // the files that it will write, once known
	profiling *profiling // nil: not begun

	showing chan struct{} // closed when it shows the results that it has after a signal
	shown   sync.Once
}

type endingKey struct{}

// endingOf returns the ending in the context of a command. nil: there is none.
func endingOf(ctx context.Context) *ending {
	e, _ := ctx.Value(endingKey{}).(*ending)
	return e
}

// shows gives a command more time, because its simulations have ended and it
// shows their results.
func (e *ending) shows() {
	if e != nil {
		e.shown.Do(func() { close(e.showing) })
	}
}

// Showing returns a channel. It is closed when the command of a context begins
// to show its results after a signal.
func Showing(ctx context.Context) <-chan struct{} { return endingOf(ctx).showing }

// Shows gives the command of a context more time, because its simulations have
// ended and it shows their results.
func Shows(ctx context.Context) { endingOf(ctx).shows() }

// end ends the program and prints why, unless the command has finished.
func (e *ending) end(code int, errs io.Writer, why string) {
	e.mu.Lock() // for ever
	select {
	case <-e.over:
		e.mu.Unlock()
		return
	default:
	}
	err := e.profiling.end(code) // before no more file is begun
	file.Abandon()
	separator := "; "
	if code == ExitStopped {
		separator = ": "
	}
	fmt.Fprintln(errs, why+e.left(separator))
	if err != nil {
		fmt.Fprintln(errs, err)
	}
	e.exit(code)
}

// finish marks the command as finished. It does not return if the program is
// being ended.
func (e *ending) finish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.over)
}

// ShowLater is for a command that shows the results it has when a signal ends
// it. The command calls measured as soon as there are results. Then it gets
// more time to end, because large simulations need longer. stop undoes this.
func ShowLater(ctx context.Context) (measured func(), stop func() bool) {
	var some atomic.Bool
	stop = context.AfterFunc(ctx, func() {
		if some.Load() {
			endingOf(ctx).shows()
		}
	})
	return func() { some.Store(true) }, stop
}

// CutBy says in a few words what has ended a run or a sweep early, for the
// seals of its files. "": nothing has.
func CutBy(err error) string {
	var limit *sim.LimitError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &limit) && limit.Pending == 0: // between runs
		return "limit of " + limit.Limit
	case errors.As(err, &limit):
		return fmt.Sprintf("limit of %s, at %v", limit.Limit, limit.At)
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, ":")
}
