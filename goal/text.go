package goal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// maxLine is the longest line of text, in bytes. It bounds memory.
const maxLine = 1 << 20

// MaxText is the largest text of a schedule, in unpacked bytes. Reading an
// operation takes up to a hundred bytes of memory, so an endless text is found
// before it uses up any machine. The binary form of a schedule may be longer.
const MaxText = 1 << 30

// maxIdle bounds the bytes of comments, empty lines and dependencies between
// two operations, so that an endless input is found.
const maxIdle = 1 << 28

// ReadOptions are the options for reading a schedule.
type ReadOptions struct {
	// File is the name that errors show; "": none.
	File string
	// DropNames leaves out the labels and line numbers of the text. Only
	// reports about the schedule need them. They take about 8 bytes per
	// operation, plus the labels.
	DropNames bool
}

// ReadText reads a schedule in text form. Beyond the grammar it accepts white
// space between any words, comments anywhere, and a closing brace at the end of
// a statement. A cpu or nic index is at most 255, the limit of the binary
// format. (LogGOPSim's converter silently keeps the low 8 bits of a larger
// one.) Every rank must have its block; the blocks may come in any order.
//
// If the input is not a schedule, the error is a *SyntaxError. Memory grows
// with the bytes read, not with the sizes that the text announces.
func ReadText(r io.Reader, opt ReadOptions) (*Schedule, error) { return readText(r, opt, MaxText) }

func readText(r io.Reader, opt ReadOptions, most int) (*Schedule, error) {
	t := textReader{src: r, file: opt.File, b: NewBuilder()}
	if !opt.DropNames {
		t.names = &names{}
		t.b.s.names = t.names
	}
	idle, all := 0, 0
	for {
		more, err := t.readLine()
		if err != nil {
			return nil, err
		}
		if !more {
			return t.finish()
		}
		before := len(t.b.s.ops) + len(t.b.s.ranks)
		if err := t.parseLine(); err != nil {
			return nil, err
		}
		if all += len(t.text) + 1; all > most {
			return nil, t.errorf("more than %d bytes of text, expected at most so many; the binary form may be longer", most)
		}
		if idle += len(t.text) + 1; before != len(t.b.s.ops)+len(t.b.s.ranks) {
			idle = 0
		}
		if idle > maxIdle {
			return nil, t.errorf("more than %d bytes without an operation", maxIdle)
		}
	}
}

// textState is the part of the text that the reader expects next.
type textState uint8

const (
	wantNumRanks textState = iota
	wantCount
	wantRank
	wantNumber
	wantBrace
	wantStatement
)

type textReader struct {
	src    io.Reader
	file   string
	buf    []byte
	next   int // first byte of buf after the current line
	failed error

	text    []byte // the current line without its end
	pos     int
	line    int
	state   textState
	comment int // line where an open block comment began, or 0

	b      *Builder
	ranks  uint32
	names  *names
	labels labelTable
}

// readLine makes the next line current; false: the input has ended.
func (t *textReader) readLine() (bool, error) {
	scanned := t.next
	for {
		if i := bytes.IndexByte(t.buf[scanned:], '\n'); i >= 0 {
			t.text = t.buf[t.next : scanned+i]
			t.next = scanned + i + 1
			break
		}
		scanned = len(t.buf)
		if t.failed != nil {
			if !errors.Is(t.failed, io.EOF) {
				return false, fmt.Errorf("%sline %d: %w", prefix(t.file), t.line+1, t.failed)
			}
			if t.next == len(t.buf) {
				return false, nil
			}
			t.text, t.next = t.buf[t.next:], len(t.buf)
			break
		}
		if scanned-t.next > maxLine {
			t.line, t.pos = t.line+1, maxLine
			return false, t.errorf("line of more than %d bytes", maxLine)
		}
		scanned -= t.next
		t.fill()
	}
	t.line++
	t.pos = 0
	return true, nil
}

// fill moves the rest of the buffer to its front and reads more.
func (t *textReader) fill() {
	const step = 1 << 16
	t.buf = t.buf[:copy(t.buf, t.buf[t.next:])]
	t.next = 0
	t.buf = slices.Grow(t.buf, step)
	for empty := 0; ; empty++ {
		n, err := t.src.Read(t.buf[len(t.buf):cap(t.buf)])
		t.buf = t.buf[:len(t.buf)+n]
		if err != nil {
			t.failed = err
		} else if n == 0 && empty > 100 {
			t.failed = io.ErrNoProgress
		}
		if n > 0 || t.failed != nil {
			return
		}
	}
}

func (t *textReader) errorf(format string, args ...any) error {
	return &SyntaxError{File: t.file, Line: max(1, t.line), Column: t.pos + 1, Msg: fmt.Sprintf(format, args...)}
}

// expected returns an error with the text expected at the current position and
// the text found.
func (t *textReader) expected(what string) error {
	rest := t.text[t.pos:]
	if len(rest) == 0 {
		return t.errorf("expected %s, found the end of the line", what)
	}
	n := 1
	for n < len(rest) && n < 40 && isWord[rest[0]] && isWord[rest[n]] {
		n++
	}
	return t.errorf("expected %s, found %q", what, rest[:n])
}

