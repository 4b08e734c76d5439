package reports_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/reports"
	"github.com/spinsim/spinsim/internal/seal"
	_ "github.com/spinsim/spinsim/internal/wings"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// source finds experiments.
var source = &reports.Source{
	Program: "spinsim",
	Of: func(r *provenance.Record) (*experiment.Experiment, error) {
		if !strings.HasPrefix(r.Command, experiment.CommandPrefix) {
			return nil, nil
		}
		return experiment.Find(strings.TrimPrefix(r.Command, experiment.CommandPrefix))
	},
	Read: func(string) ([]byte, error) { return nil, errors.New("no module") },
}

// sweepOf makes a sweep of an experiment with values of axes: "name=list".
func sweepOf(t *testing.T, name string, profiles []string, choices ...string) *experiment.Sweep {
	e, err := experiment.Find(name)
	require.NoError(t, err)
	s, err := experiment.New(e)
	require.NoError(t, err)
	if profiles != nil {
		s.Profiles = profiles
	}
	for _, c := range choices {
		axis, list, _ := strings.Cut(c, "=")
		require.NoError(t, s.Choose(axis, list))
	}
	return s
}

// measured runs a sweep and returns its document.
func measured(t *testing.T, s *experiment.Sweep) (document []byte, results []*experiment.Result) {
	points, err := s.Points()
	require.NoError(t, err)
	results, err = s.Run(context.Background(), points, nil)
	require.NoError(t, err)
	table, err := s.Table(results)
	require.NoError(t, err)
	table.Answer = s.Answer(results)
	var out bytes.Buffer
	require.NoError(t, table.Write(&out, report.JSONFormat))
	return out.Bytes(), results
}

// opened parses a document so that a test can change it; its profiles stay as
// they are.
func opened(t *testing.T, document []byte) (x map[string]any) {
	require.NoError(t, json.Unmarshal(document, &x))
	r, err := provenance.Read(document)
	require.NoError(t, err)
	for i, p := range x["provenance"].(map[string]any)["profiles"].([]any) {
		p.(map[string]any)["content"] = r.Profiles[i].Content
	}
	for _, field := range seal.Fields {
		delete(x, field)
	}
	return x
}

// sealed writes a changed document with a new digest.
func sealed(t *testing.T, x map[string]any) []byte {
	document, err := json.Marshal(x)
	require.NoError(t, err)
	document, err = seal.Object(document, "")
	require.NoError(t, err)
	return document
}

func written(t *testing.T, results ...*reports.Result) string {
	var out bytes.Buffer
	require.NoError(t, page.Write(&out, reports.Page("", provenance.Build{Version: "v1", Commit: "0123"}, results)))
	return out.String()
}

// A section of a document equals the output of the command that wrote it:
// answer, rows, published numbers, origin. Nothing is measured.
func TestDocumentsOfExperiments(t *testing.T) {
	for _, s := range []*experiment.Sweep{
		sweepOf(t, "bcast", []string{"spin-int"}, "ranks=4,16", "size=64KiB", "mode=rdma,p4,spin-stream"),
		sweepOf(t, "hpus", nil, "hpus=1,8", "size=64,4KiB"),
		sweepOf(t, "pagefault", nil, "size=4KiB", "policy=pio,pia,touch"),
		sweepOf(t, "exanet", nil, "size=0,64"),
		sweepOf(t, "scan", []string{"spin-int"}, "size=16KiB"),
		sweepOf(t, "raid5", []string{"spin-int"}, "size=64"),
	} {
		document, results := measured(t, s)
		r, err := source.Section("a.json", document)
		require.NoError(t, err, s.Experiment().Name)
		require.Equal(t, s.Answer(results), r.Answer)
		require.Equal(t, append([]string{}, s.Notes(results)...), append([]string{}, r.Notes...), "and no difference is noted")
		require.Len(t, r.Plots, 1)
		table, err := s.Table(results)
		require.NoError(t, err)
		require.Len(t, r.Tables[len(r.Tables)-1].Grid.Rows, table.Len())
		text := written(t, r)
		for _, line := range s.Answer(results) {
			require.Contains(t, html.UnescapeString(text), line)
		}
		for _, h := range s.Record().Handlers {
			require.Contains(t, text, h.SHA256)
		}
		require.Contains(t, text, s.Record().Profiles[0].SHA256)
	}
}

