package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/big"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Number is a number in a state.
type Number struct {
	Name   string // path from the state, such as slots[3].seq
	Offset int64  // in the state, bytes
	Field  *Field // the field that contains it, with type, unit, default and range
}

// elem returns the size of an element in bytes.
func (f *Field) elem() int64 {
	if f.Type == "" {
		return f.Size
	}
	return f.Type.Size()
}

// elements returns the number of elements; false if they are too many for any
// state.
func (f *Field) elements() (n int64, ok bool) {
	n = 1
	for _, d := range f.Dims {
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > maxState {
			return 0, false
		}
		n = int64(lo)
	}
	return n, true
}

// Bytes returns the size of the field, all elements together; false if that is
// more than a state can have.
func (f *Field) Bytes() (size int64, ok bool) {
	n, ok := f.elements()
	hi, lo := bits.Mul64(uint64(n), uint64(f.elem()))
	return int64(lo), ok && hi == 0 && lo <= maxState
}

// index formats the indices of element i of an array.
func (f *Field) index(i int64) string {
	s := ""
	for _, dim := range slices.Backward(f.Dims) {
		s = fmt.Sprintf("[%d]%s", i%dim, s)
		i /= dim
	}
	return s
}

// Numbers returns all numbers of the state in the order of their offsets.
func (s *State) Numbers() iter.Seq[Number] {
	return func(yield func(Number) bool) { numbers("", 0, s.Fields, yield) }
}

func numbers(prefix string, at int64, fields []Field, yield func(Number) bool) bool {
	for i := range fields {
		f := &fields[i]
		n, _ := f.elements()
		for k := range n {
			name, at := prefix+f.Name+f.index(k), at+f.Offset+k*f.elem()
			if f.Type == "" {
				if !numbers(name+".", at, f.Fields, yield) {
					return false
				}
			} else if !yield(Number{name, at, f}) {
				return false
			}
		}
	}
	return true
}

// Lookup returns the number with that name, such as slots[3].seq. The error
// lists the existing names.
func (s *State) Lookup(name string) (Number, error) {
	fields, at, rest, prefix := s.Fields, int64(0), name, ""
	for {
		end := strings.IndexAny(rest, "[.")
		if end < 0 {
			end = len(rest)
		}
		var f *Field
		for i := range fields {
			if fields[i].Name == rest[:end] {
				f = &fields[i]
			}
		}
		if f == nil {
			return Number{}, fmt.Errorf("no field %s, expected one of %s", clip(name), names(prefix, fields))
		}
		rest = rest[end:]
		i, left, err := f.element(rest)
		if err != nil {
			return Number{}, fmt.Errorf("%s: %s%s %w", clip(name), prefix, f.Name, err)
		}
		at += f.Offset + i*f.elem()
		prefix += f.Name + f.index(i)
		if f.Type != "" {
			if left != "" {
				return Number{}, fmt.Errorf("%s: %s is a number", clip(name), prefix)
			}
			return Number{name, at, f}, nil
		}
		if rest = strings.TrimPrefix(left, "."); rest == left || rest == "" {
			return Number{}, fmt.Errorf("%s: %s has fields: expected one of %s", clip(name), prefix, names(prefix+".", f.Fields))
		}
		fields, prefix = f.Fields, prefix+"."
	}
}

// element reads the indices of an array at the beginning of s.
func (f *Field) element(s string) (i int64, rest string, err error) {
	for _, dim := range f.Dims {
		inside, behind, closed := strings.Cut(strings.TrimPrefix(s, "["), "]")
		v, err := strconv.ParseInt(inside, 10, 64)
		if !strings.HasPrefix(s, "[") || !closed || err != nil || v < 0 || v >= dim || strconv.FormatInt(v, 10) != inside {
			last, _ := f.elements()
			return 0, "", fmt.Errorf("is an array: expected %s to %s", f.Name+f.index(0), f.Name+f.index(last-1))
		}
		i, s = i*dim+v, behind
	}
	if strings.HasPrefix(s, "[") {
		return 0, "", errors.New("is no array of so many dimensions")
	}
	return i, s, nil
}

// maxListed is the most names that a message lists.
const maxListed = 12

