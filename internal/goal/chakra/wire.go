package chakra

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spinsim/spinsim/internal/memory"
)

// Error reports what is wrong with a trace.
type Error struct {
	// File is the name of the file.
	File string
	// Place is the node or the offset in the file, or "".
	Place string
	// Msg names what was found and what was expected.
	Msg string
	// Err is the error of the underlying reader, if that is the cause.
	Err error
}

func (e *Error) Error() string {
	text := e.File
	for _, part := range []string{e.Place, e.Msg} {
		if part != "" {
			text += ": " + part
		}
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error of the underlying reader.
func (e *Error) Unwrap() error { return e.Err }

// maxMessage bounds the bytes of a node: a broken length must not ask for more
// memory than a node can need.
const maxMessage = 1 << 28

// pieceBytes is how much of a long message is read at a time, so that memory
// grows with the bytes that are there and not with the length that is told.
const pieceBytes = 1 << 20

// room makes room for n more elements by doubling. A file may have any number.
func room[T any](s []T, n int) []T {
	if len(s)+n > cap(s) {
		n = max(n, len(s))
		memory.Ask(int64(len(s)+n) * int64(unsafe.Sizeof(*new(T))))
		return slices.Grow(s, n)
	}
	return s
}

// messages reads a sequence of messages, each after its length.
type messages struct {
	in   *bufio.Reader
	file string
	at   int64 // offset of the next byte
	buf  []byte
}

func (m *messages) fail(at int64, err error, format string, args ...any) error {
	return &Error{File: m.file, Place: fmt.Sprintf("offset %d", at), Msg: fmt.Sprintf(format, args...), Err: err}
}

// next returns the next message, which is valid until the next call, and the
// offset of its first byte. After the last one the error is io.EOF.
func (m *messages) next() (scanner, error) {
	size, start := uint64(0), m.at
	for shift := 0; ; shift += 7 {
		b, err := m.in.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && shift == 0:
			return scanner{}, io.EOF
		case errors.Is(err, io.EOF):
			return scanner{}, m.fail(m.at, nil, "the file ends in the length of a message")
		case err != nil:
			return scanner{}, m.fail(m.at, err, "reading")
		}
		m.at++
		size |= uint64(b&0x7f) << shift
		if size > maxMessage || shift > 28 {
			return scanner{}, m.fail(start, nil, "a message of more than %d bytes", maxMessage)
		}
		if b < 0x80 {
			break
		}
	}
	start = m.at
	m.buf = m.buf[:0]
	for len(m.buf) < int(size) {
		from, n := len(m.buf), min(int(size)-len(m.buf), pieceBytes)
		m.buf = room(m.buf, n)[:from+n]
		got, err := io.ReadFull(m.in, m.buf[from:])
		m.at += int64(got)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return scanner{}, m.fail(m.at, nil, "the file ends after %d of the %d bytes of a message", from+got, size)
		case err != nil:
			return scanner{}, m.fail(m.at, err, "reading")
		}
	}
	return scanner{m: m, rest: m.buf, at: start}, nil
}

// scanner goes through the fields of a message.
type scanner struct {
	m    *messages
	rest []byte
	at   int64 // offset in the file of rest
	// The current field:
	field protowire.Number
	kind  protowire.Type
	from  int64  // its offset in the file
	n     uint64 // its value
	data  []byte // its bytes
	err   error
}

// next goes to the next field. It returns false at the end and after an error.
func (s *scanner) next() bool {
	if len(s.rest) == 0 || s.err != nil {
		return false
	}
	s.from = s.at
	field, kind, n := protowire.ConsumeTag(s.rest)
	if n < 0 {
		return s.fail("a field without number and type")
	}
	s.field, s.kind = field, kind
	s.take(n)
	switch kind {
	case protowire.VarintType:
		s.n, n = protowire.ConsumeVarint(s.rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(s.rest)
		s.n = uint64(v)
	case protowire.Fixed64Type:
		s.n, n = protowire.ConsumeFixed64(s.rest)
	case protowire.BytesType:
		s.data, n = protowire.ConsumeBytes(s.rest)
	default:
		return s.fail("field %d has type %d, expected a number or bytes", field, kind)
	}
	if n < 0 {
		return s.fail("field %d does not end in its message", field)
	}
	s.take(n)
	return true
}

func (s *scanner) take(n int) {
	s.rest = s.rest[n:]
	s.at += int64(n)
}

func (s *scanner) fail(format string, args ...any) bool {
	if s.err == nil {
		s.err = s.m.fail(s.from, nil, format, args...)
	}
	return false
}

// number returns the current field, which must be a plain number.
func (s *scanner) number() uint64 {
	if s.kind != protowire.VarintType {
		s.fail("field %d has type %d, expected a number", s.field, s.kind)
	}
	return s.n
}

// bytes returns the current field, which must be bytes.
func (s *scanner) bytes() []byte {
	if s.kind != protowire.BytesType {
		s.fail("field %d has type %d, expected bytes", s.field, s.kind)
		return nil
	}
	return s.data
}

// numbers appends the current field, a number or a packed list of numbers.
func (s *scanner) numbers(list []uint64) []uint64 {
	if s.kind != protowire.BytesType {
		return append(room(list, 1), s.number())
	}
	for b := s.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			s.fail("field %d: a broken list of numbers", s.field)
			break
		}
		list, b = append(room(list, 1), v), b[n:]
	}
	return list
}

// inner returns a scanner of the current field, which must be a message.
func (s *scanner) inner() scanner {
	b := s.bytes()
	return scanner{m: s.m, rest: b, at: s.at - int64(len(b)), err: s.err}
}
