package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment/command"
	"github.com/spinsim/spinsim/runtime"
)

// What the commands here share with programs of a user's own experiments, by shorter names.
const (
	exitOK      = command.ExitOK
	exitFailed  = command.ExitFailed
	exitInput   = command.ExitInput
	exitStopped = command.ExitStopped

	limitsHelp = command.LimitsHelp
)

type limitFlags = command.LimitFlags

// checkEngine says why there is no engine of the name that --engine gives; "" is the default.
func checkEngine(name string) error {
	if name == "" {
		return nil
	}
	if err := runtime.CheckEngine(name); err != nil {
		return fmt.Errorf("--engine: %w", err)
	}
	return nil
}

func badInput(err error) error                            { return command.BadInput(err) }
func noArguments(c *cobra.Command, args []string) error   { return command.NoArguments(c, args) }
func exactArguments(names ...string) cobra.PositionalArgs { return command.ExactArguments(names...) }
