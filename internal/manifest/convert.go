package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// FieldName returns the name of a Go struct's field in a manifest. For example,
// MaxPayload is max_payload, PT is pt, and NIDOfRoot is nid_of_root.
func FieldName(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) && runes[i-1] != '_' {
			after := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(runes[i-1]) || after {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Tag is the key of the struct tags that describe a field further
// (docs/handlers.md, The manifest).
const Tag = "spin"

// Bytes returns the initial state on a device: the defaults, changed by v. v is
// nil, a map from names of numbers to values for Number.Put, or a struct or a
// pointer to one. A struct must have the same fields as the state. Bytes finds
// them by name, at any offset.
func (s *State) Bytes(v any, d *Device) ([]byte, error) {
	b, err := s.Initial(d)
	if err != nil || v == nil {
		return b, err
	}
	r := reflect.Indirect(reflect.ValueOf(v))
	switch {
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		keys := r.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			n, err := s.Lookup(key.String())
			if err != nil {
				return nil, err
			}
			if err := n.Put(b, r.MapIndex(key).Interface(), d); err != nil {
				return nil, err
			}
		}
		return b, nil
	case r.Kind() == reflect.Struct:
		return b, s.walk(r, func(n Number, v reflect.Value) error { return n.Put(b, v.Interface(), d) })
	}
	return nil, fmt.Errorf("a state from a %T, expected a struct, or a map of numbers by name", v)
}

// Read sets the fields of the struct that v points to from the bytes of a
// state. The struct must have the same fields as the state, as for Bytes.
func (s *State) Read(b []byte, v any) error {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Pointer || r.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("a state into a %T, expected a pointer to a struct", v)
	}
	if int64(len(b)) < s.Size {
		return fmt.Errorf("a state %s of %d bytes from %d", s.Name, s.Size, len(b))
	}
	return s.walk(r.Elem(), func(n Number, v reflect.Value) error {
		switch x := reflect.ValueOf(n.Get(b)); {
		case v.Kind() == reflect.Bool:
			v.SetBool(!x.IsZero())
		default:
			v.Set(x.Convert(v.Type()))
		}
		return nil
	})
}

// walk visits the numbers of a struct together with the numbers of the state.
func (s *State) walk(r reflect.Value, visit func(Number, reflect.Value) error) error {
	if err := walk("", 0, s.Fields, r, visit); err != nil {
		return fmt.Errorf("%v as state %s: %w", r.Type(), s.Name, err)
	}
	return nil
}

func walk(prefix string, at int64, fields []Field, r reflect.Value, visit func(Number, reflect.Value) error) error {
	left := make(map[string]*Field, len(fields))
	for i := range fields {
		left[fields[i].Name] = &fields[i]
	}
	for i := range r.NumField() {
		field := r.Type().Field(i)
		if field.Name == "_" {
			continue
		}
		name := fieldName(field)
		f := left[name]
		if f == nil {
			return fmt.Errorf("the state has no field %s%s, expected one of %s", prefix, name, names(prefix, fields))
		}
		delete(left, name)
		if !field.IsExported() {
			return fmt.Errorf("%s is not exported", field.Name)
		}
		if err := walkField(prefix, at+f.Offset, f, f.Dims, 0, r.Field(i), visit); err != nil {
			return err
		}
	}
	for i := range fields {
		if left[fields[i].Name] != nil {
			return fmt.Errorf("%s%s is missing", prefix, fields[i].Name)
		}
	}
	return nil
}

// fieldName returns the name of a field from its tag or its Go name.
func fieldName(field reflect.StructField) string {
	for word := range strings.FieldsSeq(field.Tag.Get(Tag)) {
		if name, is := strings.CutPrefix(word, "name="); is {
			return name
		}
	}
	return FieldName(field.Name)
}

// walkField visits a field. dims are its remaining dimensions, and i is the
// index of the element so far.
func walkField(prefix string, at int64, f *Field, dims []int64, i int64, r reflect.Value, visit func(Number, reflect.Value) error) error {
	if len(dims) > 0 {
		if r.Kind() != reflect.Array || int64(r.Len()) != dims[0] {
			return fmt.Errorf("%s%s is a %v, expected an array of %d", prefix, f.Name, r.Type(), dims[0])
		}
		for k := range r.Len() {
			if err := walkField(prefix, at, f, dims[1:], i*dims[0]+int64(k), r.Index(k), visit); err != nil {
				return err
			}
		}
		return nil
	}
	name, at := prefix+f.Name+f.index(i), at+i*f.elem()
	switch isNumber := f.Type != ""; {
	case isNumber && !slices.Contains(goKinds[f.Type], r.Kind()):
		return fmt.Errorf("%s is a %v, expected %s", name, r.Type(), f.Type)
	case isNumber:
		return visit(Number{name, at, f}, r)
	case r.Kind() == reflect.Complex64 || r.Kind() == reflect.Complex128:
		return walkComplex(name+".", at, f, r, visit)
	case r.Kind() != reflect.Struct:
		return fmt.Errorf("%s is a %v, expected a struct", name, r.Type())
	}
	return walk(name+".", at, f.Fields, r, visit)
}

// goKinds are the Go types that hold the same numbers.
var goKinds = map[Type][]reflect.Kind{
	U8: {reflect.Uint8, reflect.Bool}, U16: {reflect.Uint16}, U32: {reflect.Uint32}, U64: {reflect.Uint64},
	I8: {reflect.Int8}, I16: {reflect.Int16}, I32: {reflect.Int32}, I64: {reflect.Int64},
	F32: {reflect.Float32}, F64: {reflect.Float64},
}

// Parts of complex numbers, as a state has them.
type (
	parts32 struct{ Re, Im float32 }
	parts64 struct{ Re, Im float64 }
)

// walkComplex visits the two numbers of a complex number.
func walkComplex(prefix string, at int64, f *Field, r reflect.Value, visit func(Number, reflect.Value) error) error {
	c := r.Complex()
	parts := reflect.ValueOf(&parts64{real(c), imag(c)}).Elem()
	if r.Kind() == reflect.Complex64 {
		parts = reflect.ValueOf(&parts32{float32(real(c)), float32(imag(c))}).Elem()
	}
	if err := walk(prefix, at, f.Fields, parts, visit); err != nil || !r.CanSet() {
		return err
	}
	r.SetComplex(complex(parts.Field(0).Float(), parts.Field(1).Float()))
	return nil
}
