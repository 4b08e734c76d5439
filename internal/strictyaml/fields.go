package strictyaml

import (
	"reflect"
	"strings"
	"sync"
)

// OneOf marks a struct in which a text gives exactly one field, not counting
// fields tagged `beside:"true"`. Its help tag describes the struct.
type OneOf struct{}

// Field is a field of a struct, as its tags describe it.
type Field struct {
	Name     string // `yaml:"name"`
	Help     string // `help:"What it is."`
	Required bool   // `required:"true"`: it must be given
	Beside   bool   // `beside:"true"`: it does not count in a struct marked OneOf
	Optional bool   // `yaml:"name,omitempty"`: its zero value is as good as none
	Bytes    bool   // `unit:"B"`: a whole number of bytes, which a text may give with a unit, "64KiB"
	Index    []int  // for reflect.Value.FieldByIndex
	Type     reflect.Type
}

// Fields are the fields of a struct in their order, with the fields of inlined
// structs among them.
type Fields struct {
	List  []Field
	OneOf bool
	Help  string // of the struct
}

// lists caches the fields of types.
var lists sync.Map

// FieldsOf lists the fields of a struct that have a name in YAML. The list is
// shared: nobody may change it.
func FieldsOf(t reflect.Type) Fields {
	all, ok := lists.Load(t)
	if !ok {
		all, _ = lists.LoadOrStore(t, fieldsOf(t))
	}
	return all.(Fields)
}

func fieldsOf(t reflect.Type) (all Fields) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Type == reflect.TypeFor[OneOf]():
			all.OneOf, all.Help = true, f.Tag.Get("help")
		case option == "inline":
			for _, inner := range FieldsOf(f.Type).List {
				inner.Index = append([]int{i}, inner.Index...) // this changes a copy only
				all.List = append(all.List, inner)
			}
		case name != "" && name != "-":
			all.List = append(all.List, Field{
				Name: name, Help: f.Tag.Get("help"), Index: []int{i}, Type: f.Type, Optional: strings.Contains(option, "omitempty"),
				Required: f.Tag.Get("required") != "", Beside: f.Tag.Get("beside") != "", Bytes: f.Tag.Get("unit") == "B",
			})
		}
	}
	return all
}

// Find returns the field with a name, or nil.
func (l *Fields) Find(name string) *Field {
	for i := range l.List {
		if l.List[i].Name == name {
			return &l.List[i]
		}
	}
	return nil
}

// Names lists the fields' names.
func (l *Fields) Names() []string {
	names := make([]string, len(l.List))
	for i := range l.List {
		names[i] = l.List[i].Name
	}
	return names
}
