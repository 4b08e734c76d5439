package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
)

// making collects what a result is made from. To rerun a result, it takes
// profiles and inputs from the result's record.
type making struct {
	provenance.Record
	again *provenance.Record // nil: a new result
	// folder of the document with again; files that are not at their old place
	// may be there
	folder string
	stdin  io.Reader
}

// newMaking begins the record of a new result.
func newMaking(c *cobra.Command, name string) *making {
	return &making{Record: provenance.Record{Build: thisBuild(), Command: name}, stdin: c.InOrStdin()}
}

// repeating begins to rerun a result. It takes the description of the program
// from the record, so that equal results are equal bytes.
func repeating(r *provenance.Record, folder string, stdin io.Reader) *making {
	return &making{Record: provenance.Record{Build: r.Build, Command: r.Command}, again: r, folder: folder, stdin: stdin}
}

// input lets parse read a file, or the standard input if the name is "-", and
// records it.
func (m *making) input(name string, parse func(io.Reader) error) (err error) {
	var recorded *provenance.Input
	if m.again != nil {
		if recorded = m.again.Input(name); recorded == nil {
			return errors.New("provenance: the input " + name + " is not recorded")
		}
	}
	var from io.Reader
	switch {
	case recorded != nil && recorded.Included():
		data, err := recorded.Data(nil)
		if err != nil {
			return err
		}
		from = bytes.NewReader(data)
	case name == "-":
		from = m.stdin
	case name == "":
		return errors.New("an empty name, expected that of a file, or - for the standard input")
	default:
		path := experiment.FileBeside(m.folder, name)
		if m.again != nil { // the name comes from the record, not from the user
			if err := file.Regular(path); err != nil {
				return err
			}
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return fmt.Errorf("read %s: is a directory", name)
		}
		if recorded != nil { // before anybody parses it and quotes it in an error
			is, err := provenance.NewReader(f).Input(name)
			if err == nil {
				err = recorded.Verify(is.SHA256)
			}
			if err == nil {
				_, err = f.Seek(0, io.SeekStart)
			}
			if err != nil {
				return err
			}
		}
		from = f
	}
	r := provenance.NewReader(from)
	if err := parse(r); err != nil {
		return err
	}
	in, err := r.Input(name)
	if err == nil && recorded != nil {
		err = recorded.Verify(in.SHA256)
	}
	m.Inputs = append(m.Inputs, in)
	return err
}

// read returns a file of a result that is run again.
func (m *making) read(name string, limit int64) ([]byte, error) {
	return file.ReadRegular(experiment.FileBeside(m.folder, name), limit)
}

// flagsGiven returns the flags of a command that were set, for results whose
// record needs no more.
func flagsGiven(c *cobra.Command) map[string]string {
	given := make(map[string]string)
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return given
}
