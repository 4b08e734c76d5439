// Package strictyaml reads YAML from users strictly into typed Go values. It
// reports all errors at once, each with file, line and path. It reads profiles,
// scenarios and proxies.
//
// [Parse] turns a text into a tree and replaces every alias by its value,
// within bounds. Without bounds a text of a few bytes could stand for more
// values than any memory holds or, with an alias within its own anchor, for
// infinitely many. A [Reader] turns trees into values, and takes overrides of
// single fields.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a text.
const (
	MaxValues = 1 << 17 // keys and values, after replacement of aliases
	MaxDepth  = 64      // nested values
)

// ErrEmpty means that a text holds no value.
var ErrEmpty = errors.New("the text is empty")

// Parse parses a text of one document and returns its value. The file's name is
// for messages. Errors have type *Error.
func Parse(file string, text []byte) (*yaml.Node, error) {
	n, err := parse(text)
	if wrong, ok := errors.AsType[*Error](err); ok {
		wrong.File = file
	}
	return n, err
}

func parse(text []byte) (*yaml.Node, error) {
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
		return nil, &Error{Line: more.Line, Err: errors.New("a second document, expected one in a file")}
	}
	if len(doc.Content) != 1 {
		return nil, &Error{Err: ErrEmpty}
	}
	e := expansion{within: make(map[*yaml.Node]bool)}
	return e.value(doc.Content[0], 0)
}

// syntax converts an error of the YAML reader. Its text begins with "yaml: line
// N: " if the line is known.
func syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if number, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok {
		if line, err := strconv.Atoi(number); err == nil {
			return &Error{Line: line, Err: errors.New("YAML: " + rest)}
		}
	}
	return &Error{Err: errors.New("YAML: " + text)}
}

// expansion replaces aliases.
type expansion struct {
	values int
	within map[*yaml.Node]bool // anchors whose value is being copied
}

// value copies a node. Lines come from the anchor.
func (e *expansion) value(n *yaml.Node, depth int) (*yaml.Node, error) {
	e.values++
	switch {
	case e.values > MaxValues:
		return nil, &Error{Line: n.Line, Err: fmt.Errorf("more than %d values, aliases replaced by what they stand for", MaxValues)}
	case depth > MaxDepth:
		return nil, &Error{Line: n.Line, Err: fmt.Errorf("more than %d values within each other", MaxDepth)}
	case n.Kind == yaml.AliasNode && e.within[n.Alias]:
		return nil, &Error{Line: n.Line, Err: fmt.Errorf("*%s stands within its own value &%s, which would have no end", n.Value, n.Value)}
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

// Child returns the value of a key of a mapping. It is nil if there is no such
// key, or n is not a mapping.
func Child(n *yaml.Node, key string) *yaml.Node {
	if i := index(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// Remove removes a key from a mapping and returns its value. It is nil if there
// was no such key, or n is not a mapping.
func Remove(n *yaml.Node, key string) *yaml.Node {
	i := index(n, key)
	if i < 0 {
		return nil
	}
	v := n.Content[i+1]
	n.Content = append(n.Content[:i], n.Content[i+2:]...)
	return v
}

// index returns the index of a key in the content of a mapping, or -1.
func index(n *yaml.Node, key string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}
