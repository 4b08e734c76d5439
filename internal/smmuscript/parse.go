package smmuscript

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Error is a mistake in a script.
type Error struct {
	Line int    // from 1
	Why  string // what is wrong and what was expected
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// command is one line of a script.
type command struct {
	line int
	verb string
	pos  []string // words without =
	args []arg    // key=value, in order
}

type arg struct{ key, value string }

func (c *command) errorf(format string, args ...any) error {
	return &Error{Line: c.line, Why: c.verb + ": " + fmt.Sprintf(format, args...)}
}

// parse splits a script into commands.
func parse(text string) (all []command, err error) {
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		c := command{line: i + 1, verb: words[0]}
		for _, w := range words[1:] {
			key, value, is := strings.Cut(w, "=")
			switch {
			case !is:
				c.pos = append(c.pos, w)
			case key == "" || value == "":
				return nil, c.errorf("%q, expected key=value", w)
			default:
				c.args = append(c.args, arg{key, value})
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// number reads an unsigned number of at most bits bits, decimal or 0x hexadecimal.
func (c *command) number(what, text string, bits int) (uint64, error) {
	v, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return 0, c.errorf("%s %q, expected a number below 2^%d", what, text, bits)
	}
	return v, nil
}

// size reads a number of bytes up to most.
func (c *command) size(what, text string, most int64) (int64, error) {
	v, err := sim.ParseSize(text)
	if err != nil || int64(v) > most {
		return 0, c.errorf("%s %q, expected a size up to %v", what, text, sim.Size(most))
	}
	return int64(v), nil
}
