package handlerlab

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/lab"
	"github.com/spinsim/spinsim/sim"
)

// look prepares the observation of a module's handlers.
func (r *recorder) look(m *hpu.Module) {
	if r.x.Race {
		r.races = newRaces(r)
		r.races.module = m
		r.races.byHPU = slices.ContainsFunc(m.Imports(), func(i hpu.ImportInfo) bool { return i.Op == hpu.OpMyHPU })
	}
	if r.x.Lines {
		r.lines = newLines(m)
	}
}

// Access implements hpu.Observer.
func (r *recorder) Access(c *hpu.Context, offset int, addr, n uint32, store bool) {
	r.races.access(c, offset, addr, n, store)
}

// Block implements hpu.Observer.
func (r *recorder) Block(c *hpu.Context, b *hpu.WatchedBlock) { r.lines.block(c, b) }

// Charge implements hpu.Observer.
func (r *recorder) Charge(c *hpu.Context, offset int, cost int64) { r.lines.charge(c, offset, cost) }

// Enter implements hpu.Observer.
func (r *recorder) Enter(c *hpu.Context, offset int) { r.lines.enter(c, offset) }

// Leave implements hpu.Observer.
func (r *recorder) Leave(c *hpu.Context) { r.lines.leave(c) }

// found adds the results of the observation to a report.
func (r *recorder) found(rep *Report) {
	rep.Lines = r.lines
	if r.races != nil {
		rep.Races = r.races.list
		rep.Errors = append(rep.Errors, r.races.errors()...)
		if len(r.races.list) == 0 {
			rep.Notes = append(rep.Notes, "no race found: looked at "+lab.Plural(int(r.races.count()), "handler", "handlers"))
		}
		if n := r.races.base; n > 0 {
			rep.Notes = append(rep.Notes, fmt.Sprintf("races of the first %s with later ones may be missing: their history took more than %v",
				lab.Plural(int(n-1), "handler", "handlers"), sim.Size(r.races.most)))
		}
	}
}
