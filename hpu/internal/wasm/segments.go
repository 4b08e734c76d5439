package wasm

func (d *decoder) exports() {
	n := d.count("exports")
	seen := make(map[string]bool, n)
	m := &d.m
	for ; n > 0 && d.err == nil; n-- {
		at := d.pos
		e := Export{Offset: at, Name: d.name(), Kind: d.byte(), Index: d.u32()}
		if d.err != nil {
			return
		}
		if seen[e.Name] {
			d.fail(at, "export %q twice", e.Name)
			return
		}
		seen[e.Name] = true
		var there int
		switch e.Kind {
		case ExportFunc:
			there = m.FuncCount()
		case ExportTable:
			there = count(m.HasTable)
		case ExportMemory:
			there = count(m.HasMemory)
		case ExportGlobal:
			there = len(m.Globals)
		default:
			d.fail(at, "export %q of unknown kind %d", e.Name, e.Kind)
			return
		}
		if int64(e.Index) >= int64(there) {
			d.fail(at, "export %q names number %d of %d", e.Name, e.Index, there)
			return
		}
		m.Exports = append(m.Exports, e)
	}
}

func count(present bool) int {
	if present {
		return 1
	}
	return 0
}

func (d *decoder) elements() {
	for n := d.count("element segments"); n > 0 && d.err == nil; n-- {
		e := Elem{Offset: d.pos}
		flags := d.u32()
		if d.err != nil {
			return
		}
		switch {
		case flags > 7:
			d.fail(e.Offset, "invalid element segment flags %d", flags)
			return
		case flags >= 4:
			d.fail(e.Offset, "reference types: not supported (element segment of expressions)")
			return
		case flags&1 != 0:
			d.fail(e.Offset, "bulk table operations: not supported (passive element segment)")
			return
		}
		at := d.pos
		if flags == 2 && d.u32() != 0 {
			d.fail(at, "reference types: not supported (element segment of another table)")
			return
		}
		if d.err == nil && !d.m.HasTable {
			d.fail(e.Offset, "element segment without a table")
			return
		}
		e.At = d.placed()
		at = d.pos
		if flags == 2 && d.byte() != 0 {
			d.fail(at, "reference types: not supported (element kind)")
			return
		}
		e.Funcs = make([]uint32, d.count("functions of an element segment"))
		for i := range e.Funcs {
			at := d.pos
			e.Funcs[i] = d.u32()
			if d.err == nil && int64(e.Funcs[i]) >= int64(d.m.FuncCount()) {
				d.fail(at, "element names function %d of %d", e.Funcs[i], d.m.FuncCount())
			}
		}
		d.m.Elems = append(d.m.Elems, e)
	}
}

// placed reads where a segment begins.
func (d *decoder) placed() uint32 {
	at, _ := d.constant(I32)
	return uint32(at)
}

func (d *decoder) codes(start int) {
	d.m.CodeBytes, d.m.CodeAt = d.end-start, start
	if d.m.CodeBytes > d.lim.CodeBytes {
		d.fail(start, "%d bytes of code, at most %d on this device (hpu.max_code_bytes)", d.m.CodeBytes, d.lim.CodeBytes)
		return
	}
	at := d.pos
	n := d.count("function bodies")
	if n != len(d.m.Funcs) {
		d.fail(at, "%d functions declared, %d bodies", len(d.m.Funcs), n)
		return
	}
	d.m.Codes = make([]Code, n)
	for i := range d.m.Codes {
		d.code(&d.m.Codes[i])
		if d.err != nil {
			d.err.Func = len(d.m.Imports) + i
			return
		}
	}
}

func (d *decoder) code(c *Code) {
	size := d.count("bytes of a function body")
	if d.err != nil {
		return
	}
	c.Offset, c.End = d.pos, d.pos+size
	limit := d.end
	d.end = c.End
	total := int64(0)
	for groups := d.count("groups of locals"); groups > 0 && d.err == nil; groups-- {
		at := d.pos
		g := LocalGroup{Count: d.u32(), Type: d.valueType()}
		total += int64(g.Count)
		if most := int64(maxFreeLocals + size); d.err == nil && total > most && !d.lim.Rewritten {
			d.fail(at, "%d locals in a body of %d bytes, at most %d", total, size, most)
		}
		c.Locals = append(c.Locals, g)
	}
	if d.err != nil {
		return
	}
	c.Body = d.pos
	d.pos, d.end = c.End, limit
}

func (d *decoder) data() {
	passive := int64(0)
	for n := d.count("data segments"); n > 0 && d.err == nil; n-- {
		s := Data{Offset: d.pos}
		flags := d.u32()
		switch {
		case d.err != nil:
			return
		case flags > 2:
			d.fail(s.Offset, "invalid data segment flags %d", flags)
			return
		case flags == 2 && d.u32() != 0:
			d.fail(s.Offset, "multiple memories: not supported")
			return
		}
		s.Passive = flags == 1
		if !s.Passive {
			if d.err == nil && !d.m.HasMemory {
				d.fail(s.Offset, "data segment without a memory")
				return
			}
			s.At = d.placed()
		}
		size := d.count("bytes of data")
		s.Bytes = d.b[d.pos : d.pos+size]
		d.pos += size
		if s.Passive {
			passive += int64(size)
		}
		if d.err == nil && passive > d.lim.MemoryBytes {
			d.fail(s.Offset, "%d bytes of passive data, at most %d on this device (hpu.max_memory_bytes)", passive, d.lim.MemoryBytes)
		}
		d.m.Data = append(d.m.Data, s)
	}
}

// nameSection reads the names of functions and finds the shadow stack pointer.
// Names have no meaning, so a malformed section is not an error. The part that
// could be read is kept.
func (d *decoder) nameSection(start, end int) {
	r := reader{b: d.b, pos: start, end: end}
	for r.rest() > 0 && r.err == nil {
		id := r.byte()
		n := r.count("bytes of names")
		sub := reader{b: d.b, pos: r.pos, end: r.pos + n}
		r.pos += n
		if id != 1 && id != 7 {
			continue
		}
		for i := sub.count("names"); i > 0; i-- {
			index, name := sub.u32(), sub.name()
			if sub.err != nil {
				break
			}
			switch {
			case id == 1 && int64(index) < int64(d.m.FuncCount()):
				if d.m.Names == nil {
					d.m.Names = make(map[uint32]string)
				}
				d.m.Names[index] = name
			case id == 7 && name == "__stack_pointer" && int64(index) < int64(len(d.m.Globals)):
				d.m.GlobalSP = int(index)
			}
		}
	}
}
