package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sample is a manifest with everything in it.
const sample = `{"manifest":1,"name":"kv-store","version":"2.1","description":"Keeps values on the device.",` +
	`"handlers":[{"export":"put it","kind":"payload","state":"Table","description":"stores"},{"export":"any","needs":{"memory":"mtu","user_header":8,"packets":["first"]}}],` +
	`"states":[{"name":"Table","description":"the table","size":96,"fields":[` +
	`{"name":"used","offset":0,"type":"u32","unit":"slots","default":"min(hpus * contexts, 4)","max":"4","description":"so far"},` +
	`{"name":"ratio","offset":8,"type":"f64","default":"0.5","min":"0","max":"1"},` +
	`{"name":"slots","offset":16,"array":[2,2],"size":16,"fields":[` +
	`{"name":"key","offset":0,"type":"i16","default":"-1"},{"name":"words","offset":4,"type":"u32","array":[3]}]}]}],` +
	`"needs":{"memory":"ranks * mtu","user_header":16,"spaces":["entry","handler"],"host_memory":"4096",` +
	`"entry_options":["op_put"],"pt_options":["flowctrl"],"pool":"hpu"}}`

func TestParse(t *testing.T) {
	m, err := Parse([]byte(sample))
	require.NoError(t, err)
	text, err := m.Encode()
	require.NoError(t, err)
	if string(text) != sample {
		t.Fatalf("written as %s", text)
	}
	marshalled, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, sample, string(marshalled))

	require.Equal(t, "2.1", m.Version)
	require.Equal(t, []string{"put it"}, m.OfKind(Payload))
	require.Equal(t, int64(8), m.Handler("any").Needs.UserHeader)
	require.Equal(t, []Packet{FirstPacket}, m.Handler("any").Needs.Packets)
	require.Nil(t, m.Handler("none"))
	require.Equal(t, int64(96), m.State("Table").Size)
	require.Nil(t, m.State("none"))
	require.Equal(t, []Space{EntryMemory, HandlerMemory}, m.Needs.Spaces)

	// The order of fields and the blanks do not matter.
	m, err = Parse([]byte(" {\n\"states\" : [ ] ,\t\"name\": \"x\", \"manifest\":1}\r\n"))
	require.NoError(t, err)
	require.Equal(t, "x", m.Name)
}

// inState returns a manifest with fields in a state of 16 bytes.
func inState(fields string) string {
	return `{"manifest":1,"states":[{"name":"S","size":16,"fields":[` + fields + `]}]}`
}

