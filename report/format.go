package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/sim"
)

// Format is a way to write a table.
type Format string

// Formats of [Table.Write].
const (
	TextFormat     Format = "table"    // aligned, for a terminal
	MarkdownFormat Format = "markdown" // the same numbers, for a document
	CSVFormat      Format = "csv"      // a header of keys, then exact values, then a seal after #
	// an array of objects, with keys in column order; if the table has an
	// origin, an object with the array as "rows", between "provenance" and
	// a seal
	JSONFormat    Format = "json"
	NDJSONFormat  Format = "ndjson"  // one object a line, the last one with a seal
	ParquetFormat Format = "parquet" // columns, for pandas and databases; binary
)

// Formats lists the formats in the order for the help text.
var Formats = []Format{TextFormat, MarkdownFormat, CSVFormat, JSONFormat, NDJSONFormat, ParquetFormat}

// ParseFormat returns the format with that name. The error lists all formats.
func ParseFormat(name string) (Format, error) {
	var names []string
	for _, f := range Formats {
		if string(f) == name {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", fmt.Errorf("unknown format %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Line returns a text as a line of a format for people. Characters that nobody
// sees are made visible. Markdown gets no markup from it.
func (f Format) Line(text string) string {
	text = visible.Line(text)
	if f != MarkdownFormat || !strings.ContainsAny(text, "\\`*_[]<>&|~") {
		return text
	}
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; c < utf8.RuneSelf && isMarkup(c, text[:i], text[i+1:]) {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// isMarkup reports whether Markdown may give a character between two texts a
// meaning: not _ within a word, not & before a space, not a single ~, and not a
// backslash before a letter.
func isMarkup(c byte, before, after string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch c {
	case '_':
		return !word(last) || !word(next)
	case '~':
		return last == '~' || next == '~'
	case '&':
		return next == '#' || word(next)
	case '\\':
		return next == utf8.RuneError || unicode.IsPunct(next) || unicode.IsSymbol(next)
	}
	return strings.IndexByte("`*[]<>|", c) >= 0
}

// Write writes t in the given format. Only text and Markdown have title, answer
// and notes. Text for a [Narrow] writer is folded to its width. The formats for
// programs have a seal, if an experiment or command has made the table.
func (t *Table) Write(w io.Writer, f Format) error {
	var out []byte
	var err error
	switch f {
	case TextFormat:
		out = []byte(t.text(widthOf(w)))
	case MarkdownFormat:
		out = []byte(t.markdown())
	case CSVFormat:
		out, err = t.csv()
	case JSONFormat:
		out, err = t.document()
	case NDJSONFormat:
		out, err = t.ndjson()
	case ParquetFormat:
		if widthOf(w) > 0 {
			return fmt.Errorf("%s is no text for a terminal: send it into a file, such as > result.parquet", f)
		}
		w = Exact(w)
		out, err = t.parquet()
	default:
		_, err = ParseFormat(string(f))
	}
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// csv writes rows that spreadsheets and programs read. The seal is below them.
func (t *Table) csv() ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	record := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		record[i] = csvText(c.Key())
	}
	err := w.Write(record)
	for _, row := range t.rows {
		for i, v := range row {
			if s, isText := v.(string); isText {
				record[i] = csvText(s)
			} else {
				record[i] = exact(t.Columns[i], v)
			}
		}
		if err == nil {
			err = w.Write(record)
		}
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	origin, ok := t.Origin.(seal.Sealer)
	if err != nil || !ok {
		return out.Bytes(), err
	}
	m, err := seal.Of(origin, seal.CSV, t.Cut)
	return m.Below(out.Bytes(), "# ", "\n"), err
}

// number is a text that a spreadsheet takes for a number, with its sign.
var number = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)

// csvText returns a text for CSV. A spreadsheet would compute a text that begins
// as a formula. So it gets an apostrophe in front, which the spreadsheet shows
// as text (OWASP, CSV injection); so does what already has one, so that a
// program which removes one apostrophe gets the text back.
func csvText(s string) string {
	s = visible.Line(s)
	if formula := strings.TrimLeft(s, "'"); len(formula) > 1 && strings.ContainsRune("=+-@", rune(formula[0])) && !number.MatchString(s) {
		s = "'" + s
	}
	return s
}

// ndjson writes the rows as lines. The last row has the seal as its last field,
// which covers the bytes: so characters that nobody sees are escapes before the
// standard output makes them such.
func (t *Table) ndjson() ([]byte, error) {
	out, err := t.json("", "\n", "\n")
	origin, ok := t.Origin.(seal.Sealer)
	if err != nil || !ok {
		return out, err
	}
	out, opening := bytes.TrimSuffix([]byte(visible.Text(string(out))), []byte("}\n")), ", "
	if len(t.rows) == 0 {
		opening = "{"
	}
	m, err := seal.Of(origin, seal.NDJSON, t.Cut)
	return m.Below(out, opening+`"seal": "`, "\"}\n"), err
}

// document writes the rows as one JSON value.
func (t *Table) document() ([]byte, error) {
	if t.Origin == nil {
		return t.json("[\n  ", ",\n  ", "\n]\n")
	}
	var out bytes.Buffer
	out.WriteString("{\n  \"provenance\": ")
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("  ", "  ")
	if err := encoder.Encode(t.Origin); err != nil {
		return nil, err
	}
	out.Truncate(out.Len() - 1)
	if len(t.Answer) > 0 && t.Cut == "" { // else it is no answer
		out.WriteString(",\n  \"answer\": ")
		if err := encoder.Encode(t.Answer); err != nil {
			return nil, err
		}
		out.Truncate(out.Len() - 1)
	}
	rows, err := t.json("[\n    ", ",\n    ", "\n  ]\n")
	if err != nil {
		return nil, err
	}
	out.WriteString(",\n  \"rows\": ")
	out.Write(rows)
	for _, f := range t.Further {
		out.Truncate(out.Len() - 1)
		if rows, err = f.json("[\n    ", ",\n    ", "\n  ]\n"); err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, ",\n  %q: %s", f.Name, rows)
	}
	out.WriteString("}\n")
	return seal.Object(out.Bytes(), t.Cut)
}

// json writes the rows as objects between the given brackets.
func (t *Table) json(opening, separator, closing string) ([]byte, error) {
	if len(t.rows) == 0 {
		if opening == "" {
			return nil, nil
		}
		return []byte("[]\n"), nil
	}
	var out bytes.Buffer
	out.WriteString(opening)
	for i, row := range t.rows {
		if i > 0 {
			out.WriteString(separator)
		}
		for j, v := range row {
			out.WriteString([]string{"{", ", "}[min(j, 1)])
			if err := writeString(&out, t.Columns[j].Key()); err != nil {
				return nil, err
			}
			out.WriteString(": ")
			if s, isText := v.(string); isText {
				if err := writeString(&out, s); err != nil {
					return nil, err
				}
			} else if v == nil {
				out.WriteString("null")
			} else {
				out.WriteString(exact(t.Columns[j], v))
			}
		}
		out.WriteByte('}')
	}
	out.WriteString(closing)
	return out.Bytes(), nil
}

// writeString writes s as JSON, and does not escape < and &.
func writeString(out *bytes.Buffer, s string) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1)
	return nil
}

// exact returns a value for programs, which reads back unchanged.
func exact(c Column, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return exactNumber(v)
	case sim.Time:
		return exactTime(v, durationUnits[c.Unit])
	}
	return ""
}

// exactNumber prefers digits to powers of ten where people do, and writes no
// sign before 0.
func exactNumber(v float64) string {
	if v == 0 {
		return "0"
	}
	if size := math.Abs(v); size >= 1e-6 && size < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// exactTime returns t as a decimal number of units, with all its digits.
func exactTime(t, unit sim.Time) string {
	s := strconv.FormatInt(int64(t/unit), 10)
	rest := t % unit
	if rest == 0 {
		return s
	}
	if rest < 0 {
		rest = -rest
		if t/unit == 0 {
			s = "-0"
		}
	}
	width := len(strconv.FormatInt(int64(unit), 10)) - 1
	return s + "." + strings.TrimRight(fmt.Sprintf("%0*d", width, int64(rest)), "0")
}
