// Package manifest describes a handler library: its handlers, the layout of its
// state and its needs on a device (docs/abi.md, Manifest).
//
// A manifest is JSON in a custom section of the module, named [Section]. The
// builder (spinsim handler build) writes it from the source of the handlers. Package
// hpu reads it when it loads a module. Programs that install handlers or show
// their state find the fields there, by name. So no layout is written twice. A
// module without a manifest is legal, but its users must know its state.
//
//	section.go   the custom section of a module
//	parse.go     JSON, read strictly: the error names offset and field
//	encode.go    the one form in which a manifest is written
//	check.go     the rules for a manifest from any source
//	needs.go     needs of handlers, and of an entry with some of them
//	expr.go      numbers that depend on the device
//	state.go     numbers in the bytes of a state, by name
//	convert.go   Go structs and maps as states
package manifest

import (
	"fmt"
	"slices"
	"strings"
)

// Format is the version of the manifest's own form. Other versions are refused.
const Format = 1

// Limits of a manifest. Larger ones are refused before they are used.
const (
	MaxBytes = 1 << 16 // of the JSON
	maxDepth = 8       // fields within fields
	maxDims  = 4       // dimensions of an array
	maxName  = 64      // bytes of a name
	maxText  = 1000    // bytes of a description
	maxState = 1 << 31 // bytes of a state
)

// Manifest describes a handler library. The zero value describes nothing.
type Manifest struct {
	Name        string    `json:"name,omitempty"`        // of the library; "": the name of its module
	Version     string    `json:"version,omitempty"`     // of the library, by its author; "": none
	Description string    `json:"description,omitempty"` // one line
	Handlers    []Handler `json:"handlers,omitempty"`
	States      []*State  `json:"states,omitempty"` // layouts, of different names
	Needs       Needs     `json:"needs,omitzero"`   // of all handlers
}

// Handler is an exported handler.
type Handler struct {
	Export string `json:"export"`          // its name in the module
	Kind   Kind   `json:"kind,omitempty"`  // "": unknown, so it may be used as any
	State  string `json:"state,omitempty"` // name of the layout of its state; "": not described
	// Set is the name of the handlers that belong to one entry, in a module with
	// handlers for several; "": none.
	Set         string `json:"set,omitempty"`
	Description string `json:"description,omitempty"`
	Needs       Needs  `json:"needs,omitzero"` // of this handler, added to the library's
}

// Kind decides when a handler runs.
type Kind string

// The kinds of handlers.
const (
	Header     Kind = "header"     // when the header of a message has arrived
	Payload    Kind = "payload"    // for every packet
	Completion Kind = "completion" // when the whole message has been handled
)

// Kinds lists the kinds in the order in which handlers of a message run.
func Kinds() []Kind { return []Kind{Header, Payload, Completion} }

// State is the layout of the HPU memory of a match entry.
type State struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Size        int64   `json:"size"` // bytes
	Fields      []Field `json:"fields,omitempty"`
}

// Field is a number, an array of numbers, a struct, or an array of structs.
// Numbers are little-endian. The elements of an array follow each other without
// gaps; the last index varies fastest.
type Field struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"` // in the state, or in the struct that contains the field, bytes

	Type    Type    `json:"type,omitempty"`   // of a number; "" of a struct
	Dims    []int64 `json:"array,omitempty"`  // of an array, each at least 1; nil: not an array
	Unit    string  `json:"unit,omitempty"`   // of a number; "": none or unknown
	Default Expr    `json:"default,omitzero"` // of a number, or of each in an array; not set: 0
	Min     Expr    `json:"min,omitzero"`     // smallest value of a number; not set: the type's
	Max     Expr    `json:"max,omitzero"`     // largest value of a number; not set: the type's

	Size   int64   `json:"size,omitempty"`   // of a struct, bytes
	Fields []Field `json:"fields,omitempty"` // of a struct

	Description string `json:"description,omitempty"`
}

// Type is a type of numbers.
type Type string

// The types of numbers.
const (
	U8  Type = "u8"
	U16 Type = "u16"
	U32 Type = "u32"
	U64 Type = "u64"
	I8  Type = "i8"
	I16 Type = "i16"
	I32 Type = "i32"
	I64 Type = "i64"
	F32 Type = "f32" // IEEE 754
	F64 Type = "f64" // IEEE 754
)

// Types lists the types of numbers.
func Types() []Type { return []Type{U8, U16, U32, U64, I8, I16, I32, I64, F32, F64} }

// Size returns the size of a number of the type in bytes.
func (t Type) Size() int64 {
	switch t {
	case U8, I8:
		return 1
	case U16, I16:
		return 2
	case U32, I32, F32:
		return 4
	}
	return 8
}

// Float reports whether numbers of the type have fractions.
func (t Type) Float() bool { return t == F32 || t == F64 }

// Signed reports whether numbers of the type may be negative.
func (t Type) Signed() bool { return t.Float() || strings.HasPrefix(string(t), "i") }

// Handler returns the handler with that export, nil if the manifest has none.
func (m *Manifest) Handler(export string) *Handler {
	for i := range m.Handlers {
		if m.Handlers[i].Export == export {
			return &m.Handlers[i]
		}
	}
	return nil
}

// State returns the layout with that name, nil if there is none.
func (m *Manifest) State(name string) *State {
	for _, s := range m.States {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// OfSet returns the exports of a set by their kinds. Its error lists the sets.
func (m *Manifest) OfSet(name string) (exports [3]string, err error) {
	var sets []string
	for i := range m.Handlers {
		h := &m.Handlers[i]
		if h.Set != "" && !slices.Contains(sets, h.Set) {
			sets = append(sets, h.Set)
		}
		if h.Set == name && name != "" {
			exports[slices.Index(Kinds(), h.Kind)] = h.Export
		}
	}
	switch {
	case exports != [3]string{}:
		return exports, nil
	case sets == nil:
		return exports, fmt.Errorf("no set of handlers %s: the module has none", clip(name))
	}
	return exports, fmt.Errorf("no set of handlers %s, expected one of %s", clip(name), strings.Join(sets, ", "))
}

// OfKind returns the exports of a kind, in the order of the manifest.
func (m *Manifest) OfKind(k Kind) (exports []string) {
	for i := range m.Handlers {
		if m.Handlers[i].Kind == k {
			exports = append(exports, m.Handlers[i].Export)
		}
	}
	return exports
}
