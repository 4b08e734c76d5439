package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/runtime"
)

// These are shorter names for what the commands share with programs of users'
// experiments.
const (
	exitOK      = cli.ExitOK
	exitFailed  = cli.ExitFailed
	exitInput   = cli.ExitInput
	exitStopped = cli.ExitStopped

	limitsHelp = cli.LimitsHelp
)

type limitFlags = cli.LimitFlags

// checkEngine refuses an engine that this program does not have; "" is the
// default.
func checkEngine(name string) error {
	if name == "" {
		return nil
	}
	if err := runtime.CheckEngine(name); err != nil {
		return fmt.Errorf("--engine: %w", err)
	}
	return nil
}

func badInput(err error) error                            { return cli.BadInput(err) }
func noArguments(c *cobra.Command, args []string) error   { return cli.NoArguments(c, args) }
func exactArguments(names ...string) cobra.PositionalArgs { return cli.ExactArguments(names...) }
