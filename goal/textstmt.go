package goal

import (
	"math"
	"strings"
)

// statement takes an operation or a dependency and the end of its line.
func (t *parser) statement() error {
	from := t.pos
	first := t.word()
	if first == nil {
		return t.expected("a statement or '}'")
	}
	var err error
	switch c := t.space(); {
	case c == ':':
		t.pos++
		t.space()
		after := t.pos
		if !t.labels.define(first) {
			t.pos = from
			return t.errorf("label %s is defined twice", first)
		}
		err = t.operation(t.word(), after)
	case isLetter(c):
		err = t.dependency(first, from)
	default:
		err = t.operation(first, from)
	}
	if err != nil {
		return err
	}
	if t.space() != 0 && t.text[t.pos] != '}' {
		return t.expected("the end of the line")
	}
	return nil
}

// operation takes the rest of an operation after its keyword, which is at from.
func (t *parser) operation(keyword []byte, from int) error {
	var op Op
	var err error
	switch string(keyword) {
	case "send":
		op, err = t.transfer(Send, "to")
	case "recv":
		op, err = t.transfer(Recv, "from")
	case "calc":
		op.Kind = Calc
		op.Size, err = t.number("a time in ns", math.MaxUint64)
	default:
		t.pos = from
		return t.expected("'send', 'recv' or 'calc'")
	}
	if err != nil {
		return err
	}
	if isLetter(t.space()) {
		if err := t.attributes(&op); err != nil {
			return err
		}
	}
	t.b.Add(op)
	if t.b.err != nil {
		return t.errorf("%v", t.b.err)
	}
	if t.named {
		t.b.s.name(t.labels.last, uint32(t.line), t.b.line)
		t.b.line = uint32(t.line)
	}
	t.labels.op++
	t.labels.last = nil
	return nil
}

// transfer takes the size and the peer of a send or receive.
func (t *parser) transfer(kind Kind, toward string) (op Op, err error) {
	op.Kind = kind
	if op.Size, err = t.number("a size in bytes", math.MaxUint64); err != nil {
		return op, err
	}
	if err = t.keyword("b"); err != nil {
		return op, err
	}
	if err = t.keyword(toward); err != nil {
		return op, err
	}
	if kind == Recv && t.any() {
		op.Peer = Any
		return op, nil
	}
	peer, err := t.number("the number of a rank", uint64(t.ranks-1))
	op.Peer = uint32(peer)
	return op, err
}

// any takes the wildcard -1, if it is next.
func (t *parser) any() bool {
	t.space()
	rest := t.text[t.pos:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] != '1' || len(rest) > 2 && isWord[rest[2]] {
		return false
	}
	t.pos += 2
	return true
}

// attributes takes tag, cpu and nic, each at most once and in this order.
func (t *parser) attributes(op *Op) error {
	for last := 0; isLetter(t.space()); {
		from := t.pos
		word := t.word()
		which := strings.IndexByte("tcn", word[0]) + 1
		calc := op.Kind == Calc
		var v uint64
		var err error
		switch {
		case which > last && string(word) == "tag" && !calc:
			if t.any() {
				op.Tag = AnyTag
				break
			}
			v, err = t.number("a tag", AnyTag-1)
			op.Tag = v
		case which > last && string(word) == "cpu":
			v, err = t.number("the index of a cpu", math.MaxUint8)
			op.CPU = uint8(v)
		case which > last && string(word) == "nic" && !calc:
			v, err = t.number("the index of a nic", math.MaxUint8)
			op.NIC = uint8(v)
		default:
			t.pos = from
			names := []string{"'tag', 'cpu', 'nic' or ", "'cpu', 'nic' or ", "'nic' or ", ""}
			if calc {
				names = []string{"'cpu' or ", "", "", ""}
			}
			return t.expected(names[last] + "the end of the line")
		}
		if err != nil {
			return err
		}
		last = which
	}
	return nil
}

// dependency takes the rest of a dependency after the label of the operation
// that waits.
func (t *parser) dependency(label []byte, from int) error {
	verb := t.pos
	relation := string(t.word())
	if relation != "requires" && relation != "irequires" {
		if k := string(label); k == "send" || k == "recv" || k == "calc" {
			t.pos = verb
			return t.expected("a number")
		}
		t.pos = verb
		return t.expected("':', 'requires' or 'irequires'")
	}
	x, ok := t.labels.find(label)
	if !ok {
		t.pos = from
		return t.errorf("label %s is not defined in this rank", label)
	}
	t.space()
	from = t.pos
	other := t.word()
	if other == nil {
		return t.expected("a label")
	}
	y, ok := t.labels.find(other)
	if !ok {
		t.pos = from
		return t.errorf("label %s is not defined in this rank", other)
	}
	t.b.depend(int(x), int(y), relation == "irequires")
	return nil
}
