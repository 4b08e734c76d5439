package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/internal/fields"
)

// flagError says what is wrong with the value of a flag in the words of a user, not in those of the library that reads it.
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

// mayBeEmpty are flags of which an empty text is a value: a message without bytes.
var mayBeEmpty = map[string]bool{"hex": true}

// checkEmpty refuses flags that were given without a text, as scripts do whose variable is not set: they would count as not given.
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
