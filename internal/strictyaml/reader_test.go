package strictyaml

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// upper is a value that reads a text.
type upper struct{ text string }

func (u *upper) UnmarshalText(text []byte) error {
	if len(text) > 0 && text[0] >= 'a' {
		return fmt.Errorf("%q: expected a capital", text)
	}
	u.text = string(text)
	return nil
}

// pair is a value that the YAML library reads.
type pair [2]string

func (p *pair) UnmarshalYAML(unmarshal func(any) error) error {
	var list []string
	if unmarshal(&list) != nil || len(list) != 2 {
		return errors.New("expected two texts")
	}
	copy(p[:], list)
	return nil
}

// sum is a value with its own form.
type sum int

func (s *sum) ReadYAML(r *Reader, n *yaml.Node, path string) {
	r.Mapping(n, path, func(_, value *yaml.Node, at string) {
		var x int
		r.Value(value, &x, at)
		*s += sum(x)
	})
}

type side string

func (side) Choices() []string { return []string{"left", "right"} }

type table struct {
	A int `yaml:"a"`
	B int `yaml:"b"`
}

type choice struct {
	_     OneOf  `help:"Either."`
	Left  *int   `yaml:"left"`
	Right string `yaml:"right"`
	Note  string `yaml:"note" beside:"true"`
}

type inner struct {
	I   int     `yaml:"i"`
	I8  int8    `yaml:"i8"`
	U16 uint16  `yaml:"u16"`
	U   uint64  `yaml:"u"`
	F   float64 `yaml:"f"`
	On  bool    `yaml:"on"`
	S   string  `yaml:"s"`
}

type everything struct {
	inner  `yaml:",inline"`
	Needed string           `yaml:"needed" required:"true"`
	Inner  inner            `yaml:"inner"`
	List   []inner          `yaml:"list"`
	Map    map[string]int   `yaml:"map"`
	Tables map[string]table `yaml:"tables"`
	Bytes  int32            `yaml:"bytes" unit:"B"`
	Upper  upper            `yaml:"upper"`
	Pair   pair             `yaml:"pair"`
	Sum    sum              `yaml:"sum"`
	Side   side             `yaml:"side"`
	Table  table            `yaml:"table"`
	Choice *choice          `yaml:"choice"`
	Hidden int              `yaml:"-"`
}

// known returns the tables that have a name.
func known(name string) (*yaml.Node, error) {
	if name != "one" {
		return nil, errors.Join(errors.New("no table "+name), errors.New("and no other"))
	}
	return Parse("one", []byte("a: 1"))
}

func reader() *Reader {
	return &Reader{File: "x.yaml", ByName: map[reflect.Type]func(string) (*yaml.Node, error){reflect.TypeFor[table](): known}, Lines: map[string]int{}}
}

func read(t require.TestingT, text string, into any) *Reader {
	tree, err := Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	r := reader()
	r.Read(tree, into)
	return r
}

// The type of a value decides how it is read, and every line is noted.
func TestEveryKindOfValue(t *testing.T) {
	var e everything
	r := read(t, `needed: x
i: -3
i8: 0x7f
u16: 0o17
u: 18446744073709551615
f: 1.5
on: yes
s: 010
inner: {i: 2e3}
list:
  - {i: 1}
  - {s: two}
map: {a: 1_000, b: 0b11}
tables: {x: one, y: {b: 2}}
bytes: 64KiB
upper: ABC
pair: [a, b]
sum: {a: 1, b: 2}
side: right
table: {b: 7}
choice: {left: 4, note: n}
`, &e)
	require.Empty(t, r.Errors)
	four := 4
	require.Equal(t, everything{
		inner:  inner{I: -3, I8: 127, U16: 15, U: math.MaxUint64, F: 1.5, On: true, S: "010"},
		Needed: "x", Inner: inner{I: 2000}, List: []inner{{I: 1}, {S: "two"}}, Map: map[string]int{"a": 1000, "b": 3},
		Tables: map[string]table{"x": {A: 1}, "y": {B: 2}}, Bytes: 65536, Upper: upper{"ABC"}, Pair: pair{"a", "b"}, Sum: 3, Side: "right",
		Table: table{B: 7}, Choice: &choice{Left: &four, Note: "n"},
	}, e)
	require.Equal(t, 12, r.Lines["list[1].s"])
	require.Equal(t, 14, r.Lines["tables.y.b"])
	require.Equal(t, 15, r.Lines["bytes"])
	require.Equal(t, 1, r.Lines[""])
}

