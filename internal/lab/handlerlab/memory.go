package handlerlab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const (
	dumpBytes = 16 // in a line
	dumpLines = 16 // most lines of a difference shown to people
)

// state writes the fields of the HPU memory, or its changes.
func (p *printer) state() {
	if p.format == nil {
		p.memory("HPU memory", &p.State)
		return
	}
	p.line("state")
	wide := 3 // at least the number of a field
	for i := range p.Fields {
		wide = max(wide, len(p.Fields[i].Name))
	}
	if !p.format.list {
		wide = -wide // align names left
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		s := fmt.Sprintf("  %*s  +%-5d %-4s %s", wide, f.Name, f.Offset, f.Type, f.After)
		if f.Unit != "" {
			s += " " + f.Unit
		}
		if f.Before != f.After {
			s += ", was " + f.Before
		}
		p.line("%s", s)
	}
	if p.same > 0 {
		p.line("  and %s of arrays, as before", plural(p.same, "number"))
	}
	if p.outside > 0 {
		p.line("  the other %d fields lie outside the HPU memory of %d B", p.outside, p.State.Bytes)
	}
	p.line("")
	at := int(min(p.format.state.Size, int64(len(p.State.After))))
	rest := MemoryReport{p.State.Bytes - at, p.State.Before[at:], p.State.After[at:]}
	if !bytes.Equal(rest.Before, rest.After) {
		p.memoryFrom("HPU memory behind the state", &rest, at)
	}
}

// memory writes the changes in a range of memory.
func (p *printer) memory(title string, m *MemoryReport) { p.memoryFrom(title, m, 0) }

func (p *printer) memoryFrom(title string, m *MemoryReport, base int) {
	if m.Bytes == 0 {
		return
	}
	if bytes.Equal(m.Before, m.After) {
		p.line("%s, %d B: unchanged", title, m.Bytes)
		p.line("")
		return
	}
	from, to := span(m)
	wasZero := len(bytes.Trim(m.Before[from:to], "\x00")) == 0
	p.line("%s, %d B: changed from byte %d to %d, where %s", title, m.Bytes, base+from, base+to-1, map[bool]string{
		true: "it was zero", false: "- is before and + after",
	}[wasZero])
	p.difference(m, base, from/dumpBytes*dumpBytes, to, wasZero)
	p.line("")
}

// span returns the range that has changed. The end is exclusive.
func span(m *MemoryReport) (from, to int) {
	for m.Before[from] == m.After[from] {
		from++
	}
	for to = len(m.After); m.Before[to-1] == m.After[to-1]; to-- {
	}
	return from, to
}

// difference writes the lines that have changed. A run of equal lines is "*".
func (p *printer) difference(m *MemoryReport, base, from, to int, wasZero bool) {
	var last []byte
	shown, hidden, repeats := 0, 0, false
	for at := from; at < to; at += dumpBytes {
		end := min(at+dumpBytes, len(m.After))
		before, after := m.Before[at:end], m.After[at:end]
		if bytes.Equal(before, after) {
			last = nil
			continue
		}
		line := slices.Concat(before, after)
		switch {
		case shown == dumpLines:
			hidden++
		case bytes.Equal(line, last):
			if !repeats {
				p.line("  *")
			}
			repeats = true
		case wasZero:
			p.line("  %06x  %s", base+at, dump(after))
			repeats = false
			shown++
		default:
			p.line("  %06x - %s", base+at, dump(before))
			p.line("         + %s", dump(after))
			repeats = false
			shown++
		}
		last = line
	}
	if hidden > 0 {
		p.line("  … and %d more lines; --format json has them all", hidden)
	}
}

// dump formats bytes in hexadecimal and as characters.
func dump(b []byte) string {
	var digits, letters strings.Builder
	for i := range dumpBytes {
		if i == dumpBytes/2 {
			digits.WriteByte(' ')
		}
		if i >= len(b) {
			digits.WriteString("   ")
			continue
		}
		fmt.Fprintf(&digits, "%02x ", b[i])
		if b[i] < ' ' || b[i] > '~' {
			letters.WriteByte('.')
		} else {
			letters.WriteByte(b[i])
		}
	}
	return digits.String() + " " + letters.String()
}
