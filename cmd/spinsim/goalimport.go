package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/goal/chakra"
	"github.com/spinsim/spinsim/internal/goal/mpitrace"
)

func goalImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Make schedules of traces in other formats",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(goalChakraCommand(), goalLiballprofCommand(), goalDumpiCommand())
	return c
}

// chakraFlags say how collectives of a trace become messages.
type chakraFlags struct{ system, collective, groups string }

func goalChakraCommand() *cobra.Command {
	var out outputFlags
	var f chakraFlags
	c := &cobra.Command{
		Use:   "chakra FILE...",
		Short: "Make the schedule of a Chakra execution trace",
		Long: `Chakra makes a schedule of a Chakra execution trace (ET 0.0.4 or 1.0). Each NPU has a file: trace.0.et, trace.1.et, and so on. Collectives become
the messages that ASTRA-sim would send. The standard error lists what the schedule leaves out.

If nodes of an NPU may overlap, its rank has processor 0 for sends, 1 for computations, 2 for operations of the CPU, 3 for receives, and further ones
for the delays of collectives. A SEND is done when it leaves; ASTRA-sim keeps the NPU's communication until it arrives. For the times of
ASTRA-sim's analytical network (congestion aware), run the schedule with --model atlahs --o 0 --g 0, S larger than every message, and, for a network file

  of a Ring    its latency as L, 10^9 / (its bandwidth x 2^30) as G, and O 0; messages must go to neighbours
  of a Switch  twice its latency as L, 10^9 / (its bandwidth x 2^30) as O, and G 0: sender and receiver each pay for a link

Other networks have no such numbers. From --system come algorithms, preferred-dataset-splits, active-chunks-per-dimension,
endpoint-delay and local-mem-bw. Policies, boost-mode, peak-perf and local-reduction-delay change nothing in one dimension without roofline and shared bus. A file
that asks for those is refused, and so are custom collectives and several dimensions.`,
	}
	importing(c, &out, f.schedule)
	out.register(c)
	flags := c.Flags()
	flags.StringVar(&f.system, "system", "", "ASTRA-sim's description of the system, `FILE.json` (default: one chunk without delays)")
	flags.StringVar(&f.collective, "collective", "", "`LIST` of algorithms, such as allreduce=tree,alltoall=direct4 (ring, tree, halving-doubling, direct; default: of --system, else direct for alltoall and ring)")
	flags.StringVar(&f.groups, "groups", "", "ASTRA-sim's process groups, `FILE.json` (default: the trace defines them)")
	return c
}

// importing makes c a command that imports the files of a trace.
func importing(c *cobra.Command, out *outputFlags, schedule func(c *cobra.Command, m *making, names []string) (*goal.Schedule, []string, error)) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exactArguments("FILE")(c, args)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		m := newMaking(c, "goal import "+c.Name())
		var notes []string
		err := out.write(c, &m.Record, func() (s *goal.Schedule, err error) {
			s, notes, err = schedule(c, m, args)
			return s, err
		})
		if err != nil {
			return err
		}
		for _, line := range notes {
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s\n", c.Root().Name(), line)
		}
		return nil
	}
}

func goalLiballprofCommand() *cobra.Command {
	var out outputFlags
	var library string
	c := &cobra.Command{
		Use:   "liballprof FILE...",
		Short: "Make the schedule of a trace of MPI calls by liballprof",
		Long: `Liballprof makes a schedule of a trace of MPI calls by spcl's liballprof, the text that Schedgen of LogGOPSim reads. Each rank has a file:
trace-0.txt, trace-1.txt, and so on. The time between calls is a computation. Collectives have the names cC_N, the Nth of communicator C: goal run --coll
chooses their algorithms; without it they are ` + defaultAlgorithms() + `; others send each block directly.
The standard error lists what the schedule leaves out.`,
	}
	importing(c, &out, func(c *cobra.Command, m *making, names []string) (*goal.Schedule, []string, error) {
		mpi, known := mpitrace.Libraries()[library]
		if !known {
			return nil, nil, fmt.Errorf("--mpi: %q, expected one of %s", library, strings.Join(mpitrace.LibraryNames(), ", "))
		}
		return importCalls(c, m, names, func(ranks int) *mpitrace.Importer { return mpitrace.New(ranks, mpi) })
	})
	out.register(c)
	c.Flags().StringVar(&library, "mpi", "openmpi", "whose MPI_ANY_SOURCE and MPI_PROC_NULL the trace has: openmpi or mpich")
	return c
}

