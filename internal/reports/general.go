package reports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/report"
)

// member is a field of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the fields of an object in their order, or nil if the text is
// not an object.
func members(text []byte) (list []member) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil
		}
		list = append(list, member{key, v})
	}
	return list
}

// general makes a section of a document without experiment: its lists of
// objects are tables, its other values facts.
func general(r *provenance.Record, document []byte) (*Result, error) {
	out := &Result{}
	out.Title = r.Command
	for _, m := range members(document) {
		if m.key == "provenance" || slices.Contains(seal.Fields, m.key) {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(m.value, &list) == nil && len(list) > 0 && members(list[0]) != nil {
			g, err := grid(list)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.key, err)
			}
			out.Tables = append(out.Tables, page.Table{Caption: m.key, Grid: g})
			continue
		}
		out.Facts = append(out.Facts, [2]string{m.key, plain(m.value)})
	}
	if len(out.Tables) == 0 && len(out.Facts) == 0 {
		return nil, errors.New("nothing but its provenance: expected a result")
	}
	return out, nil
}

// maxColumns is the largest number of different keys in a list of objects: each
// is a cell of every row.
const maxColumns = 500

// grid lays objects out in a table with a column for each key, in order of
// appearance.
func grid(list []json.RawMessage) (*report.Grid, error) {
	g := &report.Grid{}
	at := map[string]int{}
	for _, row := range list {
		cells := make([]report.Cell, len(g.Headings))
		for i := range cells {
			cells[i].Text = "–"
		}
		for _, m := range members(row) {
			i, known := at[m.key]
			if !known {
				if i = len(g.Headings); i == maxColumns {
					return nil, fmt.Errorf("more than %d different keys", maxColumns)
				}
				at[m.key] = i
				g.Headings = append(g.Headings, report.Heading{Text: m.key, Number: true})
				for r := range g.Rows {
					g.Rows[r] = append(g.Rows[r], report.Cell{Text: "–"})
				}
				cells = append(cells, report.Cell{})
			}
			cells[i] = report.Cell{Text: plain(m.value)}
			var n json.Number
			if json.Unmarshal(m.value, &n) == nil && n != "" && m.value[0] != '"' {
				cells[i].Value = n.String()
			} else if string(m.value) != "null" {
				g.Headings[i].Number = false
			}
		}
		g.Rows = append(g.Rows, cells)
	}
	return g, nil
}

// plain returns a value in a readable form.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
		return s
	}
	if string(v) == "null" {
		return "–"
	}
	var out bytes.Buffer
	if json.Compact(&out, v) != nil {
		return string(v)
	}
	return out.String()
}

// Quoted returns words in the form that a shell reads.
func Quoted(words ...string) string {
	all := make([]string, len(words))
	for i, w := range words {
		if all[i] = w; w == "" || strings.ContainsFunc(w, func(r rune) bool { return !safe(r) }) {
			all[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}

// safe reports whether a character has no special meaning to a shell.
func safe(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./,=:@%+", r)
}
