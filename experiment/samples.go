package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// SamplesFlag is the flag --samples. It writes every measured operation into a
// file.
type SamplesFlag struct{ name string }

// Register adds the flag.
func (f *SamplesFlag) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "samples", "", "write the time of every measured operation: `FILE.csv` or .json")
}

// Check returns an error if the file cannot be made. kept: results may come
// from a folder, which has no operations.
func (f *SamplesFlag) Check(kept bool) error {
	if f.name == "" {
		return nil
	}
	_, err := f.format()
	if err == nil && kept {
		err = errors.New("--resume, --part and --points keep results and not single operations: they do not go with it")
	}
	if err != nil {
		return fmt.Errorf("--samples: %w", err)
	}
	return nil
}

// of returns an error if an experiment follows no single operations.
func (f *SamplesFlag) of(e *Experiment) error {
	if f.name == "" || e.Divides() {
		return nil
	}
	if e.broken || e.Divided != nil {
		return fmt.Errorf("%s has its own tables of measured intervals, and follows no single operations", e.Name)
	}
	_, err := e.Broken() // it gives the reason
	return err
}

func (f *SamplesFlag) format() (report.Format, error) {
	switch ext := filepath.Ext(f.name); ext {
	case ".csv":
		return report.CSVFormat, nil
	case ".json":
		return report.JSONFormat, nil
	default:
		return "", fmt.Errorf("cannot write %q files, want a name that ends in one of .csv, .json", ext)
	}
}

// write writes the file.
func (f *SamplesFlag) write(s *Sweep, results []*Result) error {
	format, err := f.format()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := s.Samples(results).Write(&out, format); err != nil {
		return err
	}
	return file.Write(f.name, out.Bytes())
}

// SampleColumns are the columns of Samples behind the axes.
func SampleColumns() []report.Column {
	return []report.Column{
		{Name: "operation", Kind: report.Count, Help: "its number among those of the point, from 1"},
		{Name: "rank", Kind: report.Count, Help: "the node whose program has seen its end"},
		{Name: "program", Kind: report.Text, Help: "that program"},
		{Name: "begin", Unit: "ns", Kind: report.Duration, Help: "when it began, since the start of the run"},
		{Name: "time", Unit: "ns", Kind: report.Duration, Help: "what it took; half a round trip where the experiment measures that"},
	}
}

// Samples is a table of all operations of results, one by one. Its own columns
// that have the name of an axis begin with operation_.
func (s *Sweep) Samples(results []*Result) *report.Table {
	e := s.grid.experiment
	columns := []report.Column{
		{Name: nameColumn, Help: "the experiment: what was measured; its manual says how"},
		{Name: ProfileColumn, Help: "the device and network simulated"},
	}
	for i := range e.Axes {
		columns = append(columns, e.Axes[i].column())
	}
	for _, c := range SampleColumns() {
		if slices.ContainsFunc(columns, func(axis report.Column) bool { return axis.Name == c.Name }) {
			c.Name = "operation_" + c.Name
		}
		columns = append(columns, c)
	}
	t := report.New(columns...)
	t.Title = s.title() + ", every operation"
	record := provenance.Record{}
	if s.record != nil {
		record = *s.record
	}
	record.Command = samplesOf + record.Command // it makes the points again, but not this table
	t.Origin = &record
	for _, r := range results {
		p := r.Point
		if p.done == nil {
			continue
		}
		for i, o := range p.done.list {
			row := append([]any{e.Name, p.Profile.Name}, p.values...)
			t.Add(append(row, i+1, o.Rank, o.Process, o.From, (o.To-o.From)/p.done.each())...)
		}
	}
	return t
}