func goalDumpiCommand() *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "dumpi FILE...",
		Short: "Make the schedule of a trace of MPI calls by dumpi",
		Long: `Dumpi makes a schedule of the MPI calls that SST's dumpi has traced, from the text of dumpi2ascii -a. Each rank has a file: trace-0000.txt,
trace-0001.txt, and so on. The time between calls is a computation. A receive has the bytes of its status, or else of its buffer. Collectives
become messages as with goal import liballprof. The standard error lists what the schedule leaves out.`,
	}
	importing(c, &out, func(c *cobra.Command, m *making, names []string) (*goal.Schedule, []string, error) {
		return importCalls(c, m, names, mpitrace.NewDumpi)
	})
	out.register(c)
	return c
}

// importCalls imports a trace of MPI calls.
func importCalls(c *cobra.Command, m *making, names []string, importer func(ranks int) *mpitrace.Importer) (s *goal.Schedule, notes []string, err error) {
	if err := m.WithArguments(flagsGiven(c)); err != nil {
		return nil, nil, err
	}
	if names, err = mpitrace.Files(names); err != nil {
		return nil, nil, err
	}
	im := importer(len(names))
	for _, name := range names {
		if err := m.input(name, func(r io.Reader) error { return im.Rank(name, r) }); err != nil {
			return nil, nil, err
		}
	}
	if s, err = im.Schedule(); err != nil {
		return nil, nil, err
	}
	return s, im.Notes(), nil
}

// defaultAlgorithms lists what mpitrace does collectives by.
func defaultAlgorithms() string {
	var list []string
	for kind, by := range mpitrace.Algorithms() { //lint:maporder sorted
		list = append(list, string(kind)+"="+by)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// schedule imports a trace. The notes list omissions.
func (f *chakraFlags) schedule(c *cobra.Command, m *making, names []string) (s *goal.Schedule, notes []string, err error) {
	if err := m.WithArguments(flagsGiven(c)); err != nil {
		return nil, nil, err
	}
	system, groups, err := f.read(m)
	if err != nil {
		return nil, nil, err
	}
	if names, err = chakra.Files(names); err != nil {
		return nil, nil, err
	}
	im := chakra.New(len(names), system, groups)
	for npu, name := range names {
		if err := m.input(name, func(r io.Reader) error { return im.Rank(npu, name, r) }); err != nil {
			return nil, nil, err
		}
	}
	if s, err = im.Schedule(); err != nil {
		return nil, nil, fmt.Errorf("%s to %s: %w", names[0], names[len(names)-1], err)
	}
	return s, im.Notes(), nil
}

// read reads what the flags name.
func (f *chakraFlags) read(m *making) (system chakra.System, groups map[string][]int, err error) {
	system = chakra.DefaultSystem()
	load := func(flag, name string, parse func(text []byte) error) {
		if name == "" || err != nil {
			return
		}
		err = m.input(name, func(r io.Reader) error {
			text, err := file.ReadFrom(r, name, file.MaxText)
			if err != nil {
				return err
			}
			return parse(text)
		})
		if err != nil {
			err = fmt.Errorf("--%s: %w", flag, err)
		}
	}
	load("system", f.system, func(text []byte) (err error) {
		system, err = chakra.ReadSystem(f.system, text)
		return err
	})
	load("groups", f.groups, func(text []byte) (err error) {
		groups, err = chakra.ReadGroups(f.groups, text)
		return err
	})
	if f.collective != "" && err == nil {
		if err = system.Set(f.collective); err != nil {
			err = fmt.Errorf("--collective: %w", err)
		}
	}
	return system, groups, err
}
