package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/internal/provenance"
)

// fromFile is an experiment that a command makes from a file.
type fromFile struct {
	command string                 // its name in records
	empty   *experiment.Experiment // its axes and columns
	// read makes the experiment of a file. more is the file of the flag, "" if
	// there is none.
	read func(m *making, name, more string) (*experiment.Experiment, error)
	flag string // a flag with a further file; "": none
	help string // of the flag
}

const noiseHelp = "operating system noise: `FILE` with a line for each detour, its start and duration in ns"

// fromFiles are all of them.
func fromFiles() []fromFile {
	return []fromFile{
		{command: graphRunName, empty: spin17.GraphOf("FILE", nil), read: readGraph},
		{command: storageRunName, empty: spin17.Storage("TRACE", nil), read: readStorage},
		{command: onNodes, empty: spin17.Schedule("FILE", nil), read: readNodes},
		{
			command: goalRunName, empty: spin17.Model("FILE", nil, spin17.Noise{}), read: readModel(spin17.Model),
			flag: "noise", help: noiseHelp,
		},
		{
			command: byATLAHS, empty: spin17.ATLAHS("FILE", nil, spin17.Noise{}), read: readModel(spin17.ATLAHS),
			flag: "noise", help: noiseHelp,
		},
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
	var older struct {
		Schedule string `json:"schedule"`
	}
	if json.Unmarshal(r.Arguments, &older) == nil && older.Schedule != "" {
		return nil, fmt.Errorf("%s has the document of an experiment now, with rows instead of results: spinsim %s --format json writes it anew", r.Command, strings.Replace(r.Command, goalRunName, goalRunName+" FILE", 1))
	}
	var name, more string
	for i := range r.Inputs {
		if r.Inputs[i].Flag == "" {
			name = r.Inputs[i].Name
		} else {
			more = r.Inputs[i].Name
		}
	}
	files := 1
	if more != "" && f.flag != "" {
		files++
	}
	if name == "" || len(r.Inputs) != files {
		return nil, fmt.Errorf("provenance.inputs: %d, expected the files of %s", len(r.Inputs), r.Command)
	}
	return f.make(repeating(r, folder, stdin), name, more)
}

// make makes the experiment, and notes which file is the flag's.
func (f *fromFile) make(m *making, name, more string) (*experiment.Experiment, error) {
	e, err := f.read(m, name, more)
	if err == nil && more != "" {
		m.Inputs[len(m.Inputs)-1].Flag = f.flag
	}
	return e, err
}

// fileCommand makes the command of an experiment from a file.
func fileCommand(name, use string) *cobra.Command {
	f := fileExperiment(name)
	var more string
	c := experiment.Command(f.empty, experiment.CommandOptions{
		Build: thisBuild(), Command: name, Columns: "spinsim help columns", Use: use,
		Input: func(c *cobra.Command, files []string) (*experiment.Made, error) {
			m := newMaking(c, name)
			e, err := f.make(m, files[0], more)
			return &experiment.Made{Experiment: e, Inputs: m.Inputs}, err
		},
	})
	if f.flag != "" {
		c.Flags().StringVar(&more, f.flag, "", f.help)
	}
	return c
}
