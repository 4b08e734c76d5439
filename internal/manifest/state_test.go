package manifest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// device is an arbitrary device.
var device = &Device{MTU: 4096, HPUs: 4, Contexts: 2, Rank: 3, Ranks: 16, Clusters: 2}

func table(t testing.TB) *State {
	m, err := Parse([]byte(sample))
	require.NoError(t, err)
	return m.State("Table")
}

func TestInitial(t *testing.T) {
	b, err := table(t).Initial(device)
	require.NoError(t, err)
	want := make([]byte, 96)
	want[0] = 4
	binary.LittleEndian.PutUint64(want[8:], math.Float64bits(0.5))
	for i := 16; i < 80; i += 16 {
		copy(want[i:], "\xff\xff")
	}
	require.Equal(t, want, b)

	_, err = table(t).Initial(&Device{HPUs: 3, Contexts: 1})
	require.NoError(t, err)
	bad := &State{Name: "S", Size: 8, Fields: []Field{{Name: "a", Type: U8, Default: must("mtu"), Max: must("hpus")}}}
	_, err = bad.Initial(device)
	require.EqualError(t, err, "default of a: 4096, expected 0 to 255 for u8")
	_, err = bad.Initial(&Device{MTU: 5, HPUs: 4})
	require.EqualError(t, err, "default of a: 5, expected at most hpus")
}

func must(s string) Expr {
	e, err := ParseExpr(s)
	if err != nil {
		panic(err)
	}
	return e
}

func TestLookup(t *testing.T) {
	s := table(t)
	n, err := s.Lookup("slots[1][0].words[2]")
	require.NoError(t, err)
	require.Equal(t, Number{"slots[1][0].words[2]", 16 + 2*16 + 4 + 2*4, &s.Fields[2].Fields[1]}, n)
	var names []string
	for n := range s.Numbers() {
		names = append(names, n.Name)
	}
	require.Len(t, names, 2+4*4)
	require.Equal(t, []string{"used", "ratio", "slots[0][0].key", "slots[0][0].words[0]"}, names[:4])

	for name, want := range map[string]string{
		"nix":                  "no field nix, expected one of used, ratio, slots[0][0] to slots[1][1]",
		"":                     "no field , expected one of used, ratio, slots[0][0] to slots[1][1]",
		"used[0]":              "used[0]: used is no array of so many dimensions",
		"used.x":               "used.x: used is a number",
		"slots":                "slots: slots is an array: expected slots[0][0] to slots[1][1]",
		"slots[0]":             "slots[0]: slots is an array: expected slots[0][0] to slots[1][1]",
		"slots[2][0].key":      "slots[2][0].key: slots is an array: expected slots[0][0] to slots[1][1]",
		"slots[00][0].key":     "slots[00][0].key: slots is an array: expected slots[0][0] to slots[1][1]",
		"slots[0][-1].key":     "slots[0][-1].key: slots is an array: expected slots[0][0] to slots[1][1]",
		"slots[0][1]":          "slots[0][1]: slots[0][1] has fields: expected one of slots[0][1].key, slots[0][1].words[0] to slots[0][1].words[2]",
		"slots[0][1].":         "slots[0][1].: slots[0][1] has fields: expected one of slots[0][1].key, slots[0][1].words[0] to slots[0][1].words[2]",
		"slots[0][1].nix":      "no field slots[0][1].nix, expected one of slots[0][1].key, slots[0][1].words[0] to slots[0][1].words[2]",
		"slots[0][1].words":    "slots[0][1].words: slots[0][1].words is an array: expected words[0] to words[2]",
		"slots[0][1].words[3]": "slots[0][1].words[3]: slots[0][1].words is an array: expected words[0] to words[2]",
	} {
		_, err := s.Lookup(name)
		require.EqualError(t, err, want)
	}
	many := &State{Name: "M"}
	for i := range 20 {
		many.Fields = append(many.Fields, Field{Name: fmt.Sprint("f", i), Type: U8})
	}
	require.Equal(t, "f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, and 8 more", many.FieldNames())
	require.Equal(t, "none", (&State{}).FieldNames())
}

