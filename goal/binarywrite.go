package goal

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// ErrWideTag is wrapped by the error of a schedule that has no binary form.
var ErrWideTag = fmt.Errorf("the binary form holds tags up to %d, the text has 64 bits", Any-1)

// WriteBinary writes a schedule in binary form, with the same bytes as the
// format's own converter, and collectives behind them. It is an error if a tag
// has more bits than the form.
func WriteBinary(w io.Writer, s *Schedule) error {
	if r, wide := s.WideTag(); wide {
		return fmt.Errorf("goal: %v: %w", r, ErrWideTag)
	}
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
	if len(s.colls) > 0 {
		if err := s.writeCollectives(out); err != nil {
			return err
		}
	}
	return out.Flush()
}

// binarySize returns the length of the rank in binary form.
func (r Rank) binarySize() uint64 {
	size := uint64(rankBytes) + nodeBytes*uint64(r.Len())
	for i := range r.Len() {
		if r.Deps(i) == 0 {
			size += 4
		}
		for e := r.s.edges(r.id(i)); len(e.list) > 0; e.next() {
			size += 4
		}
	}
	return size
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
		op := r.Op(i)
		done, start := uint32(0), uint32(0)
		for range r.AfterDone(i) {
			done++
		}
		for range r.AfterStart(i) {
			start++
		}
		b = le.AppendUint32(b[:0], uint32(r.Deps(i)))
		b = append(b, byte(op.Kind))
		b = le.AppendUint32(b, op.Peer)
		b = le.AppendUint64(b, op.Size)
		b = le.AppendUint32(b, uint32(op.Tag))
		b = append(b, op.CPU, op.NIC)
		b = le.AppendUint32(b, done)
		b = le.AppendUint32(b, next)
		b = le.AppendUint32(b, start)
		b = le.AppendUint32(b, next+done)
		next += done + start
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	for i := range r.Len() {
		b = b[:0]
		for e := r.s.edges(r.id(i)); len(e.list) > 0; {
			x, _ := e.next()
			b = le.AppendUint32(b, x-r.at.first)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}
