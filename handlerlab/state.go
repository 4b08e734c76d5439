package handlerlab

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	input "github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/sim"
)

// Format is the layout of a state: the types of its fields, without gaps.
type Format []FieldType

// FieldType is the type of a field of a state.
type FieldType struct {
	Name  string // u8, u16, u32, u64, i8, i16, i32, i64, f32, f64
	Bytes int
}

var fieldTypes = []FieldType{
	{"u8", 1}, {"u16", 2}, {"u32", 4}, {"u64", 8}, {"i8", 1}, {"i16", 2}, {"i32", 4}, {"i64", 8}, {"f32", 4}, {"f64", 8},
}

// maxFields is how many fields a state may have.
const maxFields = 4096

// ParseFormat reads types separated by commas; u64*4 is four of them. It wants the fields where a compiler puts them: each
// at a multiple of its size.
func ParseFormat(s string) (Format, error) {
	var f Format
	for part := range strings.SplitSeq(s, ",") {
		name, count, repeated := strings.Cut(strings.TrimSpace(part), "*")
		n := 1
		if repeated {
			var err error
			if n, err = strconv.Atoi(count); err != nil || n < 1 || n > maxFields {
				return nil, fmt.Errorf("%q: expected a number from 1 to %d behind *", part, maxFields)
			}
		}
		t, err := fieldType(name)
		if err != nil {
			return nil, err
		}
		if at := f.Bytes(); at%t.Bytes != 0 {
			return nil, fmt.Errorf("field %d, %s, would begin at byte %d, but handlers have it at a multiple of %d: spell out the gap, such as u8*%d",
				len(f), name, at, t.Bytes, t.Bytes-at%t.Bytes)
		}
		for range n {
			f = append(f, t)
		}
		if len(f) > maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
	}
	return f, nil
}

func fieldType(name string) (FieldType, error) {
	var names []string
	for _, t := range fieldTypes {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return FieldType{}, fmt.Errorf("no type %q, expected one of %s", name, strings.Join(names, ", "))
}

// Bytes is the size of the state.
func (f Format) Bytes() int {
	n := 0
	for _, t := range f {
		n += t.Bytes
	}
	return n
}

// text is the value of a field.
func (t FieldType) text(b []byte) string {
	v := unsigned(b)
	switch t.Name[0] {
	case 'i':
		shift := 64 - 8*t.Bytes
		return strconv.FormatInt(int64(v)<<shift>>shift, 10)
	case 'f':
		if t.Bytes == 4 {
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32)
		}
		return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64)
	}
	return strconv.FormatUint(v, 10)
}

// unsigned is a little-endian number of 1 to 8 bytes.
func unsigned(b []byte) (v uint64) {
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// parse reads a value of the type.
func (t FieldType) parse(s string) (v uint64, err error) {
	bits := 8 * t.Bytes
	switch t.Name[0] {
	case 'i':
		var i int64
		i, err = strconv.ParseInt(s, 0, bits)
		v = uint64(i)
	case 'f':
		var f float64
		f, err = strconv.ParseFloat(s, bits)
		v = math.Float64bits(f)
		if t.Bytes == 4 {
			v = uint64(math.Float32bits(float32(f)))
		}
	default:
		v, err = strconv.ParseUint(s, 0, bits)
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no %s", s, t.Name)
	}
	return v, nil
}

// State is what HPU memory holds at the beginning.
type State struct {
	Bytes    []byte
	Counters []CounterRef
}

// CounterRef is a field that holds the handle of a counting event, which is known only when the host has made it.
type CounterRef struct {
	Offset  int // of the u32 in the state, bytes
	Counter int // from 0
}

// maxCounters is how many counters a state may name.
const maxCounters = 64

// ParseState reads a state: with a format, values separated by commas, of which those left out at the end are 0 and
// ct0, ct1 … in a u32 stand for counters of the host; without one, bytes in hexadecimal.
func ParseState(s string, f Format) (State, error) {
	if f == nil {
		b, err := ParseHex(s)
		return State{Bytes: b}, err
	}
	st := State{Bytes: make([]byte, f.Bytes())}
	if strings.TrimSpace(s) == "" {
		return st, nil
	}
	at := 0
	values := strings.Split(s, ",")
	if len(values) > len(f) {
		return st, fmt.Errorf("%d values for %d fields", len(values), len(f))
	}
	for i, text := range values {
		text = strings.TrimSpace(text)
		if name, is := strings.CutPrefix(text, "ct"); is && f[i].Name == "u32" {
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= maxCounters {
				return st, fmt.Errorf("field %d: %q: expected ct0 to ct%d", i, text, maxCounters-1)
			}
			st.Counters = append(st.Counters, CounterRef{at, n})
		} else {
			v, err := f[i].parse(text)
			if err != nil {
				return st, fmt.Errorf("field %d: %w", i, err)
			}
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], v)
			copy(st.Bytes[at:at+f[i].Bytes], word[:])
		}
		at += f[i].Bytes
	}
	return st, nil
}

// ParseMemory reads a size of memory, such as 4096 or 64KiB, below 4 GiB.
func ParseMemory(s string) (int, error) {
	n, err := sim.ParseSize(s)
	if err == nil && n > math.MaxUint32 {
		err = fmt.Errorf("%s, expected less than 4 GiB", s)
	}
	return int(n), err
}

// maxHostMemory is the largest host memory of a run, bytes.
const maxHostMemory = 1 << 28

// HostMemory makes host memory of a size that holds the content of a file at its beginning, if a name is given. It is at least as
// large as the file.
func HostMemory(size, file string) ([]byte, error) {
	n, err := ParseMemory(size)
	if err != nil {
		return nil, err
	}
	if n > maxHostMemory {
		return nil, fmt.Errorf("%s, expected at most %v", size, sim.Size(maxHostMemory))
	}
	var content []byte
	if file != "" {
		if content, err = input.Read(file, input.MaxData); err != nil {
			return nil, err
		}
	}
	memory := make([]byte, max(n, len(content)))
	copy(memory, content)
	return memory, nil
}
