package handlerlab

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/sim"
)

func TestParsePackets(t *testing.T) {
	got, err := ParsePackets("p.txt", []byte(`
# a comment
0102 ff*3 "a # \x00"   # and one behind
+ 04
source=3 offset=0x10 match_bits=5 hdr_data=0xffffffffffffffff at=1.5us 00
at=0
+00*0
`))
	require.NoError(t, err)
	require.Equal(t, []Message{
		{Line: 3, Source: AnySource, Data: []byte("\x01\x02\xff\xff\xffa # \x00\x04")},
		{Line: 5, Source: 3, Offset: 16, MatchBits: 5, HdrData: 1<<64 - 1, At: 1500 * sim.Nanosecond, Data: []byte{0}},
		{Line: 6, Source: AnySource},
	}, got)
}

// An error names the wrong line of a packets file and the expected form.
func TestParsePacketsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "p.txt: no message",
		"# only this":          "p.txt: no message",
		"00\n0g":               `p.txt:2: "0g": expected pairs of hexadecimal digits`,
		"000":                  `p.txt:1: "000": expected pairs`,
		"+00":                  "p.txt:1: there is no message to go on with",
		"00*x":                 `p.txt:1: "00\*x": expected a number`,
		"00*99999999999999999": "p.txt:1: .* expected a number",
		"00*67108865":          "p.txt:1: ",
		"00*67108864 00":       "p.txt:1: more than 67108864 bytes",
		`"open`:                "p.txt:1: text without closing quote",
		"source=64 00":         `p.txt:1: source: 64, expected 0 to 63`,
		"offset=-1 00":         `p.txt:1: offset: "-1" is no number of 64 bits`,
		"colour=3 00":          "p.txt:1: no field colour, expected source, ",
		"at=2s 00":             "p.txt:1: at: 2s, expected 0 to 1 s",
		"at=soon 00":           "p.txt:1: at: ",
		"00 source=1":          `p.txt:1: "source=1": expected pairs`,
	} {
		_, err := ParsePackets("p.txt", []byte(text))
		require.Error(t, err, text)
		require.Regexp(t, want, err.Error(), text)
	}
}

func FuzzParsePackets(f *testing.F) {
	f.Add([]byte("source=2 0102 ff*3 \"text\"\n+00"))
	f.Add([]byte("at=1us\n\"\\x00\"*3"))
	f.Fuzz(func(t *testing.T, text []byte) {
		messages, err := ParsePackets("p", text)
		for _, m := range messages {
			require.NoError(t, err)
			require.LessOrEqual(t, len(m.Data), maxMessage)
			require.True(t, m.Source >= AnySource && m.Source <= MaxNode && m.At >= 0)
		}
	})
}

func TestFormat(t *testing.T) {
	f, err := ParseFormat("u64, u32*2,u16,i8,u8,f32")
	require.NoError(t, err)
	require.Len(t, f.state.Fields, 7)
	require.Equal(t, int64(24), f.state.Size)
	for text, want := range map[string]string{
		"":            `no type ""`,
		"u64,int":     `no type "int", expected one of u8`,
		"u32,u64":     `field 1, u64, would begin at byte 4, but handlers have it at a multiple of 8: spell out the gap, such as u8\*4`,
		"u8*0":        `"u8\*0": expected a number from 1`,
		"u8*5000":     `expected a number from 1 to 4096`,
		"u8*4096,u8":  "more than 4096 fields",
		"u8*99999999": "expected a number",
	} {
		_, err := ParseFormat(text)
		require.Error(t, err, text)
		require.Regexp(t, want, err.Error(), text)
	}
}

