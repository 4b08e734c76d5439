package experiment

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
)

// SamplesFlag is the flag --samples. It writes every measured operation into a
// file.
type SamplesFlag struct{ name string }

// Register adds the flag.
func (f *SamplesFlag) Register(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "samples", "", "write the time of every operation that was measured, one by one: `FILE.csv` or .json")
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
