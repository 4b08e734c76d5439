package portalscript

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is a mistake in a script.
type Error struct {
	Line int    // line number, from 1
	Why  string // what is wrong and what was expected
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// command is one line of a script.
type command struct {
	line  int
	proc  int    // -1: none given
	ni    string // "": the default interface
	verb  string
	pos   []string          // positional arguments
	args  map[string]string // key=value arguments
	flags []string          // words in capitals
}

func (c *command) errorf(format string, args ...any) error {
	return &Error{Line: c.line, Why: c.verb + ": " + fmt.Sprintf(format, args...)}
}

// parse splits a script into commands.
func parse(text string) ([]command, error) {
	var cmds []command
	for i, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err != nil {
			return nil, &Error{Line: i + 1, Why: err.Error()}
		}
		if len(words) == 0 {
			continue
		}
		c, err := parseCommand(words)
		if err != nil {
			return nil, &Error{Line: i + 1, Why: err.Error()}
		}
		c.line = i + 1
		cmds = append(cmds, c)
	}
	return cmds, nil
}

const blanks = " \t\r\v\f"

// split cuts a line into words; double quotes keep blanks, # ends the line.
func split(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, blanks)
		if line == "" || line[0] == '#' && (len(line) == 1 || line[1] == ' ' || line[1] == '#') {
			return words, nil
		}
		end := 0
		for end < len(line) && !strings.ContainsRune(blanks, rune(line[end])) {
			if line[end] != '"' {
				end++
				continue
			}
			quoted, err := strconv.QuotedPrefix(line[end:])
			if err != nil {
				return nil, fmt.Errorf("unterminated string %s", line[end:])
			}
			end += len(quoted)
		}
		words = append(words, line[:end])
		line = line[end:]
	}
}

func parseCommand(words []string) (command, error) {
	c := command{proc: -1, args: map[string]string{}}
	if who, ok := strings.CutSuffix(words[0], ":"); ok {
		proc, ni, _ := strings.Cut(who, ".")
		n, err := strconv.Atoi(proc)
		if err != nil || n < 0 {
			return c, fmt.Errorf("%q is no process, want a number before the colon", who)
		}
		c.proc, c.ni = n, ni
		words = words[1:]
	}
	if len(words) == 0 {
		return c, fmt.Errorf("no command after the process")
	}
	c.verb = words[0]
	for _, w := range words[1:] {
		key, value, isArg := strings.Cut(w, "=")
		switch {
		case isArg && key != "" && !strings.Contains(key, `"`):
			if _, twice := c.args[key]; twice {
				return c, fmt.Errorf("%s: argument %s given twice", c.verb, key)
			}
			c.args[key] = value
		case isFlag(w):
			c.flags = append(c.flags, w)
		default:
			c.pos = append(c.pos, w)
		}
	}
	return c, nil
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
	s, ok := c.args[key]
	if !ok {
		return def, nil
	}
	v, err := number(s)
	if err != nil {
		return 0, c.errorf("%s: %v", key, err)
	}
	return v, nil
}

// num32 is num for 32-bit values; "any" is the wildcard.
func (c *command) num32(key string, def uint32) (uint32, error) {
	if c.args[key] == "any" {
		return 1<<32 - 1, nil
	}
	v, err := c.num(key, uint64(def))
	if err != nil {
		return 0, err
	}
	if v > 1<<32-1 {
		return 0, c.errorf("%s: %d does not fit in 32 bits", key, v)
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
	if s, ok := c.args["options"]; ok {
		raw, err := number(s)
		if err != nil {
			return 0, c.errorf("options: %v", err)
		}
		v |= uint32(raw)
	}
	return v, nil
}

// bitsOf is the set of bits that words name.
func (c *command) bitsOf(words, names []string) (v uint32, err error) {
	for _, f := range words {
		i, ok := lookup(names, f)
		if !ok {
			return 0, c.errorf("unknown option %s, want some of %s", f, strings.Join(names, " "))
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