// All errors are reported at once, with line and path, and leave the old
// values.
func TestEveryError(t *testing.T) {
	before := everything{
		inner: inner{I: 1, I8: 1, F: 1, On: true}, Table: table{1, 2}, Bytes: 5, Side: "left", Map: map[string]int{"a": 1}, Tables: map[string]table{"t": {1, 2}},
	}
	after := before
	r := read(t, `i: 1.5
i8: 128
u16: -1
u: 99999999999999999999
f: x
on: 5
s: [1]
inner: {i: 010, j: 1, i: 2}
list: [{i: }, 5]
map: {a: x, [1]: 2}
tables: {t: two}
bytes: 3GiB
upper: abc
pair: [1]
sum: 5
side: up
table: none
choice: {left: 1, right: x}
Hidden: 1
`, &after)
	names := "i, i8, u16, u, f, on, s"
	require.Equal(t, []string{
		`1: i: "1.5", expected a whole number`,
		`2: i8: "128", expected a whole number from -128 to 127`,
		`3: u16: "-1", expected a whole number from 0 to 65535`,
		`4: u: "99999999999999999999", expected a whole number from 0 to 18446744073709551615`,
		`5: f: "x", expected a number`,
		`6: on: "5", expected true or false`,
		`7: s: a list, expected a single value`,
		`8: inner.i: "010", expected a whole number`,
		`8: inner.j: unknown field, expected one of ` + names,
		`8: inner.i: given twice`,
		`9: list[0].i: no value`,
		`9: list[1]: "5", expected fields with values`,
		`10: map.a: "x", expected a whole number`,
		`10: map: a list as a key, expected a name`,
		`11: tables.t: no table two`,
		`11: tables.t: and no other`,
		`12: bytes: "3GiB", expected a whole number from -2147483648 to 2147483647`,
		`13: upper: "abc": expected a capital`,
		`14: pair: expected two texts`,
		`15: sum: "5", expected fields with values`,
		`16: side: "up", expected one of left, right`,
		`17: table: no table none`,
		`17: table: and no other`,
		`18: choice: 2 of the fields left, right, note, expected exactly one`,
		`19: Hidden: unknown field, expected one of ` + names + `, needed, inner, list, map, tables, bytes, upper, pair, sum, side, table, choice`,
		`1: needed is missing`,
	}, strings.Split(strings.ReplaceAll(r.Errors.Join().Error(), "x.yaml:", ""), "\n"))
	after.List, after.Choice = nil, nil // they are replaced as a whole, by the readable part
	require.Equal(t, before, after)
}

// A whole number can be read back from every way to write it. Nothing else is
// one: no part of a number is cut off, and none is read in another base.
func TestWholeNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1000, 1000)).Draw(t, "n")
		sign, abs := "", uint64(n)
		if n < 0 {
			sign, abs = "-", -uint64(n)
		}
		forms := []string{"%s%d", "%s0x%x", "%s0X%X", "%s0o%o", "%s0b%b"}
		if abs < exact {
			forms = append(forms, "%s%d.0", "%s%de0", "%s%d.000")
		}
		for _, form := range forms {
			text := fmt.Sprintf(form, sign, abs)
			var got struct {
				N int64 `yaml:"n"`
			}
			require.Empty(t, read(t, "n: "+text, &got).Errors, text)
			require.Equal(t, n, got.N, text)
		}
		for _, form := range []string{"%s0%d", "%s%d.5", "%s%dx", "%s%d e3", "%s%d,0", "[%s%d]"} {
			var got struct {
				N int64 `yaml:"n"`
			}
			text := fmt.Sprintf(form, sign, abs)
			require.NotEmpty(t, read(t, "n: "+text, &got).Errors, text)
			require.Zero(t, got.N, text)
		}
	})
	for _, text := range []string{
		"1e30", "-1e30", ".inf", "-.inf", ".nan", "inf", "0x", "9007199254740993.0e1", "''",
		"4503599627370496.5", "-4503599627370496.5", "9007199254740991.25", "1e-400", "-0.1e-999999999", "1" + strings.Repeat("0", 500) + "e-500", "true",
	} {
		var got struct {
			N int64 `yaml:"n"`
		}
		require.NotEmpty(t, read(t, "n: "+text, &got).Errors, text)
	}
}

