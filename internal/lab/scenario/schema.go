package scenario

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

// schemaDialect is the version of JSON Schema.
const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Schema returns the JSON schema of scenario files, for editors that check and
// complete them. It comes from the types and the help texts of Spec.
func Schema() ([]byte, error) {
	w := &schemaWriter{defs: make(map[string]any)}
	root := w.structure(reflect.TypeFor[Spec]())
	root["$schema"] = schemaDialect
	root["title"] = "spinsim scenario"
	root["$defs"] = w.defs
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return out.Bytes(), err
}

type object = map[string]any

// schemaWriter collects the definitions that the schema refers to.
type schemaWriter struct{ defs map[string]any }

// expression is the schema of a number in YAML.
var expression = object{
	"type": []string{"integer", "string"}, "description": "A whole number such as 8, 0x10 or 4KiB, or + - * / % << min max and parentheses with " + strings.Join(variableNames(), ", ") + ".",
}

// aParameter stands for a value of any kind.
var aParameter = object{"type": "string", "pattern": "\\$[a-z]"}

func single(description string) object {
	return object{"type": []string{"string", "integer"}, "description": description}
}

// special returns the schema of types with a form of their own.
func (w *schemaWriter) special(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[Expr]():
		return expression
	case reflect.TypeFor[Float]():
		return object{"type": []string{"number", "string"}, "description": "A number, or arithmetic as for whole numbers."}
	case reflect.TypeFor[sim.Time]():
		return object{"type": []string{"string", "integer"}, "description": "A time such as 1.5us; units are ps, ns, us, ms, s."}
	case reflect.TypeFor[Hex]():
		return single("Hexadecimal digits; quote them, or YAML takes some for a number.")
	case reflect.TypeFor[RankSet]():
		one := single("A rank such as 3, a range such as 1..last, or all; bounds may be arithmetic.")
		return object{"anyOf": []any{one, object{"type": "array", "items": one}}}
	case reflect.TypeFor[Parameters]():
		return object{"type": "object", "additionalProperties": object{"type": []string{"string", "number", "boolean"}}}
	case reflect.TypeFor[Settings]():
		return object{"type": "object"}
	case reflect.TypeFor[Values]():
		return object{"type": "object", "additionalProperties": w.special(reflect.TypeFor[Float]())}
	case reflect.TypeFor[EventSet]():
		return object{"anyOf": []any{object{"const": "all"}, object{"type": "array", "items": w.of(reflect.TypeFor[EventName]())}}}
	case reflect.TypeFor[Content]():
		return object{"anyOf": []any{
			object{"enum": []string{"zero", "pattern"}},
			w.of(reflect.TypeFor[contentForm]()),
			object{"type": "array", "items": w.of(reflect.TypeFor[Field]())},
		}}
	}
	return nil
}

// of describes a type; structs and special types become definitions.
func (w *schemaWriter) of(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if x, ok := reflect.Zero(t).Interface().(strictyaml.Choice); ok {
		return object{"anyOf": []any{object{"enum": x.Choices()}, aParameter}}
	}
	if t.Kind() == reflect.Struct || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || w.special(t) != nil {
		name := strings.ToLower(t.Name()[:1]) + t.Name()[1:]
		if w.defs[name] == nil {
			w.defs[name] = object{} // a struct may refer to itself
			if s := w.special(t); s != nil {
				w.defs[name] = s
			} else {
				w.defs[name] = w.structure(t)
			}
		}
		return object{"$ref": "#/$defs/" + name}
	}
	switch t.Kind() {
	case reflect.Slice:
		return object{"type": "array", "items": w.of(t.Elem())}
	case reflect.Int, reflect.Uint64:
		return object{"anyOf": []any{object{"type": "integer"}, aParameter}}
	case reflect.String:
		return object{"type": "string"}
	}
	panic("scenario: no schema for a " + t.String())
}

// structure describes the fields of a struct.
func (w *schemaWriter) structure(t reflect.Type) object {
	fields := strictyaml.FieldsOf(t)
	properties := object{}
	var required, choice []string
	for _, f := range fields.List {
		p := w.of(f.Type)
		if f.Type.Kind() == reflect.String && p["type"] != nil {
			// in YAML a name may look like another type
			p["type"] = []string{"string", "number", "boolean"}
		}
		p["description"] = f.Help
		properties[f.Name] = p
		if f.Required {
			required = append(required, f.Name)
		}
		if !f.Beside {
			choice = append(choice, f.Name)
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if fields.Help != "" {
		out["description"] = fields.Help
	}
	if required != nil {
		out["required"] = required
	}
	if fields.OneOf {
		var alternatives []any
		for _, name := range choice {
			alternatives = append(alternatives, object{"required": []string{name}})
		}
		out["oneOf"] = alternatives
	}
	return out
}