// refused lists all possible errors, with the field. The offset of the error is
// the place of the text between the brackets ⟨ ⟩.
var refused = []struct{ text, field, cause string }{
	{`⟨⟩`, "", "the text ends too early"},
	{`{"manifest":1,⟨`, "", "the text ends too early"},
	{`⟨[]⟩`, "", "a list, expected an object"},
	{`⟨{⟩}`, "manifest", "is missing"},
	{`{"manifest":⟨2⟩,"soon":1}`, "manifest", "version 2 of the manifest's form, this spinsim reads version 1"},
	{`{"manifest":⟨"1"⟩}`, "manifest", "a string, expected a whole number"},
	{`{"manifest":⟨1.0⟩}`, "manifest", "1.0, expected a whole number from 0 to 2^53"},
	{`{"manifest":1,"name":⟨null⟩}`, "name", "null, expected a value"},
	{`{"manifest":1,⟨"Name"⟩:"x"}`, "", `unknown field "Name", expected one of description, handlers, manifest, name, needs, states, version`},
	{`{"manifest":1,"name":"x",⟨"name"⟩:"y"}`, "name", "given twice"},
	{`{"manifest":1,"name":⟨"a b"⟩}`, "name", `"a b", expected 1 to 64 letters, digits and any of _-.`},
	{`{"manifest":1,"version":⟨true⟩}`, "version", "a truth value, expected a string"},
	{`{"manifest":1,"description":⟨"\u001b[2J"⟩}`, "description", "expected one line of at most 1000 bytes, without control characters"},
	{`{"manifest":1,"description":⟨"\ud800"⟩}`, "description", "expected one line of at most 1000 bytes, without control characters"},
	{`{"manifest":1}⟨ ⟩{}`, "", "text behind the end of the manifest"},
	{`{"manifest":1⟨}⟩]`, "", "text behind the end of the manifest"},
	{`{"manifest":1,"needs":{"memory":⟨"mtu *"⟩}}`, "needs.memory", `"mtu *": a number is missing; expected a whole number such as 8, 0x10 or 4KiB, or + - * / % << min max and parentheses with mtu, hpus, contexts, rank, ranks, clusters`},
	{`{"manifest":1,"needs":{"memory":⟨"-1"⟩}}`, "needs.memory", "-1, expected 0 to 2147483648"},
	{`{"manifest":1,"needs":{"memory":⟨"1/0"⟩}}`, "needs.memory", "1/0: division by zero"},
	{`{"manifest":1,"needs":{"spaces":["entry",⟨"entry"⟩]}}`, "needs.spaces[1]", `"entry", expected entry, handler or granted, each once`},
	{`{"manifest":1,"needs":{"host_memory":⟨"8"⟩}}`, "needs.host_memory", "needs handler among the spaces"},
	{`{"manifest":1,"needs":{"pt_options":["flowctrl",⟨"flowctrl"⟩]}}`, "needs.pt_options[1]", "flowctrl is listed twice"},
	{`{"manifest":1,"needs":{"pool":⟨"gpu"⟩}}`, "needs.pool", `"gpu", expected hpu, firmware or hardware`},
	{`{"manifest":1,"handlers":[⟨{⟩"kind":"payload"}]}`, "handlers[0].export", "is missing"},
	{`{"manifest":1,"handlers":[{"export":"x","kind":⟨"body"⟩}]}`, "handlers[0].kind", `"body", expected one of header, payload, completion`},
	{`{"manifest":1,"handlers":[{"export":"x"},{"export":⟨"x"⟩}]}`, "handlers[1].export", "x is listed twice"},
	{`{"manifest":1,"handlers":[{"export":"x","state":⟨"T"⟩}]}`, "handlers[0].state", `there is no state "T"`},
	{`{"manifest":1,"handlers":[{"export":"x","kind":"payload","needs":{"user_header":⟨8⟩}}]}`, "handlers[0].needs.user_header", "a user header of 8 bytes, which only a header handler sees, this is a payload handler"},
	{`{"manifest":1,"handlers":[{"export":"x","kind":"header","needs":{"packets":["first",⟨"last"⟩]}}]}`, "handlers[0].needs.packets[1]", "the whole last packet, which only a completion handler sees, this is a header handler"},
	{`{"manifest":1,"handlers":[{"export":"x","needs":{"messages":⟨"2"⟩}}]}`, "handlers[0].needs.messages", "needs message_memory"},
	{`{"manifest":1,"states":[{"name":"S","size":⟨4294967296⟩}]}`, "states[0].size", "4294967296, expected 0 to 2147483648 bytes"},
	{`{"manifest":1,"states":[{"name":"S","size":1},{"name":⟨"S"⟩,"size":1}]}`, "states[1].name", "S is the name of another state"},
	{inState(`{"name":"a","offset":0,"type":⟨"int"⟩}`), "states[0].fields[0].type", `"int", expected one of u8, u16, u32, u64, i8, i16, i32, i64, f32, f64`},
	{inState(`⟨{⟩"name":"a","offset":12,"type":"u64"}`), "states[0].fields[0]", "a ends behind the 16 bytes that it lies in"},
	{inState(`⟨{⟩"name":"a","offset":0,"type":"u64","array":[3]}`), "states[0].fields[0]", "a ends behind the 16 bytes that it lies in"},
	{inState(`⟨{⟩"name":"a","offset":0,"type":"u64","array":[2147483648,2147483648,2147483648,4]}`), "states[0].fields[0]", "a ends behind the 16 bytes that it lies in"},
	{inState(`{"name":"a","offset":0,"type":"u64","array":⟨[1,1,1,1,1]⟩}`), "states[0].fields[0].array", "5 dimensions, expected at most 4"},
	{inState(`{"name":"a","offset":0,"type":"u64","array":[2,⟨0⟩]}`), "states[0].fields[0].array[1]", "0, expected at least 1 element"},
	{inState(`{"name":"a","offset":0,"type":"u64"},{"name":"b","offset":⟨4⟩,"type":"u32"}`), "states[0].fields[1].offset", "4, but the field before ends at 8"},
	{inState(`{"name":"a","offset":0,"type":"u8"},{"name":⟨"a"⟩,"offset":4,"type":"u8"}`), "states[0].fields[1].name", "a is the name of another field"},
	{inState(`{"name":"a","offset":0,"type":"u8","default":⟨"256"⟩}`), "states[0].fields[0].default", "256, expected 0 to 255 for u8"},
	{inState(`{"name":"a","offset":0,"type":"u8","default":⟨"0.5"⟩}`), "states[0].fields[0].default", "0.5, expected a whole number for u8"},
	{inState(`{"name":"a","offset":0,"type":"u8","max":"3","default":⟨"4"⟩}`), "states[0].fields[0].default", "4, expected at most 3"},
	{inState(`{"name":"a","offset":0,"type":"u8","min":"3","max":⟨"2"⟩}`), "states[0].fields[0].max", "2, expected at least the min of 3"},
	{inState(`{"name":"a","offset":0,"type":"f32","default":⟨"1e300"⟩}`), "states[0].fields[0].default", "1e+300, which no f32 holds"},
	{inState(`⟨{⟩"name":"a","offset":0,"type":"u8","size":4}`), "states[0].fields[0]", "a number has no size and no fields of its own"},
	{inState(`⟨{⟩"name":"a","offset":0,"size":4}`), "states[0].fields[0]", "expected a type or fields"},
	{inState(`{"name":"a","offset":0,"size":⟨0⟩,"fields":[]}`), "states[0].fields[0]", "expected a type or fields"},
	{inState(`⟨{⟩"name":"a","offset":0,"unit":"B","size":4,"fields":[{"name":"b","offset":0,"type":"u8"}]}`), "states[0].fields[0]", "only a number has a unit, a default and a range: expected a type"},
	{inState(`{"name":"a","offset":0,"size":4,"fields":[⟨{⟩"name":"b","offset":0,"type":"u64"}]}`), "states[0].fields[0].fields[0]", "b ends behind the 4 bytes that it lies in"},
}

