package goal

import "encoding/binary"

// Most lines of a text look alike:
//
//	l12: send 8b to 5 tag 3
//	l13: calc 100
//	l13 requires l12
//
// Plain lines are such lines with one space between words, numbered labels or
// none, no attribute but a tag, and numbers of at most 18 digits. The function
// statement reads them in the same way, and takes all other lines and all errors.

// plainLine is more than the length of a plain line.
const plainLine = 128

// plain takes plain lines at the beginning of a block, and returns their length.
// It leaves the last lines of the block, and everything where a limit is near.
func (t *parser) plain(block []byte) int {
	if t.state != wantStatement || t.comment != 0 || t.b.err != nil || t.all+len(block) > t.most || t.idle+len(block) > maxIdle ||
		t.b.s.ids()+len(block)+segmentOps > MaxOps {
		return 0
	}
	at, idle := 0, 0
	for len(block)-at >= plainLine {
		line := (*[plainLine]byte)(block[at:])
		n, added := t.plainLine(line)
		if n == 0 {
			break
		}
		t.line++
		if added {
			idle = at + n
		}
		at += n
	}
	t.all += at
	if idle > 0 {
		t.idle = 0
	}
	t.idle += at - idle
	return at
}

// plainLine takes a line and returns its length; 0: it is not plain. added: it
// has added an operation.
func (t *parser) plainLine(line *[plainLine]byte) (n int, added bool) {
	label, at, ok := numbered(line, 0)
	switch {
	case !ok:
		return t.plainOp(line, 0, nil), true
	case line[at] == ' ':
		return t.plainDependency(line, at, label), false
	case line[at] != ':' || line[at+1] != ' ':
		return 0, false
	}
	place := t.labels.at(label)
	if place.age == t.labels.age {
		return 0, false
	}
	op := t.labels.op
	if n = t.plainOp(line, at+2, line[:at]); n > 0 {
		*place = numberedLabel{t.labels.age, op}
	}
	return n, true
}

// numbered reads a label with a number at a place of a line, and returns the
// number and the end.
func numbered(line *[plainLine]byte, at int) (label uint32, end int, ok bool) {
	if line[at] != 'l' {
		return 0, at, false
	}
	v, end := digits(line, at+1)
	if v >= numberedLabels || end == at+1 || line[at+1] == '0' && end > at+2 {
		return 0, at, false
	}
	return uint32(v), end, true
}

// digits reads a number of up to 18 digits, and returns it and its end. If it is
// longer, the end is at a digit.
func digits(line *[plainLine]byte, at int) (v uint64, end int) {
	const most = 18
	for end = at; end < at+most; end++ {
		d := line[end] - '0'
		if d > 9 {
			break
		}
		v = v*10 + uint64(d)
	}
	return v, end
}

// Words of four bytes, as they are in a line.
var (
	sendWord = binary.LittleEndian.Uint32([]byte("send"))
	recvWord = binary.LittleEndian.Uint32([]byte("recv"))
	calcWord = binary.LittleEndian.Uint32([]byte("calc"))
)

// plainOp takes the rest of a line that adds an operation, and returns the end of
// the line; 0: it is not plain.
func (t *parser) plainOp(line *[plainLine]byte, at int, label []byte) int {
	var op Op
	toward := "b to "
	switch binary.LittleEndian.Uint32(line[at:]) {
	case sendWord:
		op.Kind = Send
	case recvWord:
		op.Kind, toward = Recv, "b from "
	case calcWord:
		op.Kind = Calc
	default:
		return 0
	}
	if line[at+4] != ' ' {
		return 0
	}
	size, end := digits(line, at+5)
	if op.Size = size; end == at+5 {
		return 0
	}
	if op.Kind != Calc {
		if string(line[end:end+len(toward)]) != toward {
			return 0
		}
		at = end + len(toward)
		var peer, tag uint64
		if peer, end = digits(line, at); end == at || peer >= uint64(t.ranks) {
			return 0
		}
		if line[end] == ' ' {
			if string(line[end:end+5]) != " tag " {
				return 0
			}
			at = end + 5
			if tag, end = digits(line, at); end == at {
				return 0
			}
		}
		op.Peer, op.Tag = uint32(peer), tag
	}
	if line[end] != '\n' {
		return 0
	}
	t.b.add(&op)
	if t.named {
		line := uint32(t.line + 1)
		t.b.s.name(label, line, t.b.line)
		t.b.line = line
	}
	t.labels.op++
	return end + 1
}

// plainDependency takes the rest of a line with a dependency of operation label,
// and returns the end of the line; 0: it is not plain.
func (t *parser) plainDependency(line *[plainLine]byte, at int, label uint32) int {
	const requires, irequires = " requires ", " irequires "
	start := false
	switch {
	case string(line[at:at+len(requires)]) == requires:
		at += len(requires)
	case string(line[at:at+len(irequires)]) == irequires:
		at += len(irequires)
		start = true
	default:
		return 0
	}
	other, end, ok := numbered(line, at)
	if !ok || line[end] != '\n' || int(max(label, other)) >= len(t.labels.numbered) {
		return 0
	}
	x, y := t.labels.numbered[label], t.labels.numbered[other]
	if age := t.labels.age; x.age != age || y.age != age {
		return 0
	}
	t.b.edges = append(double(t.b.edges, 1), edge{from: y.op, to: x.op, start: start})
	return end + 1
}
