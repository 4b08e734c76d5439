package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Exit codes of a command.
const (
	ExitOK = 0
	// the simulation ended badly: a process waits for ever, bytes differ, or a
	// handler failed
	ExitFailed  = 1
	ExitInput   = 2 // flags, files or modules are wrong; nothing ran
	ExitStopped = 130
)

// Part is the error of a command that has measured only a part.
type Part interface {
	error
	Progress() string // how much of how much
	Shown() bool      // there are results to show
}

// InputError is an error in the user's input. It ends a command with ExitInput.
type InputError struct{ Err error }

// Error is the text of the cause.
func (e InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e InputError) Unwrap() error { return e.Err }

// BadInput makes an InputError of an error. nil stays nil.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return InputError{err}
}

// Execute runs a command with arguments and returns its exit code. The first
// signal cancels its context. Errors are printed behind the name of the
// program.
func Execute(root *cobra.Command, args []string, out, errs io.Writer) int {
	lines := argumentLines(args)
	errs = visible.NewWriter(errs, lines...)
	if err := Room(); err != nil {
		fmt.Fprintf(errs, "%s: %v\n", root.Name(), err)
		return ExitFailed
	}
	watch := newMemoryWatch()
	defer watch.close()
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), watchKey{}, watch))
	e := &ending{over: make(chan struct{}), showing: make(chan struct{}), exit: os.Exit, cancel: cancel}
	ctx = WithArguments(context.WithValue(ctx, endingKey{}, e), args)
	undo := onSignals(func() { cancel(nil) }, e, root.Name(), errs)
	go watch.start(cancel, e, root.Name(), errs)
	before := memory.OnExhausted(func(n, limit int64) {
		e.end(ExitFailed, errs, fmt.Sprintf("%s: %v", root.Name(), &refusedError{n, limit, watch.given.Load(), memory.Bounds()}))
	})
	defer func() { memory.OnExhausted(before) }()
	root.SetArgs(args)
	noted := &notedWriter{Writer: visible.NewWriter(out, lines...)}
	root.SetOut(noted)
	root.SetErr(errs)
	if os.Getenv("TERM") == "dumb" {
		root.SetErr(steady{errs})
	}
	strictCompletion(root, args)
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		asked, _, err := root.Find(args[1:max(1, len(args)-1)]) // as cobra finds it
		for c := asked; err == nil && c != nil; c = c.Parent() {
			suggestValues(c)
		}
	}
	err := root.ExecuteContext(ctx)
	undo()
	if err == nil {
		err = cmp.Or(noted.err, noted.Flush())
	}
	code := exitCode(ctx, e, once(err), root.Name(), errs)
	if err := e.profiling.end(code); err != nil {
		fmt.Fprintf(errs, "%s: %v\n", root.Name(), err)
		return cmp.Or(code, ExitFailed)
	}
	return code
}

// argumentLines returns the texts in arguments that errors quote: names of
// files and values.
func argumentLines(args []string) (lines []string) {
	for _, arg := range args {
		for more := true; more; _, arg, more = strings.Cut(arg, "=") {
			lines = append(lines, arg)
		}
	}
	return lines
}

// exitCode returns the exit code for err. It prints err behind the name of the
// program.
func exitCode(ctx context.Context, e *ending, err error, name string, errs io.Writer) int {
	var (
		taken   *outgrown
		late    *sim.LimitError
		input   InputError
		network *runtime.NetworkError
		part    Part
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.As(context.Cause(ctx), &taken):
		fmt.Fprintf(errs, "%s: %v%s\n", name, taken, leftOf(err, e, "; "))
		return ExitFailed
	case errors.As(context.Cause(ctx), &late):
		fmt.Fprintf(errs, "%s: %v%s\n", name, late, leftOf(err, e, "; "))
		return ExitFailed
	case errors.Is(err, context.Canceled) && errors.As(err, &part):
		fmt.Fprintf(errs, "%s: interrupted: %s%s\n", name, part.Progress(), leftOf(err, e, "; "))
		return ExitStopped
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(errs, "%s: interrupted%s\n", name, leftOf(err, e, ": "))
		return ExitStopped
	case errors.As(err, &part) && part.Shown(): // whatever ended the rest, some results are there
		fmt.Fprintf(errs, "%s: %s\n", name, short(err))
		return ExitFailed
	case errors.As(err, &input), errors.As(err, &network):
		fmt.Fprintf(errs, "%s: %s\n", name, short(err))
		return ExitInput
	}
	fmt.Fprintf(errs, "%s: %s\n", name, short(err))
	return ExitFailed
}