func TestParseRefuses(t *testing.T) {
	for _, x := range refused {
		before, rest, _ := strings.Cut(x.text, "⟨")
		text := strings.ReplaceAll(before+rest, "⟩", "")
		_, err := Parse([]byte(text))
		var e *Error
		require.ErrorAs(t, err, &e, x.text)
		require.Equal(t, x.field+": "+x.cause, e.Field+": "+e.Cause, x.text)
		if x.cause != "expected a type or fields" && !strings.Contains(x.cause, "behind the end of the manifest") {
			require.Equal(t, len(before), e.Offset, "%s: %v", x.text, err)
		}
		require.ErrorContains(t, err, fmt.Sprintf("manifest: offset 0x%x: ", e.Offset))
	}
	_, err := Parse([]byte("{\"manifest\":1,\"name\":\"\xff\"}"))
	require.ErrorContains(t, err, "the text is not UTF-8")
	_, err = Parse([]byte(`{"manifest":1,"description":"` + strings.Repeat(" ", MaxBytes) + `"}`))
	require.ErrorContains(t, err, "expected at most 65536")
	deep := strings.Repeat(`{"name":"a","offset":0,"size":1,"fields":[`, 9) + strings.Repeat(`]}`, 9)
	_, err = Parse([]byte(inState(deep)))
	require.ErrorContains(t, err, "fields within more than 8 others")
}

