package portalscript

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/portals"
)

// span checks a range of a process's memory.
func (f *iface) span(c *command, addr, n uint64) ([]byte, error) {
	b := f.owner.mem.bytes
	if addr > uint64(len(b)) || n > uint64(len(b))-addr {
		return nil, c.Errorf("%d bytes at %#x, memory is %#x", n, addr, len(b))
	}
	return b[addr : addr+n], nil
}

func cmdFill(w *world, c *command, f *iface) error {
	addr, err := number(c.pos[0])
	if err != nil {
		return c.Errorf("%v", err)
	}
	var data []byte
	for _, s := range c.pos[1:] {
		if s[0] == '"' {
			text, err := strconv.Unquote(s)
			if err != nil {
				return c.Errorf("%s is no quoted string", s)
			}
			data = append(data, text...)
			continue
		}
		b, err := hex.DecodeString(s)
		if err != nil {
			return c.Errorf("%q is neither a string nor hexadecimal bytes", s)
		}
		data = append(data, b...)
	}
	dst, err := f.span(c, addr, uint64(len(data)))
	if err != nil {
		return err
	}
	copy(dst, data)
	return nil
}

func cmdMem(w *world, c *command, f *iface) error {
	addr, err1 := number(c.pos[0])
	n, err2 := number(c.pos[1])
	if err1 != nil || err2 != nil {
		return c.Errorf("%s %s, want address and length", c.pos[0], c.pos[1])
	}
	b, err := f.span(c, addr, n)
	if err != nil {
		return err
	}
	text := make([]byte, n)
	printable := true
	for i, v := range b {
		text[i] = v
		if v == 0 {
			text[i] = '.'
		} else if v < ' ' || v > '~' {
			printable = false
		}
	}
	if printable {
		return w.printf("%d: %#x: %s", c.proc, addr, text)
	}
	return w.printf("%d: %#x: % x", c.proc, addr, b)
}

func cmdStore(w *world, c *command, f *iface) error {
	typ, err := c.datatype()
	if err != nil {
		return err
	}
	addr, err := number(c.pos[0])
	if err != nil {
		return c.Errorf("%v", err)
	}
	for _, s := range c.pos[1:] {
		b, err := encode(typ, s)
		if err != nil {
			return c.Errorf("%v", err)
		}
		dst, err := f.span(c, addr, uint64(len(b)))
		if err != nil {
			return err
		}
		copy(dst, b)
		addr += uint64(len(b))
	}
	return nil
}

func cmdLoad(w *world, c *command, f *iface) error {
	typ, err := c.datatype()
	if err != nil {
		return err
	}
	addr, err := number(c.pos[0])
	if err != nil {
		return c.Errorf("%v", err)
	}
	n := uint64(1)
	if len(c.pos) > 1 {
		if n, err = number(c.pos[1]); err != nil || n > memorySize {
			return c.Errorf("%q values, want at most %d", c.pos[1], memorySize)
		}
	}
	if typ.Size() == 0 {
		return c.Errorf("unknown type %v", typ)
	}
	var out []string
	for range n {
		b, err := f.span(c, addr, uint64(typ.Size()))
		if err != nil {
			return err
		}
		out = append(out, decode(typ, b))
		addr += uint64(typ.Size())
	}
	return w.printf("%d: %s", c.proc, strings.Join(out, " "))
}

func cmdHole(w *world, c *command, f *iface) error {
	from, err1 := number(c.pos[0])
	to, err2 := number(c.pos[1])
	if err1 != nil || err2 != nil {
		return c.Errorf("%s %s, want two addresses", c.pos[0], c.pos[1])
	}
	if len(c.pos) > 2 && c.pos[2] != "readable" {
		return c.Errorf("%s, want readable or nothing", c.pos[2])
	}
	f.owner.mem.from, f.owner.mem.to, f.owner.mem.readable = from, to, len(c.pos) > 2
	return nil
}