// A number that is too close to 0, or too far away, is an error, not 0.
func TestNumbersThatCannotBeKept(t *testing.T) {
	for text, want := range map[string]float64{"0": 0, "-0.0": 0, "0e-999": 0, "1e-300": 1e-300, "0.25": 0.25, "3": 3, "5e-324": 5e-324} {
		var got struct {
			F float64 `yaml:"f"`
		}
		require.Empty(t, read(t, "f: "+text, &got).Errors, text)
		require.Equal(t, want, got.F, text)
	}
	for _, text := range []string{"1e-400", "-1e-400", "0.1e-999", "1e400", "zero"} {
		var got struct {
			F float64 `yaml:"f"`
		}
		require.NotEmpty(t, read(t, "f: "+text, &got).Errors, text)
		require.Zero(t, got.F, text)
	}
}

// drawn returns a tree with some fields of a struct, as YAML in one line, and
// applies it to the struct.
func drawn(t *rapid.T, label string, into *everything) string {
	var parts []string
	add := func(name string, field func() string) {
		if rapid.Bool().Draw(t, label+name) {
			parts = append(parts, name+": "+field())
		}
	}
	number := rapid.IntRange(-100, 100)
	add("needed", func() string { into.Needed = "n"; return "n" })
	add("i", func() string { into.I = number.Draw(t, "i"); return strconv.Itoa(into.I) })
	add("inner", func() string {
		s := "{"
		if rapid.Bool().Draw(t, "u16") {
			into.Inner.U16 = rapid.Uint16().Draw(t, "u")
			s += fmt.Sprintf("u16: %d, ", into.Inner.U16)
		}
		if rapid.Bool().Draw(t, "s") {
			into.Inner.S = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "s")
			s += "s: " + into.Inner.S
		}
		return s + "}"
	})
	add("list", func() string {
		into.List = make([]inner, rapid.IntRange(0, 3).Draw(t, "length"))
		s := "["
		for i := range into.List {
			into.List[i].I = i
			s += fmt.Sprintf("{i: %d}, ", i)
		}
		return s + "]"
	})
	add("map", func() string {
		all := maps.Clone(into.Map)
		if all == nil {
			all = map[string]int{}
		}
		s := "{"
		for _, k := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID).Draw(t, "keys") {
			all[k] = number.Draw(t, "value")
			s += fmt.Sprintf("%s: %d, ", k, all[k])
		}
		into.Map = all
		return s + "}"
	})
	add("table", func() string {
		into.Table = table{A: 1}
		if rapid.Bool().Draw(t, "named") {
			return "one"
		}
		into.Table = table{B: number.Draw(t, "b")}
		return fmt.Sprintf("{b: %d}", into.Table.B)
	})
	return "{" + strings.Join(parts, ", ") + "}"
}

