package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/goal/proxy"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// proxyFlags are those of goal proxies.
type proxyFlags struct {
	profile    string
	overrides  []string
	apps       []string
	iterations int
	eager      string
	seed       uint64
	engine     string
	format     string
}

func goalProxiesCommand() *cobra.Command {
	f := proxyFlags{}
	c := &cobra.Command{
		Use:   "proxies",
		Short: "What is offloaded matching worth to MILC, POP, CoMD and CloverLeaf?",
		Long: `Proxies runs the halo exchanges of the applications of sPIN'17 §5.1 at the published numbers of ranks, with matching on the host
and on the network interface, and sets the speed-ups beside the published ones.

Message sizes and counts come from the applications (spinsim goal proxies --source). The publication gives the share of
point-to-point communication in the run time but no computation time: the computation of an iteration is chosen so that the
run with matching on the host has that share. Nothing else is chosen, and the number of iterations is smaller than in the traces.`,
		Args: exactArguments(),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.StringVar(&f.profile, "profile", "spin-int", "device and network, `NAME` or file")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as hpu.cores=8; may be repeated")
	flags.StringSliceVar(&f.apps, "app", proxy.Names(), "`LIST` of applications")
	flags.IntVar(&f.iterations, "iterations", 5, "`NUMBER` of iterations of each")
	flags.StringVar(&f.eager, "eager", "16KiB", "largest message that does not wait for its receive: `SIZE`")
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` for the random streams of the simulation")
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built with that tag")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson or markdown")
	flags.Bool("source", false, "print where the sizes and counts of the applications come from, and run nothing")
	return c
}

func (f *proxyFlags) run(c *cobra.Command) error {
	if source, err := c.Flags().GetBool("source"); err != nil || source {
		return f.sources(c)
	}
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	return f.make(c.Context(), newMaking(c, goalProxiesName), format, c.OutOrStdout())
}

// goalProxiesName is what the record of a result of goal proxies calls it.
const goalProxiesName = "goal proxies"

// proxyArguments are those of goal proxies, as a record has them.
type proxyArguments struct {
	Profile    string   `json:"profile"`
	Apps       []string `json:"apps"`
	Iterations int      `json:"iterations"`
	Eager      string   `json:"eager"`
}

// restore sets the flags to what a record says.
func (f *proxyFlags) restore(r *provenance.Record) error {
	var a proxyArguments
	err := r.Parse(&a)
	*f = proxyFlags{profile: a.Profile, apps: a.Apps, iterations: a.Iterations, eager: a.Eager, engine: r.Engine}
	if r.Seed != nil {
		f.seed = *r.Seed
	}
	return err
}

// make runs the applications and writes the result.
func (f *proxyFlags) make(ctx context.Context, m *making, format report.Format, out io.Writer) error {
	if err := m.WithArguments(proxyArguments{f.profile, f.apps, f.iterations, f.eager}); err != nil {
		return err
	}
	cfg, err := f.config(m)
	if err != nil {
		return badInput(err)
	}
	var results []*experiment.MatchingResult
	for _, a := range experiment.PublishedApplications() {
		if !slices.Contains(f.apps, a.Proxy) {
			continue
		}
		r, err := experiment.RunMatching(ctx, a, cfg)
		if errors.Is(err, goal.ErrTooLarge) {
			return badInput(fmt.Errorf("--iterations: %w", err))
		}
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	t, err := experiment.MatchingTable(results, &m.Record, cfg.Profile)
	if err != nil {
		return err
	}
	t.Title = "asynchronous matching (sPIN'17 §5.1) on " + cfg.Profile.Name
	t.Notes = []string{"gain is a prediction; the computation time gives matching on the host the published share of communication."}
	return t.Write(out, format)
}

// config checks the flags.
func (f *proxyFlags) config(m *making) (cfg experiment.MatchingConfig, err error) {
	for _, name := range f.apps {
		if !slices.Contains(proxy.Names(), name) {
			return cfg, fmt.Errorf("--app: no application %q, expected some of %v", name, proxy.Names())
		}
	}
	if len(f.apps) == 0 {
		return cfg, fmt.Errorf("--app: empty, expected some of %v", proxy.Names())
	}
	if f.iterations < 1 {
		return cfg, fmt.Errorf("--iterations: %d, expected at least 1", f.iterations)
	}
	eager, err := sim.ParseSize(f.eager)
	if err != nil {
		return cfg, fmt.Errorf("--eager: %w", err)
	}
	o := mpi.DefaultOptions(mpi.Offload)
	o.Eager, o.BufferBytes = int(eager), max(o.BufferBytes, 2*int(eager))
	if err := o.Validate(); err != nil {
		return cfg, err
	}
	cfg.Profile, err = m.profile(f.profile, f.overrides)
	m.Seed, m.Engine = &f.seed, f.engine
	m.AddHandler(provenance.NewHandler("matching", "", matching.Module))
	cfg.Iterations, cfg.Eager, cfg.Seed, cfg.Engine = f.iterations, int(eager), f.seed, f.engine
	return cfg, err
}

// sources prints what the parameter files say of themselves.
func (f *proxyFlags) sources(c *cobra.Command) error {
	for _, name := range f.apps {
		p, err := proxy.Load(name)
		if err != nil {
			return badInput(err)
		}
		if _, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s\n  %s\n", p.Name, p.Description, p.Source); err != nil {
			return err
		}
	}
	return nil
}
