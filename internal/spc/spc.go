// Package spc reads, writes and makes traces of block storage in the format of
// the Storage Performance Council (SPC Trace File Format Specification,
// revision 1.0.1). The trace repository of the University of Massachusetts uses
// this format.
//
// A line is a request: application-specific unit, logical block address, size
// in bytes, opcode and time stamp in seconds, separated by commas. Optional
// fields with any meaning may follow:
//
//	0,20941264,8192,W,0.551706
package spc

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// Block is the number of bytes in a logical block, unless the description of a
// trace has another.
const Block = 512

// Limits of a trace.
const (
	MaxSize  = 64 << 20 // bytes of a request
	MaxUnit  = 1<<16 - 1
	maxLBA   = 1<<40 - 1
	maxTime  = 1_000_000 // seconds
	maxLine  = 64 << 10  // bytes
	leastLen = 5         // fields of a line
)

// Request is a line of a trace.
type Request struct {
	Unit  int   // application-specific unit: a volume
	LBA   int64 // logical block address in the unit
	Size  int64 // bytes; 0 is legal, and the storage decides what it does
	Write bool
	At    sim.Time // since the beginning of the trace; whole nanoseconds
}

// Trace is requests in the order of their time stamps.
type Trace struct {
	Requests []Request
	// Synthetic is the model that made the trace, according to its lines; "":
	// the lines do not name one.
	Synthetic string
}

// LineError reports a line that is not a request.
type LineError struct {
	File string
	Line int // from 1
	Why  string
}

// Error names file and line.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// synthetic begins the first optional field of lines that a model has made.
const synthetic = "synthetic "

// Read reads a whole trace or fails. Its error names the file and the first
// invalid line, or that somebody has changed what spinsim has sealed. Empty
// lines are skipped.
func Read(r io.Reader, file string) (*Trace, error) {
	text, check := seal.Reader(r)
	t, err := read(text, file)
	if changed := check(err); changed != nil {
		return nil, fmt.Errorf("%s: %w", file, changed)
	}
	return t, err
}

func read(r io.Reader, file string) (*Trace, error) {
	t := &Trace{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		one, model, err := parse(text)
		if n := len(t.Requests); err == nil && n > 0 && one.At < t.Requests[n-1].At {
			err = fmt.Errorf("time stamp %s, expected at least %s, that of the request before", seconds(one.At), seconds(t.Requests[n-1].At))
		}
		if err != nil && lines.Err() != nil { // a part of a line; reading failed behind it
			break
		}
		if err != nil {
			return nil, &LineError{file, number, err.Error()}
		}
		if len(t.Requests) == 0 {
			t.Synthetic = model
		}
		t.Requests = memory.Append(t.Requests, one)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &LineError{file, number + 1, fmt.Sprintf("longer than %d B, expected a request: %s", maxLine, lineFields)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case len(t.Requests) == 0:
		return nil, fmt.Errorf("%s: no request, expected lines of %s", file, lineFields)
	}
	return t, nil
}

// lineFields lists the fields of a line.
const lineFields = "unit, block address, size, opcode, time stamp"

// parse parses a line, and the model in its first optional field.
func parse(text string) (one Request, model string, err error) {
	f := strings.Split(text, ",")
	if len(f) < leastLen {
		return one, "", fmt.Errorf("%d of the %d fields %s", len(f), leastLen, lineFields)
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	number := func(i int, name string, least, most int64) int64 {
		n, e := strconv.ParseInt(f[i], 10, 64)
		if (e != nil || n < least || n > most) && err == nil {
			err = fmt.Errorf("%s %q, expected a whole number from %d to %d", name, f[i], least, most)
		}
		return n
	}
	one.Unit = int(number(0, "unit", 0, MaxUnit))
	one.LBA = number(1, "block address", 0, maxLBA)
	one.Size = number(2, "size", 0, MaxSize)
	switch f[3] {
	case "w", "W":
		one.Write = true
	case "r", "R":
	default:
		if err == nil {
			err = fmt.Errorf("opcode %q, expected R or W", f[3])
		}
	}
	var valid bool
	if one.At, valid = stamp(f[4]); !valid && err == nil {
		err = fmt.Errorf("time stamp %q, expected seconds such as 12.345678, from 0 to %d, of at most nine decimals", f[4], maxTime)
	}
	if len(f) > leastLen {
		model, _ = strings.CutPrefix(f[leastLen], synthetic)
		if model == f[leastLen] {
			model = ""
		}
	}
	return one, model, err
}

// stamp parses a time stamp: digits and, after a point, one to nine digits.
func stamp(text string) (at sim.Time, valid bool) {
	whole, part, point := strings.Cut(text, ".")
	if len(whole) > 7 || point && part == "" || len(part) > 9 {
		return 0, false
	}
	part += "000000000"[len(part):]
	s, err1 := strconv.ParseUint(whole, 10, 32)
	n, err2 := strconv.ParseUint(part, 10, 32)
	if err1 != nil || err2 != nil || s > maxTime || s == maxTime && n > 0 {
		return 0, false
	}
	return sim.Time(s)*sim.Second + sim.Time(n)*sim.Nanosecond, true
}

// seconds writes a time stamp with six decimals, as in existing traces, or nine
// if needed.
func seconds(at sim.Time) string {
	n := at % sim.Second / sim.Nanosecond
	if n%1000 == 0 {
		return fmt.Sprintf("%d.%06d", at/sim.Second, n/1000)
	}
	return fmt.Sprintf("%d.%09d", at/sim.Second, n)
}

// Write writes a trace, each line with the model if it is synthetic. The seal
// is the last optional field of the last line; the first line announces it. It
// has the version of the program, and a hash of what the trace is made from.
func (t *Trace) Write(w io.Writer, program, record string) error {
	out := seal.NewWriter(w)
	b := bufio.NewWriter(out)
	model := ""
	if t.Synthetic != "" {
		model = "," + synthetic + t.Synthetic
	}
	for i, one := range t.Requests {
		op := "R"
		if one.Write {
			op = "W"
		}
		end := "\n"
		if i == len(t.Requests)-1 {
			end = ","
		}
		if i == 0 {
			end = "," + seal.Announcement + end
		}
		if _, err := fmt.Fprintf(b, "%d,%d,%d,%s,%s%s%s", one.Unit, one.LBA, one.Size, op, seconds(one.At), model, end); err != nil {
			return err
		}
	}
	if err := b.Flush(); err != nil {
		return err
	}
	m := seal.Mark{Kind: seal.Storage, Program: program, Record: record}
	return out.Seal(m, []byte(m.String()+"\n"))
}
