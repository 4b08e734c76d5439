package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/goal/collective"
	"github.com/spinsim/spinsim/internal/goal/proxy"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// outputFlags choose the file and the form of a schedule.
type outputFlags struct{ output, form string }

func (f *outputFlags) register(c *cobra.Command) {
	c.Flags().StringVarP(&f.output, "output", "o", "-", "`FILE` to write, packed if its name ends in .gz, .xz or .zst; - is the standard output")
	c.Flags().StringVar(&f.form, "to", "", "text or binary (default: binary for names that end in .bin, packed or not, else text); a binary schedule has no seal")
}

// chosen returns the form that the flags ask for.
func (f *outputFlags) chosen() (goal.Form, error) {
	switch form := goal.Form(f.form); form {
	case "":
		return goal.FormOf(f.output), nil
	case goal.Text, goal.Binary:
		return form, nil
	}
	return "", badInput(fmt.Errorf("--to: %q, expected %s or %s", f.form, goal.Text, goal.Binary))
}

// write writes the schedule that get returns. It calls get only if the file can
// be written. of is the record of the command after get.
func (f *outputFlags) write(c *cobra.Command, of *provenance.Record, get func() (*goal.Schedule, error)) error {
	form, err := f.chosen()
	if err != nil {
		return err
	}
	if f.output == "-" {
		s, err := get()
		if err != nil {
			return badInput(err)
		}
		out := c.OutOrStdout()
		if form == goal.Binary {
			out = report.Exact(out)
		}
		return writeSchedule(out, s, form, of)
	}
	out, err := file.Create(f.output)
	if err != nil {
		return badInput(fmt.Errorf("--output: %w", err))
	}
	s, err := get()
	if err != nil {
		return badInput(errors.Join(err, out.Discard()))
	}
	if err := goal.WritePacked(out, f.output, func(w io.Writer) error { return writeSchedule(w, s, form, of) }); err != nil {
		return errors.Join(err, out.Discard())
	}
	return out.Commit()
}

// writeSchedule writes a schedule, a text with a seal. The binary form ends with
// its last rank: there is no place for one.
func writeSchedule(w io.Writer, s *goal.Schedule, form goal.Form, of *provenance.Record) error {
	if form == goal.Binary {
		err := goal.WriteBinary(w, s)
		if errors.Is(err, goal.ErrWideTag) {
			return badInput(err)
		}
		return err
	}
	m, err := seal.Of(of, seal.GOAL, "")
	if err != nil {
		return err
	}
	const comment = "//"
	out := seal.NewWriter(w)
	if _, err := io.WriteString(out, comment+seal.Announcement+"\n"); err != nil {
		return err
	}
	if err := goal.WriteText(out, s); err != nil {
		return err
	}
	return out.Seal(m, []byte(comment+" "+m.String()+"\n"))
}

// generatorHelp lists the patterns and applications.
var generatorHelp = sync.OnceValue(func() string {
	long := "Gen writes the schedule of a pattern of communication:\n"
	for _, q := range goal.Patterns() {
		long += fmt.Sprintf("\n  %-22s %s", q.Name, q.Doc)
		for i, p := range q.Uses {
			long += [2]string{" (--", ", --"}[min(i, 1)] + paramFlags[p]
		}
		if q.Uses != nil {
			long += ")"
		}
	}
	long += "\n\nor that of a collective with a name (goal run --coll swaps it), KIND=ALGORITHM with the options of goal run --coll:\n"
	for _, k := range collective.Kinds() {
		long += fmt.Sprintf("\n  %-22s %s", k, strings.Join(collective.For(k), ", "))
	}
	long += "\n\nor like that of an application, in iterations of --calc ns of computation each, or of one described in a file ending in .yaml:\n"
	for _, name := range proxy.Names() {
		if p, err := proxy.Load(name); err == nil {
			long += fmt.Sprintf("\n  %-22s %s", p.Name, p.Description)
		}
	}
	return long
})

