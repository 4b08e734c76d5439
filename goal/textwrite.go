package goal

import (
	"bufio"
	"io"
	"strconv"
)

// WriteText writes a schedule in text form. Operations keep the labels of the
// text that they were read from. An operation that has a dependency but no
// label is called l and its number, from 1, with enough underscores to make it
// unique. Lines before their first operation and behind their last one name
// collectives.
func WriteText(w io.Writer, s *Schedule) error {
	t := textWriter{out: bufio.NewWriterSize(w, 1<<16), s: s}
	t.buf = append(t.buf, "num_ranks "...)
	t.buf = strconv.AppendInt(t.buf, int64(s.Ranks()), 10)
	t.buf = append(t.buf, '\n')
	for r, v := range s.All() {
		if err := t.rank(r, v); err != nil {
			return err
		}
	}
	return t.out.Flush()
}

type textWriter struct {
	out   *bufio.Writer
	s     *Schedule
	buf   []byte
	taken map[string]bool // labels of the current rank, nil without names
}

func (t *textWriter) rank(r int, v Rank) error {
	t.taken = nil
	if t.s.Named() {
		t.taken = make(map[string]bool, v.Len())
		for i := range v.Len() {
			t.taken[v.Label(i)] = true
		}
	}
	t.buf = append(t.buf, "\nrank "...)
	t.buf = strconv.AppendInt(t.buf, int64(r), 10)
	t.buf = append(t.buf, " {\n"...)
	part := -1
	for i := range v.Len() {
		if now := v.Collective(i); now != part {
			part = now
			t.mark(part)
		}
		if v.Label(i) != "" || v.Deps(i) > 0 || len(v.s.edges(v.id(i)).list) > 0 {
			t.label(v, i)
			t.buf = append(t.buf, ": "...)
		}
		t.buf = append(appendOp(t.buf, v.Op(i)), '\n')
		if err := t.flush(); err != nil {
			return err
		}
	}
	if part >= 0 {
		t.mark(-1)
	}
	for y := range v.Len() {
		for x := range v.AfterDone(y) {
			t.depend(v, x, " requires ", y)
		}
		for x := range v.AfterStart(y) {
			t.depend(v, x, " irequires ", y)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.buf = append(t.buf, "}\n"...)
	return t.flush()
}

// mark writes the line before operations of a collective; -1: of none.
func (t *textWriter) mark(collective int) {
	t.buf = append(t.buf, markWord...)
	t.buf = append(t.buf, ' ')
	if collective < 0 {
		t.buf = append(t.buf, endName...)
	} else {
		t.buf = append(t.buf, t.s.colls[collective].String()...)
	}
	t.buf = append(t.buf, '\n')
}

func (t *textWriter) flush() error {
	_, err := t.out.Write(t.buf)
	t.buf = t.buf[:0]
	return err
}

func (t *textWriter) depend(v Rank, x int, relation string, y int) {
	t.label(v, x)
	t.buf = append(t.buf, relation...)
	t.label(v, y)
	t.buf = append(t.buf, '\n')
}

func (t *textWriter) label(v Rank, i int) {
	if name, _ := v.s.named(v.id(i)); len(name) > 0 {
		t.buf = append(t.buf, name...)
		return
	}
	from := len(t.buf)
	t.buf = append(t.buf, 'l')
	t.buf = strconv.AppendInt(t.buf, int64(i)+1, 10)
	for t.taken[string(t.buf[from:])] {
		t.buf = append(t.buf, '_')
	}
}

func appendOp(b []byte, op Op) []byte {
	b = append(b, op.Kind.String()...)
	b = append(b, ' ')
	b = strconv.AppendUint(b, op.Size, 10)
	if op.Kind == Calc {
		return appendAttribute(b, " cpu ", uint64(op.CPU))
	}
	toward := "b to "
	if op.Kind == Recv {
		toward = "b from "
	}
	b = appendIndex(append(b, toward...), op.Peer)
	if op.Tag == AnyTag {
		b = append(b, " tag -1"...)
	} else {
		b = appendAttribute(b, " tag ", op.Tag)
	}
	b = appendAttribute(b, " cpu ", uint64(op.CPU))
	return appendAttribute(b, " nic ", uint64(op.NIC))
}

func appendAttribute(b []byte, name string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), v, 10)
}

func appendIndex(b []byte, v uint32) []byte {
	if v == Any {
		return append(b, "-1"...)
	}
	return strconv.AppendUint(b, uint64(v), 10)
}
