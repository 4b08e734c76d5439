// Package page writes a report as one HTML file that needs nothing else: no
// network, no other file, and, but for sorting, no JavaScript.
//
// All that a page says is text to html/template, which escapes it; a policy in
// the page lets no script run but the page's own, by its hash.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/spinsim/spinsim/report"
)

// Page is a report.
type Page struct {
	Title    string
	Made     string   // by what the page was made, a line
	Lead     []string // what the reader wanted to know of all sections, first of all
	Overview []Table  // of all sections
	Sections []Section
}

// Section is a result.
type Section struct {
	ID       string // letters, digits and -, another for each section
	Title    string
	From     string   // the file, or what else the result comes from; may be empty
	Answer   []string // sentences
	Tables   []Table
	Plots    []Plot
	Notes    []string
	Profiles []Profile
	Commands []Command // that make the result again
	Facts    [][2]string
}

// Table is a table of a section.
type Table struct {
	Caption string
	Grid    *report.Grid
	Folded  bool // shown when the reader asks for it
	Prose   bool // texts of cells are sentences, on several lines
}

// Plot is a picture: an element svg by report.Table.SVG, and in words what it shows.
type Plot struct {
	SVG []byte
	Alt string
}

// Profile is a device and network with its values.
type Profile struct {
	Name   string // with hash and overrides
	Values []Value
}

// Value is a field of a profile.
type Value struct{ Path, Value, Source string }

// Command is a line to type, and what it does.
type Command struct{ Line, Help string }

//go:embed page.html
var pageText string

//go:embed page.css
var style string

//go:embed page.js
var script string

var parsed = template.Must(template.New("page").Parse(pageText))

// view is what the template reads.
type view struct {
	*Page
	Policy template.HTMLAttr
	Style  template.CSS
	Script template.JS
}

// Picture is the plot for the template.
func (p Plot) Picture() template.HTML {
	return template.HTML(p.SVG) //nolint:gosec // package report has made it, and escaped every text
}

// Write writes the page.
func Write(w io.Writer, p *Page) error {
	sum := sha256.Sum256([]byte(script))
	policy := "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	var out bytes.Buffer
	v := view{p, template.HTMLAttr(`content="` + policy + `"`), template.CSS(style), template.JS(script)} //nolint:gosec // the page's own
	if err := parsed.Execute(&out, v); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// ID makes an identifier of a text, with a number by which it differs from others.
func ID(text string, number int) string {
	var id strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			id.WriteRune(r)
		} else if s := id.String(); s != "" && !strings.HasSuffix(s, "-") {
			id.WriteByte('-')
		}
	}
	return fmt.Sprintf("%s-%d", strings.Trim("r-"+id.String(), "-"), number)
}