// The deviations of a page equal those in the table that the command shows, and
// state which numbers are not predictions.
func TestDeviations(t *testing.T) {
	document, _ := measured(t, sweepOf(t, "pagefault", nil, "size=4KiB", "policy=pio"))
	r, err := source.Section("a.json", document)
	require.NoError(t, err)
	require.NotEmpty(t, r.Deviations)
	at := slices.IndexFunc(r.Deviations, func(d report.Deviation) bool { return d.Quantity == "netlink" })
	require.True(t, r.Deviations[at].Calibrated)
	at = slices.IndexFunc(r.Deviations, func(d report.Deviation) bool { return d.Quantity == "latency" })
	require.False(t, r.Deviations[at].Calibrated)
	require.Equal(t, "38 µs", r.Deviations[at].Published)
	require.Contains(t, written(t, r), "<td>38 µs</td>")
}

// A waterfall can be read back from its document. One that was cut off is
// shorter.
func TestDocumentsOfWaterfalls(t *testing.T) {
	s := sweepOf(t, "bcast", nil, "ranks=4", "size=8")
	w, err := s.Waterfall("spin-int-sc17", "spin-int")
	require.NoError(t, err)
	require.NoError(t, w.Run(context.Background(), nil))
	table, err := w.Table()
	require.NoError(t, err)
	var document bytes.Buffer
	require.NoError(t, table.Write(&document, report.JSONFormat))
	r, err := source.Section("a.json", document.Bytes())
	require.NoError(t, err)
	require.Equal(t, w.Summary().Grid(false), r.Tables[0].Grid)
	require.Equal(t, w.Notes(), r.Notes)
	require.Contains(t, written(t, r), "spinsim compare bcast --waterfall spin-int-sc17,spin-int --ranks 4 --size 8B")
}

// The page of a sweep that was stopped has the rows that exist, and no answer.
func TestUnfinished(t *testing.T) {
	s := sweepOf(t, "pingpong", []string{"spin-int"}, "size=8,64,512")
	document, _ := measured(t, s)
	x := opened(t, document)
	rows := x["rows"].([]any)
	x["rows"] = rows[1:3]
	r, err := source.Section("a.json", sealed(t, x))
	require.NoError(t, err)
	require.Regexp(t, `^Ended before all was done: 2 of \d+ points were measured\.$`, r.Answer[0])
	require.Empty(t, r.Plots)
}

// script matches an element that runs, or an event handler.
var script = regexp.MustCompile(`(?i)<script|<img|<svg[^>]*onload|<[a-z]+[^>]*\son[a-z]+\s*=|(href|src)=.?javascript:`)

// quoted is the value of an attribute: within it a quote is escaped.
var quoted = regexp.MustCompile(`"[^"]*"`)

