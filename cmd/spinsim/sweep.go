package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	slurm, resume string
	parts         int
}

// sweepCommand divides the points of another command among the jobs of a
// cluster.
func sweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep --slurm FILE --parts NUMBER -- COMMAND...",
		Short: "Distribute the points of a comparison over the jobs of a cluster",
		Long: `Sweep writes an array job for Slurm. It measures the points of a command in parts, and then merges them. Sweep checks the command
first. Results are kept in a folder that all jobs share, so an interrupted part continues when it is submitted again. The output of the merged
command, also with --format and --plot, has the same bytes as without the array job.

  spinsim sweep --slurm job.sh --parts 16 -- compare bcast --set hpu.cores=1,2,4,8 --param size=8..64KiB*2 --format csv
  sbatch job.sh
  sh job.sh merge > bcast.csv

Merge measures nothing: if points are missing it names them and ends with status 1. sh job.sh merge --measure-missing measures them on the machine where it is called.

Every job runs the program that has written the script, or the one in the environment variable SPINSIM. It must be the same for all jobs.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badInput(fmt.Errorf("no command given; see %s --help", c.CommandPath()))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.slurm, "slurm", "", "write the array job to a `FILE`")
	flags.IntVar(&f.parts, "parts", 16, "`NUMBER` of jobs")
	flags.StringVar(&f.resume, "resume", "", "`FOLDER` of the results (default: the name of the script with .results)")
	return c
}

func (f *sweepFlags) run(c *cobra.Command, args []string) error {
	if f.slurm == "" {
		return badInput(errors.New("--slurm: not given, expected the file to write"))
	}
	if f.parts < 1 || f.parts > checkpoint.MaxParts {
		return badInput(fmt.Errorf("--parts: %d, expected 1 to %d", f.parts, checkpoint.MaxParts))
	}
	for _, own := range []string{"--resume", "--part", "--points", "--measure-missing"} {
		if slices.ContainsFunc(args, func(a string) bool { return a == own || strings.HasPrefix(a, own+"=") }) {
			return badInput(fmt.Errorf("%s belongs to the array job, which gives it to the command itself", own))
		}
	}
	points, err := pointsOf(args)
	if err != nil {
		return err
	}
	if f.parts > points {
		return badInput(fmt.Errorf("--parts: %d, but the command has %d points", f.parts, points))
	}
	if f.resume == "" {
		f.resume = strings.TrimSuffix(f.slurm, filepath.Ext(f.slurm)) + ".results"
	}
	if filepath.Clean(f.resume) == filepath.Clean(f.slurm) {
		return badInput(fmt.Errorf("--resume: %s is the script, expected another name for the folder of the results", f.resume))
	}
	text, err := f.script(args, points)
	if err != nil {
		return err
	}
	if err := file.Write(f.slurm, []byte(text)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d %s in %d %s. Submit it with\n  sbatch %s\nand when all have ended, put the parts together with\n  sh %s merge\n",
		f.slurm, points, report.Counted(points, "points"), f.parts, report.Counted(f.parts, "jobs"), operand(f.slurm), operand(f.slurm))
	return err
}

// pointsOf returns the number of points of a command. Every error in it is an
// error in the user's input.
func pointsOf(args []string) (int, error) {
	root := rootCommand()
	target, left, err := root.Find(args)
	if err == nil && target.HasSubCommands() && len(left) > 0 && !strings.HasPrefix(left[0], "-") {
		if err := target.ValidateArgs(left); err != nil { // no such experiment
			return 0, err
		}
	}
	if err != nil || target.Flags().Lookup("points") == nil {
		return 0, badInput(fmt.Errorf("%q has no points to share out; spinsim compare, graph run, and run with lists, have", strings.Join(args, " ")))
	}
	if slices.Contains(left, "-") {
		return 0, badInput(errors.New("-: an array job has no standard input, expected a file"))
	}
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	all := append(slices.Clone(args), "--points")
	root.SetArgs(all)
	if err := root.ExecuteContext(cli.WithArguments(context.Background(), all)); err != nil {
		return 0, badInput(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	points := 0
	// the last line counts them
	if _, err := fmt.Sscan(lines[len(lines)-1], &points); err != nil || points != len(lines)-1 {
		return 0, badInput(fmt.Errorf("%q measures no points", strings.Join(args, " ")))
	}
	return points, nil
}

// script returns the array job.
func (f *sweepFlags) script(args []string, points int) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	command := make([]string, len(args))
	for i, a := range args {
		command[i] = quoted(a)
	}
	parts := strconv.Itoa(f.parts)
	return `#!/bin/sh
# ` + strconv.Itoa(points) + ` ` + report.Counted(points, "points") + ` in ` + parts + ` ` + report.Counted(f.parts, "jobs") + `. Submit with: sbatch ` + operand(f.slurm) + `
# When all have ended, put the parts together with: sh ` + operand(f.slurm) + ` merge
#SBATCH --job-name=spinsim
#SBATCH --array=1-` + parts + `
#SBATCH --ntasks=1
set -eu
spinsim=${SPINSIM:-` + quoted(program) + `}
what=$*
set -- ` + strings.Join(command, " ") + ` --resume ` + quoted(f.resume) + `
case $what in
merge) exec "$spinsim" "$@" --measure-missing=false ;;
'merge --measure-missing') exec "$spinsim" "$@" ;;
'') exec "$spinsim" "$@" --part "${SLURM_ARRAY_TASK_ID:?not in an array job: submit with sbatch}/` + parts + `" ;;
*) echo "$0: $what: expected merge, merge --measure-missing, or nothing" >&2 && exit 2 ;;
esac
`, nil
}

// operand returns the name of a file as a word of a shell's command that is not
// an option.
func operand(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return quoted(name)
}

// quoted returns a text as a word of a shell's command.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=,+:@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
