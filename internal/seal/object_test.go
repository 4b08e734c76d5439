package seal

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const object = `{"provenance":{"sha256":"ab","n":[1,2.50,-3e7,null,true]},"rows":[{"name":"µ <\n","x":18446744073709551615},{}]}`

// The digest is the last field, in the layout of the others, and does not
// depend on layout and escapes.
func TestLayout(t *testing.T) {
	line, err := Object([]byte(object+"\n"), "")
	require.NoError(t, err)
	require.Regexp(t, `\{\}\],"complete":true,"sha256":"[0-9a-f]{64}"\}\n$`, string(line))
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(object), "", "  "))
	lines, err := Object(indented.Bytes(), "")
	require.NoError(t, err)
	require.Regexp(t, `\n  \],\n  "complete": true,\n  "sha256": "[0-9a-f]{64}"\n\}$`, string(lines))
	for _, o := range [][]byte{line, lines, bytes.Replace(line, []byte("µ <"), []byte(`\u00b5 \u003c`), 1)} {
		require.NoError(t, check(o), string(o))
	}
	require.ErrorIs(t, check([]byte(object)), ErrNone, "a deeper field of the name is a value")
}

// plain removes layout and escapes from an object; it returns "" if the text is
// not an object.
func plain(text []byte) string {
	var out bytes.Buffer
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			break
		}
		one, err := json.Marshal(t)
		if delim, ok := t.(json.Delim); ok {
			one = []byte(delim.String())
		}
		if err != nil {
			return ""
		}
		out.Write(append(one, ' '))
	}
	if !json.Valid(text) {
		return ""
	}
	return out.String()
}

// The check notices each byte that is changed, left out or doubled, unless that
// changes only the layout.
func TestEveryEditIsNoticed(t *testing.T) {
	was, err := Object([]byte(object), "")
	require.NoError(t, err)
	noticed := func(is []byte) {
		if err := check(is); plain(is) == plain(was) {
			require.NoError(t, err, string(is))
		} else {
			require.Error(t, err, string(is))
		}
	}
	for i := range was {
		for _, b := range []byte("0123456789 \n\t\",:[]{}\\-.eEtu\xff\x00") {
			is := bytes.Clone(was)
			is[i] = b
			noticed(is)
		}
		noticed(append(bytes.Clone(was[:i]), was[i+1:]...))
		noticed(append(bytes.Clone(was[:i+1]), was[i:]...))
		noticed(was[:i])
	}
}

// Two objects have the same digest only if they are the same, whatever their
// nesting: the hash separates texts from each other.
func TestDifferentObjects(t *testing.T) {
	value := rapid.Deferred(func() *rapid.Generator[any] { return value(3) })
	rapid.Check(t, func(r *rapid.T) {
		var objects [2][]byte
		for i := range objects {
			var err error
			objects[i], err = json.Marshal(map[string]any{"v": value.Draw(r, "value")})
			require.NoError(t, err)
		}
		a, err := walk(objects[0])
		require.NoError(t, err)
		b, err := walk(objects[1])
		require.NoError(t, err)
		require.Equal(t, bytes.Equal(objects[0], objects[1]), a.sum() == b.sum(), "%s %s", objects[0], objects[1])
	})
}

func value(depth int) *rapid.Generator[any] {
	text := rapid.Map(rapid.SampledFrom([]string{"", "a", "1", "null", "]"}), func(s string) any { return s })
	plain := rapid.OneOf(text, rapid.SampledFrom([]any{1, 11, 1.5, true, nil}))
	if depth == 0 {
		return plain
	}
	return rapid.OneOf(plain,
		rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return append([]any{}, l...) }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"", "a", "b"}), value(depth-1), 0, 2), func(m map[string]any) any { return m }))
}

// check is CheckObject without its cut.
func check(object []byte) error {
	_, err := CheckObject(object)
	return err
}

// An object keeps why it was cut, and the digest covers that.
func TestCutObject(t *testing.T) {
	sealed, err := Object([]byte(object), `limit "x", 3 of 9 points`)
	require.NoError(t, err)
	cut, err := CheckObject(sealed)
	require.NoError(t, err)
	require.Equal(t, `limit "x", 3 of 9 points`, cut)
	var changed *ChangedError
	require.ErrorAs(t, check(bytes.Replace(sealed, []byte("3 of 9"), []byte("9 of 9"), 1)), &changed)
	require.ErrorAs(t, check(bytes.Replace(sealed, []byte(`"cut"`), []byte(`"was"`), 1)), &changed)
}

func TestNoObjects(t *testing.T) {
	for text, want := range map[string]string{
		"": "no JSON object", "[1]": "no JSON object", `{"a":1`: "EOF", `{"a":1} x`: "more follows", `{"a":1}{}`: "more follows",
		`{"a":1,"sha256":1}`: "expected one text", `{"a":1,"sha256":"a","sha256":"a"}`: "expected one text",
	} {
		require.ErrorContains(t, check([]byte(text)), want, text)
		_, err := Object([]byte(text), "")
		require.Error(t, err, text)
	}
	for _, text := range []string{"{}", `{"a":1,"sha256":"b"}`, `{"a":1,"complete":true}`, `{"a":1,"cut":"b"}`} {
		_, err := Object([]byte(text), "")
		require.ErrorContains(t, err, "cannot be sealed", text)
	}
	require.EqualError(t, &ChangedError{"a", "b"}, `changed after it was written: the digest of its content is a, recorded is "b"`)
}