func goalGenCommand() *cobra.Command {
	var out outputFlags
	p := goal.GenParams{}
	var size, segment string
	var memory cli.MemoryFlag
	c := &cobra.Command{
		Use:   "gen PATTERN",
		Short: "Make the schedule of a pattern of communication",
		Long:  generatorHelp(),
		Args:  exactArguments("PATTERN"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, v := range []struct {
				flag, text string
				to         *uint64
			}{{"size", size, &p.Size}, {"segment", segment, &p.Segment}} {
				n, err := sim.ParseSize(v.text)
				if err != nil {
					return badInput(fmt.Errorf("--%s: %w", v.flag, err))
				}
				*v.to = uint64(n)
			}
			if err := errors.Join(memory.Read(c), checkGenerator(c, args[0], &p)); err != nil {
				return badInput(err)
			}
			if err := checkSize(c, args[0], p, &memory); err != nil {
				return err
			}
			of := newMaking(c, "goal gen")
			if err := of.WithArguments(struct {
				Pattern string
				goal.GenParams
			}{args[0], p}); err != nil {
				return err
			}
			return out.write(c, &of.Record, func() (*goal.Schedule, error) {
				s, err := generate(args[0], p)
				return s, generatorError(c, err)
			})
		},
	}
	out.register(c)
	memory.Register(c.Flags())
	flags := c.Flags()
	flags.IntVar(&p.Ranks, "ranks", 8, "`NUMBER` of ranks")
	flags.StringVar(&size, "size", "8", "`SIZE` of the message, such as 8 or 64KiB")
	flags.IntVar(&p.Root, "root", 0, "`RANK` at which broadcasts, gathers and similar patterns begin or end")
	flags.IntVar(&p.Ways, "ways", 1, "`NUMBER` of messages per round of the dissemination")
	flags.StringVar(&segment, "segment", "0", "`SIZE` of the parts of a pipelined pattern; 0: one part")
	flags.IntVar(&p.Iterations, "iterations", 1, "`NUMBER` of repetitions of an exchange")
	flags.Uint64Var(&p.CalcNS, "calc", 0, "`NS` of computation after each message of a reduction and each iteration of an exchange")
	flags.Uint64Var(&p.Seed, "seed", 1, "`NUMBER` that seeds random patterns")
	return c
}

// paramFlags maps parameters that not every pattern has to their flags.
var paramFlags = map[goal.Param]string{
	goal.ParamRoot: "root", goal.ParamWays: "ways", goal.ParamSegment: "segment", goal.ParamIterations: "iterations", goal.ParamCalcNS: "calc",
	goal.ParamSeed: "seed",
}

// checkGenerator refuses numbers below 1, and flags that the pattern or
// application does not use.
func checkGenerator(c *cobra.Command, name string, p *goal.GenParams) error {
	var errs []error
	for _, x := range []struct {
		flag  string
		value int
	}{{"ranks", p.Ranks}, {"ways", p.Ways}, {"iterations", p.Iterations}} {
		if x.value < 1 {
			errs = append(errs, fmt.Errorf("--%s: %d, expected at least 1", x.flag, x.value))
		}
	}
	takes := []string{"ranks"}
	foreign := []string{"root", "ways", "segment", "seed", "size"}
	switch {
	case collective.IsGenerated(name):
		takes, foreign = append(takes, "size"), []string{"root", "ways", "segment", "iterations", "calc", "seed"}
		if collective.Rooted(name) {
			takes = append(takes, "root")
		}
	case isApplication(name):
		takes = append(takes, "iterations", "calc")
	default:
		i := slices.IndexFunc(goal.Patterns(), func(q goal.Pattern) bool { return q.Name == name })
		if i < 0 {
			return errors.Join(errs...) // the generator lists the names
		}
		takes = append(takes, "size")
		for _, q := range goal.Patterns()[i].Uses {
			takes = append(takes, paramFlags[q])
		}
		foreign = slices.Sorted(maps.Values(paramFlags))
	}
	for _, flag := range foreign {
		if c.Flags().Changed(flag) && !slices.Contains(takes, flag) {
			errs = append(errs, fmt.Errorf("--%s has no meaning for %s, which takes --%s", flag, name, strings.Join(takes, ", --")))
		}
	}
	return errors.Join(errs...)
}

