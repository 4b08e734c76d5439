package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/spinsim/spinsim/internal/fields"
)

// Load sets the struct that into points at from a text of the program itself,
// and then from overrides. Errors about overrides use the name called.
func Load(file string, text []byte, into any, called string, overrides []string) error {
	tree, err := Parse(file, text)
	if err != nil {
		return err
	}
	r := Reader{File: file}
	r.Read(tree, into)
	r.File = called
	for _, o := range overrides {
		r.Set(into, o)
	}
	return r.Errors.Join()
}

// Set sets a field of the struct that into points at from an override
// "a.b.c=value". Below a map a name selects an entry. The override replaces the
// field as a whole. An error is noted and leaves the struct as it was. Errors
// use the reader's File as name of the text and have no line.
func (r *Reader) Set(into any, override string) {
	path, text, ok := strings.Cut(override, "=")
	path = strings.TrimSpace(path)
	fail := func(path string, err error) { r.Errors = append(r.Errors, &Error{File: r.File, Path: path, Err: err}) }
	if !ok {
		fail("", errors.New("expected path=value, such as hpu.cores=8"))
		return
	}
	f, v, put, err := find(reflect.ValueOf(into).Elem(), path)
	if err != nil {
		fail(path, err)
		return
	}
	n, err := parseValue(text)
	if err != nil {
		fail(path, err)
		return
	}
	own := Reader{File: r.File, ByName: r.ByName, lineless: true}
	fresh := reflect.New(v.Type()).Elem()
	if f == nil { // entry of a map
		own.value(n, fresh, path)
	} else {
		own.field(f, n, fresh, path)
	}
	if own.Errors == nil {
		v.Set(fresh)
		put()
	}
	r.Errors = append(r.Errors, own.Errors...)
}

// find returns the field at a path, or nil for the entry of a map, and its
// place. Entries of maps are copies: put stores a change of the place if the
// path leads through maps.
func find(v reflect.Value, path string) (f *Field, at reflect.Value, put func(), err error) {
	put = func() {}
	for part := range strings.SplitSeq(path, ".") {
		_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
		if v.Kind() == reflect.Map && !text {
			m, entry, before := v, reflect.New(v.Type().Elem()).Elem(), put
			key := reflect.ValueOf(part).Convert(v.Type().Key())
			if old := m.MapIndex(key); old.IsValid() {
				entry.Set(old)
			}
			put = func() {
				all := reflect.MakeMap(m.Type())
				for k, x := range m.Seq2() {
					all.SetMapIndex(k, x)
				}
				all.SetMapIndex(key, entry)
				m.Set(all)
				before()
			}
			f, v = nil, entry
			continue
		}
		if text || v.Kind() != reflect.Struct {
			return nil, v, put, fmt.Errorf("%s is below a single value", part)
		}
		all := FieldsOf(v.Type())
		f = all.Find(part)
		switch {
		case path == "":
			return nil, v, put, fmt.Errorf("no field before =, expected one of %s", strings.Join(all.Names(), ", "))
		case f == nil:
			return nil, v, put, fmt.Errorf("no field %q, expected one of %s%s", part, strings.Join(all.Names(), ", "), fields.DidYouMean(part, all.Names()))
		}
		v = v.FieldByIndex(f.Index)
	}
	return f, v, put, nil
}

// parseValue reads the value of an override.
func parseValue(text string) (*yaml.Node, error) {
	v, err := Parse("", []byte(text))
	var wrong *Error
	switch {
	case errors.Is(err, ErrEmpty), err == nil && v.ShortTag() == "!!null":
		return nil, errors.New("no value, expected one behind =")
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%q: %w", text, wrong.Err)
	}
	return v, err
}
