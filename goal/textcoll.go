package goal

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// Collectives are named in lines that plain readers take for comments:
//
//	//coll NAME KIND INT b [root INT]    the operations below are parts of it
//	//coll end                           those below are not
//
// They end with their rank, too.

// markWord begins such a line.
const markWord = "//coll"

// mark takes a line that names a collective, or ends one.
func (t *parser) mark() error {
	if t.comment != 0 {
		return nil
	}
	line := bytes.TrimLeft(t.text[t.pos:], " \t\r\v\f")
	rest, found := bytes.CutPrefix(line, []byte(markWord))
	if !found || len(rest) > 0 && rest[0] > ' ' {
		return nil
	}
	if t.state != wantStatement {
		return t.errorf("%s outside of the operations of a rank", markWord)
	}
	t.pos = len(t.text) - len(rest)
	if err := t.endCollective(); err != nil {
		return err
	}
	c, err := t.collective()
	if err != nil {
		return err
	}
	if t.space() != 0 {
		return t.expected("the end of the line")
	}
	if c.Name == endName {
		return nil
	}
	n, ok := t.b.declare(&c, place{t.line, t.pos + 1})
	if !ok {
		return t.errorf("%s", changed(&c, &t.b.s.colls[n-1]))
	}
	t.b.s.coll, t.part = n, t.b.s.ops
	return nil
}

// collective takes the description of a collective, or the word that ends one.
func (t *parser) collective() (c Collective, err error) {
	t.space()
	from := t.pos
	c.Name = string(t.word())
	switch {
	case c.Name == "":
		return c, t.expected("the name of a collective or '" + endName + "'")
	case len(c.Name) > MaxName:
		t.pos = from
		return c, t.errorf("name of %d bytes, expected at most %d", len(c.Name), MaxName)
	case c.Name == endName:
		return c, nil
	}
	t.space()
	from = t.pos
	c.Kind = CollectiveKind(t.word())
	if !slices.Contains(CollectiveKinds(), c.Kind) {
		t.pos = from
		return c, t.expected("one of " + kindList())
	}
	if c.Bytes, err = t.number("a size in bytes", math.MaxUint64); err != nil {
		return c, err
	}
	if err = t.keyword("b"); err != nil || !c.Kind.Rooted() {
		return c, err
	}
	if err = t.keyword("root"); err != nil {
		return c, err
	}
	root, err := t.number("the number of a rank", uint64(t.ranks-1))
	c.Root = int(root)
	return c, err
}

// endCollective ends the operations of a collective, if one is open.
func (t *parser) endCollective() error {
	open := t.b.s.coll
	t.b.End()
	if open != 0 && t.part == t.b.s.ops {
		return t.errorf("expected an operation of collective %s, which begins above", t.b.s.colls[open-1].Name)
	}
	return nil
}

// changed says that a collective is not what it was before.
func changed(is, was *Collective) string {
	return fmt.Sprintf("collective %v: before it was %v", is, was)
}
