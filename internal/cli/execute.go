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
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

// Exit codes of a command.
const (
	ExitOK = 0
	// the simulation ended badly: a process waits for ever, bytes differ, a
	// handler failed
	ExitFailed  = 1
	ExitInput   = 2 // flags, files or modules are wrong; nothing was done
	ExitStopped = 130
)

// Part is an error of a command that has measured a part of what it was to measure.
type Part interface {
	error
	Progress() string // how much of how much
	Shown() bool      // there is something of it to show
}

// InputError is an error of what the user gave: it ends a command with ExitInput.
type InputError struct{ Err error }

// Error is that of the cause.
func (e InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e InputError) Unwrap() error { return e.Err }

// BadInput marks an error as one of the user's input; nil stays nil.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return InputError{err}
}

// Execute runs a command with arguments and returns its exit code: the first
// signal cancels its context, errors are printed behind the name of the
// program.
func Execute(root *cobra.Command, args []string, out, errs io.Writer) int {
	if err := cramped(memory.Bounds()); err != nil {
		fmt.Fprintf(errs, "%s: %v\n", root.Name(), err)
		return ExitFailed
	}
	watch := newMemoryWatch()
	defer watch.close()
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), watchKey{}, watch))
	e := &ending{over: make(chan struct{}), showing: make(chan struct{}), exit: os.Exit}
	ctx = WithArguments(context.WithValue(ctx, endingKey{}, e), args)
	undo := onSignals(func() { cancel(nil) }, e, root.Name(), errs)
	go watch.start(cancel, e, root.Name(), errs)
	before := memory.OnExhausted(func(n int64) {
		e.end(ExitFailed, errs, fmt.Sprintf("%s: %v", root.Name(), &refusedError{n, memory.Bounds()}))
	})
	defer func() { memory.OnExhausted(before) }()
	root.SetArgs(args)
	noted := &notedWriter{to: out}
	root.SetOut(noted)
	root.SetErr(errs)
	if os.Getenv("TERM") == "dumb" {
		root.SetErr(steady{errs})
	}
	strictCompletion(root, args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		asked, _, err := root.Find(args[1:max(1, len(args)-1)]) // as cobra does
		for c := asked; err == nil && c != nil; c = c.Parent() {
			suggestValues(c)
		}
	}
	err := root.ExecuteContext(ctx)
	undo()
	if err == nil {
		err = noted.err
	}
	return exitCode(ctx, e, once(err), root.Name(), errs)
}

// exitCode is what a command ends with that has returned err, which is printed behind its name.
func exitCode(ctx context.Context, e *ending, err error, name string, errs io.Writer) int {
	var (
		taken   *outgrown
		input   InputError
		network *runtime.NetworkError
		part    Part
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(context.Cause(ctx), &taken):
		fmt.Fprintf(errs, "%s: %v%s\n", name, taken, leftOf(err, e, "\n"))
		return ExitFailed
	case errors.Is(err, context.Canceled) && errors.As(err, &part):
		fmt.Fprintf(errs, "%s: interrupted: %s%s\n", name, part.Progress(), leftOf(err, e, "; "))
		return ExitStopped
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(errs, "%s: interrupted%s\n", name, leftOf(err, e, ": "))
		return ExitStopped
	case errors.As(err, &part) && part.Shown(): // whatever ended the rest: something was done
		fmt.Fprintf(errs, "%s: %v\n", name, err)
		return ExitFailed
	case errors.As(err, &input), errors.As(err, &network):
		fmt.Fprintf(errs, "%s: %v\n", name, err)
		return ExitInput
	}
	fmt.Fprintf(errs, "%s: %v\n", name, err)
	return ExitFailed
}

// once is an error without those of the errors it joins that say again what one
// before has said: that of a file to which a command has written twice.
func once(err error) error {
	said := make(map[string]bool)
	var list []error
	for _, e := range joined(err) {
		if !said[e.Error()] {
			said[e.Error()] = true
			list = append(list, e)
		}
	}
	return errors.Join(list...)
}

// joined are the errors that err joins, and those that they join.
func joined(err error) (list []error) {
	several, are := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !are || errors.Join(several.Unwrap()...).Error() != err.Error(): // it has more to say
		return []error{err}
	}
	for _, e := range several.Unwrap() {
		list = append(list, joined(e)...)
	}
	return list
}

// steady is a writer that nothing is drawn on which moves: what is no file is no terminal.
type steady struct{ io.Writer }

// notedWriter keeps the first error of writing: those who print help have nobody to give it to.
type notedWriter struct {
	to  io.Writer
	err error
}

