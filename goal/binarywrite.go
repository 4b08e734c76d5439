package goal

import (
	"bufio"
	"encoding/binary"
	"io"
)

// WriteBinary writes a schedule in binary form, with the same bytes as the
// format's own converter.
func WriteBinary(w io.Writer, s *Schedule) error {
	out := bufio.NewWriterSize(w, chunkBytes)
	le := binary.LittleEndian
	b := le.AppendUint64(nil, binaryMagic)
	b = le.AppendUint32(b, uint32(s.Ranks()))
	b = append(b, s.maxCPU, s.maxNIC)
	if _, err := out.Write(b); err != nil {
		return err
	}
	at := uint64(headerBytes-magicBytes) + tableBytes*uint64(s.Ranks())
	for _, v := range s.All() {
		b = le.AppendUint64(b[:0], at)
		at += v.binarySize()
		b = le.AppendUint64(b, at)
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	for _, v := range s.All() {
		if err := v.writeBinary(out, b); err != nil {
			return err
		}
	}
	return out.Flush()
}

// binarySize returns the length of the rank in binary form.
func (r Rank) binarySize() uint64 {
	roots := 0
	for i := range r.Len() {
		if r.Deps(i) == 0 {
			roots++
		}
	}
	return rankBytes + 4*uint64(roots) + nodeBytes*uint64(r.Len()) + 4*uint64(len(r.successors()))
}

// successors returns the lists of all operations of the rank, one after the other.
func (r Rank) successors() []uint32 {
	if r.at.n == 0 {
		return nil
	}
	first, last := int(r.at.first), int(r.at.first+r.at.n-1)
	return r.s.succ[r.s.ops[first].done:r.s.succEnd(last)]
}

func (r Rank) writeBinary(out *bufio.Writer, b []byte) error {
	le := binary.LittleEndian
	b = le.AppendUint32(b[:0], uint32(r.Len()))
	b = le.AppendUint32(b, 0)
	roots := uint32(0)
	for i := range r.Len() {
		if r.Deps(i) == 0 {
			b = le.AppendUint32(b, uint32(i))
			roots++
		}
	}
	le.PutUint32(b[4:], roots)
	if _, err := out.Write(b); err != nil {
		return err
	}
	next := uint32(0)
	for i := range r.Len() {
		p := r.packed(i)
		done, start := uint32(len(r.AfterDone(i))), uint32(len(r.AfterStart(i)))
		b = le.AppendUint32(b[:0], p.deps)
		b = append(b, byte(p.kind))
		b = le.AppendUint32(b, p.peer)
		b = le.AppendUint64(b, p.size)
		b = le.AppendUint32(b, p.tag)
		b = append(b, p.cpu, p.nic)
		b = le.AppendUint32(b, done)
		b = le.AppendUint32(b, next)
		b = le.AppendUint32(b, start)
		b = le.AppendUint32(b, next+done)
		next += done + start
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	for _, x := range r.successors() {
		if _, err := out.Write(le.AppendUint32(b[:0], x)); err != nil {
			return err
		}
	}
	return nil
}
