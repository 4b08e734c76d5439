// Package script reads the languages of the tests: a line is a command with
// words and key=value arguments.
package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is a mistake in a script.
type Error struct {
	Line int    // from 1
	Why  string // what is wrong and what was expected
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// Command is one line of a script.
type Command struct {
	Line int    // from 1
	Who  string // before a colon at the beginning, as in "1.b: put"; "": nobody
	Verb string
	Pos  []string // words that are no arguments
	Args []Arg    // in order
}

// Arg is a key=value argument.
type Arg struct{ Key, Value string }

// Arg returns the value of a key.
func (c *Command) Arg(key string) (value string, ok bool) {
	for _, a := range c.Args {
		if a.Key == key {
			return a.Value, true
		}
	}
	return "", false
}

// Value returns the value of a key, "" if it is not there.
func (c *Command) Value(key string) string {
	value, _ := c.Arg(key)
	return value
}

// Keys lists the keys of the arguments, sorted.
func (c *Command) Keys() (keys []string) {
	for _, a := range c.Args {
		keys = append(keys, a.Key)
	}
	slices.Sort(keys)
	return keys
}

// Errorf returns a mistake in the command.
func (c *Command) Errorf(format string, args ...any) error {
	return &Error{Line: c.Line, Why: c.Verb + ": " + fmt.Sprintf(format, args...)}
}

// Parse splits a script into commands. A # at the beginning of a word ends the
// line, if a blank, another # or nothing follows it. Double quotes keep blanks.
func Parse(text string) (commands []Command, err error) {
	for i, line := range strings.Split(text, "\n") {
		words, err := split(line)
		if err != nil {
			return nil, &Error{Line: i + 1, Why: err.Error()}
		}
		if len(words) == 0 {
			continue
		}
		c := Command{Line: i + 1}
		if who, ok := strings.CutSuffix(words[0], ":"); ok {
			if c.Who, words = who, words[1:]; len(words) == 0 {
				return nil, &Error{Line: i + 1, Why: "no command after the process"}
			}
		}
		c.Verb = words[0]
		for _, w := range words[1:] {
			key, value, is := strings.Cut(w, "=")
			if !is || key == "" || strings.Contains(key, `"`) {
				c.Pos = append(c.Pos, w)
				continue
			}
			c.Args = append(c.Args, Arg{key, value})
		}
		commands = append(commands, c)
	}
	return commands, nil
}

const blanks = " \t\r\v\f"

// split cuts a line into words.
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
