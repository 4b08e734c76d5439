package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/seal"
)

// checked returns the verdict on bytes.
func checked(t require.TestingT, data []byte) *seal.Verdict {
	v, err := seal.Check(bytes.NewReader(data))
	require.NoError(t, err)
	return v
}

// sealedFormats are the formats for programs. Every format is here or in the
// test as one for people.
var sealedFormats = map[Format]seal.Kind{CSVFormat: seal.CSV, JSONFormat: seal.JSON, NDJSONFormat: seal.NDJSON, ParquetFormat: seal.Parquet}

// Every format for programs has a seal with the kind, the origin, and why the
// table is cut. Each flipped bit and each missing end is noticed.
func TestTablesAreSealed(t *testing.T) {
	hash, err := seal.Hash(origin{"v1"})
	require.NoError(t, err)
	for _, f := range Formats {
		kind, sealed := sealedFormats[f]
		for _, rows := range []int{0, 1, 3} {
			for _, cut := range []string{"", "interrupted, 3 of 9 points"} {
				table := New(Column{Name: "x", Kind: Count}, Column{Name: "text"})
				table.Title, table.Origin, table.Cut = seal.Mark{Kind: seal.CSV}.String(), origin{"v1"}, cut
				for i := range rows {
					table.Add(i, "a, \"b\"\n# c")
				}
				data := render(t, table, f)
				v := checked(t, data)
				if !sealed {
					require.Contains(t, []Format{TextFormat, MarkdownFormat}, f)
					continue
				}
				require.Equal(t, kind, v.Kind)
				require.Equal(t, hash, v.Record)
				require.Equal(t, cut, v.Cut)
				require.Equal(t, map[bool]seal.State{false: seal.Whole, true: seal.Cut}[cut != ""], v.State, v.Wrong)
				if kind == seal.JSON {
					continue // package seal tests objects
				}
				rapid.Check(t, func(t *rapid.T) {
					is, at := bytes.Clone(data), rapid.IntRange(0, len(data)-1).Draw(t, "at")
					is[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
					require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, checked(t, is).State)
					require.Contains(t, []seal.State{seal.Unsealed, seal.Changed}, checked(t, data[:at]).State)
				})
			}
		}
	}
}

// Programs that know comments read a sealed CSV table as before.
func TestSealOfCSVIsAComment(t *testing.T) {
	table := New(Column{Name: "x", Kind: Count})
	table.Origin = origin{"v1"}
	table.Add(1)
	r := csv.NewReader(bytes.NewReader(render(t, table, CSVFormat)))
	r.Comment = '#'
	rows, err := r.ReadAll()
	require.NoError(t, err)
	require.Equal(t, [][]string{{"x"}, {"1"}}, rows)
}

// Pictures are sealed, and stay pictures.
func TestPicturesAreSealed(t *testing.T) {
	table := pingPong()
	table.Origin = origin{"v1 -- x"}
	for name, kind := range map[string]seal.Kind{"a.svg": seal.SVG, "a.png": seal.PNG} {
		name = filepath.Join(t.TempDir(), name)
		require.NoError(t, table.PlotFile(name, everything))
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		v := checked(t, data)
		require.Equal(t, kind, v.Kind)
		require.Equal(t, seal.Whole, v.State)
		if kind == seal.PNG {
			in := bytes.NewReader(data)
			_, err = png.Decode(in)
			require.NoError(t, err)
			continue
		}
		for d := xml.NewDecoder(bytes.NewReader(data)); err == nil; {
			_, err = d.Token()
		}
		require.ErrorIs(t, err, io.EOF)
	}
}