func (w *notedWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// Columns is how many characters stand side by side on the terminal that it
// writes to, 0 if that is none.
func (w *notedWriter) Columns() int {
	switch to := w.to.(type) {
	case report.Narrow:
		return to.Columns()
	case *os.File:
		if columns, _, err := term.GetSize(int(to.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// patience is how long a command has to end by itself after a signal. What it
// would still compute or wait for is lost either way.
const patience = 300 * time.Millisecond

// longer is how long a command has that shows what it has measured until then.
const longer = 2 * time.Second

// onSignals cancels on the first signal. A second one, or a command that does
// not end within patience (it reads from a pipe, or sorts a schedule of
// millions), ends the program: files that are not complete are removed. The
// result undoes it; it does not return if the program is being ended, so that
// either the caller says what became of the command or the signal.
func onSignals(cancel func(), e *ending, name string, errs io.Writer) (undo func()) {
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup and shells that put a command into the background have said so
			signal.Notify(signals, s)
		}
	}
	processors := goruntime.GOMAXPROCS(0)
	// handlers do not give theirs back while they compute, and there may be one
	// on each
	goruntime.GOMAXPROCS(processors + 1)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-e.over:
			return
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

// Workers is how many simulations a command runs at once: one processor is left to signals.
func Workers() int { return max(1, goruntime.GOMAXPROCS(0)-1) }

// ending is who ends the program: the command that has finished, or a signal,
// or the want of memory; never two of them.
type ending struct {
	mu   sync.Mutex
	over chan struct{} // closed when the command has finished
	exit func(code int)

	outputs []awaited // files that it is to write, from when that is known

	showing chan struct{} // closed when it shows what it has measured until a signal came
	shown   sync.Once
}

type endingKey struct{}

// endingOf is that of a command's context; nil: it has none.
func endingOf(ctx context.Context) *ending {
	e, _ := ctx.Value(endingKey{}).(*ending)
	return e
}

// shows says that a command has ended its simulations and shows what they have
// measured: it is given the time for that.
func (e *ending) shows() {
	if e != nil {
		e.shown.Do(func() { close(e.showing) })
	}
}

// Showing is closed when the command of a context begins to show what it has
// measured until a signal came.
func Showing(ctx context.Context) <-chan struct{} { return endingOf(ctx).showing }

// Shows tells the command of a context that has ended its simulations and shows
// what they have measured: it is given the time for that.
func Shows(ctx context.Context) { endingOf(ctx).shows() }

// end ends the program and says why, unless the command has finished.
func (e *ending) end(code int, errs io.Writer, why string) {
	e.mu.Lock() // for ever
	select {
	case <-e.over:
		e.mu.Unlock()
		return
	default:
	}
	file.Abandon()
	separator := "\n"
	if code == ExitStopped {
		separator = ": "
	}
	fmt.Fprintln(errs, why+e.left(separator))
	e.exit(code)
}

// finish says that the command has finished; it does not return if the program is being ended.
func (e *ending) finish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.over)
}

// Root prepares the command of a program: what it is called, prints as its
// version, and says of wrong flags.
func Root(root *cobra.Command, version string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version
	root.SetVersionTemplate("{{.Version}}\n")
	quiet := root.PersistentFlags().BoolP("quiet", "q", false, "show no progress")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if *quiet {
			root.SetErr(steady{root.ErrOrStderr()})
		}
		if err := errors.Join(checkTwice(c), checkEmpty(c), checkAssignments(c)); err != nil {
			return err
		}
		return CheckOutputs(c)
	}
	root.SetHelpCommand(helpCommand())
	fitHelp(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			if unknown := c.ValidateArgs(args); unknown != nil { // the command whose flags these are
				return unknown
			}
		}
		return InputError{fmt.Errorf("%w; see %s --help", flagError(c, err), c.CommandPath())}
	})
	return root
}

// strictCompletion adds cobra's command completion, which else shows its help
// for a shell that there is not.
func strictCompletion(root *cobra.Command, args []string) {
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Args, c.RunE = NoArguments, func(c *cobra.Command, _ []string) error { return c.Help() }
		for _, shell := range c.Commands() {
			shell.Args = NoArguments
		}
	}
}

// NoArguments refuses arguments and names the command that would list what there is.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return InputError{fmt.Errorf("unknown command %q%s; see %s --help", args[0], meantCommand(c, args[0]), c.CommandPath())}
}

// meantCommand ends an error about an unknown command: with one that looks like
// it, those that begin with it, or those elsewhere that are called so.
func meantCommand(c *cobra.Command, name string) string {
	var names, begin []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
		if strings.HasPrefix(sub.Name(), name+"-") {
			begin = append(begin, sub.Name())
		}
	}
	if hint := fields.DidYouMean(name, names); hint != "" {
		return hint
	}
	if len(begin) == 0 {
		begin = elsewhere(c.Root(), name)
	}
	switch len(begin) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" (did you mean %s?)", begin[0])
	}
	return fmt.Sprintf(" (did you mean one of %s?)", strings.Join(begin, ", "))
}

// elsewhere are the commands below one that have a name, whole.
func elsewhere(c *cobra.Command, name string) (paths []string) {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, elsewhere(sub, name)...)
	}
	return paths
}

// ExactArguments is cobra.ExactArgs with an error that counts as bad input.
func ExactArguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want, got := "no argument", "none"
		switch len(names) {
		case 0:
		case 1:
			want = "the argument " + names[0]
		default:
			want = "the arguments " + strings.Join(names, " ")
		}
		if len(args) > 0 {
			got = fmt.Sprintf("%q", args)
			got = got[1 : len(got)-1]
		}
		return InputError{fmt.Errorf("%s: expected %s, got %s; see %s --help", c.Name(), want, got, c.CommandPath())}
	}
}

// helpCommand is cobra's, but for what it says of commands that there are not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Long:  "Help explains any command: the same as COMMAND --help.",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					if strings.HasPrefix(sub.Name(), begun) && (sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand()) {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of, left, err := c.Root().Find(args)
			if err != nil || len(left) > 0 {
				return NoArguments(of, left)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// ShowLater is for a command that shows what it has measured when a signal ends
// it. It calls measured when there is something to show: large simulations take
// longer to end than a command has that has nothing to show. stop ends the
// care.
func ShowLater(ctx context.Context) (measured func(), stop func() bool) {
	var some atomic.Bool
	stop = context.AfterFunc(ctx, func() {
		if some.Load() {
			endingOf(ctx).shows()
		}
	})
	return func() { some.Store(true) }, stop
}

// PartOf is what a table of a part of a sweep says first.
func PartOf(u Part) string {
	return "Ended before all was done: " + u.Progress() + "."
}
