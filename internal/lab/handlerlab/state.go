package handlerlab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/sim"
)

// Format is the layout of a state. It comes from a manifest, with named fields,
// or from a list of types, with numbered fields.
type Format struct {
	state *manifest.State
	list  bool
}

// FormatOf returns the layout of a manifest's state; nil for nil.
func FormatOf(s *manifest.State) *Format {
	if s == nil {
		return nil
	}
	return &Format{state: s}
}

// maxFields is the most fields of a list.
const maxFields = 4096

// ParseFormat reads types separated by commas. For example, u64*4 is four u64.
// Each field must be at a multiple of its size, where a compiler puts it.
func ParseFormat(s string) (*Format, error) {
	f := &Format{state: &manifest.State{Name: "list"}, list: true}
	for part := range strings.SplitSeq(s, ",") {
		name, count, repeated := strings.Cut(strings.TrimSpace(part), "*")
		n := 1
		if repeated {
			var err error
			if n, err = strconv.Atoi(count); err != nil || n < 1 || n > maxFields {
				return nil, fmt.Errorf("%q: expected a number from 1 to %d behind *", part, maxFields)
			}
		}
		t := manifest.Type(name)
		if !slices.Contains(manifest.Types(), t) {
			return nil, fmt.Errorf("no type %q, expected one of %s", name, typeNames())
		}
		if at := f.state.Size; at%t.Size() != 0 {
			return nil, fmt.Errorf("field %d, %s, would begin at byte %d, but handlers have it at a multiple of %d: spell out the gap, such as u8*%d",
				len(f.state.Fields), name, at, t.Size(), t.Size()-at%t.Size())
		}
		for range n {
			f.state.Fields = append(f.state.Fields, manifest.Field{Name: strconv.Itoa(len(f.state.Fields)), Type: t, Offset: f.state.Size})
			f.state.Size += t.Size()
		}
		if len(f.state.Fields) > maxFields {
			return nil, fmt.Errorf("more than %d fields", maxFields)
		}
	}
	return f, nil
}

func typeNames() string {
	var names []string
	for _, t := range manifest.Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// State is the initial content of HPU memory.
type State struct {
	Bytes    []byte // nil: as in the manifest
	Counters []CounterRef
}

// CounterRef is a field for the handle of a counting event. The handle is known
// only after the host has created the event.
type CounterRef struct {
	Offset  int // of the u32 in the state, bytes
	Counter int // from 0
}

// maxCounters is the most counters that a state may name.
const maxCounters = 64

// ParseState reads a state for a device. With a manifest, it is NAME=VALUE
// separated by commas; the other fields have the values of the manifest. With a
// list of types, it is values separated by commas; missing values at the end
// are 0. Otherwise it is bytes in hexadecimal. In a u32, ct0, ct1 … stand for
// counters of the host.
func ParseState(s string, f *Format, d *manifest.Device) (st State, err error) {
	byName := f != nil && !f.list && strings.Contains(s, "=")
	switch {
	case f == nil && strings.Contains(s, "="):
		return st, errors.New("the module does not name the fields of its state: give types (--state-format) and values, or bytes in hexadecimal")
	case f == nil, !f.list && !byName && s != "":
		st.Bytes, err = ParseHex(s)
		return st, err
	}
	if st.Bytes, err = f.state.Initial(d); err != nil || strings.TrimSpace(s) == "" {
		return st, err
	}
	values := strings.Split(s, ",")
	if f.list && len(values) > len(f.state.Fields) {
		return st, fmt.Errorf("%d values for %d fields", len(values), len(f.state.Fields))
	}
	seen := make(map[string]bool)
	for i, text := range values {
		name, value := strconv.Itoa(i), text
		if byName {
			var given bool
			if name, value, given = strings.Cut(text, "="); !given {
				return st, fmt.Errorf("%q: expected NAME=VALUE", text)
			}
			if name = strings.TrimSpace(name); seen[name] {
				return st, fmt.Errorf("%s is given twice", name)
			}
			seen[name] = true
		}
		n, err := f.state.Lookup(name)
		if err == nil {
			err = st.set(n, strings.TrimSpace(value), d)
		}
		if err != nil && f.list {
			err = fmt.Errorf("field %w", err)
		}
		if err != nil {
			return st, err
		}
	}
	return st, nil
}

// set writes one value.
func (st *State) set(n manifest.Number, text string, d *manifest.Device) error {
	if name, is := strings.CutPrefix(text, "ct"); is && n.Field.Type == manifest.U32 {
		ct, err := strconv.Atoi(name)
		if err != nil || ct < 0 || ct >= maxCounters {
			return fmt.Errorf("%s: %q: expected ct0 to ct%d", n.Name, text, maxCounters-1)
		}
		st.Counters = append(st.Counters, CounterRef{int(n.Offset), ct})
		return nil
	}
	if n.Field.Type.Float() {
		if v, err := strconv.ParseFloat(text, int(8*n.Field.Type.Size())); err == nil {
			return n.Put(st.Bytes, v, d)
		}
	}
	e, err := manifest.ParseExpr(text)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return n.Put(st.Bytes, e, d)
}

// FieldReport is a number of a state before and after a run.
type FieldReport struct {
	Name   string        `column:"field" help:"Name of the field; of an array, a number that has changed."`
	Offset int64         `column:"offset" help:"Where in the HPU memory, bytes."`
	Type   manifest.Type `column:"type" help:"Type of the field."`
	Unit   string        `column:"unit" help:"Unit of the number."`
	Before string        `column:"before" help:"The value before the run."`
	After  string        `column:"after" help:"The value behind the run."`
}

// fields lists the numbers of a state in HPU memory. Of an array in a manifest,
// it lists only the numbers that have changed. It also returns how many numbers
// are not listed, and how many lie outside the memory.
func (f *Format) fields(was, is []byte) (list []FieldReport, same, outside int) {
	for n := range f.state.Numbers() {
		if n.Offset+n.Field.Type.Size() > int64(len(is)) {
			outside++
			continue
		}
		before, after := n.Text(was), n.Text(is)
		if before == after && (strings.Contains(n.Name, "[") || len(list) >= maxFields) {
			same++
			continue
		}
		list = append(list, FieldReport{n.Name, n.Offset, n.Field.Type, n.Field.Unit, before, after})
	}
	return list, same, outside
}

// ParseMemory reads a size of memory, such as 4096 or 64KiB, below 4 GiB.
func ParseMemory(s string) (int, error) {
	n, err := sim.ParseSize(s)
	if err == nil && n > math.MaxUint32 {
		err = fmt.Errorf("%s, expected less than 4 GiB", s)
	}
	return int(n), err
}

// maxHostMemory is the largest host memory of a run, in bytes.
const maxHostMemory = 1 << 28

// HostMemory returns host memory of a size. It begins with content and is at
// least as large.
func HostMemory(size string, content []byte) ([]byte, error) {
	n, err := ParseMemory(size)
	if err != nil {
		return nil, err
	}
	if n > maxHostMemory {
		return nil, fmt.Errorf("%s, expected at most %v", size, sim.Size(maxHostMemory))
	}
	memory := make([]byte, max(n, len(content)))
	copy(memory, content)
	return memory, nil
}
