package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// LedgerPlan are measurements for rows of the ledger. A point that several rows
// name is measured once.
type LedgerPlan struct {
	rows   []*plannedRow
	points map[*Experiment][]*ledgerPoint
	known  *Known // nil: every point is measured
}

type plannedRow struct {
	LedgerRow
	experiment *Experiment
	command    string
	sweep      *Sweep
	own        []*Point
	points     []*ledgerPoint // of own
}

// ledgerPoint is a point with its result, when it is measured.
type ledgerPoint struct {
	*Point
	sweep   *Sweep // the first with the point
	id      string // hash of what its values depend on, except the program
	at      string // the same without the device
	device  string // hash
	result  *Result
	seconds float64
}

// PlanLedger plans to measure the rows of experiments that want accepts. adjust,
// if not nil, may change limits and profiles of each sweep.
func PlanLedger(list []*Experiment, want func(id string) bool, adjust func(s *Sweep) error) (*LedgerPlan, error) {
	if adjust == nil {
		adjust = func(*Sweep) error { return nil }
	}
	plan := &LedgerPlan{points: map[*Experiment][]*ledgerPoint{}}
	hashes := map[*profile.Profile]string{}
	shared := &devices{map[string]*profile.Profile{}, map[*profile.Profile]provenance.Profile{}}
	known := map[string]*ledgerPoint{}
	for _, e := range list {
		for _, r := range e.Ledger {
			if !want(r.ID) {
				continue
			}
			s, err := r.Sweep(e)
			if err == nil {
				err = adjust(s)
			}
			if err != nil {
				return nil, err
			}
			s.devices = shared
			of := s.grid.experiment // e, or with axes of fields of several values
			row := &plannedRow{LedgerRow: r, experiment: of, command: r.command(e, s.Profiles), sweep: s}
			if row.own, err = s.Points(); err != nil {
				return nil, fmt.Errorf("experiment %s, row %s: %w", e.Name, r.ID, err)
			}
			for _, p := range row.own {
				identity, err := s.identity(p, hashes)
				if err != nil {
					return nil, err
				}
				text, err := json.Marshal(identity)
				if err != nil {
					return nil, err
				}
				id, device := provenance.Hash(text), identity.Profile
				identity.Profile = ""
				if text, err = json.Marshal(identity); err != nil {
					return nil, err
				}
				if known[id] == nil {
					known[id] = &ledgerPoint{Point: p, sweep: s, id: id, at: provenance.Hash(text), device: device}
					plan.points[of] = append(plan.points[of], known[id])
				}
				row.points = append(row.points, known[id])
			}
			plan.rows = append(plan.rows, row)
		}
	}
	return plan, nil
}

// Points counts the points.
func (l *LedgerPlan) Points() (n int) {
	for _, list := range l.points { //lint:maporder a sum
		n += len(list)
	}
	return n
}

// Run measures the points, one experiment after the other. kept, if not nil,
// keeps each result. done, if not nil, is called after each point.
func (l *LedgerPlan) Run(ctx context.Context, kept *checkpoint.Folder, done func()) error {
	var measured []*Experiment
	for _, r := range l.rows {
		e := r.experiment
		if slices.Contains(measured, e) {
			continue
		}
		measured = append(measured, e)
		rest := l.rest(e, done)
		points := make([]*Point, len(rest))
		for i, p := range rest {
			points[i] = p.Point
		}
		b := keeping(r.sweep, kept).batch(points)
		measure := b.Run
		b.Run = func(ctx context.Context, i, later int) (*Result, error) {
			begin := time.Now()
			defer func() { rest[i].seconds = time.Since(begin).Seconds() }()
			return measure(ctx, i, later)
		}
		results, err := unfinished(b.Measure(ctx, done))
		if err != nil {
			return err
		}
		for i, r := range results {
			rest[i].result = r
			if l.known != nil {
				l.known.Measured++
				l.known.add(r, rest[i].at, rest[i].device)
			}
		}
	}
	return nil
}

// rest lists the points of an experiment whose results are not known.
func (l *LedgerPlan) rest(e *Experiment, done func()) (list []*ledgerPoint) {
	if l.known == nil {
		return l.points[e]
	}
	for _, p := range l.points[e] {
		if p.result = l.known.find(p.Point, p.at, p.device); p.result == nil {
			list = append(list, p)
			continue
		}
		l.known.Reused++
		if done != nil {
			done()
		}
	}
	return list
}

// Measured lists what Run has measured, or with what is kept of an earlier
// measurement. The rows have the order of the experiments.
func (l *LedgerPlan) Measured() (list []ledger.Measured, err error) {
	for _, r := range l.rows {
		one := r.inputs()
		for _, p := range r.points {
			one.Seconds += p.seconds
		}
		if one.Ours, err = r.Numbers(r.experiment, r.results()); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// results are what Run has measured of the row's points.
func (r *plannedRow) results() []*Result {
	list := make([]*Result, len(r.own))
	for i, p := range r.points {
		list[i] = &Result{Point: r.own[i], Values: p.result.Values, used: p.result.used}
	}
	return list
}

// Unused lists overrides of rows that none of their points has used, with the
// row and the reason: "NAME: path=value (reason)".
func (l *LedgerPlan) Unused() (list []string) {
	for _, r := range l.rows {
		for _, one := range unusedIn(r.sweep, r.results()) {
			list = append(list, r.ID+": "+one)
		}
	}
	return list
}

// Inputs lists the rows without numbers: what they are measured from.
func (l *LedgerPlan) Inputs() (list []ledger.Measured) {
	for _, r := range l.rows {
		list = append(list, r.inputs())
	}
	return list
}

func (r *plannedRow) inputs() ledger.Measured {
	ids := make([]string, len(r.points))
	for i, p := range r.points {
		ids[i] = p.id
	}
	return ledger.Measured{ID: r.ID, Command: r.command, How: r.How, Inputs: provenance.Hash([]byte(strings.Join(ids, " ")))[:12]}
}

// Others are the numbers that Run has measured, by column and point, but those
// that rows of the ledger have: see PublishedNames. Times are in ps. Shares and
// changes are left out: near 0 any answer moves them by a large factor.
func (l *LedgerPlan) Others(published map[string]bool) map[string]float64 {
	all := map[string]float64{}
	for e, points := range l.points { //lint:maporder a map is made of a map
		for _, p := range points {
			for _, c := range e.Columns {
				if c.Kind == report.Share || c.Kind == report.Change {
					continue
				}
				if n, ok := Magnitude(p.result.Values[c.Name]); ok && !published[numberName(c.Name, p.Point)] {
					all[numberName(c.Name, p.Point)] = n
				}
			}
		}
	}
	return all
}

// numberName names a number: what it is and where it is measured.
func numberName(column string, p *Point) string {
	return column + " of " + p.experiment.Name + " " + p.String()
}

// PublishedNames names the numbers that rows of the ledger have, of any class.
func PublishedNames(list []*Experiment) (names map[string]bool, err error) {
	names = map[string]bool{}
	for _, e := range list {
		for i := range e.Ledger {
			r := &e.Ledger[i]
			if r.Column == "" {
				continue
			}
			s, err := r.Sweep(e)
			if err != nil {
				return nil, err
			}
			points, err := s.Points()
			if err != nil {
				return nil, err
			}
			for _, p := range points {
				names[numberName(r.Column, p)] = true
			}
		}
	}
	return names, nil
}
