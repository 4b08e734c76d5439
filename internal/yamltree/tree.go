// Package yamltree reads YAML texts that a user wrote, strictly: into nodes without aliases, which are then compared with the types that
// they are to become. Everything that is wrong is said at once, with file, line and path ([Strict]).
//
// An alias can make a text of a few bytes stand for more values than any memory holds, or, within its own anchor, for values
// without end. Here every alias is replaced by what it stands for, within bounds.
package yamltree

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a text.
const (
	MaxValues = 1 << 17 // keys and values, once aliases are replaced
	MaxDepth  = 64      // values within each other
)

// Error is something wrong with a text.
type Error struct {
	Line int // 0: unknown
	Err  error
}

// Error is what is wrong, with the line if it is known.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// ErrEmpty says that a text holds no value.
var ErrEmpty = errors.New("the text is empty")

// Parse reads a text of one document and returns its value. Errors are of type *Error.
func Parse(text []byte) (*yaml.Node, error) {
	reader := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := reader.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{Err: ErrEmpty}
		}
		return nil, syntax(err)
	}
	if err := reader.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, syntax(err)
		}
		return nil, &Error{more.Line, errors.New("a second document, expected one in a file")}
	}
	if len(doc.Content) != 1 {
		return nil, &Error{Err: ErrEmpty}
	}
	e := expansion{within: make(map[*yaml.Node]bool)}
	return e.value(doc.Content[0], 0)
}

// syntax is an error of the YAML reader, whose text begins with "yaml: line N: " if it knows the line.
func syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if number, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok {
		if line, err := strconv.Atoi(number); err == nil {
			return &Error{line, errors.New("YAML: " + rest)}
		}
	}
	return &Error{Err: errors.New("YAML: " + text)}
}

// expansion replaces aliases.
type expansion struct {
	values int
	within map[*yaml.Node]bool // anchors whose value is being copied
}

// value copies a node. Lines are those of the anchor.
func (e *expansion) value(n *yaml.Node, depth int) (*yaml.Node, error) {
	e.values++
	switch {
	case e.values > MaxValues:
		return nil, &Error{n.Line, fmt.Errorf("more than %d values, aliases replaced by what they stand for", MaxValues)}
	case depth > MaxDepth:
		return nil, &Error{n.Line, fmt.Errorf("more than %d values within each other", MaxDepth)}
	case n.Kind == yaml.AliasNode && e.within[n.Alias]:
		return nil, &Error{n.Line, fmt.Errorf("*%s stands within its own value &%s, which would have no end", n.Value, n.Value)}
	case n.Kind == yaml.AliasNode:
		return e.value(n.Alias, depth+1)
	}
	own := *n
	own.Anchor, own.Content = "", nil
	if n.Anchor != "" {
		e.within[n] = true
		defer delete(e.within, n)
	}
	for _, c := range n.Content {
		v, err := e.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		own.Content = append(own.Content, v)
	}
	return &own, nil
}

// CheckWhole returns an error for the first number of n that is not whole, or that begins with a 0 as octal numbers do, where
// into, the value that n is to be decoded into, has a whole number: the YAML library would cut the fraction off, and read 010 as 8.
// Fields and what they are called are those of the library; what a type reads by itself is left to it.
func CheckWhole(n *yaml.Node, into any) error { return checkWhole(n, reflect.TypeOf(into), "") }

func checkWhole(n *yaml.Node, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch reflect.New(t).Interface().(type) {
	case yaml.Unmarshaler, encoding.TextUnmarshaler:
		return nil
	}
	switch {
	case n.Kind == yaml.ScalarNode && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr:
		digits := strings.TrimLeft(n.Value, "+-")
		octal := len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if octal || n.ShortTag() == "!!float" && (err != nil || f != math.Trunc(f)) {
			return &Error{n.Line, fmt.Errorf("%s: %q, expected a whole number", path, n.Value)}
		}
	case n.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for i, c := range n.Content {
			if err := checkWhole(c, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case n.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if field := fieldType(t, key); field != nil {
				if err := checkWhole(n.Content[i+1], field, strings.TrimPrefix(path+"."+key, ".")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fieldType is the type of what stands under a key, nil if nothing may.
func fieldType(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, options, _ := strings.Cut(f.Tag.Get("yaml"), ","); {
		case options == "inline":
			if inner := fieldType(f.Type, key); inner != nil {
				return inner
			}
		case name == key:
			return f.Type
		}
	}
	return nil
}
