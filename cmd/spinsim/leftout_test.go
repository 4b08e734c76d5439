package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/ledger"
)

var (
	leaveOut     = flag.String("leftout", "", "leave out the rows of each experiment of a publication (all: of each publication), and keep their distances in ledger/leftout.tsv")
	leaveOutKept = flag.String("leftout-resume", "", "with -leftout: the folder of identify --resume")
)

// The distances of left-out rows are of this version: of today's rows, questions,
// and measurements. They are found anew with
//
//	go test ./cmd/spinsim -run TestLeftOut -leftout NAME -timeout 60m
func TestLeftOut(t *testing.T) {
	if *leaveOut != "" {
		writeLeftOut(t)
		return
	}
	near := ledger.AllNear()
	fresh, old, _, err := freshNear(near)
	require.NoError(t, err)
	require.Empty(t, old, "rows, questions or measurements have changed since rows were left out: go test ./cmd/spinsim -run TestLeftOut -leftout NAME -timeout 60m")
	for id := range near { //lint:maporder any is as good
		_, answered := fresh[id]
		require.True(t, answered, "%s is kept, but no experiment answers it", id)
	}
	for _, p := range experiment.Publications() {
		if questions, err := ledger.Questions(p.Name); err != nil || questions == nil {
			require.NoError(t, err)
			continue
		}
		rows := evidence(p, leftOutLongest(p)).study.Rows
		kept := func(r identify.Row) bool { return near[r.ID] != nil }
		for _, r := range rows { // all rows of a publication, or none
			require.True(t, r.Published.Claim() || kept(r) || !slices.ContainsFunc(rows, kept), "%s was not left out", r.ID)
		}
	}
	if *everything {
		for _, p := range experiment.Publications() {
			for _, n := range findLeftOut(t, p) {
				require.Equal(t, ledger.FormatNear([]ledger.Near{*near[n.ID]}), ledger.FormatNear([]ledger.Near{n}))
			}
		}
	}
}

// A distance that was found with another row, number or question is old, and the
// ledger does not print it.
func TestStaleLeftOutIsFound(t *testing.T) {
	near := map[string]*ledger.Near{}
	for id, n := range ledger.AllNear() { //lint:maporder a map is made of a map
		one := *n
		near[id] = &one
	}
	ids := make([]string, 0, len(near))
	for id := range near { //lint:maporder the list is sorted
		ids = append(ids, id)
	}
	slices.Sort(ids)
	near[ids[0]].Inputs = "000000000000"
	fresh, old, _, err := freshNear(near)
	require.NoError(t, err)
	require.Len(t, old, 1)
	require.False(t, fresh[ids[0]])

	table, err := publicationsOf(near)
	require.NoError(t, err)
	require.Contains(t, table.Notes[len(table.Notes)-1], "identify "+old[0])
	p, err := experiment.FindPublication(old[0])
	require.NoError(t, err)
	now, err := nearInputs(p)
	require.NoError(t, err)
	require.Equal(t, now, near[ids[1]].Inputs, "the hash does not depend on what is kept")
	other := *p
	other.Experiments = other.Experiments[1:]
	less, err := nearInputs(&other)
	require.NoError(t, err)
	require.NotEqual(t, now, less, "it depends on the rows")
}

// findLeftOut leaves out the rows of each experiment of a publication.
func findLeftOut(t *testing.T, p *experiment.Publication) (list []ledger.Near) {
	questions, err := ledger.Questions(p.Name)
	require.NoError(t, err)
	if questions == nil {
		return nil
	}
	id := evidence(p, leftOutLongest(p))
	id.study.Questions = questions
	id.bound = func(*experiment.Sweep) {}
	id.study.Today, err = todays(id)
	require.NoError(t, err)
	var kept *checkpoint.Folder
	if *leaveOutKept != "" {
		kept, err = checkpoint.Open(*leaveOutKept, checkpoint.Part{})
		require.NoError(t, err)
		defer func() { require.NoError(t, kept.Close()) }()
	}
	c, f := identifyCommand(), &identifyFlags{resume: *leaveOutKept}
	id.study.Measure = func(ctx context.Context, settings [][]string) ([]identify.Outcome, error) {
		return f.measure(ctx, c, id, settings, kept)
	}
	rows, err := id.study.LeaveOut(t.Context())
	require.NoError(t, err)
	inputs, err := nearInputs(p)
	require.NoError(t, err)
	for _, n := range rows {
		list = append(list, ledger.Near{ID: n.Row, Fitted: n.Fitted, LeftOut: n.LeftOut, Inputs: inputs, Command: fmt.Sprintf("spinsim identify %s --longest %v", p.Name, leftOutLongest(p))})
	}
	return list
}

// writeLeftOut keeps the distances of left-out rows. The file is read last, so
// that several publications may be measured at the same time.
func writeLeftOut(t *testing.T) {
	of := map[string]ledger.Near{}
	for _, p := range experiment.Publications() {
		if *leaveOut == "all" || *leaveOut == p.Name {
			for _, n := range findLeftOut(t, p) {
				of[n.ID] = n
			}
		}
	}
	file := filepath.Join("..", "..", "ledger", "leftout.tsv")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	then, err := ledger.ParseNear(string(text))
	require.NoError(t, err)
	for _, p := range experiment.Publications() {
		for _, r := range evidence(p, leftOutLongest(p)).study.Rows { // others are kept no longer
			i := slices.IndexFunc(then, func(n ledger.Near) bool { return n.ID == r.ID })
			if _, now := of[r.ID]; i >= 0 && !now {
				of[r.ID] = then[i]
			}
		}
	}
	var list []ledger.Near
	for _, n := range of { //lint:maporder the list is sorted
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b ledger.Near) int { return cmp.Compare(a.ID, b.ID) })
	require.NoError(t, os.WriteFile(file, []byte(ledger.FormatNear(list)), 0o600))
}
