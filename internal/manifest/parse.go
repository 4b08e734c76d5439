package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is an error in a manifest.
type Error struct {
	Offset int    // in the JSON, or in the module if it contains the manifest; -1: no single place
	Field  string // such as states[0].fields[2].type; "": none
	Cause  string
}

func (e *Error) Error() string {
	s := "manifest: "
	if e.Offset >= 0 {
		s += fmt.Sprintf("offset 0x%x: ", e.Offset)
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Cause
}

// Parse reads a manifest in the form of Encode, with any order and any blanks.
// It returns an *Error for the first of these: an unknown, missing or repeated
// field, a value of the wrong kind or out of range, or anything after the end.
// It is safe for hostile input.
func Parse(text []byte) (*Manifest, error) {
	p := &reader{text: text, at: make(map[string]int)}
	m := &Manifest{}
	switch {
	case len(text) > MaxBytes:
		p.fail("", "%d bytes, expected at most %d", len(text), MaxBytes)
	case !utf8.Valid(text):
		p.fail("", "the text is not UTF-8")
	default:
		p.json = json.NewDecoder(bytes.NewReader(text))
		p.json.UseNumber()
		p.manifest(m)
		if p.err == nil {
			if _, err := p.json.Token(); !errors.Is(err, io.EOF) {
				p.fail("", "text behind the end of the manifest")
			}
		}
	}
	if p.err == nil {
		p.err = m.check()
		if p.err != nil {
			p.err.Offset = p.place(p.err.Field)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// reader reads JSON token by token. After the first error all values are zero.
type reader struct {
	text []byte
	json *json.Decoder
	next json.Token     // peeked, but not taken; nil: none
	from int            // where the last token begins
	at   map[string]int // beginnings of fields
	err  *Error
}

func (p *reader) fail(field, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Offset: p.from, Field: field, Cause: fmt.Sprintf(format, args...)}
	}
}

// place returns the beginning of a field. If the field is missing, it is the
// beginning of the innermost existing field that would contain it.
func (p *reader) place(field string) int {
	for {
		if at, known := p.at[field]; known || field == "" {
			return at
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// peek returns the next token without taking it, nil after an error.
func (p *reader) peek(field string) json.Token {
	if p.err != nil || p.next != nil {
		return p.next
	}
	behind := int(p.json.InputOffset())
	p.from = behind
	for p.from < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[p.from]) >= 0 {
		p.from++
	}
	token, err := p.json.Token()
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		p.from = max(int(syntax.Offset)-1, behind) // the decoder counts from one or from zero
		p.fail(field, "%s", syntax.Error())
		return nil
	case err != nil:
		p.fail(field, "the text ends too early")
		return nil
	case token == nil:
		p.fail(field, "null, expected a value")
		return nil
	}
	p.next = token
	return token
}

func (p *reader) take(field string) json.Token {
	t := p.peek(field)
	p.next = nil
	return t
}

// kindOf names the kind of a token for messages.
func kindOf(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		return map[json.Delim]string{'{': "an object", '[': "a list"}[t]
	case string:
		return "a string"
	case bool:
		return "a truth value"
	}
	return "a number"
}

// open takes the beginning of an object or a list.
func (p *reader) open(field string, delim json.Delim) bool {
	t := p.take(field)
	if t != delim && p.err == nil {
		p.fail(field, "%s, expected %s", kindOf(t), kindOf(delim))
	}
	return p.err == nil
}

// object reads an object. Each field has a function that reads it. The required
// fields must be present.
func (p *reader) object(field string, required []string, fields map[string]func(field string)) {
	if !p.open(field, '{') {
		return
	}
	start := p.from
	if _, known := p.at[field]; !known {
		p.at[field] = start
	}
	var seen []string
	for p.err == nil {
		t := p.peek(field)
		name, isName := t.(string)
		if !isName {
			break
		}
		at := join(field, name)
		p.next = nil
		read, known := fields[name]
		switch {
		case !known:
			p.fail(field, "unknown field %q, expected one of %s", clip(name), strings.Join(sorted(fields), ", "))
		case slices.Contains(seen, name):
			p.fail(at, "given twice")
		default:
			seen = append(seen, name)
			p.peek(at)
			p.at[at] = p.from
			read(at)
		}
	}
	p.take(field)
	for _, name := range required {
		if !slices.Contains(seen, name) && p.err == nil {
			p.from = start
			p.fail(join(field, name), "is missing")
		}
	}
}

// list reads a list; one reads an element.
func (p *reader) list(field string, one func(field string)) {
	if !p.open(field, '[') {
		return
	}
	for i := 0; p.err == nil; i++ {
		at := fmt.Sprintf("%s[%d]", field, i)
		t := p.peek(at)
		if t == json.Delim(']') {
			break
		}
		p.at[at] = p.from
		one(at)
	}
	p.take(field)
}

func sorted(fields map[string]func(string)) []string {
	var names []string
	for name := range fields { //lint:maporder sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// clip shortens a name from a hostile manifest.
func clip(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "") + "…"
	}
	return s
}

// text reads a string.
func text[T ~string](p *reader, into *T) func(string) {
	return func(field string) {
		t := p.take(field)
		s, is := t.(string)
		if !is && p.err == nil {
			p.fail(field, "%s, expected a string", kindOf(t))
		}
		*into = T(s)
	}
}

// texts reads a list of strings.
func texts[T ~string](p *reader, into *[]T) func(string) {
	return func(field string) {
		p.list(field, func(field string) {
			var s T
			text(p, &s)(field)
			*into = append(*into, s)
		})
	}
}

// whole reads a whole number of at most 2^53, which all readers of JSON accept.
func (p *reader) whole(into *int64) func(string) {
	return func(field string) {
		t := p.take(field)
		n, is := t.(json.Number)
		if !is {
			if p.err == nil {
				p.fail(field, "%s, expected a whole number", kindOf(t))
			}
			return
		}
		v, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil || v < 0 || v > 1<<53 {
			p.fail(field, "%s, expected a whole number from 0 to 2^53", clip(n.String()))
			return
		}
		*into = v
	}
}

// expr reads an expression in a string.
func (p *reader) expr(into *Expr) func(string) {
	return func(field string) {
		var s string
		text(p, &s)(field)
		if p.err != nil {
			return
		}
		e, err := ParseExpr(s)
		if err != nil {
			p.fail(field, "%v", err)
		}
		*into = e
	}
}

// manifest reads the whole.
func (p *reader) manifest(m *Manifest) {
	var format int64
	p.object("", []string{"manifest"}, map[string]func(string){
		"manifest": func(field string) {
			p.whole(&format)(field)
			if format != Format && p.err == nil {
				p.fail(field, "version %d of the manifest's form, this spinsim reads version %d", format, Format)
			}
		},
		"name":        text(p, &m.Name),
		"version":     text(p, &m.Version),
		"description": text(p, &m.Description),
		"handlers": func(field string) {
			p.list(field, func(field string) {
				var h Handler
				p.object(field, []string{"export"}, map[string]func(string){
					"export": text(p, &h.Export), "kind": text(p, &h.Kind), "state": text(p, &h.State), "description": text(p, &h.Description),
					"needs": func(field string) { p.needs(field, &h.Needs) },
				})
				m.Handlers = append(m.Handlers, h)
			})
		},
		"states": func(field string) {
			p.list(field, func(field string) {
				s := &State{}
				p.object(field, []string{"name", "size"}, map[string]func(string){
					"name": text(p, &s.Name), "description": text(p, &s.Description), "size": p.whole(&s.Size), "fields": p.fields(&s.Fields, 1),
				})
				m.States = append(m.States, s)
			})
		},
		"needs": func(field string) { p.needs(field, &m.Needs) },
	})
}

// fields reads the fields of a state or a struct.
func (p *reader) fields(into *[]Field, depth int) func(string) {
	return func(field string) {
		if depth > maxDepth {
			p.fail(field, "fields within more than %d others", maxDepth)
			return
		}
		p.list(field, func(field string) {
			var f Field
			p.object(field, []string{"name", "offset"}, map[string]func(string){
				"name": text(p, &f.Name), "description": text(p, &f.Description), "offset": p.whole(&f.Offset),
				"array": func(field string) {
					p.list(field, func(field string) {
						var n int64
						p.whole(&n)(field)
						f.Dims = append(f.Dims, n)
					})
				},
				"type": text(p, &f.Type), "unit": text(p, &f.Unit),
				"default": p.expr(&f.Default), "min": p.expr(&f.Min), "max": p.expr(&f.Max),
				"size": p.whole(&f.Size), "fields": p.fields(&f.Fields, depth+1),
			})
			*into = append(*into, f)
		})
	}
}

func (p *reader) needs(field string, n *Needs) {
	p.object(field, nil, map[string]func(string){
		"memory": p.expr(&n.Memory), "user_header": p.whole(&n.UserHeader), "spaces": texts(p, &n.Spaces), "host_memory": p.expr(&n.HostMemory),
		"scratchpad": p.expr(&n.Scratchpad), "message_memory": p.expr(&n.MessageMemory), "messages": p.expr(&n.Messages),
		"entry_options": texts(p, &n.EntryOptions), "pt_options": texts(p, &n.PTOptions), "packets": texts(p, &n.Packets), "pool": text(p, &n.Pool),
	})
}
