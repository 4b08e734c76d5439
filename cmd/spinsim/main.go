// Command spinsim simulates programmable network interfaces. See "spinsim help".
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	_ "github.com/spinsim/spinsim/cmd/spinsim/internal/floor" // an error where Go has none
	"github.com/spinsim/spinsim/internal/cli"
	_ "github.com/spinsim/spinsim/internal/libraries" // the handlers of spinsim
	"github.com/spinsim/spinsim/internal/memory"
	_ "github.com/spinsim/spinsim/internal/wings" // the experiments of spinsim
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

var ranksFlag = regexp.MustCompile(`^-(?:np|n)(=.*)?$`)

// run is main without the process: it returns the exit code.
func run(args []string, out, errs io.Writer) int {
	if err := cli.Room(); err != nil { // before the commands are made: they take memory
		fmt.Fprintf(errs, "spinsim: %v\n", err)
		return cli.ExitFailed
	}
	// The commands last as long as the program, so collecting garbage among
	// them would find nothing.
	memory.CollectLate()
	if len(args) > 0 && args[0] == "mpirun" { // as people type it for other mpiruns
		args = slices.Clone(args)
		for i := 1; i < len(args) && args[i] != "--"; i++ {
			if m := ranksFlag.FindStringSubmatch(args[i]); m != nil {
				args[i] = "--ranks" + m[1]
			}
		}
	}
	return cli.Execute(rootCommand(args...), args, out, errs)
}

// rootCommand makes the commands: all, or the one that args name.
func rootCommand(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "spinsim",
		Short: "What is offloading to the network interface worth?",
		Long: `spinsim simulates clusters whose network interfaces run handlers (sPIN) on the packets of messages. Handlers are WebAssembly
modules, written in TinyGo, C or another language. Every instruction of a handler costs time.

Begin with:
  spinsim compare bcast          broadcast on the host, with triggered operations and with handlers
  spinsim handler new filter     your own handler, with its test
  spinsim help columns           the meaning of a table's columns`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	addCommands(root, args)
	return cli.Root(root, thisBuild().Line())
}
