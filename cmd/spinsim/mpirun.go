package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/mpirun"
	"github.com/spinsim/spinsim/profile"
)

func mpirunCommand() *cobra.Command {
	var (
		ranks, perNode  int
		name, transport string
		set             []string
	)
	c := &cobra.Command{
		Use:   "mpirun -n RANKS -- PROGRAM [ARGUMENT...]",
		Short: "Run an MPI program of Debian's Open MPI, as it is, on simulated nodes",
		Long: `Mpirun runs a program that was compiled against Debian's Open MPI 4.1, without changes to it, on the nodes of a profile. Its messages go over the
simulated network; MPI_Wtime, the system's clocks and sleeps have virtual time, which begins when all ranks have left MPI_Init.
Computing takes no time. The same command has the same times, to the picosecond.

The output is the program's. The line of spinsim stands on standard error. spinsim doctor names the packages that this needs.`,
		Example: `  spinsim mpirun -n 2 -- ./osu_latency
  spinsim mpirun -n 16 --ranks-per-node 4 --profile exanest -- lmp -in in.lj`,
		RunE: func(c *cobra.Command, args []string) error {
			for flag, n := range map[string]int{"ranks": ranks, "ranks-per-node": perNode} {
				if n < 1 || n > mostRanks {
					return badInput(fmt.Errorf("--%s: %d, expected 1 to %d", flag, n, mostRanks))
				}
			}
			device, err := profile.Load(name, set...)
			if err != nil {
				return badInput(err)
			}
			p := mpirun.Program{Profile: device, Command: args, Out: c.OutOrStdout(), Err: c.ErrOrStderr()}
			transport = cmp.Or(transport, exanest.DefaultTransport(device))
			if p.MPI, err = exanest.TransportOptions(device, transport); err != nil {
				return badInput(fmt.Errorf("--transport: %w", err))
			}
			if p.MPI.Ranks, p.MPI.PerNode = ranks, perNode; len(args) == 0 {
				return badInput(errors.New("expected a program: spinsim mpirun -n 2 -- ./program"))
			}
			result, err := p.Run(c.Context())
			if err != nil {
				return err
			}
			showMPIRun(c, &p, transport, &result)
			return nil
		},
	}
	f := c.Flags()
	f.SetInterspersed(false) // what stands behind the program is its own
	f.IntVarP(&ranks, "ranks", "n", 1, "number of processes")
	f.IntVar(&perNode, "ranks-per-node", 1, "processes of each simulated node")
	f.StringVar(&name, "profile", "spin-int", "device and network: a `NAME` or a file")
	f.StringVar(&transport, "transport", "", "how messages go: "+strings.Join(exanest.TransportNames(), ", ")+" (default: what suits the profile, as of osu)")
	f.StringArrayVar(&set, "set", nil, "change a value of the profile: `PATH=VALUE`; may be repeated")
	return c
}

// mostRanks is how many processes a machine may have to start.
const mostRanks = 4096

func showMPIRun(c *cobra.Command, p *mpirun.Program, transport string, r *mpirun.Result) {
	fmt.Fprintf(c.ErrOrStderr(), "spinsim: %v of virtual time, in which computing took none; %d messages of %d B over %s between %d ranks, %d a node; %d late for their receive; profile %s\n",
		r.Took, r.Stats.Sent, r.Stats.SentBytes, transport, p.MPI.Ranks, p.MPI.PerNode, r.Stats.Unexpected, p.Profile.Name)
}
