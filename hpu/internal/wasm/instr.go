package wasm

// Instr is a decoded instruction.
type Instr struct {
	Op     Opcode
	Offset int      // in the file
	End    int      // behind its last byte
	Imm    uint64   // index, label, lane, constant, memory offset, or block type (0x40 or a type)
	Imm2   uint32   // log2 of the alignment of loads and stores
	Labels []uint32 // of br_table, the default last; valid until the next instruction is read
	Info   *OpInfo
}

// Instrs is a reader of the instructions of a function.
type Instrs struct {
	r      reader
	labels []uint32
}

// Instrs returns a reader of the instructions of c, which must belong to m.
func (m *Module) Instrs(c *Code) *Instrs {
	return &Instrs{r: reader{b: m.Bytes, pos: c.Body, end: c.End, simd: m.simd}}
}

// More reports whether there is another instruction.
func (s *Instrs) More() bool { return s.r.rest() > 0 }

// Next reads an instruction. It accepts every byte sequence. It checks only the
// form, not types and indices.
func (s *Instrs) Next(in *Instr) *Error {
	r := &s.r
	in.Offset, in.Labels = r.pos, nil
	op := Opcode(r.byte())
	switch op {
	case 0xFC:
		n := min(r.u32(), 0xFF)
		op = 0xFC00 + Opcode(n)
	case 0xFD:
		op = s.vector()
	}
	in.Op, in.Info = op, op.Info()
	if r.err != nil {
		return r.err
	}
	if in.Info == nil {
		switch f := feature(op); {
		case f != "":
			r.fail(in.Offset, "%s: not supported (instruction 0x%02x)", f, uint16(op))
		default:
			r.fail(in.Offset, "unknown instruction 0x%02x", uint16(op))
		}
		return r.err
	}
	s.immediate(in)
	in.End = r.pos
	return r.err
}

// vector reads the number of an instruction of SIMD.
func (s *Instrs) vector() Opcode {
	r := &s.r
	at := r.pos - 1
	n := r.u32()
	switch {
	case r.err != nil:
	case !r.simd:
		r.fail(at, noSIMD)
	case n >= firstRelaxed && n <= lastRelaxed:
		r.fail(at, "relaxed SIMD: not supported (instruction 0xfd 0x%x)", n)
	case n >= firstRelaxed:
		r.fail(at, "unknown instruction 0xfd 0x%x", n)
	}
	return 0xFD00 + Opcode(n&0xFF)
}

func (s *Instrs) immediate(in *Instr) {
	r := &s.r
	switch in.Info.Imm {
	case ImmBlock:
		in.Imm = s.blockType()
	case ImmLabel, ImmIndex:
		in.Imm = uint64(r.u32())
	case ImmLabels:
		s.labels = s.labels[:0]
		for n := r.count("labels"); n >= 0 && r.err == nil; n-- {
			s.labels = append(s.labels, r.u32())
		}
		in.Labels = s.labels
	case ImmIndirect:
		in.Imm = uint64(r.u32())
		s.zero("reference types: not supported (another table)")
	case ImmMem:
		s.address(in)
	case ImmMemLane:
		s.address(in)
		s.lane(in, in.Info.Lanes)
	case ImmLane:
		in.Imm = s.lane(in, in.Info.Lanes)
	case ImmLanes:
		for range 16 {
			s.lane(in, 32)
		}
	case ImmV128:
		r.v128()
	case ImmZero:
		s.zero("multiple memories: not supported")
	case ImmZeroZero:
		s.zero("multiple memories: not supported")
		s.zero("multiple memories: not supported")
	case ImmInit:
		in.Imm = uint64(r.u32())
		s.zero("multiple memories: not supported")
	case ImmI32:
		in.Imm = uint64(uint32(r.signed(32)))
	case ImmI64:
		in.Imm = uint64(r.signed(64))
	case ImmF32:
		in.Imm = r.f32()
	case ImmF64:
		in.Imm = r.f64()
	}
}

func (s *Instrs) address(in *Instr) {
	r := &s.r
	at := r.pos
	in.Imm2 = r.u32()
	in.Imm = uint64(r.u32())
	switch {
	case r.err != nil:
	case in.Imm2&0x40 != 0:
		r.fail(at, "multiple memories: not supported")
	case in.Imm2 > uint32(in.Info.Align):
		r.fail(at, "%s with alignment 2^%d, at most 2^%d", in.Info.Name, in.Imm2, in.Info.Align)
	}
}

func (s *Instrs) lane(in *Instr, lanes uint8) uint64 {
	at := s.r.pos
	n := s.r.byte()
	if s.r.err == nil && n >= lanes {
		s.r.fail(at, "%s: lane %d of %d", in.Info.Name, n, lanes)
	}
	return uint64(n)
}

func (s *Instrs) zero(otherwise string) {
	at := s.r.pos
	if s.r.u32() != 0 && s.r.err == nil {
		s.r.fail(at, "%s", otherwise)
	}
}

func (s *Instrs) blockType() uint64 {
	r := &s.r
	if r.rest() > 0 {
		switch c := r.b[r.pos]; {
		case c == 0x40:
			r.pos++
			return 0x40
		case c&0xC0 == 0x40: // negative: a value type
			return uint64(r.valueType())
		}
	}
	at := r.pos
	if n := r.signed(33); r.err == nil {
		r.fail(at, "multiple values: not supported (block of type %d)", n)
	}
	return 0
}