// The ABI document lists exactly the accepted fields.
func TestDocumentListsFields(t *testing.T) {
	b, err := os.ReadFile("../../docs/abi.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(b), "## Manifest")
	section, _, _ = strings.Cut(section, "## Handlers")
	documented := make(map[string][]string) // by object
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z_.\[\], ]+) \|`).FindAllStringSubmatch(section, -1) {
		object := ""
		for _, name := range strings.Split(row[1], ", ") {
			before, last, within := strings.Cut(name, ".")
			if !within {
				last = before
			} else if before != "" {
				object = before
			}
			if name != "field" {
				documented[object] = append(documented[object], last)
			}
		}
	}
	for object, text := range map[string]string{
		"": `{"?":1}`, "handlers[]": `{"manifest":1,"handlers":[{"?":1}]}`, "states[]": `{"manifest":1,"states":[{"?":1}]}`,
		"fields[]": inState(`{"?":1}`), "needs": `{"manifest":1,"needs":{"?":1}}`,
	} {
		_, err := Parse([]byte(text))
		_, taken, _ := strings.Cut(err.Error(), "expected one of ")
		if object == "" {
			documented[object] = append(documented[object], "needs") // its fields have a row each
		}
		require.ElementsMatch(t, strings.Split(taken, ", "), documented[object], object)
	}
	for _, v := range Variables {
		require.Contains(t, section, "`"+v.Name+"` (")
	}
	for _, typ := range Types() {
		require.Contains(t, section, "`"+string(typ)+"`")
	}
}

// A module is a list of sections. The manifest is one of them and does not move
// the others.
func TestSection(t *testing.T) {
	m, err := Parse([]byte(sample))
	require.NoError(t, err)
	plain := []byte("\x00asm\x01\x00\x00\x00" + "\x00\x05\x04name" + "\x01\x04\x01\x60\x00\x00")
	none, err := Read(plain)
	require.NoError(t, err)
	require.Nil(t, none)
	with, err := Write(plain, m)
	require.NoError(t, err)
	require.Equal(t, string(plain), string(with[:len(plain)]))
	back, err := Read(with)
	require.NoError(t, err)
	require.Equal(t, m, back)
	again, err := Write(with, m)
	require.NoError(t, err)
	require.Equal(t, with, again)

	twice := append(append([]byte(nil), with...), with[len(plain):]...)
	_, err = Read(twice)
	require.EqualError(t, err, fmt.Sprintf("manifest: offset 0x%x: a second section spinsim.manifest, the first is at offset %d", len(with), len(plain)))
	bad := append([]byte(nil), with...)
	at := strings.Index(string(bad), "kv-store")
	bad[at] = '/'
	_, err = Read(bad)
	require.EqualError(t, err, fmt.Sprintf(`manifest: offset 0x%x: name: "/v-store", expected 1 to 64 letters, digits and any of _-.`, at-1))

	_, err = Read([]byte("no module"))
	require.ErrorIs(t, err, errNoModule)
	for n := 9; n < len(plain); n++ {
		_, err := Read(plain[:n])
		if n != 15 { // between two sections
			require.ErrorContains(t, err, "is cut off", n)
		}
	}
	_, err = Write(plain, &Manifest{Name: "a b"})
	require.ErrorContains(t, err, "name: ")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, -1, e.Offset)
}

// drawn draws a manifest that Check accepts.
func drawn(r *rapid.T) *Manifest {
	text := rapid.StringMatching(`[a-zA-Zäé<>&"\\ ]{0,20}`)
	m := &Manifest{
		Name: rapid.StringMatching(`[a-z][a-z0-9.-]{0,10}`).Draw(r, "name"), Version: rapid.StringMatching(`([0-9]\.[0-9])?`).Draw(r, "version"),
		Description: text.Draw(r, "description"),
	}
	for i := range rapid.IntRange(0, 3).Draw(r, "states") {
		s := &State{Name: fmt.Sprint("S", i), Description: text.Draw(r, "about")}
		s.Size, s.Fields = drawnFields(r, 3)
		m.States = append(m.States, s)
	}
	for i := range rapid.IntRange(0, 4).Draw(r, "handlers") {
		h := Handler{Export: fmt.Sprint("h", i), Kind: rapid.SampledFrom(append(Kinds(), "")).Draw(r, "kind")}
		if len(m.States) > 0 {
			h.State = rapid.SampledFrom(m.States).Draw(r, "state").Name
		}
		m.Handlers = append(m.Handlers, h)
	}
	if rapid.Bool().Draw(r, "needs") {
		m.Needs = Needs{Memory: drawnExpr(r), UserHeader: rapid.Int64Range(0, 100).Draw(r, "header"), Spaces: []Space{HandlerMemory}, PTOptions: []string{"flowctrl"}}
	}
	return m
}

