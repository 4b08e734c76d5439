package scenario

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// stateLayout is what is known of the HPU memory of an entry: the fields that
// the module describes, and those that the scenario lists. Where both have a
// name it is the same number. The zero value is nothing.
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

// field returns the number of that name. The error says what there is.
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

// fields are all numbers: those of a list, if there is one.
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

// typeOf is the type of that name; both tables have all of them.
func typeOf(t manifest.Type) *fieldType {
	for i := range fieldTypes {
		if fieldTypes[i].name == string(t) {
			return &fieldTypes[i]
		}
	}
	panic("scenario: a state with a number of type " + string(t))
}

// maxNames is how many fields an error message names.
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

// list notes the typed values of a list, which begins so many bytes into the
// state. Fields without a name are called by their number. A name that says
// something else than the module, or than the list has said before, is an
// error, with the place of the field in the list; so is a number with a name
// that the module does not allow on the device. What has no name is bytes, and
// may be anything, as those of hex.
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

// agrees holds a field of a list, at an offset of the state, against what the
// module says of the name; one are the bytes of a number.
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

// offsetOf is where bytes of a name begin: a number, or an array or struct as a whole.
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
