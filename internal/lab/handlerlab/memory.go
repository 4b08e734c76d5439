package handlerlab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/lab"
)

const (
	dumpBytes = 16 // in a line
	dumpLines = 16 // most lines of a difference shown to people
)

// state writes the fields of the HPU memory.
func (p *printer) state() {
	if p.format == nil {
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
		p.line("  and %s of arrays, as before", lab.Plural(p.same, "number", "numbers"))
	}
	if p.outside > 0 {
		p.line("  the other %d fields lie outside the HPU memory of %d B", p.outside, len(p.Report.State))
	}
	p.line("")
}

// memories reports the numbers of the state, and the memories.
func (x *trial) memories(r *Report) {
	name, at := "HPU memory", 0
	if f := r.format; f != nil {
		r.Fields, r.same, r.outside = f.fields(x.record.before, r.State)
		name, at = "HPU memory behind the state", int(min(f.state.Size, int64(len(r.State))))
	}
	if behind := changed(name, x.record.before[at:], r.State[at:], at); r.format == nil || behind.After != nil {
		r.Memory = append(r.Memory, behind)
	}
	r.Memory = append(r.Memory, changed("host memory of the entry", x.Host, r.Host, 0), changed("handler host memory", x.HandlerHost, r.Handler, 0))
}

// changed reports a memory: whole lines from the first that has changed to the
// last. The memory begins at base.
func changed(name string, before, after []byte, base int) MemoryReport {
	m := MemoryReport{Name: name, Bytes: len(after)}
	if bytes.Equal(before, after) {
		return m
	}
	from, to := span(before, after)
	from, to = from/dumpBytes*dumpBytes, min((to+dumpBytes-1)/dumpBytes*dumpBytes, len(after))
	m.At, m.Before, m.After = base+from, before[from:to], after[from:to]
	return m
}

// memory writes the changes in a memory.
func (p *printer) memory(m *MemoryReport) {
	if m.Bytes == 0 {
		return
	}
	if len(m.After) == 0 {
		p.line("%s, %d B: unchanged", m.Name, m.Bytes)
		p.line("")
		return
	}
	from, to := span(m.Before, m.After)
	wasZero := len(bytes.Trim(m.Before[from:to], "\x00")) == 0
	p.line("%s, %d B: changed from byte %d to %d, where %s", m.Name, m.Bytes, m.At+from, m.At+to-1, map[bool]string{
		true: "it was zero", false: "- is before and + after",
	}[wasZero])
	p.difference(m, wasZero)
	p.line("")
}

// span returns the range in which two memories differ. The end is exclusive.
func span(before, after []byte) (from, to int) {
	for before[from] == after[from] {
		from++
	}
	for to = len(after); before[to-1] == after[to-1]; to-- {
	}
	return from, to
}

// difference writes the lines that have changed. A run of equal lines is "*".
func (p *printer) difference(m *MemoryReport, wasZero bool) {
	var last []byte
	shown, hidden, repeats := 0, 0, false
	for at := 0; at < len(m.After); at += dumpBytes {
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
			p.line("  %06x  %s", m.At+at, dump(after))
			repeats = false
			shown++
		default:
			p.line("  %06x - %s", m.At+at, dump(before))
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
