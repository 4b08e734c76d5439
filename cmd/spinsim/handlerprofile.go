package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/handlerlab"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
)

func handlerProfileCommand() *cobra.Command {
	var f handlerRunFlags
	var out string
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
		RunE: func(c *cobra.Command, args []string) error { return f.profileLines(c, args[0], out) },
	}
	f.register(c)
	c.Flags().StringVarP(&out, "output", "o", "", "profile to write, for go tool pprof: `FILE.pb.gz`")
	return c
}

func (f *handlerRunFlags) profileLines(c *cobra.Command, name, out string) error {
	if f.format != "text" {
		return badInput(fmt.Errorf("--format: %q, expected text: --output writes a profile for other programs", f.format))
	}
	f.lines = true
	cfg, err := f.config(c, name)
	if err != nil {
		return err
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	record, err := f.record(c, cfg.Profile, cfg.Module)
	if err != nil {
		return err
	}
	record.Engine = f.engine
	var files cli.RunFiles
	var report *handlerlab.Report
	files.Add("-o", out, func(cut string) error {
		var b bytes.Buffer
		p := report.Lines.Profile(record.Lines()...)
		p.DurationNanos = report.End.Whole()
		mark, err := seal.Of(record, seal.Pprof, cut)
		if err != nil {
			return err
		}
		p.Comments = append(p.Comments, mark.String())
		if err := errors.Join(p.CheckValid(), p.WriteUncompressed(&b)); err != nil {
			return err
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(mark.Fill(b.Bytes())); err != nil {
			return err
		}
		return errors.Join(zip.Close(), file.Write(out, packed.Bytes()))
	})
	var had used.Set
	cfg.Used = had.Join
	if report, err = f.lab(ctx, c, cfg, &files); err != nil {
		return files.End(ctx, ended(err))
	}
	files.Ended, record.Unused = true, profile.Unused(f.overrides, had)
	failed := files.End(ctx, report.Err())
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s on %s: %d cycles\n", visible.Line(report.Module), report.Profile, report.Cycles)
	if err := errors.Join(report.Lines.Write(w), writeLines(w, record, record.UnusedNotes()...)); err != nil {
		return err
	}
	return failed
}
