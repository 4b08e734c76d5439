package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/internal/provenance"
)

// fromFile is an experiment that a command makes from a file.
type fromFile struct {
	command string                                                       // its name in records
	empty   *experiment.Experiment                                       // its axes and columns
	read    func(m *making, name string) (*experiment.Experiment, error) // the experiment of a file
}

// fromFiles are all of them.
func fromFiles() []fromFile {
	return []fromFile{
		{graphRunName, spin17.GraphOf("FILE", nil), readGraph},
		{storageRunName, spin17.Storage("TRACE", nil), readStorage},
		{onNodes, spin17.Schedule("FILE", nil), readNodes},
	}
}

// fileExperiment returns the experiment of a command; nil: it has none.
func fileExperiment(command string) *fromFile {
	for _, f := range fromFiles() {
		if f.command == command {
			return &f
		}
	}
	return nil
}

// recorded makes the experiment of a record.
func (f *fromFile) recorded(r *provenance.Record, folder string, stdin io.Reader) (*experiment.Experiment, error) {
	if len(r.Inputs) != 1 {
		return nil, fmt.Errorf("provenance.inputs: %d, expected the one file of %s", len(r.Inputs), r.Command)
	}
	return f.read(repeating(r, folder, stdin), r.Inputs[0].Name)
}

// fileCommand makes the command of an experiment from a file.
func fileCommand(name, use string) *cobra.Command {
	f := fileExperiment(name)
	return experiment.Command(f.empty, experiment.CommandOptions{
		Build: thisBuild(), Command: name, Columns: "spinsim help columns", Use: use,
		Input: func(c *cobra.Command, file string) (*experiment.Experiment, []provenance.Input, error) {
			m := newMaking(c, name)
			e, err := f.read(m, file)
			return e, m.Inputs, err
		},
	})
}
