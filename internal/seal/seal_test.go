package seal

import (
	"bytes"
	"compress/gzip"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sample makes a file of a kind with a mark.
func sample(t require.TestingT, m Mark) []byte {
	switch m.Kind {
	case JSON, Kept:
		was := object
		if m.Kind == Kept {
			was = `{"key":"a","point":"p","result":1}`
		}
		text, err := Object([]byte(was+"\n"), m.Cut)
		require.NoError(t, err)
		return text
	case PNG:
		var out bytes.Buffer
		require.NoError(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, 3, 3))))
		return m.Picture(out.Bytes())
	case NDJSON:
		return m.Below([]byte("{\"a\":1}\n{\"a\":2, "), `"seal": "`, "\"}\n")
	}
	return m.Below([]byte("a,b\n1,2\n"), "# ", "\n")
}

func mark(t *rapid.T) Mark {
	return Mark{
		Kind: rapid.SampledFrom(Kinds).Draw(t, "kind"), Program: rapid.SampledFrom([]string{"devel", "v0.1.0", "v1 example.com/m@v2, x"}).Draw(t, "program"),
		Record: rapid.SampledFrom([]string{"", strings.Repeat("ab", 32)}).Draw(t, "record"),
		Cut:    rapid.OneOf(rapid.Just(""), rapid.Just("signal, 5 of 9 points"), rapid.StringN(1, 400, -1)).Draw(t, "cut"),
	}
}

// The check returns what the mark has.
func TestMarksComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mark(t)
		v, err := Check(bytes.NewReader(sample(t, m)))
		require.NoError(t, err)
		require.Contains(t, []State{Whole, Cut}, v.State, v.Wrong)
		require.Equal(t, m.Cut != "", v.State == Cut)
		if m.Kind == JSON || m.Kind == Kept {
			require.Equal(t, m.Cut, v.Cut)
			return
		}
		require.Equal(t, m.Kind, v.Kind)
		require.Equal(t, m.Record, v.Record)
		if m.Cut != "" {
			require.Equal(t, clean(m.Cut), v.Cut)
		}
	})
}

// Every flipped bit, every truncation and every byte more is noticed.
func TestEveryChangeIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was := sample(t, mark(t))
		is := bytes.Clone(was)
		switch at := rapid.IntRange(0, len(was)-1).Draw(t, "at"); rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			is[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			is = is[:at]
		case 2:
			is = append(is, byte(rapid.IntRange(0, 255).Draw(t, "byte")))
		}
		if plain(is) == plain(was) && plain(was) != "" {
			return // the layout of an object
		}
		v, err := Check(bytes.NewReader(is))
		require.NoError(t, err)
		if strings.HasSuffix(v.Cut, "is not whole") { // a program that was killed has begun it
			return
		}
		require.Contains(t, []State{Unsealed, Changed}, v.State, "%q\n%q", was, is)
	})
}

// A file is hashed as it is written, and checked as it is read, in pieces of
// any length. One that is packed is checked by its content.
func TestStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Mark{Kind: Capture, Program: "devel"}
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		w := NewWriter(io.MultiWriter(zip, io.Discard))
		if rapid.Bool().Draw(t, "plain") {
			w = NewWriter(&out)
		}
		for range rapid.IntRange(0, 5).Draw(t, "blocks") {
			_, err := w.Write(bytes.Repeat([]byte{7}, rapid.IntRange(0, 100_000).Draw(t, "bytes")))
			require.NoError(t, err)
		}
		require.NoError(t, w.Seal(m, []byte("("+m.String()+")")))
		if out.Len() == 0 || bytes.HasPrefix(out.Bytes(), []byte{0x1f}) {
			require.NoError(t, zip.Close())
		}
		v, err := Check(bytes.NewReader(out.Bytes()))
		require.NoError(t, err)
		require.Equal(t, &Verdict{Mark: m, State: Whole}, v)
	})
}

// Git and editors on Windows convert the ends of lines.
func TestLineEnds(t *testing.T) {
	text := Mark{Kind: CSV, Program: "devel"}.Below([]byte("a,b\n1,2\n"), "# ", "\n")
	const why = "its lines end with CR and LF now"
	v, err := Check(bytes.NewReader(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))))
	require.NoError(t, err)
	require.Equal(t, Changed, v.State)
	require.Contains(t, v.Wrong, why)
	v, err = Check(bytes.NewReader(bytes.Replace(text, []byte("1"), []byte("3"), 1)))
	require.NoError(t, err)
	require.Equal(t, Changed, v.State)
	require.NotContains(t, v.Wrong, why)
}

// A title that looks like a mark is none.
func TestMarkInATitle(t *testing.T) {
	m := Mark{Kind: Parquet, Program: "devel"}
	v, err := Check(bytes.NewReader(m.Fill([]byte("PAR1" + m.String() + " title " + Mark{Kind: CSV}.String()))))
	require.NoError(t, err)
	require.Equal(t, &Verdict{Mark: m, State: Whole}, v)
}

// Lines of kept results are checked one by one.
func TestKeptLines(t *testing.T) {
	line, err := Object([]byte(`{"key":"a","point":"p","result":1}`+"\n"), "")
	require.NoError(t, err)
	for text, want := range map[string]Verdict{
		string(line):                                {State: Whole},
		string(line) + string(line):                 {State: Whole},
		string(line) + string(line[:20]):            {State: Cut, Mark: Mark{Cut: "line 2 is not whole"}},
		string(line) + "{}\n" + string(line):        {State: Changed, Wrong: "line 2: no digest (sha256)"},
		string(line) + `{"a":1,"sha256":""}` + "\n": {State: Changed, Wrong: "line 2: the digest of its content is "},
	} {
		v, err := Check(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, Kept, v.Kind)
		require.Equal(t, want.State, v.State, text)
		require.Equal(t, want.Cut, v.Cut)
		require.Contains(t, v.Wrong, want.Wrong)
	}
}

// The end of an announced text is missing if there is no mark.
func TestAnnouncement(t *testing.T) {
	first := "//" + Announcement + "\nx\n"
	for text, want := range map[string]State{first: Changed, "// x\n": Unsealed, "": Unsealed, string(Mark{Kind: GOAL}.Below([]byte(first), "// ", "\n")): Whole} {
		v, err := Check(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, want, v.State, text)
		in, check := Reader(strings.NewReader(text))
		is, err := io.ReadAll(in)
		require.NoError(t, err)
		require.Equal(t, text, string(is))
		require.Equal(t, want == Changed, check(nil) != nil)
	}
}

// endless is a file such as /dev/zero.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// The rest of a text that is wrong is read only if it announces a seal.
func TestReaderOfEndlessText(t *testing.T) {
	in, check := Reader(endless{})
	_, err := io.ReadFull(in, make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, check(io.ErrUnexpectedEOF))
}
