package scenario

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// stateLayout is the layout of an entry's HPU memory: the fields that the
// module describes, and the fields that the scenario lists. If both use a name,
// it is the same number. The zero value has no fields.
type stateLayout struct {
	described *manifest.State
	listed    []stateField
}

// stateField is a number in HPU memory.
type stateField struct {
	name   string
	typ    *fieldType
	offset int64
}

// known reports whether there are fields.
func (l *stateLayout) known() bool { return l.described != nil || l.listed != nil }

// field returns the number with the given name. The error lists the names.
func (l *stateLayout) field(name string) (*stateField, error) {
	for i := range l.listed {
		if l.listed[i].name == name {
			return &l.listed[i], nil
		}
	}
	if l.described == nil {
		return nil, fmt.Errorf("no field %s, expected one of %s", name, l.names())
	}
	n, err := l.described.Lookup(name)
	if err != nil {
		return nil, err
	}
	return fieldOf(n), nil
}

// fields returns all numbers: of the list, if there is one.
func (l *stateLayout) fields() iter.Seq[*stateField] {
	return func(yield func(*stateField) bool) {
		for i := range l.listed {
			if !yield(&l.listed[i]) {
				return
			}
		}
		if l.described == nil || l.listed != nil {
			return
		}
		for n := range l.described.Numbers() {
			if !yield(fieldOf(n)) {
				return
			}
		}
	}
}

func fieldOf(n manifest.Number) *stateField {
	return &stateField{n.Name, typeOf(n.Field.Type), n.Offset}
}

// typeOf returns the type of the same name; both tables have all types.
func typeOf(t manifest.Type) *fieldType {
	for i := range fieldTypes {
		if fieldTypes[i].name == string(t) {
			return &fieldTypes[i]
		}
	}
	panic("scenario: a state with a number of type " + string(t))
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
		names = append(names, l.listed[i].name)
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
		if typ := f.typed(); typ != nil {
			for k := range count {
				each := name
				if f.Count.IsSet() {
					each = fmt.Sprintf("%s[%d]", name, k)
				}
				l.listed = append(l.listed, stateField{each, typ, offset + k*typ.size})
			}
		}
		offset += count * int64(len(one))
	}
	return 0, nil
}

// agrees compares a field of a list, at an offset of the state, with the
// module's description of the name. one is the bytes of a number.
func agrees(s *manifest.State, f *Field, offset, count int64, one []byte, d *manifest.Device) error {
	typ := f.typed()
	if typ == nil {
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
		case n.Offset != offset+k*typ.size:
			return misplaced(name, n.Offset, offset+k*typ.size)
		case string(n.Field.Type) != typ.name:
			return fmt.Errorf("%s is a %s, but the module has a %s there", name, typ.name, n.Field.Type)
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
