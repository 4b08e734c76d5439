package goal

import (
	"bytes"
	"fmt"
	"math"
)

// textState is the part of the text that the parser expects next.
type textState uint8

const (
	wantNumRanks textState = iota
	wantCount
	wantRank
	wantNumber
	wantBrace
	wantStatement
)

// parser reads blocks of text. A block ends with the end of a line.
type parser struct {
	file  string
	most  int  // bytes of text
	named bool // keep labels and lines
	ranks uint32
	base  int // lines before the first block

	text    []byte // the current line without its end
	pos     int
	line    int // from base
	state   textState
	comment int // line where an open block comment began, or 0
	all     int // bytes up to the end of the line
	idle    int // bytes since the last operation
	part    int // operations of the builder when the current collective began

	b      *Builder
	heads  []head // of the ranks
	labels labelTable
	err    error // the first one
}

// head is the place of a rank's number.
type head struct {
	rank         uint32
	line, column int
}

// parse reads a block, up to the first error.
func (t *parser) parse(block []byte) {
	for len(block) > 0 && t.err == nil {
		block = block[t.plain(block):]
		n := bytes.IndexByte(block, '\n')
		if n < 0 {
			t.text, block = block, nil
		} else {
			t.text, block = block[:n], block[n+1:]
		}
		t.line++
		t.pos = 0
		t.err = t.parseLine()
	}
}

func (t *parser) parseLine() error {
	if len(t.text) > maxLine {
		t.pos = maxLine
		return t.errorf("line of more than %d bytes", maxLine)
	}
	before := t.b.s.ops + len(t.b.s.ranks)
	if t.comment != 0 {
		t.endComment()
	}
	if err := t.mark(); err != nil {
		return err
	}
	for t.space() != 0 || t.pos < len(t.text) {
		if err := t.parseItem(); err != nil {
			return err
		}
	}
	if t.all += len(t.text) + 1; t.all > t.most {
		return t.errorf("more than %d bytes of text, expected at most so many; the binary form may be longer", t.most)
	}
	if t.idle += len(t.text) + 1; before != t.b.s.ops+len(t.b.s.ranks) {
		t.idle = 0
	}
	if t.idle > maxIdle {
		return t.errorf("more than %d bytes without an operation", maxIdle)
	}
	return nil
}

func (t *parser) errorf(format string, args ...any) error {
	return &SyntaxError{File: t.file, Line: max(1, t.base+t.line), Column: t.pos + 1, Msg: fmt.Sprintf(format, args...)}
}

// expected returns an error with the text expected at the current position and
// the text found.
func (t *parser) expected(what string) error {
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
func (t *parser) space() byte {
	if t.pos < len(t.text) {
		if t.text[t.pos] == ' ' {
			t.pos++
		}
		if t.pos < len(t.text) && t.text[t.pos] > '/' {
			return t.text[t.pos]
		}
	}
	return t.spaces()
}

// spaces is space for any text.
func (t *parser) spaces() byte {
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
func (t *parser) endComment() {
	if i := bytes.Index(t.text[t.pos:], []byte("*/")); i >= 0 {
		t.pos += i + 2
		t.comment = 0
	} else {
		t.pos = len(t.text)
	}
}

// word takes a label or keyword; empty: there is none.
func (t *parser) word() []byte {
	c := t.space()
	if !isLetter(c) {
		return nil
	}
	rest := t.text[t.pos:]
	n := 1
	for n < len(rest) && isWord[rest[n]] {
		n++
	}
	t.pos += n
	return rest[:n]
}

// number takes an integer of at most the given value.
func (t *parser) number(what string, limit uint64) (uint64, error) {
	if !isDigit(t.space()) {
		return 0, t.expected(what)
	}
	var v uint64
	rest := t.text[t.pos:]
	n := 0
	for ; n < len(rest) && isDigit(rest[n]); n++ {
		d := uint64(rest[n] - '0')
		if v >= math.MaxUint64/10 && v > (math.MaxUint64-d)/10 {
			return 0, t.errorf("expected %s, found a number above %d", what, limit)
		}
		v = v*10 + d
	}
	if v > limit {
		return 0, t.errorf("expected %s, found %d, above %d", what, v, limit)
	}
	t.pos += n
	return v, nil
}

func (t *parser) keyword(want string) error {
	t.space()
	from := t.pos
	if string(t.word()) != want {
		t.pos = from
		return t.expected("'" + want + "'")
	}
	return nil
}

// parseItem takes the next part of the file: a word of a header, a brace or a
// statement.
func (t *parser) parseItem() (err error) {
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
			return t.endCollective()
		}
		return t.statement()
	}
	t.state++
	return err
}

func (t *parser) numRanks() error {
	v, err := t.number("the number of ranks", math.MaxInt32)
	if err == nil && v == 0 {
		return t.errorf("expected at least 1 rank")
	}
	t.ranks = uint32(v)
	return err
}

func (t *parser) startRank() error {
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
	t.b.start(uint32(v))
	t.heads = append(t.heads, head{rank: uint32(v), line: t.line, column: from + 1})
	t.labels.reset()
	return nil
}
