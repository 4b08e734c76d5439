package mpitrace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// line is a line of a trace: the name of a call, its beginning, its arguments and
// its end, with colons between.
type line struct {
	fields []string
	mpi    MPI
	ranks  int
	err    error
}

// maxLine bounds a line, in bytes.
const maxLine = 16 << 20

// read reads the file of a rank and calls add for each call that counts, and
// other for the names of the others.
func read(in io.Reader, mpi MPI, ranks int, add func(call), other func(name string)) (at int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	l := line{mpi: mpi, ranks: ranks}
	for lines.Scan() {
		at++
		text := strings.TrimRight(lines.Text(), " \t\r")
		if text == "" || text[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(text, ":")
		if !strings.HasPrefix(name, "MPI_") {
			return at, fmt.Errorf("%.40q, expected a call such as MPI_Send:START:...:END, or a comment after #", text)
		}
		l.fields, l.err = strings.Split(rest, ":"), nil
		known, is := calls[name]
		if !is {
			other(name)
			continue
		}
		c := call{line: at, part: &part{name: name}}
		if known.least > len(l.fields) {
			return at, fmt.Errorf("%s has %d fields behind its name, expected %d", name, len(l.fields), known.least)
		}
		last := len(l.fields) - 1
		c.from, c.to = l.time(0), l.time(last)
		known.read(&l, &c)
		switch {
		case l.err != nil:
			return at, fmt.Errorf("%s: %w", name, l.err)
		case c.to == noTime:
			c.to = c.from
		case c.from == noTime:
			c.from = c.to
		}
		if c.to < c.from {
			return at, fmt.Errorf("%s ends at %s, before its start at %s", name, l.fields[last], l.fields[0])
		}
		if c.part.kind == "" && c.verb != create {
			c.part = nil
		}
		add(c)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return at + 1, fmt.Errorf("a line of more than %d bytes", maxLine)
	} else if err != nil {
		return at + 1, err
	}
	return at, nil
}

func (l *line) wrong(field int, format string, args ...any) {
	if l.err == nil {
		l.err = fmt.Errorf("field %d: %w", field+1, fmt.Errorf(format, args...))
	}
}

// noTime stands for a time that is not told.
const noTime = math.MinInt64

// time reads microseconds, such as 1237666046950106.000000, as ns.
func (l *line) time(field int) int64 {
	text := l.fields[field]
	if text == "-" {
		return noTime
	}
	whole, fraction, _ := strings.Cut(text, ".")
	us, err := strconv.ParseInt(whole, 10, 64)
	digits := (fraction + "000")[:3]
	ns, wrong := strconv.ParseUint(digits, 10, 64)
	if err != nil || wrong != nil || us < 0 || us > math.MaxInt64/1000-1 {
		l.wrong(field, "%.40q, expected a time in microseconds", text)
		return 0
	}
	return us*1000 + int64(ns)
}

// int reads a number.
func (l *line) int(field int) int {
	n, err := strconv.ParseInt(l.fields[field], 10, 32)
	if err != nil {
		l.wrong(field, "%.40q, expected a whole number of 32 bits", l.fields[field])
	}
	return int(n)
}

// address reads the address of a request.
func (l *line) address(field int) uint64 {
	n, err := strconv.ParseUint(l.fields[field], 10, 64)
	if err != nil {
		l.wrong(field, "%.40q, expected an address", l.fields[field])
	}
	return n
}

// typeSize reads a datatype: its name, size and extent. The extent may be
// anything.
func (l *line) typeSize(field int) uint64 {
	list := strings.Split(l.fields[field], ",")
	if len(list) == 3 {
		if n, err := strconv.ParseUint(list[1], 10, 31); err == nil {
			return n
		}
	}
	l.wrong(field, "%.40q, expected a datatype: NAME,SIZE,EXTENT", l.fields[field])
	return 0
}

// bytes reads a count and the datatype behind it.
func (l *line) bytes(field int) uint64 {
	n := l.int(field)
	if n < 0 {
		l.wrong(field, "a count of %d", n)
		return 0
	}
	return l.limited(field, uint64(n)*l.typeSize(field+1))
}

// maxBytes bounds what a member of a call moves, so that no sum runs over.
const maxBytes = 1 << 40

func (l *line) limited(field int, bytes uint64) uint64 {
	if bytes > maxBytes {
		l.wrong(field, "%d bytes, expected at most %d", bytes, int64(maxBytes))
		return 0
	}
	return bytes
}

// comm reads a communicator: its handle, the rank in it and its size.
func (l *line) comm(field int) handle {
	list := strings.Split(l.fields[field], ",")
	if len(list) == 3 {
		value, wrong := strconv.ParseUint(list[0], 10, 64)
		rank, err := strconv.Atoi(list[1])
		size, bad := strconv.Atoi(list[2])
		if errors.Join(wrong, err, bad) == nil && rank >= 0 && rank < size && size <= l.ranks {
			return handle{value, rank, size}
		}
	}
	l.wrong(field, "%.40q, expected a communicator: HANDLE,RANK,SIZE, of at most %d ranks, the files", l.fields[field], l.ranks)
	return handle{}
}

// message reads a peer and a tag.
func (l *line) message(field int, bytes uint64, receives bool) message {
	m := message{l.int(field), l.int(field + 1), bytes}
	switch {
	case m.peer == l.mpi.ProcNull:
		return message{peer: nobody}
	case m.peer == l.mpi.AnySource && receives:
		m.peer = wildcard
	case m.peer < 0:
		l.wrong(field, "rank %d", m.peer)
	}
	switch {
	case m.tag == l.mpi.AnyTag && receives:
		m.tag = wildcard
	case m.tag < 0:
		l.wrong(field+1, "tag %d", m.tag)
	}
	return m
}

// blocks reads counts for each member, behind a pointer, and returns their bytes.
func (l *line) blocks(field int, size uint64, members int) []uint64 {
	texts := strings.Split(l.fields[field], ",")
	list := make([]uint64, 0, len(texts))
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			l.wrong(field, "%.40q, expected a count", text)
			return nil
		}
		list = append(list, l.limited(field, n*size))
	}
	if len(list) != members && l.err == nil {
		l.wrong(field, "%d counts, expected one for each of %d members", len(list), members)
	}
	return list
}

// root reads the root of a collective.
func (l *line) root(field int, c *call) {
	c.part.root = l.int(field)
	if c.part.root < 0 || c.part.root >= c.handle.size {
		l.wrong(field, "root %d of %d members", c.part.root, c.handle.size)
	}
}