// No text of a document becomes an element, an attribute or a script.
func TestHostileDocuments(t *testing.T) {
	const enemy = `"><script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1) </style></title> {{.}} ' onload=x`
	device := filepath.Join(t.TempDir(), "<script>.yaml")
	text, err := json.Marshal(map[string]string{"base": "spin-int", "name": enemy})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(device, text, 0o600))
	document, _ := measured(t, sweepOf(t, "pingpong", []string{device}, "size=8,64"))
	x := opened(t, document)
	record := x["provenance"].(map[string]any)
	record["spinsim"].(map[string]any)["version"] = enemy
	record["handlers"] = []any{map[string]any{"name": enemy, "sha256": enemy}}
	record["inputs"] = []any{map[string]any{"name": enemy, "sha256": enemy, "bytes": 1, "text": enemy}}
	whole := sealed(t, x)
	record["command"] = "run"
	delete(x, "rows")
	x["title"], x["end_ns"], x[enemy] = enemy, 1, []any{map[string]any{enemy: enemy}, map[string]any{"b": []any{enemy}}}
	x["failures"], x["notes"], x["ranks"] = []any{enemy}, []any{enemy}, 1
	for _, d := range [][]byte{whole, sealed(t, x)} {
		r, err := source.Section(enemy, d)
		require.NoError(t, err)
		text := written(t, r)
		require.Contains(t, text, "alert(1)", "the text is there, as text")
		before, after, found := strings.Cut(text, "<script>\"use strict\"")
		require.True(t, found)
		before = quoted.ReplaceAllString(before, `""`)
		require.False(t, script.MatchString(before), script.FindString(before))
		_, after, _ = strings.Cut(after, "</script>")
		require.False(t, script.MatchString(after))
	}
}

