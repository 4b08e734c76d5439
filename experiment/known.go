package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/batch"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
)

// Known are results that further measurements need not repeat: a point whose
// device differs only in fields that did not count has the same values. For
// example, os.fault_ask counts for nothing at a point without faults. The zero
// value is empty.
type Known struct {
	Measured, Reused int // points

	results map[string]*Result    // by the point without its device, the facts and what counts
	facts   map[string][]used.Set // that results of such a point had
	counts  map[countingKey]string
}

// countingKey names what counts of a profile with some facts.
type countingKey struct {
	profile string // hash
	had     used.Set
}

// Reuse makes the plan take results that are known, and add those it measures.
func (l *LedgerPlan) Reuse(k *Known) { l.known = k }

// Ahead measures the points of several plans that are not known, all at once, so
// that no processor waits for the last point of each plan. Of points that differ
// only in fields that have not counted so far it measures one first, and the
// others if that has not made them known. A point that fails is measured again by
// its plan, which says why. The limits of the first plan hold. begun is called
// with the number of points, and what it returns after each.
func (k *Known) Ahead(ctx context.Context, plans []*LedgerPlan, kept *checkpoint.Folder, begun func(points int) (done func())) error {
	var first, others []aheadPoint
	planned, like := map[string]bool{}, map[string]bool{}
	for _, l := range plans {
		for _, r := range l.rows {
			for _, p := range r.points {
				if planned[p.id] || k.find(p.Point, p.at, p.device) != nil {
					continue
				}
				planned[p.id] = true
				if key := k.likely(p); like[key] {
					others = append(others, aheadPoint{r.experiment, p})
				} else {
					like[key] = true
					first = append(first, aheadPoint{r.experiment, p})
				}
			}
		}
	}
	done := begun(len(planned))
	if err := k.measure(ctx, first, kept, done); err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(p aheadPoint) bool {
		known := k.find(p.Point, p.at, p.device) != nil
		if known {
			done()
		}
		return known
	})
	return k.measure(ctx, others, kept, done)
}

// aheadPoint is a point that Ahead measures.
type aheadPoint struct {
	*Experiment
	*ledgerPoint
}

// likely is equal for points whose results are likely to be the same: with the
// facts that results of such a point had so far, the same fields count.
func (k *Known) likely(p *ledgerPoint) string {
	if len(k.facts[p.at]) == 0 {
		return p.id
	}
	var keys []string
	for _, had := range k.facts[p.at] {
		keys = append(keys, k.key(p.Profile, p.at, p.device, had))
	}
	return strings.Join(keys, "\n")
}

// measure measures points, one experiment after the other.
func (k *Known) measure(ctx context.Context, list []aheadPoint, kept *checkpoint.Folder, done func()) error {
	rest := map[*Experiment][]*ledgerPoint{}
	var order []*Experiment
	for _, p := range list {
		if rest[p.Experiment] == nil {
			order = append(order, p.Experiment)
		}
		rest[p.Experiment] = append(rest[p.Experiment], p.ledgerPoint)
	}
	for _, e := range order {
		points := make([]*Point, len(rest[e]))
		for i, p := range rest[e] {
			points[i] = p.Point
		}
		results, err := keeping(rest[e][0].sweep, kept).batch(points).Measure(ctx, done)
		if u := (*batch.Unfinished[Result])(nil); errors.As(err, &u) {
			results = u.Results
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i, r := range results {
			if r != nil {
				k.Measured++
				k.add(r, rest[e][i].at, rest[e][i].device)
			}
		}
	}
	return nil
}

// find returns the result of a point; nil: it is not known. at identifies the
// point without its device.
func (k *Known) find(p *Point, at, device string) *Result {
	for _, had := range k.facts[at] {
		if r := k.results[k.key(p.Profile, at, device, had)]; r != nil {
			return &Result{Point: p, Values: r.Values, used: r.used}
		}
	}
	return nil
}

// add adds a result.
func (k *Known) add(r *Result, at, device string) {
	if k.results == nil {
		k.results, k.facts = map[string]*Result{}, map[string][]used.Set{}
	}
	if !slices.Contains(k.facts[at], r.used) {
		k.facts[at] = append(k.facts[at], r.used)
	}
	// without the point: its profile has a whole network
	k.results[k.key(r.Point.Profile, at, device, r.used)] = &Result{Values: r.Values, used: r.used}
}

// key identifies a result with some facts.
func (k *Known) key(p *profile.Profile, at, device string, had used.Set) string {
	of := countingKey{device, had}
	if k.counts[of] == "" && p != nil {
		if k.counts == nil {
			k.counts = map[countingKey]string{}
		}
		k.counts[of] = provenance.Hash(p.Counting(had))
	}
	return fmt.Sprint(at, " ", had, " ", k.counts[of])
}