// short returns the text of an error. It leaves out the middle of a very long
// line: an error has the value that it is about, and a file may have one of a
// megabyte.
func short(err error) string {
	const longest, begin, end = 4000, 2000, 500
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		if len(l) > longest {
			lines[i] = fmt.Sprintf("%s … %d bytes … %s",
				strings.ToValidUTF8(l[:begin], ""), len(l)-begin-end, strings.ToValidUTF8(l[len(l)-end:], ""))
		}
	}
	return strings.Join(lines, "\n")
}

// once drops errors that repeat the text of an earlier error in a join, for
// example when a command has written to one file twice.
func once(err error) error {
	said := make(map[string]bool)
	var list []error
	for _, e := range fields.Each(err) {
		if !said[e.Error()] {
			said[e.Error()] = true
			list = append(list, e)
		}
	}
	return errors.Join(list...)
}

// steady hides that a writer is a terminal, so that nothing moves on it.
type steady struct{ io.Writer }

// notedWriter keeps the first error of writing, because help has no caller to
// return it to.
type notedWriter struct {
	*visible.Writer
	err error
}

func (w *notedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// Columns is the width of the terminal that it writes to, in characters. 0: it
// is no terminal.
func (w *notedWriter) Columns() int {
	switch to := w.Exact().(type) {
	case report.Narrow:
		return to.Columns()
	case *os.File:
		if columns, _, err := term.GetSize(int(to.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// Workers is how many simulations a command runs at once. It leaves one
// processor for signals.
func Workers() int { return max(1, goruntime.GOMAXPROCS(0)-1) }

// Root prepares the root command of a program: its name, its version, and its
// errors for wrong flags.
func Root(root *cobra.Command, version string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.Version = version
	root.SetVersionTemplate("{{.Version}}\n")
	quiet := root.PersistentFlags().BoolP("quiet", "q", false, "show no progress")
	begin := limitEvery(root)
	profileFlags(root.PersistentFlags())
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if *quiet {
			root.SetErr(steady{root.ErrOrStderr()})
		}
		if err := errors.Join(checkTwice(c), checkEmpty(c), checkAssignments(c)); err != nil {
			return err
		}
		if err := begin(c); err != nil {
			return err
		}
		if err := CheckOutputs(c); err != nil {
			return err
		}
		return endingOf(c.Context()).profile(c)
	}
	root.SetHelpCommand(helpCommand())
	fitHelp(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if args := c.Flags().Args(); c.HasSubCommands() && len(args) > 0 {
			if unknown := c.ValidateArgs(args); unknown != nil { // c is the command of the flags
				return unknown
			}
		}
		return InputError{fmt.Errorf("%w; see %s --help", flagError(c, err), c.CommandPath())}
	})
	return root
}

// strictCompletion adds cobra's completion command. Cobra's own shows its help
// for an unknown shell; this is an error.
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

// NoArguments refuses arguments, and names the command that lists what there
// is.
func NoArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return InputError{fmt.Errorf("unknown command %q%s; see %s --help", args[0], meantCommand(c, args[0]), c.CommandPath())}
}

// meantCommand ends the error about an unknown command with suggestions: a
// similar command, commands that begin with the name, or commands elsewhere
// with that name.
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

// elsewhere lists the full names of commands below c that have a name.
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

// helpCommand is cobra's help command, except for the error about unknown
// commands.
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

// PartOf is the first sentence of a table with a part of a sweep.
func PartOf(u Part) string {
	return "Ended before all was done: " + u.Progress() + "."
}
