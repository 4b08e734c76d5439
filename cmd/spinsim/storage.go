package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/spc"
	"github.com/spinsim/spinsim/sim"
)

func storageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "storage",
		Short: "Play traces of block storage on servers with parity, and make such traces",
		Long: `Traces are text in the format of the Storage Performance Council, revision 1.0.1: a line for each request, with unit, block address, size in bytes, R or W, and
time stamp in seconds. The traces of the University of Massachusetts have this format. spinsim includes no traces, but it generates synthetic ones.

  spinsim storage generate oltp -o oltp.spc
  spinsim storage run oltp.spc`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(storageRunCommand(), storageGenerateCommand())
	return c
}

// storageRunName is the name of storage run in the record of a result.
const storageRunName = "storage run"

func storageRunCommand() *cobra.Command {
	c := fileCommand(storageRunName, "run TRACE")
	c.Short = "Play a trace on servers with parity, by their cores or by their NICs (sPIN'17 §5.3)"
	c.Long += "\n\nTraces may be compressed by gzip or bzip2. - is the standard input."
	return c
}

// readStorage makes an experiment from a trace.
func readStorage(m *making, name, _ string) (*experiment.Experiment, error) {
	var trace *spc.Trace
	err := m.input(name, func(r io.Reader) error {
		called := name
		if name == "-" {
			called = "standard input"
		}
		in, err := spc.Unpack(r)
		if err != nil {
			return fmt.Errorf("%s: %w", called, err)
		}
		trace, err = spc.Read(in, called)
		return err
	})
	if err != nil {
		return nil, err
	}
	return spin17.Storage(filepath.Base(name), trace), nil
}

// generateFlags are the flags of storage generate.
type generateFlags struct {
	model     spc.Model
	unitBytes string
	requests  int
	seed      uint64
	output    string
}

// maxRequests is the largest number of requests of storage generate: a larger
// number is probably a typing error.
const maxRequests = 10_000_000

func storageGenerateCommand() *cobra.Command {
	f := &generateFlags{}
	long := "Generate writes a synthetic trace. Its parameters are ours: they have the typical shape of such loads, and no measured trace was used. Each line is marked as synthetic.\n"
	for _, m := range spc.Models {
		long += fmt.Sprintf("\n  %-10s %s:\n", m.Name, m.Description)
		long += fmt.Sprintf("             --units %d --unit-bytes %v --writes %g --zipf %g --sequential %g --rate %g\n             sizes", m.Units, sim.Size(m.UnitBytes), m.Writes, m.Zipf, m.Sequential, m.Rate)
		total := 0.0
		for _, s := range m.Sizes {
			total += s.Weight
		}
		for _, s := range m.Sizes {
			long += fmt.Sprintf(" %v %.0f%%", sim.Size(s.Size), 100*s.Weight/total)
		}
	}
	c := &cobra.Command{
		Use: "generate LOAD", Short: "Make a synthetic trace: oltp or websearch", Long: long,
		Args: exactArguments("LOAD"),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	flags := c.Flags()
	flags.IntVar(&f.requests, "requests", 1000, "`NUMBER` of requests")
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that seeds everything random")
	flags.IntVar(&f.model.Units, "units", 0, "`NUMBER` of units, which are volumes (default: of the load)")
	flags.StringVar(&f.unitBytes, "unit-bytes", "", "`SIZE` of each unit, such as 256MiB (default: of the load)")
	flags.Float64Var(&f.model.Writes, "writes", 0, "`SHARE` of the requests that write, 0 to 1 (default: of the load)")
	flags.Float64Var(&f.model.Zipf, "zipf", 0, "`NUMBER` from 0 to below 1: the first fraction x of a unit gets x^(1-NUMBER) of its requests (default: of the load)")
	flags.Float64Var(&f.model.Sequential, "sequential", 0, "`SHARE` of the requests that continue at the end of the previous one in the unit (default: of the load)")
	flags.Float64Var(&f.model.Rate, "rate", 0, "`NUMBER` of requests per second, with exponential intervals (default: of the load)")
	flags.StringVarP(&f.output, "output", "o", "-", "`FILE` to write; - is the standard output")
	return c
}

func (f *generateFlags) run(c *cobra.Command, load string) error {
	m, err := f.chosen(c, load)
	if err != nil {
		return badInput(err)
	}
	trace := m.Generate(f.requests, f.seed)
	if len(trace.Requests) < f.requests {
		return badInput(fmt.Errorf("--requests, --rate: %d requests take longer than time stamps of a trace go", f.requests))
	}
	of := newMaking(c, "storage generate")
	if err := of.WithArguments(struct {
		Load     string
		Model    *spc.Model
		Requests int
		Seed     uint64
	}{load, m, f.requests, f.seed}); err != nil {
		return err
	}
	program, hash, err := of.Seal()
	if err != nil {
		return err
	}
	if f.output == "-" {
		return trace.Write(c.OutOrStdout(), program, hash)
	}
	out, err := file.Create(f.output)
	if err != nil {
		return badInput(fmt.Errorf("--output: %w", err))
	}
	if err := trace.Write(out, program, hash); err != nil {
		return errors.Join(err, out.Discard())
	}
	return out.Commit()
}

// chosen returns the model of a load with the changes of the flags.
func (f *generateFlags) chosen(c *cobra.Command, load string) (*spc.Model, error) {
	base, err := spc.ModelOf(load)
	if err != nil {
		return nil, err
	}
	m := *base
	for name, set := range map[string]func(){
		"units":      func() { m.Units = f.model.Units },
		"writes":     func() { m.Writes = f.model.Writes },
		"zipf":       func() { m.Zipf = f.model.Zipf },
		"sequential": func() { m.Sequential = f.model.Sequential },
		"rate":       func() { m.Rate = f.model.Rate },
	} { //lint:maporder each sets another field
		if c.Flags().Changed(name) {
			set()
		}
	}
	var errs []error
	if f.unitBytes != "" {
		n, err := sim.ParseSize(f.unitBytes)
		if m.UnitBytes = int64(n); err != nil {
			errs = append(errs, fmt.Errorf("--unit-bytes: %w", err))
		}
	}
	if f.requests < 1 || f.requests > maxRequests {
		errs = append(errs, fmt.Errorf("--requests: %d, expected 1 to %d", f.requests, maxRequests))
	}
	if err := m.Validate(); err != nil && len(errs) == 0 {
		for line := range strings.Lines(err.Error()) {
			errs = append(errs, errors.New("--"+strings.TrimSpace(line)))
		}
	}
	return &m, errors.Join(errs...)
}