// A file that is not a result gives an error of one line with the expected
// format.
func TestNoResults(t *testing.T) {
	document, _ := measured(t, sweepOf(t, "pingpong", []string{"spin-int"}, "size=8"))
	change := func(f func(x map[string]any)) []byte {
		x := opened(t, document)
		f(x)
		return sealed(t, x)
	}
	record := func(x map[string]any) map[string]any { return x["provenance"].(map[string]any) }
	row := func(x map[string]any) map[string]any { return x["rows"].([]any)[0].(map[string]any) }
	for want, wrong := range map[string][]byte{
		"empty, expected an object":     []byte(" \n"),
		"not JSON":                      []byte("{"),
		`no "provenance"`:               []byte(`{"rows":[]}`),
		"no rows":                       change(func(x map[string]any) { delete(x, "rows") }),
		`no experiment "ping"`:          change(func(x map[string]any) { record(x)["command"] = "compare ping" }),
		"nothing but its provenance":    change(func(x map[string]any) { record(x)["command"] = "goal run"; delete(x, "rows"); delete(x, "answer") }),
		"rows[0].latency_ns: not there": change(func(x map[string]any) { delete(row(x), "latency_ns") }),
		`rows[0].latency_ns: "x"`:       change(func(x map[string]any) { row(x)["latency_ns"] = "x" }),
		"rows[0]: none of the points":   change(func(x map[string]any) { row(x)["bytes"] = 9 }),
		"wide: more than 500 different keys": change(func(x map[string]any) {
			record(x)["command"] = "goal run"
			var list []any
			for i := range 501 {
				list = append(list, map[string]int{fmt.Sprint(i): i})
			}
			x["wide"] = list
		}),
		"it was changed afterwards": change(func(x map[string]any) {
			record(x)["profiles"].([]any)[0].(map[string]any)["content"] = map[string]any{"name": "y"}
		}),
	} {
		_, err := source.Section("a.json", wrong)
		require.ErrorContains(t, err, want, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// No byte of a document can change without an error. The test tries every digit
// of the rows and of the digest, and some other bytes; package digest tries
// all. A change of the layout alone does not count.
func TestEveryEditIsRefused(t *testing.T) {
	document, _ := measured(t, sweepOf(t, "pingpong", []string{"spin-int"}, "size=8", "mode=rdma,spin-stream"))
	was, err := source.Section("a.json", document)
	require.NoError(t, err)
	rows := bytes.Index(document, []byte(`"rows"`))
	for i, b := range document {
		if (i < rows || b < '0' || b > '9') && i%50 > 0 {
			continue
		}
		is := bytes.Clone(document)
		if is[i]++; b == '9' {
			is[i] = '1'
		}
		_, err := source.Section("a.json", is)
		require.Error(t, err, "byte %d of %s", i, is[max(0, i-20):min(len(is), i+20)])
	}
	spaced := bytes.ReplaceAll(document, []byte("\n"), []byte("\r\n\t"))
	now, err := source.Section("a.json", spaced)
	require.NoError(t, err)
	require.Equal(t, was.Answer, now.Answer)
}

// The error for a document from before digests explains what to do: nobody can
// find out whether it was changed.
func TestDocumentsWithoutDigest(t *testing.T) {
	document, _ := measured(t, sweepOf(t, "pingpong", []string{"spin-int"}, "size=8", "mode=rdma"))
	old, err := json.Marshal(opened(t, document))
	require.NoError(t, err)
	_, err = source.Section("a b.json", old)
	require.EqualError(t, err, "no digest (sha256): spinsim "+provenance.ReadBuild().String()+" wrote it without one, or it was changed; spinsim rerun 'a b.json' -o NEW.json makes it again with one, and says what differs")
}

// Answers compute with measured values, so a document with other values is
// refused.
func TestValuesThatNobodyMeasures(t *testing.T) {
	s := sweepOf(t, "hpus", nil, "hpus=8", "size=64")
	document, _ := measured(t, s)
	x := opened(t, document)
	for _, row := range x["rows"].([]any) {
		for _, c := range s.Experiment().Columns {
			row.(map[string]any)[c.Key()] = nil
		}
	}
	_, err := source.Section("a.json", sealed(t, x))
	require.ErrorContains(t, err, "rows: no values that compare hpus measures")
}

// A profile that lacks a section of this version comes from another version.
func TestOtherVersions(t *testing.T) {
	document, _ := measured(t, sweepOf(t, "pingpong", []string{"spin-int"}, "size=8"))
	var x map[string]any
	require.NoError(t, json.Unmarshal(document, &x))
	p := x["provenance"].(map[string]any)["profiles"].([]any)[0].(map[string]any)
	var content bytes.Buffer
	require.NoError(t, json.Compact(&content, []byte(`{"name":"spin-int","description":"d"}`)))
	p["content"], p["sha256"] = json.RawMessage(content.Bytes()), provenance.Hash(content.Bytes())
	old, err := json.Marshal(x)
	require.NoError(t, err)
	_, err = source.Section("a.json", old)
	require.ErrorContains(t, err, "it was written by spinsim "+provenance.ReadBuild().String())
	require.NotContains(t, err.Error(), "\n")
}

// The summary of a publication scores predictions and names what a quick run
// leaves out. The worst prediction is the first row.
func TestSummaryOfAPublication(t *testing.T) {
	p, err := experiment.FindPublication("part")
	require.NoError(t, err)
	number := func(x float64) ledger.Ours { return ledger.Ours{Numbers: []float64{x}} }
	r := &reports.Reproduction{Publication: p, Measured: []ledger.Measured{
		{ID: "part22-6.1.1-11", Ours: number(6.25)}, // 12.5 is predicted
		{ID: "part22-5.3-03", Ours: ledger.Ours{Holds: true}},
		{ID: "part22-5.2-05", Ours: number(8)}, // 8 checks
	}}
	table, err := r.Table()
	require.NoError(t, err)
	require.Equal(t, 3, table.Len())
	text := strings.Join(table.Answer, "\n")
	require.Contains(t, text, "PART'22, predicted: 1 numbers are 100.0% off in the median, a tenth of them more than 100.0%, and 1 more than 25%; 1 of 1 claims hold; ")
	require.Contains(t, text, "following from what set parameters: 1 numbers are 0.0% off in the median")
	require.NotContains(t, text, "Psistakis")
	require.Contains(t, text, "Left out without --full, besides points between others: ")
	page, err := r.Page(provenance.Build{})
	require.NoError(t, err)
	require.Equal(t, "Every published number", page.Overview[0].Caption)
	require.Equal(t, "100.0%", page.Overview[0].Grid.Rows[0][1].Text)
	r.Measured, r.Full = nil, true
	table, err = r.Table()
	require.NoError(t, err)
	require.Equal(t, []string{p.Title + ": no published number was measured."}, table.Answer)
}
