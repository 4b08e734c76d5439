package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/sim"
)

// LimitFlags bound a run. When a limit ends a run, it lists the events that
// were still to come, marks its output as incomplete, and ends with status 1.
type LimitFlags struct {
	Until   string // as the user gave it
	events  uint64
	real    time.Duration
	threads int
	Memory  MemoryFlag
}

// mostThreads bounds --threads: more domains than this no network has.
const mostThreads = 255

// LimitsHelp explains the flags in the manual of a command.
const LimitsHelp = `

A run that --until, --event-limit or --time-limit ends is incomplete: it lists pending events and waiting programs, its output is marked,
and the exit status is 1. A timeline is still written, and names the limit. Captures, loads of links, samples and pictures of such a run
are not written, and older files stay. The first two limits are in simulated time and events; the last is real time and depends on
the machine.
If --time-limit or a signal ends a sweep, it shows the measured points and their number. A point that fails does
not end the others: they are shown, the errors come last, and the exit status is 1.

A run that needs more memory than --memory-limit does not start, or ends, with status 1. The default limit is the available memory of the machine,
including control groups and ulimit. If the input exceeds a --memory-limit on the command line, nothing runs and the status is 2. No result
depends on the limit, or on --threads.`

// Register adds the flags.
func (f *LimitFlags) Register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.Until, "until", "", "end each measurement before the first event later than this simulated `TIME`, such as 5ms")
	flags.Uint64Var(&f.events, "event-limit", 0, "end each measurement after this `NUMBER` of events; 0: no limit")
	f.Memory.Register(flags)
	flags.IntVar(&f.threads, "threads", 0, "take this `NUMBER` of processors of the machine: for several points, or for one of many nodes; 0: all")
	flags.DurationVar(&f.real, timeLimit, 0, timeLimitUsage)
}

const timeLimit, timeLimitUsage = "time-limit", "end the command after this `DURATION` of real time, such as 30s; 0: no limit"

// limitEvery gives the limits of real time and memory to all commands that do
// not have them. begin sets them for any command, before it reads its input.
func limitEvery(root *cobra.Command) (begin func(c *cobra.Command) error) {
	new(MemoryFlag).Register(root.PersistentFlags())
	root.PersistentFlags().Duration(timeLimit, 0, timeLimitUsage)
	return func(c *cobra.Command) error {
		m := MemoryFlag{text: c.Flag("memory-limit").Value.String()}
		return BadInput(errors.Join(m.Read(c), endLate(c)))
	}
}

// Limits checks the flags of a command.
func (f *LimitFlags) Limits(c *cobra.Command) (l sim.Limits, err error) {
	errs := []error{f.Memory.Read(c)}
	if f.Until != "" {
		if l.Until, err = parseUntil(f.Until); err != nil {
			errs = append(errs, fmt.Errorf("--until: %w", err))
		}
	}
	if f.threads < 0 || f.threads > mostThreads {
		errs = append(errs, fmt.Errorf("--threads: %d, expected 1 to %d, or 0 for all", f.threads, mostThreads))
	}
	l.Events = f.events
	return l, errors.Join(errs...)
}

// Bounds checks the flags of a command, too. It returns all that they and the
// machine allow: the limits of each run, bytes of memory for all, and how many
// may run at once.
func (f *LimitFlags) Bounds(c *cobra.Command) (l sim.Limits, bytes int64, workers int, err error) {
	l, err = f.Limits(c)
	return l, f.Memory.Bytes(), cmp.Or(f.threads, Workers()), err
}

// Large is the error of work that needs more memory than its limit.
type Large interface {
	error
	What() (work string, need int64) // with the flags to change, and bytes
}

// Unfit is the error of a command whose work cannot begin. It adds the origin of
// the limit to a Large error. before is put before the text.
func (f *LimitFlags) Unfit(before string, err error) error {
	if e, ok := errors.AsType[Large](err); ok {
		work, need := e.What()
		return f.Memory.Refused(before+work, need)
	}
	return BadInput(fmt.Errorf("%s%w", before, err))
}

// parseUntil reads the end of a run.
func parseUntil(text string) (sim.Time, error) {
	t, err := sim.ParseTime(text)
	if err == nil && (t < 1 || t > sim.Horizon) {
		err = fmt.Errorf("%v, expected 1 ps to %v", t, sim.Horizon)
	}
	return t, err
}

// overtime is how long a command with LimitFlags has after the limit of real
// time. It ends sooner: this is for work that nothing interrupts.
const overtime = 5 * time.Second

// endLate ends the command at its limit of real time. It ends the program if the
// command goes on for longer than patience. A command with LimitFlags ends by
// itself and may show results, so the program ends after overtime, or twice
// overtime. For example, nothing interrupts a command while it sorts a schedule
// of millions.
func endLate(c *cobra.Command) error {
	limit, err := c.Flags().GetDuration(timeLimit)
	if err == nil && limit < 0 {
		err = fmt.Errorf("--time-limit: %v, expected 0 (no limit) or more", limit)
	}
	e := endingOf(c.Context())
	if err != nil || limit == 0 || e == nil {
		return err
	}
	more := overtime
	if c.InheritedFlags().Lookup(timeLimit) != nil {
		time.AfterFunc(limit, func() { e.cancel(tooLong(limit)) })
		more = patience
	}
	onLate(limit+more, e.showing, func() {
		e.end(ExitFailed, c.ErrOrStderr(), fmt.Sprintf("%s: %v", c.Root().Name(), tooLong(limit)))
	})
	return nil
}

// onLate calls end at a time, and overtime later if there are results to show.
func onLate(at time.Duration, showing <-chan struct{}, end func()) {
	time.AfterFunc(at, func() {
		select {
		case <-showing:
			time.AfterFunc(overtime, end)
		default:
			end()
		}
	})
}

// tooLong is the error of a run that takes longer than the limit of real time.
func tooLong(limit time.Duration) *sim.LimitError {
	return &sim.LimitError{Limit: fmt.Sprintf("%v of real time", limit)}
}

// Context returns a context that ends a run after the limit of real time.
func (f *LimitFlags) Context(c *cobra.Command) (context.Context, context.CancelFunc) {
	if f.real == 0 {
		return context.WithCancel(c.Context())
	}
	return context.WithTimeoutCause(c.Context(), f.real, tooLong(f.real))
}
