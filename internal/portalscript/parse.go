package portalscript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/script"
)

// Error is a mistake in a script.
type Error = script.Error

// command is one line of a script.
type command struct {
	script.Command

	proc  int      // -1: none given
	ni    string   // "": the default interface
	pos   []string // words that are neither arguments nor flags
	flags []string // words in capitals
}

// parse splits a script into commands.
func parse(text string) ([]command, error) {
	lines, err := script.Parse(text)
	if err != nil {
		return nil, err
	}
	all := make([]command, len(lines))
	for i, line := range lines {
		c := command{Command: line, proc: -1}
		if c.Who != "" {
			proc, ni, _ := strings.Cut(c.Who, ".")
			n, err := strconv.Atoi(proc)
			if err != nil || n < 0 {
				return nil, &Error{Line: c.Line, Why: fmt.Sprintf("%q is no process, want a number before the colon", c.Who)}
			}
			c.proc, c.ni = n, ni
		}
		for i, a := range c.Args {
			if slices.ContainsFunc(c.Args[:i], func(o script.Arg) bool { return o.Key == a.Key }) {
				return nil, c.Errorf("argument %s given twice", a.Key)
			}
		}
		for _, w := range c.Pos {
			if isFlag(w) {
				c.flags = append(c.flags, w)
			} else {
				c.pos = append(c.pos, w)
			}
		}
		all[i] = c
	}
	return all, nil
}

// isFlag reports whether a word is an option or type name: capitals, digits
// and underscores, beginning with two capitals.
func isFlag(w string) bool {
	for i, r := range w {
		upper := r >= 'A' && r <= 'Z'
		if i < 2 && !upper || !upper && r != '_' && (r < '0' || r > '9') {
			return false
		}
	}
	return len(w) >= 2
}

// number parses an unsigned number of 64 bits.
func number(s string) (uint64, error) {
	if s == "max" {
		return 1<<64 - 1, nil
	}
	if rest, neg := strings.CutPrefix(s, "-"); neg {
		v, err := strconv.ParseUint(rest, 0, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no number", s)
		}
		return -v, nil
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return v, nil
}

// num returns the numeric argument key, or def when it is not given.
func (c *command) num(key string, def uint64) (uint64, error) {
	s, ok := c.Arg(key)
	if !ok {
		return def, nil
	}
	v, err := number(s)
	if err != nil {
		return 0, c.Errorf("%s: %v", key, err)
	}
	return v, nil
}

// num32 is num for 32-bit values; "any" is the wildcard.
func (c *command) num32(key string, def uint32) (uint32, error) {
	if c.Value(key) == "any" {
		return 1<<32 - 1, nil
	}
	v, err := c.num(key, uint64(def))
	if err != nil {
		return 0, err
	}
	if v > 1<<32-1 {
		return 0, c.Errorf("%s: %d does not fit in 32 bits", key, v)
	}
	return uint32(v), nil
}

// numArg is a numeric argument and the place for its value.
type numArg struct {
	key string
	p   *uint64
}

// nums reads several numeric arguments in one go.
func (c *command) nums(args []numArg) error {
	for _, a := range args {
		v, err := c.num(a.key, *a.p)
		if err != nil {
			return err
		}
		*a.p = v
	}
	return nil
}

// bits turns the flags of a command into option bits.
func (c *command) bits(names []string) (uint32, error) {
	v, err := c.bitsOf(c.flags, names)
	if err != nil {
		return 0, err
	}
	if s, ok := c.Arg("options"); ok {
		raw, err := number(s)
		if err != nil {
			return 0, c.Errorf("options: %v", err)
		}
		v |= uint32(raw)
	}
	return v, nil
}

// bitsOf returns the set of bits for words.
func (c *command) bitsOf(words, names []string) (v uint32, err error) {
	for _, f := range words {
		i, ok := lookup(names, f)
		if !ok {
			return 0, c.Errorf("unknown option %s, want some of %s", f, strings.Join(names, " "))
		}
		v |= 1 << i
	}
	return v, nil
}

// lookup finds a name in a list.
func lookup(names []string, s string) (int, bool) {
	for i, n := range names {
		if n == s {
			return i, true
		}
	}
	return 0, false
}
