package main

import (
	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
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

func badInput(err error) error                            { return cli.BadInput(err) }
func noArguments(c *cobra.Command, args []string) error   { return cli.NoArguments(c, args) }
func exactArguments(names ...string) cobra.PositionalArgs { return cli.ExactArguments(names...) }
