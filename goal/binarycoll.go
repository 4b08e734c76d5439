package goal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// collMagic begins the collectives behind the last rank: "//coll" and a version.
const collMagic = 0x01006c6c6f632f2f

const (
	collHeader = 12 // magic and number of collectives
	collBytes  = 13 // of a collective, up to the length of its kind
	runBytes   = 12
)

// collectives reads what is behind the last rank: nothing, or the collectives.
func (b *binaryReader) collectives() error {
	magic, err := b.src.Peek(magicBytes)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return &FormatError{File: b.file, Offset: b.at, Msg: "cannot read", Err: err}
	case len(magic) == 0:
		return nil
	case err != nil || binary.LittleEndian.Uint64(magic) != collMagic:
		return b.errorf(b.at, "expected the end of the file after the last rank")
	}
	h, err := b.take(collHeader, "the number of collectives")
	if err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(h[8:])
	for range n {
		if err := b.collective(); err != nil {
			return err
		}
	}
	for r := range b.ends {
		if err := b.runs(r, n); err != nil {
			return err
		}
	}
	at := b.at
	if _, err := b.src.ReadByte(); err == nil {
		return b.errorf(at, "expected the end of the file after the collectives")
	} else if !errors.Is(err, io.EOF) {
		return &FormatError{File: b.file, Offset: at, Msg: "cannot read", Err: err}
	}
	return nil
}

// collective reads a collective.
func (b *binaryReader) collective() error {
	start := b.at
	h, err := b.take(collBytes, "a collective")
	if err != nil {
		return err
	}
	c := Collective{Bytes: binary.LittleEndian.Uint64(h), Root: int(binary.LittleEndian.Uint32(h[8:]))}
	text, err := b.take(int(h[collBytes-1])+1, "the kind of a collective")
	if err != nil {
		return err
	}
	last := len(text) - 1
	c.Kind = CollectiveKind(text[:last])
	if text, err = b.take(int(text[last]), "the name of a collective"); err != nil {
		return err
	}
	c.Name = string(text)
	if err := c.check(); err != nil {
		return b.errorf(start, "%v", err)
	}
	before := len(b.b.s.colls)
	if b.b.declare(&c, place{}); len(b.b.s.colls) == before {
		return b.errorf(start, "collective %s is there twice", c.Name)
	}
	return nil
}

// runs reads which operations of a rank belong to which of n collectives.
func (b *binaryReader) runs(r int, n uint32) error {
	h, err := b.take(4, "the collectives of a rank")
	if err != nil {
		return err
	}
	at := b.b.s.ranks[r]
	next := uint32(0)
	return b.records(int(binary.LittleEndian.Uint32(h)), runBytes, "operations of a collective", func(off int64, rec []byte) error {
		first, ops, coll := binary.LittleEndian.Uint32(rec), binary.LittleEndian.Uint32(rec[4:]), binary.LittleEndian.Uint32(rec[8:])
		switch {
		case first < next || ops == 0 || first > at.n || ops > at.n-first:
			return b.errorf(off, "%d operations from %d, expected some of %d to %d of rank %d", ops, first, next, at.n, r)
		case coll >= n:
			return b.errorf(off+8, "collective %d, expected one below %d", coll, n)
		}
		for i := range ops {
			b.b.s.setCollective(at.first+first+i, coll+1)
		}
		next = first + ops
		return nil
	})
}

// writeCollectives writes the collectives of a schedule.
func (s *Schedule) writeCollectives(out *bufio.Writer) error {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint64(nil, collMagic), uint32(len(s.colls)))
	for i := range s.colls {
		c := &s.colls[i]
		b = le.AppendUint32(le.AppendUint64(b, c.Bytes), uint32(c.Root))
		b = append(append(b, byte(len(c.Kind))), c.Kind...)
		b = append(append(b, byte(len(c.Name))), c.Name...)
	}
	if _, err := out.Write(b); err != nil {
		return err
	}
	for _, v := range s.All() {
		b = le.AppendUint32(b[:0], 0)
		runs, first := uint32(0), 0
		for i := 1; i <= v.Len(); i++ {
			if i < v.Len() && v.Collective(i) == v.Collective(first) {
				continue
			}
			if coll := v.Collective(first); coll >= 0 {
				b = le.AppendUint32(le.AppendUint32(le.AppendUint32(b, uint32(first)), uint32(i-first)), uint32(coll))
				runs++
			}
			first = i
		}
		le.PutUint32(b, runs)
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}
