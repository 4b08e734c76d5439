package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/port"
)

func portCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "port FOLDER",
		Short: "Build and run the handlers of a checkout of PsPIN, FPsPIN, OSMOSIS or LogGOPSim2",
		Long: `Port finds the handlers in FOLDER, a checkout of PsPIN, FPsPIN, OSMOSIS or LogGOPSim2 or a project made like one. It reads
Makefiles for files, folders of headers and definitions, and executes nothing of what they say. It builds each set of handlers, writes a
scenario for it with packets and memory, and runs that. Where the handlers are published examples, it checks the data against a model of its own.

The report has a line for each set, and below it what port could not know and has assumed. Modules, packets and scenarios are in a new
folder; change a scenario and run it with spinsim run.

The exit status is 1 if a set is not built, does not run to its end or computes something else than its model; the folder is written all
the same. It is 2 if FOLDER has no handlers, or --out is there already.`,
		Example: `  spinsim port pspin
  spinsim port pspin/examples/ping_pong --out ping_pong
  spinsim run ping_pong/ping_pong.yaml`,
		Args: exactArguments("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				abs, err := filepath.Abs(args[0])
				if err != nil {
					return badInput(err)
				}
				out = "port-" + filepath.Base(abs)
			}
			if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
				return badInput(fmt.Errorf("--out: %s is there already, expected a new folder", out))
			}
			r, err := port.Run(c.Context(), args[0])
			if err != nil {
				return badInput(err)
			}
			if err := file.WriteFolder(out, r.Files); err != nil {
				return err
			}
			if err := r.Write(c.OutOrStdout()); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "\nScenarios and modules: %s\n", out)
			return r.Err()
		},
	}
	c.Flags().StringVar(&out, "out", "", "new `FOLDER` for modules and scenarios (default: port- and the name of FOLDER, here)")
	return c
}
