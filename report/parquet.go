package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Types and encodings of the Parquet format (apache/parquet-format, parquet.thrift).
const (
	physicalBool   = 0
	physicalInt64  = 2
	physicalDouble = 5
	physicalBytes  = 6

	convertedUTF8   = 0
	convertedUint64 = 14

	encodingPlain = 0
	encodingRLE   = 3
	optional      = 1 // a column may have no value in a row

	parquetMagic   = "PAR1"
	parquetVersion = 1
)

// parquet writes the rows as an uncompressed Parquet file of one row group. It
// has the table's columns in order, named by their keys. Texts are strings,
// counts and sizes integers, flags booleans, and all others doubles in the unit
// of the key. A missing value is null. The metadata of each column has its
// unit, kind and help. The metadata of the file has the same for all columns,
// the title, and the origin of the table.
func (t *Table) parquet() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(parquetMagic)
	chunks := make([]chunk, len(t.Columns))
	for i := range t.Columns {
		chunks[i] = t.chunk(i, int64(out.Len()))
		out.Write(chunks[i].page)
	}
	footer, err := t.footer(chunks)
	if err != nil {
		return nil, err
	}
	out.Write(footer)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer)))) //nolint:gosec // a description of columns
	out.WriteString(parquetMagic)
	return out.Bytes(), nil
}

// chunk is a column in a file.
type chunk struct {
	physical  int32
	converted int32 // -1: none
	at        int64 // offset of the page
	page      []byte
}

// chunk makes the page of a column: the header, the levels (which rows have a
// value), and the values.
func (t *Table) chunk(column int, at int64) chunk {
	c := t.Columns[column]
	k := chunk{at: at, converted: -1}
	switch c.Kind {
	case Text:
		k.physical, k.converted = physicalBytes, convertedUTF8
	case Flag:
		k.physical = physicalBool
	case Count, Size:
		k.physical = physicalInt64
	default:
		k.physical = physicalDouble
	}
	var there []bool
	var values, bits []byte
	n := 0
	for _, row := range t.rows {
		v := row[column]
		there = append(there, v != nil)
		switch v := v.(type) {
		case string:
			values = appendText(values, v)
		case bool:
			if n%8 == 0 {
				bits = append(bits, 0)
			}
			if v {
				bits[n/8] |= 1 << (n % 8)
			}
		case int64:
			values = binary.LittleEndian.AppendUint64(values, uint64(v)) //nolint:gosec // two's complement
		case uint64:
			values, k.converted = binary.LittleEndian.AppendUint64(values, v), convertedUint64
		case sim.Time:
			f, _ := float(c, v)
			values = binary.LittleEndian.AppendUint64(values, math.Float64bits(f))
		case float64:
			values = binary.LittleEndian.AppendUint64(values, math.Float64bits(v))
		default:
			continue
		}
		n++
	}
	levels := runLengths(there)
	body := binary.LittleEndian.AppendUint32(nil, uint32(len(levels))) //nolint:gosec // a few bytes a run
	body = slices.Concat(body, levels, values, bits)
	var h thrift
	h.i32(1, 0)                // data page
	h.i32(2, int32(len(body))) //nolint:gosec // of a table
	h.i32(3, int32(len(body))) //nolint:gosec // likewise
	h.begin(5)
	h.i32(1, int32(len(there))) //nolint:gosec // rows
	h.i32(2, encodingPlain)
	h.i32(3, encodingRLE)
	h.i32(4, encodingRLE)
	h.end()
	h.stop()
	k.page = append(h.out, body...)
	return k
}

// appendText appends a text with its length. Invalid UTF-8 is replaced as in
// JSON.
func appendText(to []byte, text string) []byte {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return append(binary.LittleEndian.AppendUint32(to, uint32(len(text))), text...) //nolint:gosec // a text of a table
}

// runLengths encodes which rows have a value, as runs of one-bit levels (the
// RLE encoding of the format).
func runLengths(there []bool) (out []byte) {
	for i := 0; i < len(there); {
		j := i
		for j < len(there) && there[j] == there[i] {
			j++
		}
		out = binary.AppendUvarint(out, uint64(j-i)<<1) //nolint:gosec // positive
		if there[i] {
			out = append(out, 1)
		} else {
			out = append(out, 0)
		}
		i = j
	}
	return out
}

// columnInfo is the metadata of a column.
type columnInfo struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	Kind string `json:"kind"`
	Help string `json:"help,omitempty"`
}

// footer describes the file.
func (t *Table) footer(chunks []chunk) ([]byte, error) {
	infos := make([]columnInfo, len(t.Columns))
	for i, c := range t.Columns {
		infos[i] = columnInfo{c.Key(), c.Unit, c.Kind.String(), c.Help}
	}
	columns, err := json.Marshal(infos)
	if err != nil {
		return nil, err
	}
	meta := [][2]string{{"spinsim.columns", string(columns)}, {"spinsim.title", t.Title}}
	if t.Origin != nil {
		origin, err := json.Marshal(t.Origin)
		if err != nil {
			return nil, err
		}
		meta = append(meta, [2]string{"spinsim.provenance", string(origin)})
	}
	var h thrift
	h.i32(1, parquetVersion)
	h.list(2, len(t.Columns)+1, thriftStruct)
	h.item()
	h.text(4, "rows")
	h.i32(5, int32(len(t.Columns))) //nolint:gosec // few
	h.stop()
	for i, k := range chunks {
		h.item()
		h.i32(1, k.physical)
		h.i32(3, optional)
		h.text(4, infos[i].Name)
		if k.converted >= 0 {
			h.i32(6, k.converted)
		}
		h.stop()
	}
	h.i64(3, int64(len(t.rows)))
	h.list(4, 1, thriftStruct)
	h.item()
	h.list(1, len(chunks), thriftStruct)
	total := int64(0)
	for i, k := range chunks {
		total += int64(len(k.page))
		h.item()
		h.i64(2, k.at)
		h.begin(3)
		k.describe(&h, infos[i], len(t.rows))
		h.end()
		h.stop()
	}
	h.i64(2, total)
	h.i64(3, int64(len(t.rows)))
	h.stop()
	h.keyValues(5, meta)
	h.text(6, "spinsim")
	h.stop()
	return h.out, nil
}

// describe writes the metadata of a column.
func (k *chunk) describe(h *thrift, c columnInfo, rows int) {
	h.i32(1, k.physical)
	h.list(2, 2, thriftI32)
	h.varint(encodingPlain)
	h.varint(encodingRLE)
	h.list(3, 1, thriftBinary)
	h.bytes(c.Name)
	h.i32(4, 0) // not compressed
	h.i64(5, int64(rows))
	h.i64(6, int64(len(k.page)))
	h.i64(7, int64(len(k.page)))
	h.keyValues(8, [][2]string{{"unit", c.Unit}, {"kind", c.Kind}, {"help", c.Help}})
	h.i64(9, k.at)
}

// checkBinary refuses to write binary data to a terminal.
func checkBinary(columns int) error {
	if columns > 0 {
		return fmt.Errorf("%s is no text for a terminal: send it into a file, such as > result.parquet", ParquetFormat)
	}
	return nil
}