// names lists fields for a message, an array with its last element.
func names(prefix string, fields []Field) string {
	var out []string
	for i := range fields {
		if i == maxListed {
			out = append(out, fmt.Sprintf("and %d more", len(fields)-i))
			break
		}
		f := &fields[i]
		name := prefix + f.Name
		if n, _ := f.elements(); f.Dims != nil {
			name += f.index(0) + " to " + name + f.index(n-1)
		}
		out = append(out, name)
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// FieldNames lists the fields of a state for a message.
func (s *State) FieldNames() string { return names("", s.Fields) }

// value is a number of some type.
type value struct {
	whole *big.Int // nil: float
	float float64
}

// value evaluates an expression to a number of the field's type.
func (f *Field) value(e Expr, d *Device) (v value, err error) {
	if f.Type.Float() {
		v.float, err = e.Float(d)
	} else {
		v.whole, err = e.Int(d)
	}
	if err != nil {
		return v, err
	}
	return v, f.Type.holds(v)
}

// holds returns an error if the value does not fit the type.
func (t Type) holds(v value) error {
	switch {
	case t == F32 && math.Abs(v.float) > math.MaxFloat32 && !math.IsInf(v.float, 0):
		return fmt.Errorf("%v, which no %s holds", v.float, t)
	case t.Float():
		return nil
	}
	if !t.fits(v.whole) {
		least, most := t.Limits()
		return fmt.Errorf("%v, expected %v to %v for %s", v.whole, least, most, t)
	}
	return nil
}

// inRange returns an error if the value is outside the field's range on a
// device.
func (f *Field) inRange(v value, d *Device) error {
	for _, x := range []struct {
		e    Expr
		sign int
		text string
	}{{f.Min, -1, "at least"}, {f.Max, 1, "at most"}} {
		if !x.e.IsSet() {
			continue
		}
		bound, err := f.value(x.e, d)
		if err != nil {
			return err
		}
		if v.compare(bound) == x.sign {
			return fmt.Errorf("%v, expected %s %v", v, x.text, x.e)
		}
	}
	return nil
}

func (v value) compare(o value) int {
	if v.whole != nil {
		return v.whole.Cmp(o.whole)
	}
	switch {
	case v.float < o.float:
		return -1
	case v.float > o.float:
		return 1
	}
	return 0
}

func (v value) String() string {
	if v.whole != nil {
		return v.whole.String()
	}
	return strconv.FormatFloat(v.float, 'g', -1, 64)
}

// Initial returns the initial state on a device: the defaults.
func (s *State) Initial(d *Device) ([]byte, error) {
	b := make([]byte, s.Size)
	return b, initial("", s.Fields, b, d)
}

func initial(prefix string, fields []Field, b []byte, d *Device) error {
	for i := range fields {
		f := &fields[i]
		size, _ := f.Bytes()
		all := b[f.Offset : f.Offset+size]
		first := all[:f.elem()]
		if f.Type == "" {
			if err := initial(prefix+f.Name+".", f.Fields, first, d); err != nil {
				return err
			}
		} else if f.Default.IsSet() {
			v, err := f.value(f.Default, d)
			if err == nil {
				err = f.inRange(v, d)
			}
			if err != nil {
				return fmt.Errorf("default of %s%s: %w", prefix, f.Name, err)
			}
			f.Type.put(first, v)
		}
		for done := len(first); done < len(all); done *= 2 {
			copy(all[done:], all[:done])
		}
	}
	return nil
}

// put writes a value that fits the type.
func (t Type) put(b []byte, v value) {
	var w uint64
	switch {
	case t == F32:
		w = uint64(math.Float32bits(float32(v.float)))
	case t == F64:
		w = math.Float64bits(v.float)
	case v.whole.Sign() < 0:
		w = uint64(v.whole.Int64())
	default:
		w = v.whole.Uint64()
	}
	var all [8]byte
	binary.LittleEndian.PutUint64(all[:], w)
	copy(b[:t.Size()], all[:])
}

// Put writes the number into the bytes of a state. v is a whole number of any
// type of Go or of math/big, a float, or an expression. The error gives type
// and range.
func (n Number) Put(state []byte, v any, d *Device) error {
	x, err := n.Field.from(v, d)
	if err == nil {
		err = n.Field.inRange(x, d)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	if n.Offset+n.Field.elem() > int64(len(state)) {
		return fmt.Errorf("%s lies outside the %d bytes of the state", n.Name, len(state))
	}
	n.Field.Type.put(state[n.Offset:], x)
	return nil
}

// from converts a Go value to a number of the field's type.
func (f *Field) from(v any, d *Device) (x value, err error) {
	switch v := v.(type) {
	case Expr:
		return f.value(v, d)
	case *big.Int:
		x.whole = v
	default:
		switch r := reflect.ValueOf(v); {
		case r.CanInt():
			x.whole = big.NewInt(r.Int())
		case r.CanUint():
			x.whole = new(big.Int).SetUint64(r.Uint())
		case r.CanFloat():
			x.float = r.Float()
		case r.IsValid() && r.Kind() == reflect.Bool:
			x.whole = new(big.Int)
			if r.Bool() {
				x.whole.SetInt64(1)
			}
		default:
			return x, fmt.Errorf("a %T, expected a number", v)
		}
	}
	switch {
	case f.Type.Float() && x.whole != nil:
		x.float, _ = new(big.Float).SetInt(x.whole).Float64()
		x.whole = nil
	case !f.Type.Float() && x.whole == nil:
		return x, fmt.Errorf("%v, expected a whole number for %s", x, f.Type)
	}
	return x, f.Type.holds(x)
}

// Get reads the number from the bytes of a state: a uint64, an int64 or a
// float64. It panics if the state is too short.
func (n Number) Get(state []byte) any {
	var all [8]byte
	t := n.Field.Type
	copy(all[:], state[n.Offset:n.Offset+t.Size()])
	w := binary.LittleEndian.Uint64(all[:])
	switch {
	case t == F32:
		return float64(math.Float32frombits(uint32(w)))
	case t == F64:
		return math.Float64frombits(w)
	case t.Signed():
		shift := uint(64 - 8*t.Size())
		return int64(w<<shift) >> shift
	}
	return w
}

// Text formats the number for people.
func (n Number) Text(state []byte) string {
	if v, is := n.Get(state).(float64); is {
		return strconv.FormatFloat(v, 'g', -1, int(8*n.Field.Type.Size()))
	}
	return fmt.Sprint(n.Get(state))
}