// Reading one text after the other lays the later over the earlier: structs and
// maps field by field, lists and values that may have a name as a whole. An
// override does the same for a single field, which it replaces as a whole.
func TestTextsLieOverEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got, want everything
		for i := range rapid.IntRange(1, 4).Draw(t, "texts") {
			r := read(t, drawn(t, fmt.Sprint(i), &want), &got)
			for _, e := range r.Errors {
				require.EqualError(t, e, "x.yaml:1: needed is missing")
			}
		}
		require.Equal(t, want, got)

		r := reader()
		for _, o := range []string{"inner={i: 5}", "map={z: 1}", "list=[{s: q}]", "table.b=9", "bytes=2KiB", " inner.u16 = 3", "upper=Q", "map.q=2", "tables.t.b=3", "tables.u={a: 4}"} {
			r.Set(&got, o)
		}
		require.Empty(t, r.Errors)
		want.Inner, want.Map, want.List, want.Bytes, want.Upper = inner{I: 5, U16: 3}, map[string]int{"z": 1, "q": 2}, []inner{{S: "q"}}, 2048, upper{"Q"}
		want.Table.B, want.Tables = 9, map[string]table{"t": {B: 3}, "u": {A: 4}}
		require.Equal(t, want, got)

		for o, wrong := range map[string]string{
			"inner={i: 5, s: [1]}": "x.yaml: inner.s: a list, expected a single value",
			"inner":                "x.yaml: expected path=value, such as hpu.cores=8",
			"=1":                   "x.yaml: no field before =, expected one of i, ",
			"inner.x=1":            "x.yaml: inner.x: no field \"x\", expected one of i, i8",
			"upper.text=A":         "x.yaml: upper.text: text is below a single value",
			"list.i=1":             "x.yaml: list.i: i is below a single value",
			"tables.t.c=1":         "x.yaml: tables.t.c: no field \"c\", expected one of a, b",
			"tables.t.b=x":         "x.yaml: tables.t.b: \"x\", expected a whole number",
			"map.q.r=1":            "x.yaml: map.q.r: r is below a single value",
			"i=":                   "x.yaml: i: no value, expected one behind =",
			"i=~":                  "x.yaml: i: no value, expected one behind =",
			"i=[":                  `x.yaml: i: "[": YAML: did not find`,
			"i=1\n---\n2":          "x.yaml: i: \"1\\n---\\n2\": a second document",
			"bytes=1XB":            `x.yaml: bytes: size "1XB": expected a number of bytes`,
			"table=two":            "x.yaml: table: no table two",
		} {
			r := reader()
			r.Set(&got, o)
			require.NotEmpty(t, r.Errors, o)
			require.True(t, strings.HasPrefix(r.Errors[0].Error(), wrong), r.Errors[0].Error())
			require.Equal(t, want, got, "%s leaves a trace", o)
		}
	})
}

// plainly has only values that both this reader and the YAML library can read.
type plainly struct {
	inner `yaml:",inline"`
	Inner inner            `yaml:"inner"`
	List  []inner          `yaml:"list"`
	Map   map[string]int   `yaml:"map"`
	Names map[string]inner `yaml:"names"`
}

// The YAML library reads a text that this reader accepts in the same way. For a
// text that it refuses, this reader names the place.
func FuzzReader(f *testing.F) {
	f.Add([]byte("i: 1\ninner: {f: 1.5, on: yes, s: x}\nlist: [{i: 1}, {u: 2}]\nmap: {a: 1}\nnames: {a: {i: 1}}\n"))
	f.Add([]byte("i: 1.5\ni8: 300\nu16: -1\nu: 1e3\n"))
	f.Add([]byte("s: &x text\ninner: {s: *x}\nmap: &m {a: 0x10, b: 0o17, c: 1_0}\nnames: {<<: {a: {i: 1}}}\n"))
	f.Add([]byte("i: 010\non: no\nf: .inf\nlist: []\nmap: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		tree, err := Parse("f", text)
		if err != nil {
			return
		}
		var got, want plainly
		r := Reader{File: "f", Lines: map[string]int{}}
		r.Read(tree, &got)
		for _, e := range r.Errors {
			require.True(t, strings.HasPrefix(e.Error(), "f:"), e.Error())
			require.Positive(t, e.Line)
		}
		if len(r.Errors) > 0 {
			return
		}
		if err := tree.Decode(&want); err != nil { // it is stricter about the tags of single values
			var types *yaml.TypeError
			require.ErrorAs(t, err, &types)
			require.False(t, slices.ContainsFunc(types.Errors, func(e string) bool { return !strings.Contains(e, "cannot unmarshal !!") }), err.Error())
			return
		}
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	})
}