// isWord is the set of bytes in labels, keywords and numbers.
var isWord = func() (set [256]bool) {
	for c := range set {
		b := byte(c)
		set[c] = isLetter(b) || isDigit(b) || b == '_'
	}
	return set
}()

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// space skips white space and comments and returns the byte after them, or 0 at
// the end of the line.
func (t *textReader) space() byte {
	for t.pos < len(t.text) {
		c := t.text[t.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f':
			t.pos++
		case c != '/' || t.pos+1 == len(t.text):
			return c
		case t.text[t.pos+1] == '/':
			t.pos = len(t.text)
		case t.text[t.pos+1] == '*':
			t.pos += 2
			t.comment = t.line
			t.endComment()
		default:
			return c
		}
	}
	return 0
}

// endComment looks for the end of an open block comment on the current line.
func (t *textReader) endComment() {
	if i := bytes.Index(t.text[t.pos:], []byte("*/")); i >= 0 {
		t.pos += i + 2
		t.comment = 0
	} else {
		t.pos = len(t.text)
	}
}

// word takes a label or keyword; empty: there is none.
func (t *textReader) word() []byte {
	c := t.space()
	from := t.pos
	if !isLetter(c) {
		return nil
	}
	for t.pos < len(t.text) && isWord[t.text[t.pos]] {
		t.pos++
	}
	return t.text[from:t.pos]
}

// number takes an integer of at most the given value.
func (t *textReader) number(what string, limit uint64) (uint64, error) {
	if !isDigit(t.space()) {
		return 0, t.expected(what)
	}
	from := t.pos
	var v uint64
	for ; t.pos < len(t.text) && isDigit(t.text[t.pos]); t.pos++ {
		d := uint64(t.text[t.pos] - '0')
		if v > (math.MaxUint64-d)/10 {
			t.pos = from
			return 0, t.errorf("expected %s, found a number above %d", what, limit)
		}
		v = v*10 + d
	}
	if v > limit {
		t.pos = from
		return 0, t.errorf("expected %s, found %d, above %d", what, v, limit)
	}
	return v, nil
}

func (t *textReader) keyword(want string) error {
	t.space()
	from := t.pos
	if string(t.word()) != want {
		t.pos = from
		return t.expected("'" + want + "'")
	}
	return nil
}

func (t *textReader) parseLine() error {
	if t.comment != 0 {
		t.endComment()
	}
	for t.space() != 0 || t.pos < len(t.text) {
		if err := t.parseItem(); err != nil {
			return err
		}
	}
	return nil
}

// parseItem takes the next part of the file: a word of a header, a brace or a
// statement.
func (t *textReader) parseItem() (err error) {
	switch t.state {
	case wantNumRanks:
		err = t.keyword("num_ranks")
	case wantCount:
		err = t.numRanks()
	case wantRank:
		err = t.keyword("rank")
	case wantNumber:
		err = t.startRank()
	case wantBrace:
		if t.text[t.pos] != '{' {
			return t.expected("'{'")
		}
		t.pos++
	case wantStatement:
		if t.text[t.pos] == '}' {
			t.pos++
			t.state = wantRank
			return nil
		}
		return t.statement()
	}
	t.state++
	return err
}

func (t *textReader) numRanks() error {
	v, err := t.number("the number of ranks", math.MaxInt32)
	if err == nil && v == 0 {
		return t.errorf("expected at least 1 rank")
	}
	t.ranks = uint32(v)
	return err
}

func (t *textReader) startRank() error {
	t.space()
	from := t.pos
	v, err := t.number("the number of the rank", math.MaxInt32)
	if err != nil {
		return err
	}
	if v >= uint64(t.ranks) {
		t.pos = from
		return t.errorf("rank %d of %d ranks", v, t.ranks)
	}
	if t.b.has(int(v)) {
		t.pos = from
		return t.errorf("rank %d is defined twice", v)
	}
	t.b.Rank(int(v))
	t.labels.reset()
	if n := t.names; n != nil {
		n.base = append(n.base, uint64(len(n.bytes)))
		n.origin = append(n.origin, uint32(len(t.b.s.ops)))
	}
	return nil
}

func (t *textReader) finish() (*Schedule, error) {
	switch {
	case t.comment != 0:
		return nil, t.errorf("the comment that begins in line %d has no end", t.comment)
	case t.state == wantStatement:
		return nil, t.errorf("expected '}', found the end of the file")
	case t.state != wantRank:
		return nil, t.errorf("expected 'num_ranks' and ranks, found the end of the file")
	case uint32(len(t.b.s.ranks)) < t.ranks && t.b.order == nil:
		return nil, t.errorf("expected 'rank %d', found the end of the file", len(t.b.s.ranks))
	case uint32(len(t.b.s.ranks)) < t.ranks:
		return nil, t.errorf("found %d ranks, expected %d", len(t.b.s.ranks), t.ranks)
	}
	s, err := t.b.Schedule()
	if err != nil {
		return nil, t.errorf("%v", err)
	}
	return s, nil
}