func TestPut(t *testing.T) {
	s := table(t)
	b := make([]byte, s.Size)
	for _, x := range []struct {
		name  string
		v     any
		want  any
		wrong string
	}{
		{"used", 3, uint64(3), ""},
		{"used", uint8(2), uint64(2), ""},
		{"used", true, uint64(1), ""},
		{"used", big.NewInt(4), uint64(4), ""},
		{"used", must("hpus - 1"), uint64(3), ""},
		{"used", -1, nil, "used: -1, expected 0 to 4294967295 for u32"},
		{"used", 5, nil, "used: 5, expected at most 4"},
		{"used", 1.5, nil, "used: 1.5, expected a whole number for u32"},
		{"used", "3", nil, "used: a string, expected a number"},
		{"used", nil, nil, "used: a <nil>, expected a number"},
		{"ratio", 0.25, 0.25, ""},
		{"ratio", 1, 1.0, ""},
		{"ratio", must("0.75"), 0.75, ""},
		{"ratio", 1.5, nil, "ratio: 1.5, expected at most 1"},
		{"ratio", -0.5, nil, "ratio: -0.5, expected at least 0"},
		{"slots[1][1].key", -32768, int64(-32768), ""},
		{"slots[1][1].key", 32768, nil, "slots[1][1].key: 32768, expected -32768 to 32767 for i16"},
	} {
		n, err := s.Lookup(x.name)
		require.NoError(t, err)
		if err := n.Put(b, x.v, device); x.wrong != "" {
			require.EqualError(t, err, x.wrong)
			continue
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, x.want, n.Get(b))
		require.Equal(t, fmt.Sprint(x.want), n.Text(b))
	}
	n, err := s.Lookup("ratio")
	require.NoError(t, err)
	require.EqualError(t, n.Put(b[:8], 0.5, device), "ratio lies outside the 8 bytes of the state")
}

// types covers every kind of field that a state can have.
type types struct {
	A   uint64
	B   int64
	C   uint32
	D   int32
	E   uint16
	F   int16
	G   uint8
	H   int8
	Yes bool
	_   [5]uint8
	I   float32
	J   float64
	K   complex128
	L   [2][3]uint16
	_   [4]uint8
	M   [2]struct {
		NIDOfRoot uint32
		Pair      complex64 `spin:"name=pair_of_numbers"`
	}
}

// layoutOf describes a Go type as the builder does, by reflection.
func layoutOf(t reflect.Type) (fields []Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		out := Field{Name: fieldName(f), Offset: int64(f.Offset)}
		typ := f.Type
		for typ.Kind() == reflect.Array {
			out.Dims = append(out.Dims, int64(typ.Len()))
			typ = typ.Elem()
		}
		switch {
		case typ.Kind() == reflect.Struct:
			out.Size, out.Fields = int64(typ.Size()), layoutOf(typ)
		case typ.Kind() == reflect.Complex128:
			out.Size, out.Fields = 16, []Field{{Name: "re", Type: F64}, {Name: "im", Type: F64, Offset: 8}}
		case typ.Kind() == reflect.Complex64:
			out.Size, out.Fields = 8, []Field{{Name: "re", Type: F32}, {Name: "im", Type: F32, Offset: 4}}
		default:
			for _, t := range Types() {
				if slices.Contains(goKinds[t], typ.Kind()) {
					out.Type = t
				}
			}
		}
		fields = append(fields, out)
	}
	return fields
}

// The bytes of a struct in the layout of its own fields are its bytes in
// memory. In another layout every number is in its own place. Reading gives the
// same struct.
func TestStructs(t *testing.T) {
	s := &State{Name: "T", Size: int64(reflect.TypeFor[types]().Size()), Fields: layoutOf(reflect.TypeFor[types]())}
	m := &Manifest{States: []*State{s}}
	require.NoError(t, m.Check())
	moved := &State{Name: "T"}
	for i := range s.Fields { // the other way round
		f := s.Fields[len(s.Fields)-1-i]
		n, _ := f.Bytes()
		f.Offset = moved.Size
		moved.Size += n
		moved.Fields = append(moved.Fields, f)
	}
	require.NoError(t, (&Manifest{States: []*State{moved}}).Check())
	rapid.Check(t, func(r *rapid.T) {
		v := types{
			A: rapid.Uint64().Draw(r, "A"), B: rapid.Int64().Draw(r, "B"), C: rapid.Uint32().Draw(r, "C"), D: rapid.Int32().Draw(r, "D"),
			E: rapid.Uint16().Draw(r, "E"), F: rapid.Int16().Draw(r, "F"), G: rapid.Uint8().Draw(r, "G"), H: rapid.Int8().Draw(r, "H"),
			Yes: rapid.Bool().Draw(r, "Yes"), I: rapid.Float32().Draw(r, "I"), J: rapid.Float64().Draw(r, "J"),
			K: complex(rapid.Float64().Draw(r, "re"), rapid.Float64().Draw(r, "im")),
		}
		v.L[1][2], v.M[1].NIDOfRoot = rapid.Uint16().Draw(r, "L"), rapid.Uint32().Draw(r, "M")
		v.M[0].Pair = complex(rapid.Float32().Draw(r, "re"), rapid.Float32().Draw(r, "im"))
		want, err := binary.Append(nil, binary.LittleEndian, &v)
		require.NoError(r, err)
		got, err := s.Bytes(v, device)
		require.NoError(r, err)
		require.Equal(r, want, got)
		got, err = moved.Bytes(&v, device)
		require.NoError(r, err)
		require.Len(r, got, int(moved.Size))
		var back types
		require.NoError(r, moved.Read(got, &back))
		require.Equal(r, v, back)
		for n := range s.Numbers() {
			other, err := moved.Lookup(n.Name)
			require.NoError(r, err)
			require.Equal(r, n.Text(want), other.Text(got), n.Name)
		}
	})
}

