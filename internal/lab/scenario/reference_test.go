package scenario

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/sim"
)

// current compares a file with the text made from the types. The command go
// test -rewrite writes the file.
func current(t *testing.T, file, want string) {
	t.Helper()
	if flag.Lookup("rewrite").Value.String() == "true" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "%s is not current: run go test ./internal/lab/scenario -rewrite", file)
}

func TestSchemaIsCurrent(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	current(t, "../../../docs/scenario.schema.json", string(text))
}

// The reference has no table without a field. A type with a form of its own has
// a description of that form.
func TestReferenceHasNoEmptyTable(t *testing.T) {
	require.NotRegexp(t, `\| --- \|\n\n`, reference())
}

// The schema is consistent: every reference has its definition, every
// definition is used, every field has a description.
func TestSchemaIsWhole(t *testing.T) {
	text, err := Schema()
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(text, &schema))
	require.Equal(t, schemaDialect, schema["$schema"])
	used := make(map[string]bool)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), x)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				used[strings.TrimPrefix(ref, "#/$defs/")] = true
			}
			if properties, ok := v["properties"].(map[string]any); ok {
				for name, p := range properties {
					require.NotEmpty(t, p.(map[string]any)["description"], "%s.%s", path, name)
				}
			}
			for key, x := range v {
				walk(path+"."+key, x)
			}
		}
	}
	walk("", schema)
	defs := schema["$defs"].(map[string]any)
	require.Equal(t, slices.Sorted(maps.Keys(defs)), slices.Sorted(maps.Keys(used)))
}

// docs/scenario-fields.md is up to date with the types.
func TestReferenceIsCurrent(t *testing.T) {
	current(t, "../../../docs/scenario-fields.md", "<!-- go test ./internal/lab/scenario -rewrite writes this page -->\n# Fields of a scenario\n\n"+
		"Made from the types; [scenarios.md](scenarios.md) explains them. Fields with * must be given.\n"+reference())
}

// reference writes a table for each struct, in the order in which it meets
// them.
func reference() string {
	var out strings.Builder
	seen := map[reflect.Type]bool{}
	queue := []reflect.Type{reflect.TypeFor[Spec]()}
	for len(queue) > 0 {
		typ := queue[0]
		queue = queue[1:]
		if seen[typ] {
			continue
		}
		seen[typ] = true
		fields := strictyaml.FieldsOf(typ)
		fmt.Fprintf(&out, "\n## %s\n\n", title(typ))
		if fields.OneOf {
			fmt.Fprintf(&out, "%s Exactly one of:\n\n", fields.Help)
		}
		out.WriteString("| field | value | meaning |\n| --- | --- | --- |\n")
		for _, f := range fields.List {
			value, inner := form(f.Type)
			if inner != nil {
				queue = append(queue, inner)
			}
			name := "`" + f.Name + "`"
			if f.Required {
				name += " *"
			}
			if f.Beside {
				name += ", beside one of them"
			}
			fmt.Fprintf(&out, "| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Help, "|", "\\|"))
		}
	}
	fmt.Fprintf(&out, "\n## Names\n\n| choice | names |\n| --- | --- |\n")
	for _, n := range []strictyaml.Choice{
		EventName(""), EntryOption(""), PTOption(""), AckName(""), AtomicName(""), TypeName(""), StatName(""),
	} {
		typ := reflect.TypeOf(n)
		fmt.Fprintf(&out, "| %s | %s |\n", words(typ), strings.Join(n.Choices(), ", "))
	}
	fmt.Fprintf(&out, "\n## Variables\n\n| name | meaning |\n| --- | --- |\n")
	for _, v := range variables {
		fmt.Fprintf(&out, "| `%s` | %s |\n", v.name, v.help)
	}
	return out.String()
}

func title(typ reflect.Type) string {
	if typ == reflect.TypeFor[Spec]() {
		return "Scenario"
	}
	return strings.ToUpper(words(typ)[:1]) + words(typ)[1:]
}

func words(typ reflect.Type) string {
	name := strings.TrimSuffix(strings.ReplaceAll(manifest.FieldName(typ.Name()), "_", " "), " name")
	return strings.NewReplacer("state out", "state to show", "memory out", "memory to show", "pt option", "portal table option").Replace(name)
}

// form describes a value of a type in words, and returns the struct to describe
// next.
func form(typ reflect.Type) (string, reflect.Type) {
	special := map[reflect.Type]string{
		reflect.TypeFor[Expr](): "number", reflect.TypeFor[Float](): "number with a fraction", reflect.TypeFor[sim.Time](): "time",
		reflect.TypeFor[Hex](): "digits", reflect.TypeFor[RankSet](): "ranks", reflect.TypeFor[Settings](): "values by path", reflect.TypeFor[Parameters](): "values by name",
		reflect.TypeFor[EventSet](): "`all` or list of event", reflect.TypeFor[Content](): "[bytes](scenarios.md#bytes)",
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if words, ok := special[typ]; ok {
		if typ == reflect.TypeFor[Content]() {
			return words, reflect.TypeFor[Field]()
		}
		return words, nil
	}
	if n, ok := reflect.Zero(typ).Interface().(strictyaml.Choice); ok {
		if len(n.Choices()) > 4 {
			return words(typ), nil
		}
		return strings.Join(n.Choices(), ", "), nil
	}
	switch {
	case typ.Kind() == reflect.Slice:
		words, inner := form(typ.Elem())
		return "list of " + words, inner
	case typ.Kind() == reflect.Struct && !typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		anchor := strings.ReplaceAll(strings.ToLower(title(typ)), " ", "-")
		return "[" + words(typ) + "](#" + anchor + ")", typ
	case typ.Kind() == reflect.String:
		return "text", nil
	}
	return "whole number", nil
}
