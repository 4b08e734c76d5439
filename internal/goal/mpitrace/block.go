package mpitrace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// block is a call in the text of dumpi2ascii: the lines from its entering to its
// returning, with an argument on each line between.
type block struct {
	name     string // empty: between calls
	line     int    // of its entering
	from, to int64
	args     []argument
}

// argument is a line such as "int counts[2]=[3, 4]".
type argument struct {
	line  int
	kind  string
	name  string
	items int // of an array, as in brackets; -1: none
	value string
}

// ignored stands for a value that the trace does not have.
const ignored = "<IGNORED>"

const second = 1_000_000_000 // ns

const (
	entering  = " entering at walltime "
	returning = " returning at walltime "
)

// read reads the file of a rank. An error is of the line it returns.
func (d *dumpi) read(in io.Reader) (at int, err error) {
	buffered := bufio.NewReader(in)
	if head, _ := buffered.Peek(16); bytes.Contains(head, []byte("DUMPI")) {
		return 1, errors.New("the binary form of dumpi, expected text: dumpi2ascii -a FILE.bin > FILE.txt makes it")
	}
	lines := bufio.NewScanner(buffered)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		d.at++
		if d.text(strings.TrimRight(lines.Text(), " \t\r")); d.err != nil {
			return d.wrong, d.err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return d.at + 1, fmt.Errorf("a line of more than %d bytes", maxLine)
	} else if err != nil {
		return d.at + 1, err
	}
	if d.name != "" {
		return d.line, fmt.Errorf("%s does not return: the file ends at line %d", d.name, d.at)
	}
	d.finish()
	return d.wrong, d.err
}

// fail notes the first error.
func (d *dumpi) fail(line int, format string, args ...any) {
	if d.err == nil {
		d.wrong, d.err = line, fmt.Errorf(format, args...)
	}
}

// text reads a line.
func (d *dumpi) text(s string) {
	if name, rest, is := strings.Cut(s, entering); is && isCall(name) {
		if d.name != "" {
			d.fail(d.at, "%s begins, and %s of line %d has not returned", name, d.name, d.line)
		}
		d.block = block{name: name, line: d.at, from: d.time(rest), args: d.args[:0]}
		return
	}
	if name, rest, is := strings.Cut(s, returning); is && isCall(name) {
		switch d.to = d.time(rest); {
		case d.name == "":
			d.fail(d.at, "%s returns, and has not begun", name)
		case d.name != name:
			d.fail(d.at, "%s returns, expected %s, which began on line %d", name, d.name, d.line)
		case d.to < d.from:
			d.fail(d.at, "%s returns before its entering on line %d", name, d.line)
		case d.err == nil:
			d.call()
		}
		d.name = ""
		return
	}
	switch {
	case strings.HasPrefix(s, "Perfcounters: "):
	case d.name != "":
		d.argument(s)
	case s != "":
		d.outside(s)
	}
}

func isCall(name string) bool {
	return strings.HasPrefix(name, "MPI") && !strings.ContainsAny(name, " \"=")
}

// time reads "SECONDS.NANOSECONDS, cputime ... in thread N." as ns.
func (d *dumpi) time(text string) int64 {
	wall, rest, _ := strings.Cut(text, ", ")
	whole, fraction, _ := strings.Cut(wall, ".")
	s, wrong := strconv.ParseUint(whole, 10, 63)
	ns, bad := strconv.ParseUint(fraction, 10, 63)
	_, thread, is := strings.Cut(rest, " in thread ")
	if errors.Join(wrong, bad) != nil || !is || len(fraction) != 9 || s > math.MaxInt64/second-1 {
		d.fail(d.at, "%.60q, expected SECONDS.NANOSECONDS, cputime SECONDS seconds in thread 0.", text)
		return 0
	}
	if thread != "0." {
		d.threads[thread] = true
	}
	return int64(s)*second + int64(ns)
}

