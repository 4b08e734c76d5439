package scenario

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// stateLayout is the layout of an entry's HPU memory: the fields that the
// module describes, and the fields that the scenario lists. If both use a name,
// it is the same number. The zero value has no fields.
type stateLayout struct {
	described *manifest.State
	listed    []manifest.Number
}

// numberOf returns a number in HPU memory.
func numberOf(name string, t manifest.Type, offset int64) manifest.Number {
	return manifest.Number{Name: name, Offset: offset, Field: &manifest.Field{Type: t}}
}

// known reports whether there are fields.
func (l *stateLayout) known() bool { return l.described != nil || l.listed != nil }

// field returns the number with the given name. The error lists the names.
func (l *stateLayout) field(name string) (n manifest.Number, err error) {
	for _, n := range l.listed {
		if n.Name == name {
			return n, nil
		}
	}
	if l.described == nil {
		return n, fmt.Errorf("no field %s, expected one of %s", name, l.names())
	}
	return l.described.Lookup(name)
}

// fields returns all numbers: of the list, if there is one.
func (l *stateLayout) fields() iter.Seq[manifest.Number] {
	if l.described == nil || l.listed != nil {
		return slices.Values(l.listed)
	}
	return l.described.Numbers()
}

// wholeOf returns the value of a number for comparisons, or false if it has a
// fraction.
func wholeOf(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case uint64:
		return new(big.Int).SetUint64(v), true
	case int64:
		return big.NewInt(v), true
	case float64:
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			whole, _ := big.NewFloat(v).Int(nil)
			return whole, true
		}
	}
	return nil, false
}

// maxNames is the most fields that an error message names.
const maxNames = 12

// names lists the fields of a list for a message.
func (l *stateLayout) names() string {
	var names []string
	for i := range l.listed {
		if i == maxNames {
			names = append(names, fmt.Sprintf("and %d more", len(l.listed)-i))
			break
		}
		names = append(names, l.listed[i].Name)
	}
	if names == nil {
		return "none: the module does not describe its state; give it as a list of typed values with names"
	}
	return strings.Join(names, ", ")
}

// list notes the typed values of a list that begins at offset in the state.
// Unnamed fields are called by their number. It returns an error, with the
// place of the field in the list, if a name disagrees with the module or with
// an earlier use in the list, or if the module does not allow the named number
// on the device. Fields without a name are bytes and may be anything, as with
// hex.
func (l *stateLayout) list(fields []Field, offset int64, at *env, d *manifest.Device) (place int, err error) {
	named := make(map[string]bool)
	for i := range fields {
		f := &fields[i]
		count, err := f.Count.int(at, 1, 0, maxContent)
		if err != nil {
			return i, err
		}
		one, err := f.one(at, source{})
		if err != nil {
			return i, err
		}
		name := f.Name
		if name == "" {
			name = fmt.Sprint(i)
		} else if l.described != nil {
			if err := agrees(l.described, f, offset, count, one, d); err != nil {
				return i, fmt.Errorf("name: %w", err)
			}
		}
		if named[name] {
			return i, fmt.Errorf("name: %s is listed twice", name)
		}
		named[name] = true
		if t, _ := f.number(); t != "" {
			for k := range count {
				each := name
				if f.Count.IsSet() {
					each = fmt.Sprintf("%s[%d]", name, k)
				}
				l.listed = append(l.listed, numberOf(each, t, offset+k*t.Size()))
			}
		}
		offset += count * int64(len(one))
	}
	return 0, nil
}

// agrees compares a field of a list, at an offset of the state, with the
// module's description of the name. one is the bytes of a number.
func agrees(s *manifest.State, f *Field, offset, count int64, one []byte, d *manifest.Device) error {
	t, _ := f.number()
	if t == "" {
		at, err := offsetOf(s, f.Name)
		if err == nil && at != offset {
			err = misplaced(f.Name, at, offset)
		}
		return err
	}
	for k := range count {
		name := f.Name
		if f.Count.IsSet() {
			name = fmt.Sprintf("%s[%d]", name, k)
		}
		n, err := s.Lookup(name)
		switch {
		case err != nil:
			return err
		case n.Offset != offset+k*t.Size():
			return misplaced(name, n.Offset, offset+k*t.Size())
		case n.Field.Type != t:
			return fmt.Errorf("%s is a %s, but the module has a %s there", name, t, n.Field.Type)
		}
		alone := manifest.Number{Name: name, Field: n.Field}
		if err := alone.Put(slices.Clone(one), alone.Get(one), d); err != nil {
			return err
		}
	}
	return nil
}

// offsetOf returns the offset of a name: a number, or a whole array or struct.
func offsetOf(s *manifest.State, name string) (int64, error) {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return s.Fields[i].Offset, nil
		}
	}
	n, err := s.Lookup(name)
	return n.Offset, err
}

func misplaced(name string, is, listed int64) error {
	return fmt.Errorf("%s is at offset %d of the state, but the list has it at %d, behind what it lists before; {values: {%s: ...}} finds it by its name", name, is, listed, name)
}
