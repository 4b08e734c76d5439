package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
)

func verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check whether files are complete, unchanged, and made by this spinsim",
		Long: `Verify reads files that spinsim has written and compares each with its seal: JSON, NDJSON, CSV and Parquet tables, pictures,
pages, timelines, captures, profiles for pprof, schedules, storage traces, and folders of --resume. It prints a line for each. Files with the same
record come from the same run.

A seal shows accidental changes and a missing end. It does not protect against somebody who seals a changed file again. Text and Markdown,
handler modules and binary schedules have no place for a seal.

The exit status is 0 if all files are complete and unchanged, 1 if one is not, 2 if one cannot be read. - is the standard input.`,
		Example: `  spinsim compare bcast --format csv > loads.csv
  spinsim verify loads.csv`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArguments("FILE")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return verify(c, args) },
	}
}

func verify(c *cobra.Command, names []string) error {
	var unread []error
	files, bad := 0, 0
	one := func(name string) {
		v, err := verdict(c, name)
		if err != nil {
			unread = append(unread, err)
			return
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", name, sentence(v))
		if files++; v.State != seal.Whole {
			bad++
		}
	}
	for _, name := range names {
		kept, err := os.ReadDir(name)
		if err != nil { // no folder
			one(name)
			continue
		}
		kept = slices.DeleteFunc(kept, func(e fs.DirEntry) bool { return filepath.Ext(e.Name()) != ".ndjson" })
		if len(kept) == 0 {
			unread = append(unread, fmt.Errorf("%s: no .ndjson in it, expected a folder of --resume", name))
		}
		for _, e := range kept {
			one(filepath.Join(name, e.Name()))
		}
	}
	if unread != nil {
		return badInput(errors.Join(unread...))
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d files not complete and unchanged", bad, files)
	}
	return nil
}

// verdict checks a file. An object names its program in its provenance.
func verdict(c *cobra.Command, name string) (v *seal.Verdict, err error) {
	in, check := c.InOrStdin(), seal.Check
	if name != "-" {
		if err := file.Regular(name); err != nil {
			return nil, err
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		in = f
		if ext := filepath.Ext(name); ext == ".xz" || ext == ".zst" { // of a schedule
			check = func(in io.Reader) (*seal.Verdict, error) {
				return seal.CheckPacked(in, func(r io.Reader) (io.ReadCloser, error) { return goal.Unpack(r, ext) })
			}
		}
	}
	if v, err = check(in); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if v.Provenance != nil {
		var r provenance.Record
		if err := json.Unmarshal(v.Provenance, &r); err == nil {
			v.Program = r.Build.String()
		}
	}
	return v, nil
}

// sentence is the line of a verdict.
func sentence(v *seal.Verdict) string {
	facts := string(v.Kind)
	if v.Record != "" {
		facts += ", record " + provenance.Short(v.Record)
	}
	made := ""
	switch own := thisBuild().String(); {
	case v.Program == own:
		made = ", made by spinsim " + own
	case v.Program != "":
		made = fmt.Sprintf(", but made by another spinsim (%s); this is %s", v.Program, own)
	}
	switch v.State {
	case seal.Whole:
		if v.Kind == seal.Kept {
			return fmt.Sprintf("each result complete and unchanged; one that is missing does not show (%s)", facts)
		}
		return fmt.Sprintf("complete and unchanged%s (%s)", made, facts)
	case seal.Cut:
		return fmt.Sprintf("cut: %s; unchanged%s (%s)", v.Cut, made, facts)
	case seal.Unstated:
		return fmt.Sprintf("unchanged%s; an older spinsim did not record whether it is complete (%s)", made, facts)
	case seal.Changed:
		return "CHANGED after it was written: " + v.Wrong
	}
	return "no seal: not made by spinsim, or its end is missing"
}
