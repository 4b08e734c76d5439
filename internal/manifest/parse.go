package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
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
		p.object("", reflect.ValueOf(&form{content: (*content)(m)}).Elem())
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

// object reads an object into a struct, and notes where its fields begin.
func (p *reader) object(field string, into reflect.Value) {
	if !p.open(field, '{') {
		return
	}
	start := p.from
	if _, known := p.at[field]; !known {
		p.at[field] = start
	}
	all := fieldsOf(into.Type())
	var seen []string
	for p.err == nil {
		t := p.peek(field)
		name, isName := t.(string)
		if !isName {
			break
		}
		at := join(field, name)
		p.next = nil
		i := slices.IndexFunc(all, func(f fieldOf) bool { return f.name == name })
		switch {
		case i < 0:
			var names []string
			for _, f := range all {
				names = append(names, f.name)
			}
			p.fail(field, "unknown field %q, expected one of %s", clip(name), strings.Join(names, ", "))
		case slices.Contains(seen, name):
			p.fail(at, "given twice")
		default:
			seen = append(seen, name)
			p.peek(at)
			p.at[at] = p.from
			p.value(at, into.FieldByIndex(all[i].index))
		}
	}
	p.take(field)
	for _, f := range all {
		if f.required && !slices.Contains(seen, f.name) && p.err == nil {
			p.from = start
			p.fail(join(field, f.name), "is missing")
		}
	}
}

// fieldOf is a field of a struct that a manifest has.
type fieldOf struct {
	name     string
	required bool
	index    []int
}

// fieldsOf lists the fields of a struct by name, and those of an embedded one.
func fieldsOf(t reflect.Type) (list []fieldOf) {
	for _, f := range reflect.VisibleFields(t) {
		if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			list = append(list, fieldOf{name, options == "", f.Index})
		}
	}
	slices.SortFunc(list, func(a, b fieldOf) int { return strings.Compare(a.name, b.name) })
	return list
}

// list reads a list into a slice.
func (p *reader) list(field string, into reflect.Value) {
	if strings.Count(field, ".fields") > maxDepth {
		p.fail(field, "fields within more than %d others", maxDepth)
		return
	}
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
		into.Set(reflect.Append(into, reflect.Zero(into.Type().Elem())))
		p.value(at, into.Index(i))
	}
	p.take(field)
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

// value reads a value of the kind that into has: an object, a list, an
// expression, a string, or a whole number of at most 2^53, which all readers of
// JSON accept.
func (p *reader) value(field string, into reflect.Value) {
	e, isExpr := into.Addr().Interface().(*Expr)
	switch kind := into.Kind(); {
	case kind == reflect.Pointer:
		into.Set(reflect.New(into.Type().Elem()))
		p.object(field, into.Elem())
	case kind == reflect.Slice:
		p.list(field, into)
	case kind == reflect.Struct && !isExpr:
		p.object(field, into)
	case kind == reflect.Int64:
		p.whole(field, into)
	default:
		t := p.take(field)
		s, is := t.(string)
		switch {
		case p.err != nil:
		case !is:
			p.fail(field, "%s, expected a string", kindOf(t))
		case !isExpr:
			into.SetString(s)
		default:
			var err error
			if *e, err = ParseExpr(s); err != nil {
				p.fail(field, "%v", err)
			}
		}
	}
}

func (p *reader) whole(field string, into reflect.Value) {
	t := p.take(field)
	n, is := t.(json.Number)
	if !is {
		if p.err == nil {
			p.fail(field, "%s, expected a whole number", kindOf(t))
		}
		return
	}
	v, err := strconv.ParseInt(n.String(), 10, 64)
	switch {
	case err != nil || v < 0 || v > 1<<53:
		p.fail(field, "%s, expected a whole number from 0 to 2^53", clip(n.String()))
	case field == "manifest" && v != Format:
		p.fail(field, "version %d of the manifest's form, this spinsim reads version %d", v, Format)
	}
	into.SetInt(v)
}
