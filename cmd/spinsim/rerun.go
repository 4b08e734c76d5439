package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

func rerunCommand() *cobra.Command {
	return experiment.Rerun(`Rerun reads a document that compare, run, goal run, storage run or graph run wrote with --format json. It makes the result again from its
"provenance" and compares both: the bytes must be equal. If they are not, it names every value that differs by row and column, and the
exit status is 1.

The document contains the whole content of the profiles, the scenario, the seed, and all short inputs. For long inputs
and your own handler modules it has the path and the hash. Such a file must be unchanged and at the same path, relative to the current folder or to the folder of the
document. Rerun reports another version of spinsim, of one of its profiles or of a built-in handler, but runs anyway.`,
		thisBuild(), again)
}

// again makes the document anew from its record.
func again(ctx context.Context, r *provenance.Record, folder string, stdin io.Reader) (document []byte, notes []string, err error) {
	if f := fileExperiment(r.Command); f != nil {
		e, err := f.recorded(r, folder, stdin)
		if err != nil {
			return nil, nil, badInput(err)
		}
		return experiment.RerunOne(e)(ctx, r, folder, stdin)
	}
	m := repeating(r, folder, stdin)
	var out bytes.Buffer
	switch {
	case strings.HasPrefix(r.Command, experiment.CommandPrefix):
		return experiment.RerunAny(experiment.All())(ctx, r, folder, stdin)
	case r.Command == "run":
		notes, err = rerunScenario(ctx, r, m, &out)
	default:
		return nil, nil, badInput(fmt.Errorf("results of %q cannot be made again: expected those of compare, run, goal run, storage run or graph run", r.Command))
	}
	return out.Bytes(), notes, err
}

// rerunScenario makes the result of a scenario. A failed scenario is a result,
// too.
func rerunScenario(ctx context.Context, r *provenance.Record, m *making, out io.Writer) (notes []string, err error) {
	lists, err := scenario.ListsOf(r)
	if err != nil {
		return nil, badInput(err)
	}
	if lists != nil {
		return rerunScenarioSweep(ctx, r, lists, m, out)
	}
	p, notes, err := scenario.PlanOf(r, m.read, 0, scenario.Variation{})
	if err != nil {
		return notes, badInput(err)
	}
	record, err := p.Record()
	if err != nil {
		return notes, err
	}
	result, err := p.Run(ctx, nil)
	if result == nil {
		return notes, err
	}
	result.Origin = record
	return notes, result.Write(out, report.JSONFormat)
}

// rerunScenarioSweep makes the result of a scenario's sweep.
func rerunScenarioSweep(ctx context.Context, r *provenance.Record, lists *scenario.Lists, m *making, out io.Writer) (notes []string, err error) {
	s, err := scenario.NewSweep(&scenario.Options{}, lists.Parameters, lists.Set)
	if err != nil || !s.Several() {
		return nil, badInput(fmt.Errorf("provenance.arguments.sweep: %w", cmp.Or(err, errors.New("no list of values"))))
	}
	load := func(run int, v scenario.Variation) (p *scenario.Plan, err error) {
		p, notes, err = scenario.PlanOf(r, m.read, run, v)
		return p, err
	}
	if err := s.Plan(load); err != nil {
		return notes, badInput(err)
	}
	record, err := s.Record(load)
	if err != nil {
		return notes, badInput(err)
	}
	results, err := s.Batch(cli.Workers(), nil).Measure(ctx, nil)
	if err != nil {
		return notes, err
	}
	result := s.Result(results)
	result.Origin = record
	return notes, result.Write(out, report.JSONFormat)
}
