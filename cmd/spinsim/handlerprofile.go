package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/sim"
)

func handlerProfileCommand() *cobra.Command {
	var out string
	f := benchFlags{lines: true}
	f.show = func(c *cobra.Command, b *handlerlab.Bench, made *experiment.Made) error {
		made.Alone = "handler profile"
		made.Page = func(w io.Writer, result *experiment.Result, below []string) error {
			r, err := b.Report(c.Context(), result)
			if err == nil {
				_, err = fmt.Fprintf(w, "%s on %s: %d cycles\n", visible.Line(r.Module), r.Profile, r.Cycles)
			}
			if err == nil {
				err = r.Lines.Write(w)
			}
			if err == nil {
				_, err = fmt.Fprintf(w, "\n%s\n", strings.Join(below, "\n"))
			}
			return err
		}
		made.Output = func(of *experiment.Record) (flag, name string, write func(cut string) error) {
			return "-o", out, func(cut string) error { return writePprof(out, b.Last(), of, cut) }
		}
		return nil
	}
	run := f.command("handler profile", "profile MODULE", "") // the same run with another output
	c := &cobra.Command{
		Use:   "profile MODULE",
		Short: "Send messages to a handler and count its cycles by source line",
		Long: `Profile runs a handler as handler run does, and counts charged cycles and executed instructions for each source line. A module built with
--strip has no source lines; then profile counts by function. Instructions are charged in blocks. Profile divides the cycles of a block by the cost that
each instruction would have alone. The sum equals the cycles charged to the handlers.

With --output the profile is written for pprof, with the calls that led to each line. Samples are labelled with the kind of handler.`,
		Example: `  spinsim handler profile count --hex '00*9000'
  spinsim handler profile filter.wasm --packets packets.txt -o filter.pb.gz
  go tool pprof -top -lines filter.pb.gz`,
		Args: exactArguments("MODULE"),
		RunE: run.RunE,
	}
	f.register(c.Flags())
	for _, a := range handlerlab.Axes() {
		c.Flags().AddFlag(run.Flags().Lookup(a.Name))
	}
	for _, name := range []string{"profile", "set", "param", "seed", "engine", "trace", "until", "event-limit", "memory-limit", "time-limit"} {
		c.Flags().AddFlag(run.Flags().Lookup(name))
	}
	c.Flags().StringVarP(&out, "output", "o", "", "profile to write, for go tool pprof: `FILE.pb.gz`")
	return c
}

// writePprof writes the cycles of a run for pprof. of is its record.
func writePprof(name string, r *handlerlab.Report, of *provenance.Record, cut string) error {
	var b, packed bytes.Buffer
	p := r.Lines.Profile(of.Lines()...)
	p.DurationNanos = int64(r.End / sim.Nanosecond)
	mark, err := seal.Of(of, seal.Pprof, cut)
	if err != nil {
		return err
	}
	p.Comments = append(p.Comments, mark.String())
	if err := errors.Join(p.CheckValid(), p.WriteUncompressed(&b)); err != nil {
		return err
	}
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(mark.Fill(b.Bytes())); err != nil {
		return err
	}
	return errors.Join(zip.Close(), file.Write(name, packed.Bytes()))
}
