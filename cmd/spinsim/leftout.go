package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/ledger"
)

// leftOutLongest is how long a row of a publication may take that is left out, so
// that all publications together take minutes: rows of a second of spin17 take
// more than 17. In a tenth of a second npf has one experiment only.
func leftOutLongest(p *experiment.Publication) time.Duration {
	if p.Name == "npf" {
		return time.Second
	}
	return 100 * time.Millisecond
}

// nearInputs is a hash of what the distances of a publication's left-out rows
// depend on: its questions, and its rows with what was measured for them.
func nearInputs(p *experiment.Publication) (string, error) {
	questions, err := ledger.Questions(p.Name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, q := range questions {
		for _, a := range q.Alternatives {
			fmt.Fprintf(&b, "%q %q %q\n", q.ID, a.Name, a.Set)
		}
	}
	measured := ledger.AllMeasured()
	for _, r := range evidence(p, leftOutLongest(p)).study.Rows {
		m := measured[r.ID]
		fmt.Fprintf(&b, "%q %q %q %q %s\n", r.ID, r.Experiment, r.Published.Text, m.Ours, m.Inputs)
	}
	return provenance.Hash([]byte(b.String()))[:12], nil
}

// freshNear returns which rows have left-out distances of this version, and the
// names of publications that have older ones, or none although something is open.
func freshNear(near map[string]*ledger.Near) (fresh map[string]bool, old, none []string, err error) {
	fresh = map[string]bool{}
	for _, p := range experiment.Publications() {
		now, err := nearInputs(p)
		if err != nil {
			return nil, nil, nil, err
		}
		stale, some := false, false
		for _, e := range p.Experiments {
			for _, r := range e.Ledger {
				if n := near[r.ID]; n != nil {
					fresh[r.ID], some = n.Inputs == now, true
					stale = stale || n.Inputs != now
				}
			}
		}
		if stale {
			old = append(old, p.Name)
		}
		questions, err := ledger.Questions(p.Name)
		if err != nil {
			return nil, nil, nil, err
		}
		if !some && questions != nil {
			none = append(none, p.Name)
		}
	}
	return fresh, old, none, nil
}
