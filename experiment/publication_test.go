package experiment

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Numbers beside ours are rows of the ledger, and an experiment with rows belongs
// to their publication. Runs measure only existing points.
func TestPublicationsAreComplete(t *testing.T) {
	of := map[string]string{} // publication by experiment
	for _, p := range Publications() {
		found, err := FindPublication(p.Name)
		require.NoError(t, err)
		require.Same(t, p, found)
		names := map[string]bool{}
		for i := range p.Runs {
			r := &p.Runs[i]
			require.Contains(t, []string{"", p.Name}, of[r.Experiment], "%s is of two publications", r.Experiment)
			of[r.Experiment] = p.Name
			require.False(t, names[r.Name(true)], r.Name(true))
			names[r.Name(true)] = true
			require.False(t, r.Full.Skip, r.Name(true))
			require.True(t, !r.Quick.Skip || r.Without != "", "%s: what is left out?", r.Name(false))
			for _, full := range []bool{true, false} {
				if r.Choice(full).Skip || r.Choice(full).Waterfall != "" {
					continue
				}
				s, err := r.Sweep(full)
				require.NoError(t, err)
				_, err = s.Points()
				require.NoError(t, err, r.Name(full))
			}
		}
	}
	total := 0
	for _, e := range All() {
		require.Empty(t, e.Published, "%s: field Published is for experiments of users, others have rows of the ledger", e.Name)
		for _, r := range e.Ledger {
			total++
			row, ok := ledger.Find(r.ID)
			require.True(t, ok, r.ID)
			p, err := FindPublication(of[e.Name])
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(p.Sources, func(begin string) bool { return strings.HasPrefix(row.Publication, begin) }), "%s: %s", e.Name, row.Publication)
		}
		for _, p := range Publications() { // experiments of a publication are in it even without a number
			if slices.ContainsFunc(p.Sources, func(begin string) bool { return strings.HasPrefix(e.Source, begin) }) {
				require.Equal(t, p.Name, of[e.Name], e.Name)
			}
		}
	}
	require.Greater(t, total, 10)
}

// A publication with the profiles of a month has the same runs, on these profiles
// only.
func TestDatedPublications(t *testing.T) {
	month := ""
	for _, name := range profile.Names() {
		for _, dated := range profile.Dated(name) {
			_, m, _ := strings.Cut(dated, "@")
			month = max(month, m)
		}
	}
	tested := 0
	for _, p := range Publications() {
		then, err := FindPublication(p.Name + "@" + month)
		if err != nil { // a profile is new
			require.ErrorContains(t, err, "there was no profile")
			continue
		}
		require.Len(t, then.Runs, len(p.Runs))
		for i := range p.Runs {
			for _, full := range []bool{true, false} {
				r, dated := &p.Runs[i], &then.Runs[i]
				from, to, falls := strings.Cut(r.Choice(full).Waterfall, ",")
				if falls {
					require.Equal(t, asOf(t, month, from)+","+asOf(t, month, to), dated.Choice(full).Waterfall)
				}
				if falls || full || r.Quick.Skip {
					continue
				}
				now, err := r.Sweep(full)
				require.NoError(t, err)
				s, err := dated.Sweep(full)
				require.NoError(t, err)
				for k, name := range now.Profiles {
					require.Equal(t, asOf(t, month, name), s.Profiles[k])
				}
				points, err := now.Points()
				require.NoError(t, err)
				datedPoints, err := s.Points()
				require.NoError(t, err)
				require.Len(t, datedPoints, len(points))
				tested += len(points)
			}
		}
	}
	require.NotZero(t, tested)
	_, err := FindPublication("spin17@1999-12")
	require.ErrorContains(t, err, `no profiles of "1999-12", expected one of `)
	_, err = FindPublication("spin18@" + month)
	require.ErrorContains(t, err, `no publication "spin18"`)
}

// Published numbers of b_eff stand only beside runs with the published values,
// or with our values for what the publication does not give.
func TestNumbersStandBesideTheirValues(t *testing.T) {
	e := builtin("npf-beff")
	d, err := profile.Load("ib-npf")
	require.NoError(t, err)
	published := func(values Values) (n int) {
		values["strategy"] = "none"
		p, err := e.At(d, values)
		require.NoError(t, err)
		for _, number := range e.published() {
			if fits(p, number.At) && fits(p, number.With) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 1, published(Values{}))
	require.Equal(t, 1, published(Values{"sent": 128 << 20, "loop": 2500 * sim.Microsecond}), "the definition's")
	for name, v := range map[string]any{ //lint:maporder each by itself
		"eager": 1 << 20, "bound": 8 << 20, "ranks": 4, "repetitions": 1, "longest": 64 << 20, "sent": 64 << 10, "loop": sim.Millisecond,
	} {
		require.Zero(t, published(Values{name: v}), name)
	}
}

func asOf(t *testing.T, month, name string) string {
	t.Helper()
	as, err := profile.AsOf(name, month)
	require.NoError(t, err)
	return as
}

// An error names the publications that there are.
func TestUnknownPublication(t *testing.T) {
	var names []string
	for _, p := range Publications() {
		names = append(names, p.Name)
	}
	_, err := FindPublication("spin18")
	require.EqualError(t, err, `no publication "spin18", expected one of `+strings.Join(names, ", ")+" (did you mean spin17?)")
}

// A name that is taken is a mistake of the program, also within one publication;
// nothing is registered then.
func TestRegisteredNamesAreUnique(t *testing.T) {
	before := Publications()
	one := &Experiment{Name: "one"}
	for want, p := range map[string]*Publication{
		"experiment: there are two publications spin17": {Name: "spin17"},
		"experiment: there are two experiments bcast":   {Name: "new", Experiments: []*Experiment{{Name: "bcast"}}},
		"experiment: there are two experiments one":     {Name: "new", Experiments: []*Experiment{one, one}},
	} {
		require.PanicsWithValue(t, want, func() { Register(p) })
		require.Equal(t, before, Publications())
	}
}
