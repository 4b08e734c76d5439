package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// slugs names headings as GitHub does, so that a link that works there works here.
type slugs struct{ taken map[string]bool }

// Generate makes the name of a heading: its letters and digits in lower case
// with - for spaces, and a number if it is taken.
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	var out strings.Builder
	for _, r := range strings.ToLower(string(value)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '_', r == '-':
			out.WriteRune(r)
		case r == ' ':
			out.WriteByte('-')
		}
	}
	name := out.String()
	for i := 1; s.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", out.String(), i)
	}
	s.taken[name] = true
	return []byte(name)
}

// Put notes a name that a document chooses itself.
func (s *slugs) Put(value []byte) { s.taken[string(value)] = true }
