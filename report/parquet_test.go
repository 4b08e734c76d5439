package report

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// An independent library reads every value back, with name, unit and help of
// its column.
func TestParquetIsReadBack(t *testing.T) {
	columns := []Column{
		{Name: "mode", Help: "what is compared"},
		{Name: "ranks", Kind: Count},
		{Name: "size", Kind: Size, Unit: "B"},
		{Name: "latency", Kind: Duration, Unit: "us", Help: "half of it"},
		{Name: "rate", Kind: Number, Unit: "GiBps"},
		{Name: "durable", Kind: Flag},
		{Name: "share", Kind: Share},
		{Name: "seed", Kind: Count},
	}
	rapid.Check(t, func(r *rapid.T) {
		table := New(columns...)
		table.Title, table.Origin = "a title", made{}
		for range rapid.IntRange(0, 40).Draw(r, "rows") {
			row := []any{
				rapid.String().Draw(r, "mode"), rapid.Int64().Draw(r, "ranks"), rapid.Int64().Draw(r, "size"), sim.Time(rapid.Int64().Draw(r, "latency")), rapid.Float64().Draw(r, "rate"),
				rapid.Bool().Draw(r, "durable"), rapid.Float64().Draw(r, "share"), rapid.Uint64().Draw(r, "seed"),
			}
			for i := range row {
				if rapid.IntRange(0, 3).Draw(r, "none") == 0 {
					row[i] = nil
				}
			}
			table.Add(row...)
		}
		var out bytes.Buffer
		require.NoError(t, table.Write(&out, ParquetFormat))
		f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		require.NoError(t, err)
		title, _ := f.Lookup("spinsim.title")
		require.Equal(t, "a title", title)
		origin, _ := f.Lookup("spinsim.provenance")
		require.JSONEq(t, `{"by":"me"}`, origin)
		text, _ := f.Lookup("spinsim.columns")
		var described []columnInfo
		require.NoError(t, json.Unmarshal([]byte(text), &described))
		for i, c := range columns {
			require.Equal(t, c.Key(), f.Schema().Fields()[i].Name())
			require.Equal(t, columnInfo{c.Key(), c.Unit, c.Kind.String(), c.Help}, described[i])
		}
		var again bytes.Buffer
		require.NoError(t, table.Write(&again, ParquetFormat))
		require.Equal(t, out.Bytes(), again.Bytes())
		require.EqualValues(t, table.Len(), f.NumRows())
		rows := make([]parquet.Row, table.Len()+1)
		n := 0
		if table.Len() > 0 {
			reader := f.RowGroups()[0].Rows()
			n, _ = reader.ReadRows(rows)
			require.NoError(t, reader.Close())
		}
		require.Equal(t, table.Len(), n)
		for i, row := range table.Rows() {
			for k, want := range row {
				require.Equal(t, want, readBack(columns[k], want, rows[i][k]), columns[k].Name)
			}
		}
	})
}

// made is the origin of the test's table.
type made struct{}

func (made) Lines() []string                           { return []string{"by me"} }
func (made) MarshalJSON() ([]byte, error)              { return []byte(`{"by":"me"}`), nil }
func (made) Seal() (program, record string, err error) { return "", "", nil }

// readBack converts a value of the library to a value of the table. Times are
// doubles there; it returns want if the double is the same.
func readBack(c Column, want any, v parquet.Value) any {
	if v.IsNull() {
		return nil
	}
	switch c.Kind {
	case Text:
		return v.String()
	case Flag:
		return v.Boolean()
	case Count, Size:
		if _, big := want.(uint64); big {
			return v.Uint64()
		}
		return v.Int64()
	case Duration:
		if f, _ := float(c, want); math.Abs(f-v.Double()) == 0 {
			return want
		}
	}
	return v.Double()
}

// A terminal gets no binary data.
func TestParquetIsNotForTerminals(t *testing.T) {
	table := New(Column{Name: "a"})
	out := &narrowBuffer{}
	require.ErrorContains(t, table.Write(out, ParquetFormat), "parquet is no text for a terminal")
	require.Zero(t, out.Len())
}

type narrowBuffer struct{ bytes.Buffer }

func (*narrowBuffer) Columns() int { return 80 }

// A text with invalid UTF-8, such as a file name, becomes valid for every
// reader.
func TestParquetTextsAreUTF8(t *testing.T) {
	table := New(Column{Name: "file"})
	table.Add("a\xffb")
	var out bytes.Buffer
	require.NoError(t, table.Write(&out, ParquetFormat))
	require.Contains(t, out.String(), "a\uFFFDb")
	require.NotContains(t, out.String(), "a\xffb")
}