func TestParseState(t *testing.T) {
	f, err := ParseFormat("u16,i16,u32,f64,i64,u8")
	require.NoError(t, err)
	s, err := ParseState("0xffff, -2, ct3, 0.5, -1", f, nil)
	require.NoError(t, err)
	require.Equal(t, "\xff\xff\xfe\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xe0\x3f\xff\xff\xff\xff\xff\xff\xff\xff\x00", string(s.Bytes))
	require.Equal(t, []CounterRef{{Offset: 4, Counter: 3}}, s.Counters)
	s, err = ParseState("", f, nil)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 25), s.Bytes)
	s, err = ParseState("0102 00*2", nil, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 0, 0}, s.Bytes)
	for text, want := range map[string]string{
		"65536":         `field 0: 65536, expected 0 to 65535 for u16`,
		"0,0,-1":        `field 2: -1, expected 0 to 4294967295 for u32`,
		"ct0":           `field 0: "ct0": there is no variable ct0`,
		"0,0,ct64":      `field 2: "ct64": expected ct0 to ct63`,
		"0,0,0,x":       `field 3: "x": there is no variable x`,
		"1,2,3,4,5,6,7": "7 values for 6 fields",
		"010":           "field 0: \"010\": 010: a decimal number does not begin with 0",
	} {
		_, err := ParseState(text, f, nil)
		require.ErrorContains(t, err, want, text)
	}
}

// With names, missing values come from the manifest, and arithmetic sees the
// device.
func TestParseNamedState(t *testing.T) {
	f := FormatOf(handlers.Must("bcast").Manifest().States[0])
	d := &manifest.Device{MTU: 2048, Rank: 3, Ranks: 8}
	s, err := ParseState(" root=ranks - 1, match_bits = 0xff ,md=ct2", f, d)
	require.NoError(t, err)
	require.Equal(t, []CounterRef{{Offset: 24, Counter: 2}}, s.Counters)
	var state bcast.State
	require.NoError(t, f.state.Read(s.Bytes, &state))
	require.Equal(t, bcast.State{MatchBits: 255, Rank: 3, Ranks: 8, Root: 7, MaxPayload: 2048}, state)
	s, err = ParseState("0102", f, d)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2}, s.Bytes, "hexadecimal, as for a module that says nothing")
	for text, want := range map[string]string{
		"roots=1":       "no field roots, expected one of match_bits, pt, rank, ranks, root, md, max_payload",
		"root=1,2":      `"2": expected NAME=VALUE`,
		"root=1,root=2": "root is given twice",
		"ranks=0":       "ranks: 0, expected at least 1",
		"root=-1":       "root: -1, expected 0 to 4294967295 for u32",
		"root=":         `root: "": a number is missing`,
		"rank=ct99":     `rank: "ct99": expected ct0 to ct63`,
	} {
		_, err := ParseState(text, f, d)
		require.ErrorContains(t, err, want, text)
	}
	_, err = ParseState("root=1", nil, d)
	require.ErrorContains(t, err, "the module does not name the fields of its state")
}

// The table of a state shows the text that produces the state.
func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(manifest.Types()).Draw(t, "type")
		size := int(typ.Size())
		b := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "bytes")
		f, err := ParseFormat(string(typ))
		require.NoError(t, err)
		n, err := f.state.Lookup("0")
		require.NoError(t, err)
		text := n.Text(b)
		if text == "NaN" {
			return // has many encodings
		}
		s, err := ParseState(text, f, nil)
		require.NoError(t, err)
		require.Equal(t, b, s.Bytes)
	})
}

func TestNanoseconds(t *testing.T) {
	for n, want := range map[sim.Time]string{0: "0", 1: "0.001", 250_000: "250", 712_180: "712.18", 1_000_100: "1000.1"} {
		require.Equal(t, want, ns(n, -1))
	}
	require.Equal(t, "712.180", ns(712_180, 3))
	require.Equal(t, "712.1", ns(712_180, 1))
	require.Equal(t, "712", ns(712_180, 0))
}

func TestCompare(t *testing.T) {
	require.NoError(t, Compare("want.txt", []byte("a \r\nb\n\n"), []byte("a\nb")))
	require.EqualError(t, Compare("want.txt", []byte("a\nb\n"), []byte("a\nc\n")), "want.txt:2: expected:\n  b\ngot:\n  c")
	require.EqualError(t, Compare("want.txt", []byte("a\nb\n"), []byte("a\n")), "want.txt:2: expected:\n  b\nbut there is nothing more")
	require.EqualError(t, Compare("want.txt", []byte("a\n"), []byte("a\nb\n")), "want.txt:2: expected no more lines, got:\n  b")
}
