package provenance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/seal"
)

// Read reads the provenance from the document of a result.
func Read(document []byte) (*Record, error) {
	var x struct {
		Provenance *Record `json:"provenance"`
	}
	err := json.Unmarshal(document, &x)
	switch trimmed := bytes.TrimSpace(document); {
	case err == nil && x.Provenance != nil && x.Provenance.Command != "":
	case err == nil || len(trimmed) > 0 && trimmed[0] == '[':
		return nil, errors.New(`no "provenance": expected an object that spinsim wrote with --format json`)
	default:
		return nil, notJSON(err)
	}
	for i := range x.Provenance.Profiles {
		if err := x.Provenance.Profiles[i].Check(); err != nil {
			return nil, err
		}
	}
	return x.Provenance, nil
}

// notJSON names the place of a syntax error in a document.
func notJSON(err error) error {
	const expected = "expected an object that spinsim wrote with --format json"
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: not JSON, %s", syntax.Offset, expected)
	case errors.As(err, &value) && value.Field != "":
		return fmt.Errorf("%s: a JSON %s, %s", value.Field, value.Value, expected)
	case errors.As(err, &value):
		return fmt.Errorf("a JSON %s, %s", value.Value, expected)
	}
	return fmt.Errorf("%s: %w", expected, err)
}

// Difference is a value that differs between two documents.
type Difference struct {
	Where string // for example: row 3 (bcast, spin-int, p4): latency_ns
	Was   string // recorded; "": there was none
	Is    string // now; "": there is none
}

// String returns both values with their place.
func (d Difference) String() string {
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s: is %s, was not there", d.Where, d.Is)
	case d.Is == "":
		return fmt.Sprintf("%s: was %s, is not there", d.Where, d.Was)
	}
	return fmt.Sprintf("%s: is %s, was %s", d.Where, d.Is, d.Was)
}

// Differences compares two JSON documents value by value. It ignores layout,
// but compares numbers as they are written. It does not list a seal that
// differs only because other values do, and no "answer" of the second document
// where the first has none.
func Differences(was, is []byte) ([]Difference, error) {
	a, err := decode(was)
	if err != nil {
		return nil, err
	}
	b, err := decode(is)
	if err != nil {
		return nil, err
	}
	var d differ
	d.value("", a, b)
	// before documents had answers
	before := func(one Difference) bool { return one.Where == "answer" && one.Was == "" }
	ofSeal := func(one Difference) bool { return before(one) || slices.Contains(seal.Fields, one.Where) }
	values := slices.DeleteFunc(slices.Clone(d.list), ofSeal)
	if len(values) > 0 {
		return values, nil
	}
	if slices.ContainsFunc(d.list, before) {
		return slices.DeleteFunc(d.list, func(one Difference) bool { return before(one) || one.Was != "" }), nil
	}
	return d.list, nil
}

// object is a JSON object with its keys in order.
type object struct {
	keys   []string
	values map[string]any
}

func decode(document []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the JSON document")
	}
	return v, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := &object{values: make(map[string]any)}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string) // a key is nothing else
			o.keys = append(o.keys, name)
			if o.values[name], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return o, err
	}
	return token, nil
}

type differ struct{ list []Difference }

func (d *differ) value(where string, was, is any) {
	switch a := was.(type) {
	case *object:
		if b, ok := is.(*object); ok {
			d.object(where, a, b)
			return
		}
	case []any:
		if b, ok := is.([]any); ok {
			d.array(where, a, b)
			return
		}
	default:
		if was == is {
			return
		}
	}
	d.list = append(d.list, Difference{strings.TrimSuffix(where, ": "), text(was), text(is)})
}

func (d *differ) object(where string, was, is *object) {
	keys := slices.Clone(was.keys)
	for _, key := range is.keys {
		if _, known := was.values[key]; !known {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		a, before := was.values[key]
		b, now := is.values[key]
		at := where + key
		switch {
		case !before:
			d.list = append(d.list, Difference{at, "", text(b)})
		case !now:
			d.list = append(d.list, Difference{at, text(a), ""})
		default:
			_, isObject := a.(*object)
			if isObject {
				at += "."
			}
			d.value(at, a, b)
		}
	}
}

// array compares elements by their index. Objects are table rows, named by
// their first values.
func (d *differ) array(where string, was, is []any) {
	for i := range max(len(was), len(is)) {
		at := fmt.Sprintf("%s[%d]", where, i)
		var row *object
		if i < len(was) {
			row, _ = was[i].(*object)
		} else {
			row, _ = is[i].(*object)
		}
		if row != nil {
			table := strings.TrimSuffix(where, "rows")
			if table != "" {
				table += " "
			}
			at = fmt.Sprintf("%srow %d%s", table, i+1, row.name())
		}
		switch {
		case i >= len(was):
			d.list = append(d.list, Difference{at, "", text(is[i])})
		case i >= len(is):
			d.list = append(d.list, Difference{at, text(was[i]), ""})
		default:
			if row != nil {
				at += ": "
			}
			d.value(at, was[i], is[i])
		}
	}
}

// naming is how many values name a row.
const naming = 5

// name returns the first values of a row.
func (o *object) name() string {
	var parts []string
	for _, key := range o.keys[:min(naming, len(o.keys))] {
		switch v := o.values[key].(type) {
		case string:
			parts = append(parts, v)
		case json.Number:
			parts = append(parts, v.String())
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// longest is how many characters of a value are shown.
const longest = 60

func text(v any) string {
	var s string
	switch v := v.(type) {
	case nil:
		s = "null"
	case *object:
		s = fmt.Sprintf("an object of %d fields", len(v.keys))
	case []any:
		s = fmt.Sprintf("a list of %d", len(v))
	case string:
		s = fmt.Sprintf("%q", v)
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}
