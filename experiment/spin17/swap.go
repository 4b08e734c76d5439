package spin17

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/collective"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
)

// collAxis is the axis of what does the collectives, asRecorded its default.
const (
	collAxis   = "coll"
	asRecorded = "as-recorded"
)

// collectiveAxis describes the axis. more is what else can do them.
func collectiveAxis(more string) experiment.Axis {
	return experiment.Axis{
		Name: collAxis, Column: "coll", Kind: report.Text, Default: asRecorded,
		Help: "other algorithms for named collectives: KIND=ALGORITHM or NAME=ALGORITHM, several with +; algorithms are " +
			strings.Join(collective.Names(), ", ") + more + "; options follow: ring:ll128:channels=2:chunk=1MiB:slices=2:reduce=0.02:copy=0.01 (ns per byte)",
	}
}

// swapped is a schedule whose collectives are done by others.
type swapped struct {
	*goal.Schedule

	mode  mpi.Mode        // that the library does
	calls map[string]bool // the names of those
	err   error
}

// swaps are the schedules of a run by the value of the axis, each made once.
type swaps struct {
	of    *goal.Schedule
	nodes bool
	mu    sync.Mutex
	made  map[string]*swapped
}

func newSwaps(of *goal.Schedule, nodes bool) *swaps {
	return &swaps{of: of, nodes: nodes, made: make(map[string]*swapped)}
}

// at returns the schedule of a point.
func (w *swaps) at(p *experiment.Point) *swapped {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p.Text(collAxis)
	s := w.made[text]
	if s == nil {
		s = &swapped{Schedule: w.of}
		if text != asRecorded {
			s.err = w.make(s, text)
		}
		w.made[text] = s
	}
	return s
}

// make makes a schedule.
func (w *swaps) make(s *swapped, text string) error {
	list, err := collective.Choices(text)
	if err != nil {
		return err
	}
	by, err := collective.Pick(w.of, list)
	if err != nil {
		return err
	}
	for i, c := range w.of.Collectives() {
		mode := mpi.Mode(by[i])
		if !slices.Contains(mpi.AllreduceChoices(), mode) {
			if name, _, _ := strings.Cut(by[i], ":"); w.nodes && name != "" && !slices.Contains(collective.Names(), name) {
				return fmt.Errorf("algorithm %q, expected one of %s%s", name, strings.Join(collective.Names(), ", "), libraryModes())
			}
			continue
		}
		switch {
		case !w.nodes:
			return fmt.Errorf("%s by %s: an algorithm of nodes: expected --on nodes", c.Name, mode)
		case !nodes.Does(mode, c.Kind) && mode.Rooted():
			return fmt.Errorf("%s by %s: it does %v, not %s", c.Name, mode, nodes.CallKinds(), c.Kind)
		case !nodes.Does(mode, c.Kind):
			return fmt.Errorf("%s by %s: it does allreduces, not %s", c.Name, mode, c.Kind)
		case s.mode != "" && s.mode != mode:
			return fmt.Errorf("%s by %s, and others by %s: expected one of them for all", c.Name, mode, s.mode)
		}
		if s.calls == nil {
			s.calls = make(map[string]bool)
		}
		s.mode, s.calls[c.Name], by[i] = mode, true, collective.Call
	}
	other, err := collective.Swap(w.of, by)
	if err == nil {
		s.Schedule = other
	}
	return err
}

// libraryModes lists what else nodes have.
func libraryModes() string {
	var all, rooted []string
	for _, m := range mpi.AllreduceChoices() {
		if all = append(all, string(m)); m.Rooted() {
			rooted = append(rooted, string(m))
		}
	}
	var kinds []string
	for _, k := range nodes.CallKinds()[1:] {
		kinds = append(kinds, string(k))
	}
	return "; for allreduces also " + strings.Join(all, ", ") + " (of the library: by processes, in NICs or in switches), for " +
		strings.Join(kinds, ", ") + " also " + strings.Join(rooted, ", ")
}
