// Package page writes a report as one HTML file. The file needs no network, no
// other file and, except for sorting, no JavaScript.
//
// The whole content is text to html/template, which escapes it; characters that
// turn a line around are made visible. A policy in the page lets only the page's
// own script run, by its hash.
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

	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/report"
)

// Page is a report.
type Page struct {
	Title    string
	Made     string   // program that made the page, a line
	Lead     []string // answers to the reader's question from all sections, at the top
	Overview []Table  // of all sections
	Sections []Section
}

// Section is a result.
type Section struct {
	ID       string // letters, digits and -, different for each section
	Title    string
	From     string   // the file or other origin of the result; may be empty
	Cut      string   // why the result is not complete; "": it is
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
	Folded  bool // shown on demand
	Prose   bool // cells are sentences, on several lines
}

// Plot is a picture: an svg element from report.Table.SVG, and a description of
// it in words.
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

// Command is a line to type, and its purpose.
type Command struct{ Line, Help string }

//go:embed page.html
var pageText string

//go:embed page.css
var style string

//go:embed page.js
var script string

var parsed = template.Must(template.New("page").Parse(pageText))

// view is the input of the template.
type view struct {
	*Page
	Policy template.HTMLAttr
	Style  template.CSS
	Script template.JS
}

// Picture returns the plot for the template.
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
	_, err := io.WriteString(w, visible.Text(out.String()))
	return err
}

// ID makes an identifier from a text, and a number that makes it unique.
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
