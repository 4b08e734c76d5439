package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// printProfile writes the source of an embedded profile. Of a profile in a
// file, or one with overrides, it writes all values, with those of its base.
func printProfile(out io.Writer, name string, overrides []string) error {
	text, err := profile.Source(name)
	if profile.IsFile(name) || len(overrides) > 0 {
		var p *profile.Profile
		if p, err = profile.Load(name, overrides...); err == nil {
			text, err = p.YAML()
		}
	}
	if err != nil {
		return badInput(err)
	}
	_, err = out.Write(text)
	return err
}

// noFormat refuses --format for a file that is printed as it is.
func noFormat(c *cobra.Command) error {
	if c.Flags().Changed("format") {
		return badInput(errors.New("--format: with a name what is printed is its YAML"))
	}
	return nil
}

// profileColumns are the columns of the list.
func profileColumns() []report.Column {
	return []report.Column{{Name: "profile", Help: "the name"}, {Name: "description", Help: "what it describes, from which publication"}}
}

func listProfiles(out io.Writer, name string) error {
	format, err := parseFormat(name)
	if err != nil {
		return err
	}
	t := report.New(profileColumns()...)
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		if err != nil {
			return err
		}
		t.Add(name, p.Description)
	}
	return t.Write(out, format)
}

// profileCommand lists the embedded profiles and prints one with the sources of its values.
func profileCommand() *cobra.Command {
	var format string
	var overrides []string
	c := &cobra.Command{
		Use:   "profile [NAME]",
		Short: "List the embedded profiles, or print a profile with the source of every value",
		Long: `Without an argument profile lists the devices and networks that spinsim knows. With a name it prints the profile: every latency, width
and count of the simulation, each with its unit and its source. A file of your own may name a profile in the key "base" and then contains only
the differences; without a base it contains all values. Use it with --profile my.yaml. spinsim profile my.yaml checks it and prints all its
values.

A name with a date, such as spin-int@2026-11, is the profile at that date, in every command; it never changes. --set changes single
values, for example --set hpu.cores=8. spinsim profile NAME --set hpu.cores=8 prints all values with the change.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactArguments("NAME")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			if len(args) == 1 {
				if err := noFormat(c); err != nil {
					return err
				}
				return printProfile(out, args[0], overrides)
			}
			if len(overrides) > 0 {
				return badInput(errors.New("--set: changes a value of a profile, expected its NAME"))
			}
			return listProfiles(out, format)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "of the list: table, csv, json, ndjson, markdown or parquet")
	c.Flags().StringArrayVar(&overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as hpu.cores=8; may be repeated")
	c.AddCommand(costsCommand())
	return c
}
