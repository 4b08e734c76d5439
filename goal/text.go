package goal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
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
func ReadText(r io.Reader, opt ReadOptions) (*Schedule, error) {
	return readText(r, opt, MaxText, blockLen)
}

// blockLen is about how many bytes of text are parsed at a time, besides others.
// The first block has an eighth, so a text that is as short needs no goroutines.
const blockLen = 1 << 19

func readText(in io.Reader, opt ReadOptions, most, length int) (*Schedule, error) {
	r := textReader{src: in, opt: opt, most: most, b: NewBuilder()}
	r.b.s.names = !opt.DropNames
	r.last = r.parser()
	workers := runtime.GOMAXPROCS(0)
	var running []*piece
	defer func() {
		for _, p := range running {
			<-p.parsed
		}
	}()
	for size := length / 8; ; size = length {
		block, starts := r.read(size)
		// A piece is parsed beside others if what is before it can be complete.
		ahead := starts && r.last.ranks > 0
		for len(running) > 0 && (!ahead || len(running) > workers) {
			p := running[0]
			running = running[1:]
			if err := r.join(p); err != nil {
				return nil, err
			}
		}
		switch {
		case len(block) == 0:
			return r.finish()
		case ahead:
			p := &piece{parser: r.parser(), block: block, parsed: make(chan struct{})}
			p.ranks, p.state, p.all = r.last.ranks, wantRank, r.given-len(block)
			p.b.s.room, p.b.s.like = len(block)/16, r.b.s.before(len(r.b.s.segments))
			running = append(running, p)
			go p.run()
		default:
			r.last.parse(block)
			r.spare = append(r.spare, block)
			if err := r.check(); err != nil {
				return nil, err
			}
		}
	}
}

// textReader divides a text at the beginnings of ranks, and joins what parsers
// make of the pieces.
type textReader struct {
	src    io.Reader
	opt    ReadOptions
	most   int
	rest   []byte // read and not yet in a block
	given  int    // bytes in blocks
	failed error  // of src; io.EOF at its end

	b       *Builder // the ranks of the pieces before the last one
	last    *parser  // of the last piece
	checked int      // ranks of last that b has claimed
	named   int      // its collectives that b has

	spare [][]byte  // blocks
	idle  []*parser // without a piece
}

// piece is a block that begins with a rank, if what is before it is complete.
type piece struct {
	*parser

	block  []byte
	parsed chan struct{}
}

func (p *piece) run() {
	p.parse(p.block)
	close(p.parsed)
}

// parser returns a parser for the next piece.
func (r *textReader) parser() *parser {
	p := &parser{b: NewBuilder()}
	if n := len(r.idle); n > 0 {
		p, r.idle = r.idle[n-1], r.idle[:n-1]
	}
	*p = parser{file: r.opt.File, most: r.most, named: !r.opt.DropNames, b: p.b, heads: p.heads[:0], labels: p.labels}
	return p
}

// read returns the next block, of about size bytes: whole lines, if possible up
// to the beginning of a rank. It is empty at the end of the text. starts: it
// begins with a rank.
func (r *textReader) read(size int) (block []byte, starts bool) {
	if n := len(r.spare); n > 0 {
		block, r.spare = r.spare[n-1][:0], r.spare[:n-1]
	}
	block = append(block, r.rest...)
	for {
		block = r.fill(block, size)
		cut := lastRank(block)
		if cut == 0 || r.failed != nil {
			cut = bytes.LastIndexByte(block, '\n') + 1
		}
		if cut == 0 && len(block) > maxLine || errors.Is(r.failed, io.EOF) {
			cut = len(block)
		}
		if cut > 0 || r.failed != nil {
			r.rest = append(r.rest[:0], block[cut:]...)
			r.given += cut
			return block[:cut], beginsRank(block[:cut])
		}
		size *= 2
	}
}

// fill reads until the block has size bytes, or the text ends.
func (r *textReader) fill(block []byte, size int) []byte {
	if r.failed == nil {
		block = slices.Grow(block, max(0, size-len(block)))
	}
	for empty := 0; len(block) < size && r.failed == nil; empty++ {
		n, err := r.src.Read(block[len(block):size])
		block = block[:len(block)+n]
		if n > 0 {
			empty = 0
		}
		if r.failed = err; err == nil && empty > 100 {
			r.failed = io.ErrNoProgress
		}
	}
	return block
}

// lastRank returns the place of the last line that begins a rank, but for the
// first line; 0: there is none.
func lastRank(block []byte) int {
	for end := len(block); ; {
		i := bytes.LastIndex(block[:end], []byte("\nrank "))
		if i < 0 || beginsRank(block[i+1:]) {
			return i + 1
		}
		end = i + 1
	}
}

// beginsRank reports whether a block begins with a rank, unless it begins in a
// comment. Within another rank such a line would be an error.
func beginsRank(block []byte) bool {
	rest, found := bytes.CutPrefix(block, []byte("rank "))
	return found && len(rest) > 0 && isDigit(rest[0])
}

// join appends a piece to those before it.
func (r *textReader) join(p *piece) error {
	<-p.parsed
	r.spare = append(r.spare, p.block)
	if r.last.state != wantRank || r.last.comment != 0 {
		r.last.parse(p.block)
		return r.check()
	}
	p.base = r.last.base + r.last.line
	if e, ok := errors.AsType[*SyntaxError](p.err); ok {
		e.Line += p.base
	}
	r.take()
	r.last, r.checked, r.named = p.parser, 0, 0
	return r.check()
}

// check returns the first error of the last piece.
func (r *textReader) check() error {
	var first *SyntaxError
	wrong := func(line, column int, format string, args ...any) {
		if line += r.last.base; first == nil || line < first.Line {
			first = &SyntaxError{File: r.opt.File, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
		}
	}
	for _, h := range r.last.heads[r.checked:] {
		if !r.b.claim(h.rank) {
			wrong(h.line, h.column, "rank %d is defined twice", h.rank)
		}
	}
	r.checked = len(r.last.heads)
	for own := r.last.b; r.named < len(own.s.colls); r.named++ {
		c, at := &own.s.colls[r.named], own.naming.from[r.named]
		if n, ok := r.b.declare(c, at); !ok {
			wrong(at.line, at.column, "%s", changed(c, &r.b.s.colls[n-1]))
		}
	}
	if first != nil {
		return first
	}
	return r.last.err
}

// take moves the ranks of the last piece to those before.
func (r *textReader) take() {
	r.b.take(r.last.b, r.last.base)
	r.idle = append(r.idle, r.last)
}

func (r *textReader) finish() (*Schedule, error) {
	t := r.last
	switch {
	case !errors.Is(r.failed, io.EOF):
		return nil, fmt.Errorf("%sline %d: %w", prefix(t.file), t.base+t.line+1, r.failed)
	case t.comment != 0:
		return nil, t.errorf("the comment that begins in line %d has no end", t.base+t.comment)
	case t.state == wantStatement:
		return nil, t.errorf("expected '}', found the end of the file")
	case t.state != wantRank:
		return nil, t.errorf("expected 'num_ranks' and ranks, found the end of the file")
	case uint32(r.b.claimed) < t.ranks && r.b.order == nil:
		return nil, t.errorf("expected 'rank %d', found the end of the file", r.b.claimed)
	case uint32(r.b.claimed) < t.ranks:
		return nil, t.errorf("found %d ranks, expected %d", r.b.claimed, t.ranks)
	}
	r.take()
	s, err := r.b.Schedule()
	if err != nil {
		return nil, t.errorf("%v", err)
	}
	return s, nil
}
