package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// LinksFlag is the flag --links: it writes a file with the work of the
// network's links.
type LinksFlag struct {
	name  string
	links []fabric.LinkStats
	end   sim.Time
}

// Register adds the flag.
func (f *LinksFlag) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "links", "", "write the load of every link of the network: `FILE.json` or .csv; spinsim topology --load draws it")
}

// Wanted reports whether the flag was given.
func (f *LinksFlag) Wanted() bool { return f.name != "" }

// Check returns an error if the file cannot be made.
func (f *LinksFlag) Check() error {
	if !f.Wanted() {
		return nil
	}
	if _, err := f.format(); err != nil {
		return fmt.Errorf("--links: %w", err)
	}
	return nil
}

func (f *LinksFlag) format() (report.Format, error) {
	switch ext := filepath.Ext(f.name); ext {
	case ".json":
		return report.JSONFormat, nil
	case ".csv":
		return report.CSVFormat, nil
	default:
		return "", fmt.Errorf("cannot write %q files, want a name that ends in one of .json, .csv", ext)
	}
}

// Watch is for the links of a run. nil: the flag is not given.
func (f *LinksFlag) Watch() runtime.WatchLinks {
	if !f.Wanted() {
		return nil
	}
	return func(links []fabric.LinkStats, end sim.Time) { f.links, f.end = links, end }
}

// write writes the file, if it is wanted. of is the run's record, and cut says
// why the run has ended early.
func (f *LinksFlag) write(of *provenance.Record, cut string) error {
	if !f.Wanted() {
		return nil
	}
	format, err := f.format()
	if err != nil {
		return err
	}
	record := *of
	record.Command = linksOf + of.Command // the command makes the run again, but not this file
	columns := LinkColumns()
	if !slices.ContainsFunc(f.links, func(l fabric.LinkStats) bool { return l.Pauses > 0 }) {
		columns = columns[:len(columns)-ofPauses]
	}
	t := report.New(columns...)
	t.Origin, t.Cut = &record, cut
	for i := range f.links {
		l := &f.links[i]
		row := []any{l.Name, l.Packets, l.Bytes, l.Busy, share(l.Busy, f.end), l.MaxWait, l.MaxQueue, l.MaxBuffer, f.end, l.Pauses, l.Paused}
		t.Add(row[:len(columns)]...)
	}
	var out bytes.Buffer
	if err := t.Write(&out, format); err != nil {
		return err
	}
	return file.Write(f.name, out.Bytes())
}

// linksOf is the beginning of the command in the record of such a file.
const linksOf = "links of "

func share(part, of sim.Time) float64 {
	if of == 0 {
		return 0
	}
	return min(1, float64(part)/float64(of))
}

// ofPauses is how many columns, the last ones, a file has only if a link was
// paused.
const ofPauses = 2

// LinkColumns describe the work of a link.
func LinkColumns() []report.Column {
	return []report.Column{
		{Name: "link", Kind: report.Text, Help: "The link. One that carried nothing is not in the list."},
		{Name: "link_packets", Kind: report.Count, Help: "Packets that it carried."},
		{Name: "link_bytes", Kind: report.Size, Help: "Bytes that it carried, with headers and control data."},
		{Name: "link_busy", Unit: "ns", Kind: report.Duration, Help: "Time in which it sent."},
		{Name: "load", Kind: report.Share, Help: "Share of the run in which it sent."},
		{Name: "max_wait", Unit: "ns", Kind: report.Duration, Help: "Longest that a packet waited for it, or for room in the buffer at its end."},
		{Name: "max_queue", Kind: report.Size, Help: "What it carries in that time, bytes."},
		{Name: "max_buffer", Kind: report.Size, Help: "Most bytes that were taken at once in a buffer at its end, of one class and virtual channel; with fabric.pause_from, most that it was compared with; 0 without both."},
		{Name: "run", Unit: "ns", Kind: report.Duration, Help: "Time of the run."},
		{Name: "pauses", Kind: report.Count, Help: "How often its sender was paused; only if that has happened (fabric.pause_from)."},
		{Name: "paused", Unit: "ns", Kind: report.Duration, Help: "How long, in all; likewise."},
	}
}

// LinkLoad is the load of a link, from a file.
type LinkLoad struct {
	Link    string  `json:"link"`
	Packets int64   `json:"link_packets"`
	Bytes   int64   `json:"link_bytes"`
	Load    float64 `json:"load"` // share of the run, 0 to 1
}

// ReadLinks reads a JSON file of LinksFlag, and the record in it. cut says why
// its run has ended early. The errors name the file, and the command that makes
// it again if somebody has changed it.
func ReadLinks(name string) (loads []LinkLoad, of *provenance.Record, cut string, err error) {
	text, err := file.Read(name, file.MaxData)
	if err != nil {
		return nil, nil, "", err
	}
	var document struct {
		Rows []LinkLoad `json:"rows"`
	}
	if of, err = provenance.Read(text); err == nil {
		err = json.Unmarshal(text, &document)
	}
	if err == nil && !strings.HasPrefix(of.Command, linksOf) {
		err = fmt.Errorf("a result of %q, expected the loads of links that --links FILE.json writes", of.Command)
	}
	if err == nil {
		cut, err = seal.CheckObject(text)
		if errors.Is(err, seal.ErrNone) {
			err = fmt.Errorf("%w: an older spinsim wrote it without one, or it was changed", err)
		}
		if err != nil {
			err = fmt.Errorf("%w; %s --links makes it again", err, strings.TrimPrefix(of.Command, linksOf))
		}
	}
	if err != nil {
		return nil, nil, "", fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	for i, l := range document.Rows {
		if l.Link == "" || l.Load < 0 || l.Load > 1 || l.Packets < 0 {
			errs = append(errs, fmt.Errorf("%s: rows[%d]: link %q with load %v and %d packets, expected a name, 0 to 1, and at least 0", name, i, l.Link, l.Load, l.Packets))
			break
		}
	}
	return document.Rows, of, cut, errors.Join(errs...)
}