// checkSize refuses a schedule that does not fit in memory.
func checkSize(c *cobra.Command, name string, p goal.GenParams, memory *cli.MemoryFlag) (err error) {
	var operations int
	if isApplication(name) {
		var app *proxy.Proxy
		if app, err = proxy.Load(name); err == nil {
			if err = app.Check(p.Ranks, p.Iterations); err == nil {
				operations = app.Operations(p.Ranks, p.Iterations)
			}
		}
	} else if collective.IsGenerated(name) {
		operations, err = collective.Operations(name, p)
	} else {
		operations, err = goal.Operations(name, p)
	}
	if err != nil {
		return badInput(generatorError(c, err))
	}
	return memory.Check(fmt.Sprintf("%s: %s of %d operations", makingItLarge(c), name, operations), int64(operations)*goal.OperationFootprint)
}

// makingItLarge names the flags that determine the size of a schedule.
func makingItLarge(c *cobra.Command) string {
	names := "--ranks"
	for _, flag := range []string{"iterations", "ways", "size", "segment"} {
		if c.Flags().Changed(flag) {
			names += ", --" + flag
		}
	}
	return names
}

// generatorError puts the names of flags into an error of a generator.
func generatorError(c *cobra.Command, err error) error {
	if errors.Is(err, goal.ErrTooLarge) {
		return fmt.Errorf("%s: %w", makingItLarge(c), err)
	}
	return fields.Renamed(err, "--", map[string]string{"ranks": "ranks", "root": "root", "ways": "ways", "iterations": "iterations"})
}

// isApplication reports whether a name is an application, or a file that
// describes one.
func isApplication(name string) bool {
	ext := filepath.Ext(name)
	return slices.Contains(proxy.Names(), name) || ext == ".yaml" || ext == ".yml" || strings.ContainsRune(name, filepath.Separator)
}

// generate makes the schedule of a pattern or of an application.
func generate(name string, p goal.GenParams) (*goal.Schedule, error) {
	if isApplication(name) {
		app, err := proxy.Load(name)
		if err != nil {
			return nil, err
		}
		return app.Schedule(p.Ranks, p.Iterations, p.CalcNS)
	}
	if collective.IsGenerated(name) {
		return collective.Generate(name, p)
	}
	return goal.Generate(name, p)
}

func goalConvertCommand() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a schedule as text or binary",
		Args:  exactArguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			m := newMaking(c, "goal convert")
			return out.write(c, &m.Record, func() (*goal.Schedule, error) { return readSchedule(m, args[0]) })
		},
	}
	out.register(c)
	return c
}

func goalStatCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "stat FILE",
		Short: "Count the contents of a schedule",
		Args:  exactArguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			chosen, err := parseFormat(format)
			if err != nil {
				return err
			}
			m := newMaking(c, "goal stat")
			s, err := readSchedule(m, args[0])
			if err != nil {
				return err
			}
			st := goal.Stat(s)
			if chosen == report.JSONFormat {
				return writeWithOrigin(c.OutOrStdout(), &m.Record, st, nil)
			}
			return writeStats(c.OutOrStdout(), m, st, chosen)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	return c
}

func statColumns() []report.Column {
	return []report.Column{
		{Name: "content", Help: "what is counted"},
		{Name: "number", Kind: report.Count, Help: "how many there are in the schedule"},
	}
}

func writeStats(out io.Writer, m *making, st goal.Stats, format report.Format) error {
	t := report.New(statColumns()...)
	t.Origin = &m.Record
	for _, row := range []struct {
		what string
		n    any
	}{
		{"ranks", st.Ranks},
		{"operations", st.Ops},
		{"sends", st.Sends},
		{"receives", st.Recvs},
		{"computations", st.Calcs},
		{"dependencies", st.Dependencies},
		{"bytes sent", st.Bytes},
		{"ns computed", st.CalcNS},
	} {
		t.Add(row.what, row.n)
	}
	if st.Collectives > 0 {
		t.Add("named collectives", st.Collectives)
	}
	for _, d := range []struct {
		what string
		goal.Distribution
	}{{"sent", st.Sent}, {"received", st.Received}} {
		t.Notes = append(t.Notes, fmt.Sprintf("messages %s per rank: min %d, median %d, mean %s, max %d",
			d.what, d.Min, d.P50, strings.TrimSuffix(fmt.Sprintf("%.1f", d.Mean), ".0"), d.Max))
	}
	return t.Write(out, format)
}
