package scenario

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/internal/strictyaml"
)

// Content is bytes: zero, a pattern, hexadecimal digits, a file, a list of
// typed values, or numbers of a state by the module's names for them. The zero
// value is absent content.
type Content struct {
	kind   contentKind
	bytes  []byte // of hex, and of file after it was read
	file   string
	fields []Field
	values Values
}

type contentKind uint8

const (
	contentNone contentKind = iota
	contentZero
	contentPattern
	contentHex
	contentFile
	contentFields
	contentValues
)

// IsSet reports whether there is content.
func (c *Content) IsSet() bool { return c.kind != contentNone }

// Field is one value, or several of the same kind, in little-endian order.
// Fields follow each other without gaps.
type Field struct {
	_       strictyaml.OneOf `help:"A value."`
	U8      Expr             `yaml:"u8" help:"Unsigned, 1 byte."`
	U16     Expr             `yaml:"u16" help:"Unsigned, 2 bytes."`
	U32     Expr             `yaml:"u32" help:"Unsigned, 4 bytes."`
	U64     Expr             `yaml:"u64" help:"Unsigned, 8 bytes."`
	I8      Expr             `yaml:"i8" help:"Signed, 1 byte."`
	I16     Expr             `yaml:"i16" help:"Signed, 2 bytes."`
	I32     Expr             `yaml:"i32" help:"Signed, 4 bytes."`
	I64     Expr             `yaml:"i64" help:"Signed, 8 bytes."`
	F32     Float            `yaml:"f32" help:"IEEE 754, 4 bytes. A fraction is rounded; what is out of range, and a whole number of more digits, is an error."`
	F64     Float            `yaml:"f64" help:"IEEE 754, 8 bytes, as f32."`
	Hex     Hex              `yaml:"hex" help:"Bytes in hexadecimal; spaces do not count."`
	Zero    Expr             `yaml:"zero" help:"So many bytes of zero."`
	Pattern Expr             `yaml:"pattern" help:"So many bytes that depend on seed and place."`
	Name    string           `yaml:"name" beside:"true" help:"Name of the field, for expectations and output. In a state that the module describes, the name that it has for what lies there."`
	Count   Expr             `yaml:"count" beside:"true" help:"How many such values. Default 1."`
}

// Hex is bytes in hexadecimal.
type Hex []byte

// UnmarshalText reads digits and ignores spaces and underscores between them.
func (h *Hex) UnmarshalText(text []byte) error {
	digits := strings.NewReplacer(" ", "", "_", "", "\n", "").Replace(string(text))
	b, err := hex.DecodeString(strings.TrimPrefix(digits, "0x"))
	if err != nil {
		return fmt.Errorf("%q: expected an even number of hexadecimal digits", text)
	}
	*h = b
	return nil
}

// encode returns the bytes of a number of a type, which must hold it.
func (f *Float) encode(t manifest.Type, at *env) ([]byte, error) {
	n, b := numberOf("", t, 0), make([]byte, t.Size())
	if t.Float() {
		v, err := f.eval(at, t)
		if err != nil {
			return nil, err
		}
		return b, n.Put(b, v, nil)
	}
	least, most := t.Limits()
	v, err := f.expr.between(at, least, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	return b, n.Put(b, v, nil)
}

// maxBytes is the most memory per region and message.
const maxBytes = 1 << 30

// maxContent is the largest list of typed values in bytes.
const maxContent = 1 << 24

// source determines the bytes of a pattern: the seed, and a number that differs
// between memories.
type source struct{ seed, stream uint64 }

func (s source) fill(b []byte) {
	r := rand.New(rand.NewPCG(s.seed, s.stream))
	for len(b) > 0 {
		b = b[copy(b, binary.LittleEndian.AppendUint64(nil, r.Uint64())):]
	}
}

// make returns the content in a new slice. A pattern field takes bytes from
// src.
func (c *Content) make(at *env, src source) ([]byte, error) {
	if c.kind != contentFields {
		return c.bytes, nil
	}
	var b []byte
	for i := range c.fields {
		var err error
		if b, err = c.fields[i].append(b, at, src); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		if len(b) > maxContent {
			return nil, fmt.Errorf("[%d]: more than %d bytes", i, maxContent)
		}
	}
	return b, nil
}

// fill writes the content into b, followed by zeros.
func (c *Content) fill(b []byte, at *env, src source) error {
	if c.kind == contentPattern {
		src.fill(b)
		return nil
	}
	own, err := c.make(at, src)
	if err != nil {
		return err
	}
	if len(own) > len(b) {
		return fmt.Errorf("%d bytes, which do not fit in %d", len(own), len(b))
	}
	clear(b[copy(b, own):])
	return nil
}

// append adds the field's bytes to b.
func (f *Field) append(b []byte, at *env, src source) ([]byte, error) {
	count, err := f.Count.int(at, 1, 0, maxContent)
	if err != nil {
		return nil, fmt.Errorf("count: %w", err)
	}
	one, err := f.one(at, source{src.seed, src.stream + uint64(len(b))})
	if err != nil {
		return nil, err
	}
	if int64(len(one))*count > maxContent {
		return nil, fmt.Errorf("count: %d times %d bytes, expected at most %d bytes", count, len(one), maxContent)
	}
	for range count {
		b = append(b, one...)
	}
	return b, nil
}

// one returns the bytes of one value.
func (f *Field) one(at *env, src source) ([]byte, error) {
	t, number := f.number()
	switch {
	case t != "":
		return number.encode(t, at)
	case f.Zero.IsSet():
		n, err := f.Zero.int(at, 0, 0, maxContent)
		return memory.Make[byte](n), err
	case f.Pattern.IsSet():
		n, err := f.Pattern.int(at, 0, 0, maxContent)
		if err != nil {
			return nil, err
		}
		b := memory.Make[byte](n)
		src.fill(b)
		return b, nil
	}
	return f.Hex, nil
}

// number returns the type of the field's values and the value, "" if they are
// only bytes.
func (f *Field) number() (t manifest.Type, v *Float) {
	for i, e := range [...]Expr{f.U8, f.U16, f.U32, f.U64, f.I8, f.I16, f.I32, f.I64} {
		if e.IsSet() {
			return manifest.Types()[i], &Float{expr: e}
		}
	}
	switch {
	case f.F32.set:
		return manifest.F32, &f.F32
	case f.F64.set:
		return manifest.F64, &f.F64
	}
	return "", nil
}
