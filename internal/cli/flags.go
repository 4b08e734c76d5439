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

// flagError describes a wrong value of a flag in words for users, instead of
// the library's.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedShortnames() // one dash, as in Go's own commands: -format
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

// expected describes the values of a flag.
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

// argumentsKey is the key of the arguments in a context.
type argumentsKey struct{}

// WithArguments returns a context with the arguments of a command. The command
// needs them to refuse flags that are given twice. Execute does this itself.
func WithArguments(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argumentsKey{}, args)
}

// checkTwice refuses a flag of one value that is given several times. The
// reader would have to guess which one counts.
func checkTwice(c *cobra.Command) error {
	all, known := c.Context().Value(argumentsKey{}).([]string)
	if !known || c.DisableFlagParsing {
		return nil
	}
	_, args, err := c.Root().Find(all) // as cobra finds it
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

// times writes how often, from 2.
func times(n int) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// mayBeEmpty are flags that may have an empty text, for a message without
// bytes.
var mayBeEmpty = map[string]bool{"hex": true}

// checkEmpty refuses flags with an empty text. Scripts give them when a
// variable is not set, and they would count as not given.
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
