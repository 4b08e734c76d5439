package main

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
)

var measureLedger = flag.String("ledger", "", "measure the rows of the ledger whose ids begin so (all: every row), and keep the results in ledger/measured.tsv")

// What is kept for a row of the ledger is what its experiment measures. A value
// that changes is written anew with
//
//	go test ./cmd/spinsim -run TestMeasuredRows -ledger ID
//
// Rows that take long are measured at night. Their inputs are compared each
// time: a profile or a module that has changed makes what is kept too old.
func TestMeasuredRows(t *testing.T) {
	if *measureLedger != "" {
		writeMeasured(t, *measureLedger)
		return
	}
	kept := ledger.AllMeasured()
	plan, err := experiment.PlanLedger(experiment.All(), func(string) bool { return true }, nil)
	require.NoError(t, err)
	inputs := plan.Inputs()
	for _, now := range inputs {
		then := kept[now.ID]
		require.NotNil(t, then, "%s is not measured", now.ID)
		require.Equal(t, now.Inputs, then.Inputs, "%s was measured with other profiles, values or handlers", now.ID)
		require.Equal(t, now.Command+now.How, then.Command+then.How, now.ID)
	}
	answered := map[string]bool{}
	for _, now := range inputs {
		require.False(t, answered[now.ID], "two experiments answer %s", now.ID)
		answered[now.ID] = true
	}
	for id := range kept { //lint:maporder any is as good
		require.True(t, answered[id], "%s is kept, but nothing measures it", id)
	}
	longest := 0.1
	if *everything {
		longest = math.Inf(1)
	}
	plan, err = experiment.PlanLedger(experiment.All(), func(id string) bool { return kept[id].Seconds <= longest }, nil)
	require.NoError(t, err)
	require.NoError(t, plan.Run(t.Context(), nil, nil))
	list, err := plan.Measured()
	require.NoError(t, err)
	for _, now := range list {
		require.Equal(t, kept[now.ID].Ours.String(), now.Ours.String(), now.ID)
	}
}

// writeMeasured measures rows and puts them into the file of measurements.
func writeMeasured(t *testing.T, begin string) {
	file := filepath.Join("..", "..", "ledger", "measured.tsv")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	then, err := ledger.ParseMeasured(string(text))
	require.NoError(t, err)
	plan, err := experiment.PlanLedger(experiment.All(), func(id string) bool { return begin == "all" || strings.HasPrefix(id, begin) }, nil)
	require.NoError(t, err)
	require.NoError(t, plan.Run(t.Context(), nil, nil))
	now, err := plan.Measured()
	require.NoError(t, err)
	of := map[string]ledger.Measured{}
	for _, m := range append(then, now...) {
		of[m.ID] = m
	}
	every, err := experiment.PlanLedger(experiment.All(), func(string) bool { return true }, nil)
	require.NoError(t, err)
	var list []ledger.Measured
	for _, r := range every.Inputs() {
		if m, ok := of[r.ID]; ok {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b ledger.Measured) int { return strings.Compare(a.ID, b.ID) })
	require.NoError(t, os.WriteFile(file, []byte(ledger.FormatMeasured(list)), 0o600))
}

// Each answer to an open question can be given: a profile of the publication
// accepts it, or one of its experiments has such an axis.
func TestAnswersToQuestions(t *testing.T) {
	for _, p := range experiment.Publications() {
		questions, err := ledger.Questions(p.Name)
		require.NoError(t, err)
		// an RTL is not silent, nor are simulators
		if slices.Contains([]string{"pspin", "networks", "inc"}, p.Name) {
			continue
		}
		require.NotEmpty(t, questions, p.Name)
		for _, q := range questions {
			for _, a := range q.Alternatives {
				r, err := a.Range()
				require.NoError(t, err)
				settings := [][]string{a.Set}
				if r != nil {
					settings = [][]string{{r.At(r.Low)}, {r.At(r.High)}}
				}
				for _, set := range settings {
					require.True(t, slices.ContainsFunc(p.Experiments, func(e *experiment.Experiment) bool { return accepts(e, set) }), "%s %s: %v", p.Name, q.ID, set)
				}
			}
		}
	}
}

// accepts reports whether an experiment can have assignments.
func accepts(e *experiment.Experiment, set []string) bool {
	s, err := experiment.New(e)
	if err != nil {
		return false
	}
	a := experiment.Assignments{Set: set}
	return a.Apply(s) == nil && a.Err() == nil
}

// A row that sets a parameter names what it sets: values of a profile, the
// experiments whose conditions it gives, or the package with what it describes.
// Each of these exists.
func TestWhatRowsSet(t *testing.T) {
	fields := map[string]bool{}
	add := func(path string) {
		for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
			fields[path] = true
		}
	}
	for _, path := range profile.Fields() {
		add(path)
	}
	for _, name := range profile.Names() {
		text, err := profile.Source(name)
		require.NoError(t, err)
		p, err := profile.Load(name)
		require.NoError(t, err)
		values, err := profile.Values(text, p.Origin)
		require.NoError(t, err)
		for _, v := range values { // the names of pools differ
			add(v.Path)
		}
	}
	root := rootCommand()
	for _, p := range ledger.Publications() {
		for _, r := range p.Rows {
			if r.Class != ledger.Sets {
				continue
			}
			if names, ok := strings.CutPrefix(r.Why, "conditions of "); ok {
				names, _, _ = strings.Cut(names, ":")
				for _, name := range strings.Fields(strings.ReplaceAll(names, " and ", " ")) {
					_, err := experiment.Find(name)
					c, _, _ := root.Find([]string{name})
					require.True(t, err == nil || c.Name() == name, "%s gives conditions of %s: no experiment, and no command", r.ID, name)
				}
				continue
			}
			for _, name := range strings.Fields(r.Why) {
				if !fields[name] {
					_, err := os.Stat(filepath.Join("..", "..", name))
					require.NoError(t, err, "%s sets %s: no value of a profile, and no package", r.ID, name)
				}
			}
		}
	}
}

// A predicted number that is more than half off has a reason, and one that is
// nearer has none that was forgotten.
func TestFarRowsHaveReasons(t *testing.T) {
	const far = 0.5
	measured := ledger.AllMeasured()
	for _, tag := range []string{"spin17", "tr488", "part22", "npf17"} {
		for _, p := range ledger.Publications() {
			for i := range p.Rows {
				r := &p.Rows[i]
				m := measured[r.ID]
				if p.Tag != tag || r.Class != ledger.Predicted || r.Same != "" || r.Published.Claim() || m == nil {
					continue
				}
				off, err := r.Off(m.Ours)
				require.NoError(t, err)
				if (off.Distance > far) != (r.Why != "") {
					t.Errorf("%s: %.0f%% off, why: %q", r.ID, 100*off.Distance, r.Why)
				}
			}
		}
	}
}
