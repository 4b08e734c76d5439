package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// inOrder is a group whose columns keep their order. That of the library sorts
// them by name.
type inOrder struct {
	parquet.Group
	place map[string]int
}

// Fields returns the columns in order.
func (g inOrder) Fields() []parquet.Field {
	return slices.SortedFunc(slices.Values(g.Group.Fields()), func(a, b parquet.Field) int {
		return cmp.Compare(g.place[a.Name()], g.place[b.Name()])
	})
}

// columnInfo is a column for programs.
type columnInfo struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Kind string `json:"kind"`
	Help string `json:"help,omitempty"`
}

// MarshalJSON writes key, unit, kind and help of the column.
func (c Column) MarshalJSON() ([]byte, error) {
	return json.Marshal(columnInfo{c.Key(), c.Unit, c.Kind.String(), c.Help})
}

// parquet writes the rows as an uncompressed Parquet file. It has the table's
// columns in order, named by their keys. Texts are strings, counts and sizes
// integers, flags booleans, and all others doubles in the unit of the key. A
// missing value is null. The metadata of the file has unit, kind and help of
// each column, the title, and the origin of the table with a seal.
func (t *Table) parquet() ([]byte, error) {
	schema := inOrder{parquet.Group{}, map[string]int{}}
	for i, c := range t.Columns {
		schema.Group[c.Key()], schema.place[c.Key()] = parquet.Optional(t.leaf(i)), i
	}
	columns, err := json.Marshal(t.Columns)
	if err != nil {
		return nil, err
	}
	options := []parquet.WriterOption{
		parquet.NewSchema("rows", schema), parquet.CreatedBy("spinsim", "", ""),
		parquet.KeyValueMetadata("spinsim.columns", string(columns)), parquet.KeyValueMetadata("spinsim.title", t.Title),
	}
	var m seal.Mark
	if t.Origin != nil {
		origin, err := json.Marshal(t.Origin)
		if err != nil {
			return nil, err
		}
		options = append(options, parquet.KeyValueMetadata("spinsim.provenance", string(origin)))
	}
	from, ok := t.Origin.(seal.Sealer)
	if ok {
		if m, err = seal.Of(from, seal.Parquet, t.Cut); err != nil {
			return nil, err
		}
		options = append(options, parquet.KeyValueMetadata("spinsim.seal", m.String()))
	}
	var out bytes.Buffer
	w := parquet.NewWriter(&out, options...)
	row := make(parquet.Row, len(t.Columns))
	for _, values := range t.rows {
		for i, v := range values {
			switch x := v.(type) {
			case string:
				v = strings.ToValidUTF8(x, "\uFFFD") // as in JSON
			case sim.Time:
				v, _ = float(t.Columns[i], x)
			case int64, uint64:
				if t.fractional(i) {
					v, _ = float(t.Columns[i], x)
				}
			}
			row[i] = parquet.ValueOf(v).Level(0, 1, i)
			if v == nil {
				row[i] = parquet.NullValue().Level(0, 0, i)
			}
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil || !ok {
		return out.Bytes(), err
	}
	return m.Fill(out.Bytes()), nil
}

// leaf is the type of a column.
func (t *Table) leaf(column int) parquet.Node {
	switch t.Columns[column].Kind {
	case Text:
		return parquet.String()
	case Flag:
		return parquet.Leaf(parquet.BooleanType)
	case Count, Size:
		isUnsigned := func(row []any) bool { _, is := row[column].(uint64); return is }
		switch {
		case t.fractional(column):
			return parquet.Leaf(parquet.DoubleType)
		case slices.ContainsFunc(t.rows, isUnsigned):
			return parquet.Uint(64)
		}
		return parquet.Leaf(parquet.Int64Type)
	}
	return parquet.Leaf(parquet.DoubleType)
}

// fractional reports whether a column of counts has numbers with a fraction.
func (t *Table) fractional(column int) bool {
	return t.Columns[column].Fractions && slices.ContainsFunc(t.rows, func(row []any) bool { _, is := row[column].(float64); return is })
}
