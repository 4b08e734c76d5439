package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/internal/fields"
)

// flagError says what is wrong with the value of a flag in the words of a user,
// not in those of the library that reads it.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedShortnames() // -format, as in Go's own commands
		if name == "" {
			name = unknown.GetSpecifiedName()
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return fmt.Errorf("%w%s", err, fields.DidYouMean("--"+name, names))
	}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	return fmt.Errorf("--%s: %q, expected %s", wrong.GetFlag().Name, wrong.GetValue(), expected(wrong))
}

// expected is what a flag takes.
func expected(wrong *pflag.InvalidValueError) string {
	outside := errors.Is(wrong, strconv.ErrRange)
	switch wrong.GetFlag().Value.Type() {
	case "bool":
		return "true or false"
	case "int", "int64":
		if outside {
			return fmt.Sprintf("a whole number from %d to %d", math.MinInt64, math.MaxInt64)
		}
		return "a whole number"
	case "uint64":
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64))
	case "float64":
		return "a number"
	case "duration":
		return "a time of at most 292 years with its unit, such as 30s or 5m"
	case "stringSlice":
		return "values separated by commas, quotes in pairs"
	}
	return wrong.Unwrap().Error()
}

// argumentsKey finds the arguments in the context of a command.
type argumentsKey struct{}

// WithArguments returns a context that carries the arguments of a command, so
// that the command refuses flags that are given twice. Execute makes one
// itself.
func WithArguments(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argumentsKey{}, args)
}

// checkTwice refuses a flag of one value that is given several times: the
// reader would have to guess which of them counts.
func checkTwice(c *cobra.Command) error {
	all, known := c.Context().Value(argumentsKey{}).([]string)
	if !known || c.DisableFlagParsing {
		return nil
	}
	_, args, err := c.Root().Find(all) // as cobra has found the command
	if err != nil {
		return err
	}
	var names []string
	given := make(map[string][]string)
	err = c.Flags().ParseAll(args, func(f *pflag.Flag, value string) error { // sets nothing
		if _, list := f.Value.(pflag.SliceValue); !list {
			if given[f.Name] == nil {
				names = append(names, f.Name)
			}
			given[f.Name] = append(given[f.Name], value)
		}
		return nil
	})
	errs := []error{err}
	for _, name := range names {
		if len(given[name]) < 2 {
			continue
		}
		text := fmt.Sprintf("--%s: given %s, expected once", name, times(len(given[name])))
		if form, _ := pflag.UnquoteUsage(c.Flags().Lookup(name)); form == "LIST" {
			text += fmt.Sprintf("; several values are one list, such as --%s=%s", name, strings.Join(given[name], ","))
		}
		errs = append(errs, errors.New(text))
	}
	return BadInput(errors.Join(errs...))
}

// times says how often, from 2.
func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// mayBeEmpty are flags of which an empty text is a value: a message without bytes.
var mayBeEmpty = map[string]bool{"hex": true}

// checkEmpty refuses flags that were given without a text, as scripts do whose
// variable is not set: they would count as not given.
func checkEmpty(c *cobra.Command) error {
	var errs []error
	c.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.String() == ""
		if list, is := f.Value.(pflag.SliceValue); is {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && !mayBeEmpty[f.Name] {
			name, _ := pflag.UnquoteUsage(f)
			errs = append(errs, fmt.Errorf("--%s: empty, expected %s; see %s --help", f.Name, name, c.CommandPath()))
		}
	})
	return BadInput(errors.Join(errs...))
}
