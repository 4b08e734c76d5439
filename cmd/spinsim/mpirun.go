package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/experiment/programs"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
)

// mpirunName is the name of mpirun in the record of a result.
const mpirunName = "mpirun"

func mpirunCommand() *cobra.Command {
	c := experiment.Command(programs.Of(nil, nil, nil), experiment.CommandOptions{
		Build: thisBuild(), Command: mpirunName, Columns: "spinsim help columns", Use: "mpirun -np RANKS -- PROGRAM [ARGUMENT...]", Input: openProgram,
	})
	c.Short = "Run an MPI program of Debian's Open MPI, as it is, on simulated nodes"
	c.Long = `Mpirun runs a program that was compiled against Debian's Open MPI 4.1, without changes to it, on the nodes of a profile. Its messages go over the
simulated network; MPI_Wtime, the system's clocks and sleeps have virtual time, which begins when all ranks have left MPI_Init.
Computing takes no time. The same command has the same times, to the picosecond.

The output is the program's; what spinsim says of the run stands on standard error. With several values of a flag, or with --all or --format, spinsim
prints the table of an experiment, and the program's output stands on standard error. docs/programs.md says what is exact, and spinsim doctor names the packages
that this needs.

` + c.Long[strings.Index(c.Long, "A LIST is"):]
	c.Example = `  spinsim mpirun -np 2 -- ./osu_latency
  spinsim mpirun -np 16 --ranks-per-node 4 --profile exanest -- lmp -in in.lj
  spinsim mpirun -np 2..16 --pages touch,pia --profile exanest --plot lj.svg -- lmp -in in.lj`
	return c
}

// openProgram makes the experiment of a program.
func openProgram(c *cobra.Command, words []string) (*experiment.Made, error) {
	flags := c.Flags()
	if names, err := flags.GetStringSlice("profile"); err == nil && len(names) > 0 && !flags.Changed("transport") {
		if device, err := profile.Load(names[0]); err == nil { // else the sweep says it
			if err := flags.Set("transport", exanest.DefaultTransport(device)); err != nil {
				return nil, err
			}
		}
	}
	out, errs := redirected{c.ErrOrStderr()}, redirected{c.ErrOrStderr()} // a waterfall does not begin
	m := newMaking(c, mpirunName)
	made := &experiment.Made{
		Experiment: programs.Of(words, &out, &errs), Given: map[string]string{experiment.ProgramGiven: strings.Join(words, "\n")},
		Begin: func(page bool) {
			if errs.Writer, out.Writer = c.ErrOrStderr(), c.ErrOrStderr(); page {
				out.Writer = c.OutOrStdout()
			}
		},
		Page: func(_ io.Writer, r *experiment.Result, below []string) error {
			e := r.Point.Experiment()
			lines := slices.Concat(e.View.Answer([]*experiment.Result{r}), e.Notes, below)
			_, err := fmt.Fprintf(c.ErrOrStderr(), "\n%s\n", strings.Join(lines, "\n"))
			return err
		},
	}
	if len(words) == 0 {
		return made, nil // it has no points, and says so
	}
	path, err := m.program(words[0])
	made.Inputs = m.Inputs
	if err == nil && readsCounter(c.Context(), path) {
		made.Notes = append(made.Notes, words[0]+" reads the processor's counter (rdtsc): that is time of this computer, not virtual time.")
	}
	return made, err
}

// redirected is a writer that is chosen later.
type redirected struct{ io.Writer }

// program records a program and the MPI library that it loads.
func (m *making) program(name string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", fmt.Errorf("no program %s: %w", name, errors.Unwrap(err))
	}
	for _, file := range append([]string{path}, libraries(path)...) {
		if err := m.input(file, ignored); err != nil {
			return "", err
		}
		m.Inputs[len(m.Inputs)-1] = hashOnly(m.Inputs[len(m.Inputs)-1])
	}
	return path, nil
}

// readsCounter says whether the code of a program has an instruction that reads
// the processor's counter, as far as objdump can tell. Its libraries may have one,
// too, as Open MPI has.
func readsCounter(ctx context.Context, path string) bool {
	c := exec.CommandContext(ctx, "objdump", "-d", "--no-show-raw-insn", "--section=.text", path)
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		return false
	}
	found := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		found = found || counterRead.Match(lines.Bytes())
	}
	return c.Wait() == nil && found
}

var counterRead = regexp.MustCompile(`\trdtscp?\s*$`)

// hashOnly is an input that runs from its own file, and not from a copy.
func hashOnly(in provenance.Input) provenance.Input {
	in.Flag, in.Text, in.Base64 = experiment.ProgramGiven, "", nil
	return in
}

var mpiLibrary = regexp.MustCompile(`libmpi\.so\S* => (/\S+)`)

// libraries lists the MPI libraries of a program. A script names none.
func libraries(path string) (list []string) {
	out, err := exec.Command("ldd", path).Output()
	if found := mpiLibrary.FindSubmatch(bytes.TrimSpace(out)); err == nil && found != nil {
		list = append(list, string(found[1]))
	}
	return list
}

// recordedProgram makes the experiment of a record.
func recordedProgram(r *provenance.Record) (*experiment.Experiment, error) {
	given, err := experiment.GivenIn(r)
	if err == nil && given[experiment.ProgramGiven] == "" {
		err = errors.New("provenance.arguments.given: no program")
	}
	return programs.Of(strings.Split(given[experiment.ProgramGiven], "\n"), os.Stderr, os.Stderr), err
}

// checkProgram checks that the program of a record is the same here. To run it is
// to run what the record says, so the user must have asked for that.
func checkProgram(r *provenance.Record, folder string, stdin io.Reader, allowed bool) error {
	if !allowed {
		return errors.New("the result is of a program that the record names: --allow-program runs it")
	}
	given, err := experiment.GivenIn(r)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(given[experiment.ProgramGiven], "\n")
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("no program %s: %w", name, errors.Unwrap(err))
	}
	isProgram := func(in provenance.Input) bool { return in.Flag == experiment.ProgramGiven && in.Name == path }
	if !slices.ContainsFunc(r.Inputs, isProgram) {
		return fmt.Errorf("provenance.arguments.given: %s is not the program whose digest is recorded", path)
	}
	m := repeating(r, folder, stdin)
	for i := range r.Inputs {
		if err := m.input(r.Inputs[i].Name, ignored); err != nil {
			return err
		}
	}
	return nil
}

func ignored(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