func drawnExpr(r *rapid.T) Expr {
	e, err := ParseExpr(rapid.SampledFrom([]string{"0", "7", "0x10", "mtu", "hpus * contexts", "min(ranks, 5) << 2", "(rank + 1) % ranks"}).Draw(r, "expr"))
	require.NoError(r, err)
	return e
}

// drawnFields draws fields with gaps between them. It returns the size of the
// area that contains them.
func drawnFields(r *rapid.T, depth int) (size int64, fields []Field) {
	for i := range rapid.IntRange(1, 4).Draw(r, "fields") {
		f := Field{Name: fmt.Sprint("f", i), Dims: rapid.SliceOfN(rapid.Int64Range(1, 3), 0, 2).Draw(r, "array")}
		if len(f.Dims) == 0 {
			f.Dims = nil
		}
		if depth > 0 && rapid.IntRange(0, 3).Draw(r, "struct") == 0 {
			f.Size, f.Fields = drawnFields(r, depth-1)
		} else {
			f.Type = rapid.SampledFrom(Types()).Draw(r, "type")
			if rapid.Bool().Draw(r, "default") {
				f.Default = Const(rapid.Int64Range(0, 127).Draw(r, "value"))
			}
		}
		f.Offset = size + rapid.Int64Range(0, 3).Draw(r, "gap")
		n, ok := f.Bytes()
		require.True(r, ok)
		size = f.Offset + n
		fields = append(fields, f)
	}
	return size + rapid.Int64Range(0, 3).Draw(r, "tail"), fields
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := drawn(r)
		text, err := m.Encode()
		require.NoError(r, err)
		back, err := Parse(text)
		require.NoError(r, err, string(text))
		again, err := back.Encode()
		require.NoError(r, err)
		require.Equal(r, string(text), string(again))
		require.Equal(r, m, back)
	})
}

// FuzzParse checks that Parse does not panic. An accepted manifest is written
// in one form, and reading that form gives the same manifest.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"manifest":1}`))
	f.Add([]byte(`{"manifest":1,"states":[{"name":"S","size":8,"fields":[{"name":"a","offset":0,"type":"u8","array":[2,2,2]}]}]}`))
	f.Add([]byte(`{"manifest":1,"needs":{"memory":"1<<64<<64<<64"}}`))
	f.Add([]byte(`{"manifest":1,"name":"\ud800\udc00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.True(t, e.Offset >= 0 && e.Offset <= len(text), "%d of %d: %v", e.Offset, len(text), err)
			return
		}
		once, err := m.Encode()
		require.NoError(t, err)
		back, err := Parse(once)
		require.NoError(t, err)
		require.Equal(t, m, back)
		device := &Device{MTU: 4096, HPUs: 4, Contexts: 2, Rank: 1, Ranks: 8}
		for _, s := range m.States {
			if s.Size > 1<<10 {
				continue
			}
			b, err := s.Initial(device)
			if err != nil {
				continue
			}
			for n := range s.Numbers() {
				found, err := s.Lookup(n.Name)
				require.NoError(t, err)
				require.Equal(t, n, found)
				require.NotEmpty(t, n.Text(b))
			}
		}
	})
}

// FuzzRead checks that Read does not panic. A manifest written into any module
// is read back.
func FuzzRead(f *testing.F) {
	m, err := Parse([]byte(sample))
	require.NoError(f, err)
	plain := []byte("\x00asm\x01\x00\x00\x00" + "\x00\x05\x04name" + "\x01\x04\x01\x60\x00\x00")
	with, err := Write(plain, m)
	require.NoError(f, err)
	f.Add(plain)
	f.Add(with)
	f.Add(with[:len(with)-10])
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, module []byte) {
		if _, err := Read(module); err != nil {
			var e *Error
			if errors.As(err, &e) {
				require.True(t, e.Offset >= 0 && e.Offset <= len(module), "%d of %d: %v", e.Offset, len(module), err)
			}
		}
		with, err := Write(module, m)
		if err != nil {
			return
		}
		back, err := Read(with)
		require.NoError(t, err)
		require.Equal(t, m, back)
	})
}
