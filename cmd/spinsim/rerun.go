package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
)

func rerunCommand() *cobra.Command {
	var allowed bool
	c := experiment.Rerun(`Rerun reads a document that compare, run, handler run, goal run, mpirun, storage run or graph run wrote with --format json. It makes the result again from its
"provenance" and compares both: the bytes must be equal. If they are not, it names every value that differs by row and column, and the
exit status is 1.

The document contains the whole content of the profiles, the scenario, the seed, and all short inputs. For long inputs
and your own handler modules it has the path and the hash. Such a file must be unchanged and at the same path, relative to the current folder or to the folder of the
document. Rerun reports another version of spinsim, of one of its profiles or of a built-in handler, but runs anyway.`,
		thisBuild(), func(ctx context.Context, r *provenance.Record, folder string, stdin io.Reader) (document []byte, notes []string, err error) {
			return again(ctx, r, folder, stdin, allowed)
		})
	c.Flags().BoolVar(&allowed, "allow-program", false, "of a result of mpirun: run the program that it names, as anybody may have written it")
	return c
}

// again makes the document anew from its record.
func again(ctx context.Context, r *provenance.Record, folder string, stdin io.Reader, allowed bool) (document []byte, notes []string, err error) {
	if r.Command == mpirunName {
		if err := checkProgram(r, folder, stdin, allowed); err != nil {
			return nil, nil, badInput(err)
		}
	}
	e, err := madeOf(r, folder, stdin)
	switch {
	case err != nil:
		return nil, nil, badInput(err)
	case e != nil:
		return experiment.RerunOne(e)(ctx, r, folder, stdin)
	case strings.HasPrefix(r.Command, experiment.CommandPrefix):
		return experiment.RerunAny(experiment.All())(ctx, r, folder, stdin)
	}
	return nil, nil, badInput(fmt.Errorf("results of %q cannot be made again: expected those of compare, run, handler run, goal run, mpirun, storage run or graph run", r.Command))
}

// madeOf makes the experiment of a record from the recorded file; nil: it is
// from no file.
func madeOf(r *provenance.Record, folder string, stdin io.Reader) (*experiment.Experiment, error) {
	switch r.Command {
	case runName:
		return recordedScenario(r, folder, stdin)
	case handlerRunName:
		return recordedHandler(r, folder, stdin)
	case mpirunName:
		return recordedProgram(r)
	}
	if f := fileExperiment(r.Command); f != nil {
		return f.recorded(r, folder, stdin)
	}
	return nil, nil //nolint:nilnil // from none
}
