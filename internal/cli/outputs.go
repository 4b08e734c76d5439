package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/report"
)

// OutputFlags are the flags that name an output file, in all commands.
var OutputFlags = []string{"output", "slurm", "trace", "links", "pcap", "samples", "plot", "svg", cpuProfile, memProfile}

// SayBeside writes notes on standard error if the format of the result has no
// place for them.
func SayBeside(c *cobra.Command, format report.Format, notes []string) {
	if !slices.Contains([]report.Format{report.CSVFormat, report.NDJSONFormat, report.ParquetFormat}, format) {
		return
	}
	for _, note := range notes {
		fmt.Fprintln(c.ErrOrStderr(), visible.Line(note))
	}
}

// Output is a file that a command will write.
type Output struct {
	What string // where the user has named it, for example --trace
	Name string
}

// CheckOutputs checks the output files before anything runs. It is an error if
// one cannot be written, or if two are the same file. more are files that flags
// do not name.
func CheckOutputs(c *cobra.Command, more ...Output) error {
	list := slices.Clone(more)
	for _, name := range OutputFlags {
		f := c.Flags().Lookup(name)
		if f == nil || !f.Changed || f.Value.String() == "-" || f.Value.String() == "" {
			continue
		}
		if what, _ := pflag.UnquoteUsage(f); !strings.HasPrefix(what, "FOLDER") {
			called := "--" + name
			if f.Shorthand != "" {
				called = "-" + f.Shorthand
			}
			list = append(list, Output{called, f.Value.String()})
		}
	}
	var errs []error
	for i, one := range list {
		if err := file.Check(one.Name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.What, err))
			continue
		}
		if is := standardOutput(c); is != nil && is.Mode().IsRegular() {
			if there, err := os.Stat(one.Name); err == nil && os.SameFile(is, there) && !file.Standard(one.Name) {
				errs = append(errs, fmt.Errorf("%s: the standard output goes to %s, expected another file", one.What, one.Name))
			}
		}
		for _, other := range list[:i] {
			if file.Same(one.Name, other.Name) {
				errs = append(errs, fmt.Errorf("%s and %s both write %s, expected two files", other.What, one.What, one.Name))
			}
		}
	}
	if ctx := c.Context(); ctx != nil && len(errs) == 0 {
		endingOf(ctx).writes(list)
	}
	return BadInput(errors.Join(errs...))
}

// CheckInputs returns an error if a command reads one of the files that it will
// write. CheckOutputs has run before.
func CheckInputs(ctx context.Context, names []string) error {
	e := endingOf(ctx)
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, out := range e.outputs {
		for _, name := range names {
			if file.Same(out.Name, name) {
				errs = append(errs, fmt.Errorf("%s: %s is read, expected another file", out.What, name))
			}
		}
	}
	return BadInput(errors.Join(errs...))
}

// awaited is an output of a running command.
type awaited struct {
	Output
	before os.FileInfo // the file of that name at the start of the command; nil: none
}

// writes sets the files that the command will write.
func (e *ending) writes(list []Output) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outputs = nil
	for _, one := range list {
		before, err := os.Stat(one.Name)
		if err == nil && !before.Mode().IsRegular() {
			continue // it is no file that left could look at
		}
		e.outputs = append(e.outputs, awaited{one, before})
	}
}

// left names the files that are not written yet, behind a separator. "": none.
// A file is written if it was replaced or has another time or size.
func (e *ending) left(separator string) string {
	var names []string
	for _, one := range e.outputs {
		if one.What == "--"+cpuProfile || one.What == "--"+memProfile {
			continue // written when all else is over
		}
		is, err := os.Stat(one.Name)
		there := err == nil
		if there != (one.before != nil) || there && (!os.SameFile(is, one.before) || !is.ModTime().Equal(one.before.ModTime()) || is.Size() != one.before.Size()) {
			continue
		}
		names = append(names, one.What+" "+one.Name)
	}
	if names == nil {
		return ""
	}
	return separator + (&leftError{files: names}).note()
}

// standardOutput is the file that a command prints to. nil: it is no file.
func standardOutput(c *cobra.Command) os.FileInfo {
	if w, is := c.OutOrStdout().(*notedWriter); is {
		if to, is := w.Exact().(*os.File); is {
			if info, err := to.Stat(); err == nil {
				return info
			}
		}
	}
	return nil
}

// checkAssignments refuses a name that --set or --param gives twice. The reader
// would have to guess which value counts.
func checkAssignments(c *cobra.Command) error {
	var errs []error
	for _, flag := range []string{"set", "param"} {
		f := c.Flags().Lookup(flag)
		if f == nil {
			continue
		}
		list, is := f.Value.(pflag.SliceValue)
		if !is {
			continue
		}
		form, _ := pflag.UnquoteUsage(f)
		given := make(map[string]string)
		for _, one := range list.GetSlice() {
			name, value, assigned := strings.Cut(one, "=")
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
			before, twice := given[name]
			given[name] = value
			switch {
			case assigned && name == "":
				errs = append(errs, fmt.Errorf("--%s: %q, expected %s", flag, one, form))
			case twice:
				errs = append(errs, fmt.Errorf("--%s: %s is given twice; several values are one list, such as %s=%s,%s", flag, name, name, before, value))
			}
		}
	}
	return BadInput(errors.Join(errs...))
}