func TestBytesRefuses(t *testing.T) {
	s := &State{Name: "S", Size: 16, Fields: []Field{{Name: "a", Type: U32}, {Name: "list", Type: U16, Offset: 4, Dims: []int64{2}}}}
	for want, v := range map[string]any{
		"a state from a int, expected a struct, or a map of numbers by name":                     1,
		"manifest.x as state S: the state has no field b, expected one of a, list[0] to list[1]": struct{ A, B uint32 }{},
		"list is missing": struct{ A uint32 }{},
		"a is a uint64, expected u32": struct {
			A    uint64
			List [2]uint16
		}{},
		"list is a uint16, expected an array of 2": struct {
			A    uint32
			List uint16
		}{},
		"a is not exported": struct {
			a    uint32
			List [2]uint16
		}{},
		"no field b, expected one of": map[string]int{"b": 1},
		"a: -1, expected 0 to":        map[string]any{"a": -1},
	} {
		_, err := s.Bytes(v, device)
		if _, after, is := strings.Cut(want, "manifest.x"); is {
			want = after
		}
		require.ErrorContains(t, err, strings.TrimPrefix(want, "manifest.x"))
	}
	b, err := s.Bytes(map[string]any{"a": 7, "list[1]": uint16(9)}, device)
	require.NoError(t, err)
	require.Equal(t, append([]byte{7, 0, 0, 0, 0, 0, 9}, make([]byte, 9)...), b)
	b, err = s.Bytes(nil, device)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 16), b)
	require.ErrorContains(t, s.Read(b, 3), "expected a pointer to a struct")
	require.ErrorContains(t, s.Read(b[:4], &struct{}{}), "a state S of 16 bytes from 4")
}

func TestFieldName(t *testing.T) {
	for name, want := range map[string]string{
		"MaxPayload": "max_payload", "PT": "pt", "MatchBits": "match_bits", "NIDOfRoot": "nid_of_root", "MTUBytes": "mtu_bytes",
		"HdrData": "hdr_data", "CRC32": "crc32", "Hash2Key": "hash2_key", "a": "a", "Already_There": "already_there", "IDs": "i_ds",
	} {
		require.Equal(t, want, FieldName(name))
	}
}

func TestExpr(t *testing.T) {
	v, err := must("min(hpus * contexts, 64) * mtu - rank + ranks % clusters").Int(device)
	require.NoError(t, err)
	require.Equal(t, int64(8*4096-3), v.Int64())
	_, err = ParseExpr("node")
	require.EqualError(t, err, `"node": there is no variable node; expected a whole number such as 8, 0x10 or 4KiB, or + - * / % << min max and parentheses with `+
		"mtu, hpus, contexts, rank, ranks, clusters")
	_, err = ParseExpr("1e999")
	require.ErrorContains(t, err, "1e999 is no whole number")
	_, err = ParseExpr("0." + strings.Repeat("1", 200))
	require.ErrorContains(t, err, "an expression of 202 bytes, expected at most 200")
	half := must("0.5")
	require.False(t, half.Whole())
	require.True(t, half.Constant())
	require.False(t, must("1 + mtu").Constant())
	require.True(t, must("1 / 0").Constant())
	_, err = half.Int(nil)
	require.EqualError(t, err, "0.5: expected a whole number")
	_, err = must("mtu").Between(device, 0, 100)
	require.EqualError(t, err, "mtu is 4096, expected 0 to 100")
	_, err = must("1 << 65").Int(nil)
	require.EqualError(t, err, "1 << 65: a shift by 65, expected 0 to 64")
}