// encode turns a written value into an element. Complex numbers are "re,im".
func encode(t portals.Datatype, s string) ([]byte, error) {
	switch t {
	case portals.FloatComplex, portals.DoubleComplex, portals.LongDoubleComplex:
		re, im, ok := strings.Cut(s, ",")
		if !ok {
			return nil, fmt.Errorf("%q is no complex number, want re,im", s)
		}
		part := map[portals.Datatype]portals.Datatype{
			portals.FloatComplex: portals.Float, portals.DoubleComplex: portals.Double,
			portals.LongDoubleComplex: portals.LongDouble,
		}[t]
		a, err := encode(part, re)
		if err != nil {
			return nil, err
		}
		b, err := encode(part, im)
		return append(a, b...), err
	case portals.Float, portals.Double, portals.LongDouble:
		bits := 64
		if t == portals.Float {
			bits = 32
		}
		v, err := strconv.ParseFloat(s, bits)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return nil, fmt.Errorf("%q does not fit %v, and is not Inf", s, t)
		case err != nil:
			return nil, fmt.Errorf("%q is no number", s)
		}
		switch t {
		case portals.Float:
			return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v))), nil
		case portals.Double:
			return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)), nil
		}
		return encodeExtended(v), nil
	}
	v, err := number(s)
	if err != nil {
		return nil, err
	}
	if t.Size() == 0 {
		return nil, fmt.Errorf("unknown type %v", t)
	}
	if free := 64 - 8*t.Size(); v<<free>>free != v && uint64(int64(v)<<free>>free) != v {
		return nil, fmt.Errorf("%q does not fit %v", s, t)
	}
	return binary.LittleEndian.AppendUint64(nil, v)[:t.Size()], nil
}

func decode(t portals.Datatype, b []byte) string {
	switch t {
	case portals.Int8:
		return fmt.Sprint(int8(b[0]))
	case portals.Int16:
		return fmt.Sprint(int16(binary.LittleEndian.Uint16(b)))
	case portals.Int32:
		return fmt.Sprint(int32(binary.LittleEndian.Uint32(b)))
	case portals.Int64:
		return fmt.Sprint(int64(binary.LittleEndian.Uint64(b)))
	case portals.Float:
		return fmt.Sprint(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case portals.Double:
		return fmt.Sprint(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case portals.LongDouble:
		return fmt.Sprint(decodeExtended(b))
	case portals.FloatComplex:
		return decode(portals.Float, b) + "," + decode(portals.Float, b[4:])
	case portals.DoubleComplex:
		return decode(portals.Double, b) + "," + decode(portals.Double, b[8:])
	case portals.LongDoubleComplex:
		return decode(portals.LongDouble, b) + "," + decode(portals.LongDouble, b[16:])
	}
	var wide [8]byte
	copy(wide[:], b[:t.Size()])
	return fmt.Sprint(binary.LittleEndian.Uint64(wide[:]))
}

// encodeExtended widens a double to the 80-bit format in 16 bytes.
func encodeExtended(v float64) []byte {
	out := make([]byte, 16)
	var exp uint16
	var man uint64
	switch frac, e := math.Frexp(v); {
	case v == 0:
	case math.IsNaN(v):
		exp, man = 0x7fff, 3<<62
	case math.IsInf(v, 0):
		exp, man = 0x7fff, 1<<63
	default:
		man = uint64(math.Ldexp(math.Abs(frac), 53)) << 11
		exp = uint16(e - 1 + 16383)
	}
	if math.Signbit(v) {
		exp |= 1 << 15
	}
	binary.LittleEndian.PutUint64(out, man)
	binary.LittleEndian.PutUint16(out[8:], exp)
	return out
}

// decodeExtended narrows the 80-bit format to a double.
func decodeExtended(b []byte) float64 {
	man, se := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint16(b[8:])
	exp := int(se & 0x7fff)
	var v float64
	switch {
	case exp == 0x7fff && bits.TrailingZeros64(man) == 63:
		v = math.Inf(1)
	case exp == 0x7fff:
		return math.NaN()
	default:
		v = math.Ldexp(float64(man), max(exp, 1)-16383-63)
	}
	if se>>15 != 0 {
		v = -v
	}
	return v
}
