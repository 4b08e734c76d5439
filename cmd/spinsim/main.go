// Command spinsim simulates programmable network interfaces. See "spinsim help".
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/runtime"
)

// Exit codes of the command.
const (
	exitOK      = 0
	exitFailed  = 1 // the simulation ended badly: a process waits for ever, bytes differ, a handler failed
	exitInput   = 2 // flags, files or modules are wrong; nothing was done
	exitStopped = 130
)

// inputError is an error of what the user gave: it ends the command with exit code 2.
type inputError struct{ err error }

func (e inputError) Error() string { return e.err.Error() }
func (e inputError) Unwrap() error { return e.err }

// badInput marks an error as one of the user's input; nil stays nil.
func badInput(err error) error {
	if err == nil {
		return nil
	}
	return inputError{err}
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(args []string, out, errs io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer onSignals(cancel, errs)()
	root := rootCommand()
	root.SetArgs(args)
	noted := &notedWriter{to: out}
	root.SetOut(noted)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = noted.err
	}
	var (
		input   inputError
		network *runtime.NetworkError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(errs, "spinsim: interrupted")
		return exitStopped
	case errors.As(err, &input), errors.As(err, &network):
		fmt.Fprintln(errs, "spinsim:", err)
		return exitInput
	}
	fmt.Fprintln(errs, "spinsim:", err)
	return exitFailed
}

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

// patience is how long a command has to end by itself after a signal. What it would still compute or wait for is lost either way.
const patience = 300 * time.Millisecond

// onSignals cancels on the first signal. A second one, or a command that does not end within patience (it reads from a pipe, or sorts a
// schedule of millions), ends the program: files that are not complete are removed. The result undoes it.
func onSignals(cancel func(), errs io.Writer) (undo func()) {
	signals, over := make(chan os.Signal, 2), make(chan struct{})
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup and shells that put a command into the background have said so
			signal.Notify(signals, s)
		}
	}
	go func() {
		select {
		case <-signals:
			cancel()
		case <-over:
			return
		}
		select {
		case <-signals:
		case <-time.After(patience):
		case <-over:
			return
		}
		file.Abandon()
		fmt.Fprintln(errs, "spinsim: interrupted")
		os.Exit(exitStopped)
	}()
	return func() {
		signal.Stop(signals)
		close(over)
		cancel()
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "spinsim",
		Short: "What is offloading to the network interface worth?",
		Long: `spinsim simulates clusters whose network interfaces run handlers (sPIN) on the packets of messages. Handlers are WebAssembly
modules, written in TinyGo, C or anything else, and are charged for every instruction.

Begin with:
  spinsim compare bcast          broadcast on the host, with triggered operations and with handlers
  spinsim handler new filter     a handler of your own, with its test
  spinsim help columns           what the columns of a table mean`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:       thisBuild().Line(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return inputError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
	})
	root.AddCommand(commands()...)
	return root
}

// noArguments refuses arguments and names the command that would list what there is.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return inputError{fmt.Errorf("unknown command %q; see %s --help", args[0], c.CommandPath())}
}

// exactArguments is cobra.ExactArgs with an error that counts as bad input.
func exactArguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return inputError{fmt.Errorf("%s: expected the arguments %v, got %d; see %s --help", c.Name(), names, len(args), c.CommandPath())}
	}
}