// argument reads a line of a call. An array of arrays has a line for each, and
// what follows it stands behind its bracket.
func (d *dumpi) argument(s string) {
	if last := len(d.args) - 1; last >= 0 {
		switch a := &d.args[last]; {
		case a.kind == "string" && !strings.HasSuffix(a.value, "\"") && !strings.HasSuffix(a.value, "]"):
			a.value = s // a line of a string: nobody asks for it
			return
		case strings.HasPrefix(s, ", ["):
			a.value += s
			return
		case strings.HasPrefix(s, "]"):
			a.value += "]"
			if s = s[1:]; s == "" {
				return
			}
		}
	}
	kind, rest, is := strings.Cut(s, " ")
	name, value, has := strings.Cut(rest, "=")
	name, bracket, array := strings.Cut(name, "[")
	a := argument{line: d.at, kind: kind, name: name, items: -1, value: value}
	if items, _, closed := strings.Cut(bracket, "]"); array {
		n, err := strconv.ParseInt(items, 10, 32)
		has = has && closed && err == nil
		a.items = int(n)
	}
	if !is || !has || strings.ContainsAny(name, " \"") {
		d.fail(d.at, "%.60q, expected an argument of %s such as int count=1, or a line that it returns", s, d.name)
		return
	}
	d.args = append(d.args, a)
}

// outside reads a line between calls: of the header, or of what is at the end.
func (d *dumpi) outside(s string) {
	if name, rest, is := strings.Cut(s, " called "); is && isCall(name) {
		var called, left int
		if _, err := fmt.Sscanf(rest, "%d times and ignored %d times", &called, &left); err != nil {
			d.fail(d.at, "%.60q, expected NAME called N times and ignored N times", s)
		}
		d.footer(name, called, left)
		return
	}
	if rest, is := strings.CutPrefix(s, "Datatype "); is {
		var id int
		var size uint64
		name, of, _ := strings.Cut(rest, ") has size ")
		_, err := fmt.Sscanf(name, "%d (", &id)
		_, bad := fmt.Sscanf(of, "%d", &size)
		if errors.Join(err, bad) != nil || size > maxBytes {
			d.fail(d.at, "%.60q, expected Datatype N (NAME) has size N", s)
		}
		d.types.told[id] = ending{size, d.at}
		return
	}
	for _, head := range []string{"Total keyvals: ", "Performance counters: ", "Function address ", "    "} {
		if strings.HasPrefix(s, head) {
			return
		}
	}
	if key, _, is := strings.Cut(s, "="); !is || key == "" {
		d.fail(d.at, "%.60q, expected a line of dumpi2ascii, such as MPI_Send entering at walltime ...", s)
	}
}

// find returns an argument of the call.
func (d *dumpi) find(name string) *argument {
	for i := range d.args {
		if d.args[i].name == name {
			return &d.args[i]
		}
	}
	d.fail(d.at, "%s returns without an argument %s", d.name, name)
	return &argument{line: d.at, value: "0"}
}

// int reads a number, which may have its meaning behind it.
func (d *dumpi) int(name string) int {
	a := d.find(name)
	return d.number(a, a.value)
}

func (d *dumpi) number(a *argument, text string) int {
	text, _, _ = strings.Cut(text, " ")
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		d.fail(a.line, "%s: %s=%.40q, expected a whole number of 32 bits", d.name, a.name, a.value)
	}
	return int(n)
}

// natural reads a number that is not negative.
func (d *dumpi) natural(name string) uint64 {
	n := d.int(name)
	if n < 0 {
		d.fail(d.find(name).line, "%s: a %s of %d", d.name, name, n)
	}
	return uint64(max(0, n))
}

// list reads an array of numbers.
func (d *dumpi) list(name string) []int {
	a, list := d.find(name), []int{}
	if a.value == ignored && a.items <= 0 {
		return list
	}
	inner, open := strings.CutPrefix(a.value, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !open || !closed {
		d.fail(a.line, "%s: %s=%.40q, expected an array such as [1, 2]", d.name, name, a.value)
		return nil
	}
	for inner != "" && d.err == nil {
		var text string
		text, inner, _ = strings.Cut(inner, ", ")
		list = append(list, d.number(a, text))
	}
	if a.items >= 0 && a.items != len(list) {
		d.fail(a.line, "%s: %s[%d] has %d values", d.name, name, a.items, len(list))
	}
	return list
}

// naturals reads an array of numbers of which none is negative.
func (d *dumpi) naturals(name string) (list []uint64) {
	for _, n := range d.list(name) {
		if n < 0 {
			d.fail(d.find(name).line, "%s: %d among the %s", d.name, n, name)
		}
		list = append(list, uint64(max(0, n)))
	}
	return list
}
