package scenario

import (
	"fmt"
	"iter"
	"strings"

	"github.com/spinsim/spinsim/spin/manifest"
)

// stateLayout is what is known of the HPU memory of an entry: the fields that the module describes, or those that the scenario lists in
// their place. The zero value is nothing.
type stateLayout struct {
	described *manifest.State
	listed    []stateField
	size      int64 // of the listed fields
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
	if l.described != nil {
		n, err := l.described.Lookup(name)
		if err != nil {
			return nil, err
		}
		return fieldOf(n), nil
	}
	for i := range l.listed {
		if l.listed[i].name == name {
			return &l.listed[i], nil
		}
	}
	return nil, fmt.Errorf("no field %s, expected one of %s", name, l.names())
}

// fields are all numbers.
func (l *stateLayout) fields() iter.Seq[*stateField] {
	return func(yield func(*stateField) bool) {
		for i := range l.listed {
			if !yield(&l.listed[i]) {
				return
			}
		}
		if l.described == nil {
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

// names lists the fields for a message.
func (l *stateLayout) names() string {
	if l.described != nil {
		return l.described.FieldNames()
	}
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

// listedLayout is the layout that a list of typed values describes. Fields without a name are called by their number.
func listedLayout(list []Field, at *env) (l stateLayout, err error) {
	for i := range list {
		f := &list[i]
		count, err := f.Count.int(at, 1, 0, maxContent)
		if err != nil {
			return l, err
		}
		one, err := f.one(at, source{})
		if err != nil {
			return l, err
		}
		name := f.Name
		if name == "" {
			name = fmt.Sprint(i)
		}
		if typ := f.typed(); typ != nil {
			for k := range count {
				each := name
				if f.Count.IsSet() {
					each = fmt.Sprintf("%s[%d]", name, k)
				}
				l.listed = append(l.listed, stateField{each, typ, l.size + k*typ.size})
			}
		}
		l.size += count * int64(len(one))
	}
	return l, nil
}
