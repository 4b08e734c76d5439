package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/internal/lab/scenario"
)

// scenarioCommand has the commands that go with run: check, schema, example.
func scenarioCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "scenario",
		Short: "Check scenarios, print their schema or an example",
		Long: `A scenario is a file that describes an experiment for spinsim run. An editor with the YAML language server completes and checks a scenario that begins with the line

  # yaml-language-server: $schema=scenario.schema.json

spinsim scenario schema writes the schema file.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(scenarioCheckCommand(), scenarioSchemaCommand(), scenarioExampleCommand())
	return c
}

func scenarioCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "List the errors in scenarios without running them",
		Long: `Check reads scenarios with the profiles, modules and files that they name, and evaluates every number on every rank. It prints "ok", or every error
with file, line and field. The exit status is 2 if there is an error.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArguments("FILE...")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, files []string) error {
			var errs []error
			for _, file := range files {
				p, err := scenario.Load(file, scenario.Options{})
				if err == nil {
					_, err = p.TraceFile([]string{"."})
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(c.OutOrStdout(), "%s: ok\n", file)
			}
			return badInput(errors.Join(errs...))
		},
	}
}

func scenarioSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of scenarios, for editors",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := scenario.Schema()
			if err != nil {
				return err
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}

func scenarioExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "example [NAME]",
		Short: "Print a commented scenario, or the names of all",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactArguments("NAME")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			if len(args) == 1 {
				e, err := scenarios.Find(args[0])
				if err != nil {
					return badInput(err)
				}
				_, err = out.Write(e.Text)
				return err
			}
			all, err := scenarios.All()
			for _, e := range all {
				fmt.Fprintln(out, e.Name)
			}
			return err
		},
	}
}
