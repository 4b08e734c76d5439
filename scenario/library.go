package scenario

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/spinsim/spinsim/handlers/accumulate"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/pingpong"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/handlers/work"
)

// library is a built-in module with the layout of its state.
type library struct {
	name  string
	wasm  []byte
	state reflect.Type
}

func libraries() []library {
	return []library{
		{"accumulate", accumulate.Module, reflect.TypeFor[accumulate.State]()},
		{"bcast", bcast.Module, reflect.TypeFor[bcast.State]()},
		{"count", count.Module, reflect.TypeFor[count.State]()},
		{"count_c", count.ModuleC, reflect.TypeFor[count.State]()},
		{"pingpong", pingpong.Module, reflect.TypeFor[pingpong.State]()},
		{"sum", sum.Module, reflect.TypeFor[sum.State]()},
		{"work", work.Module, reflect.TypeFor[work.State]()},
	}
}

func findLibrary(name string) (*library, error) {
	var names []string
	for _, l := range libraries() {
		if l.name == name {
			return &l, nil
		}
		names = append(names, l.name)
	}
	return nil, fmt.Errorf("no built-in library %q, expected one of %s or the path of a .wasm file", name, strings.Join(names, ", "))
}

// stateField is a number in HPU memory.
type stateField struct {
	name   string
	typ    *fieldType
	offset int64
}

// layout returns the fields of the library's state and its size.
func (l *library) layout() (fields []stateField, size int64) {
	for i := range l.state.NumField() {
		f := l.state.Field(i)
		if f.Name == "_" {
			continue
		}
		typ, n, isArray := f.Type, 1, f.Type.Kind() == reflect.Array
		if isArray {
			typ, n = f.Type.Elem(), f.Type.Len()
		}
		for k := range n {
			name := snake(f.Name)
			if isArray {
				name = fmt.Sprintf("%s[%d]", name, k)
			}
			fields = append(fields, stateField{name, typeOf(typ.Kind()), int64(f.Offset) + int64(k)*int64(typ.Size())})
		}
	}
	return fields, int64(l.state.Size())
}

// typeOf is the type of fields whose Go type is uint64, int32 and so on. It panics for others: no library has them.
func typeOf(k reflect.Kind) *fieldType {
	name := strings.NewReplacer("uint", "u", "int", "i").Replace(k.String())
	for i := range fieldTypes[:wholeTypes] {
		if fieldTypes[i].name == name {
			return &fieldTypes[i]
		}
	}
	panic("scenario: a state with a field of kind " + k.String())
}

// snake writes MaxPayload as max_payload and MatchBits as match_bits; PT stays one word.
func snake(name string) string {
	var b strings.Builder
	before := rune('A')
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

// namedLayout returns the fields that a list of typed values describes and its size. Fields without a name are called by
// their number.
func namedLayout(list []Field, at *env) (fields []stateField, size int64, err error) {
	for i := range list {
		f := &list[i]
		count, err := f.Count.int(at, 1, 0, maxContent)
		if err != nil {
			return nil, 0, err
		}
		one, err := f.one(at, source{})
		if err != nil {
			return nil, 0, err
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
				fields = append(fields, stateField{each, typ, size + k*typ.size})
			}
		}
		size += count * int64(len(one))
	}
	return fields, size, nil
}
