package experiment

import (
	"cmp"
	"slices"
	"sync"

	"github.com/spinsim/spinsim/internal/breakdown"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Operation is a measured operation: a program of a node began it at From and
// saw its end at To.
type Operation struct {
	Rank     int
	Process  string // "": any program of the node
	From, To sim.Time
	parts    *breakdown.Times // set if they were found before the record was dropped
}

// operations are the operations of a point. Their mean is the value of
// Experiment.Followed.
type operations struct {
	mu    sync.Mutex // ranks of a divided run note operations at the same time
	list  []Operation
	share int // values per operation, see Point.OperationOf; 0: 1
}

// add notes an operation. In a divided run it comes to its place by its end and
// its rank, which is where it stands otherwise.
func (o *operations) add(one Operation, divided bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := len(o.list)
	for divided && i > 0 && cmp.Or(cmp.Compare(o.list[i-1].To, one.To), cmp.Compare(o.list[i-1].Rank, one.Rank)) > 0 {
		i--
	}
	o.list = slices.Insert(o.list, i, one)
}

func (o *operations) each() sim.Time { return sim.Time(max(o.share, 1)) }

// times are the times of the operations, sorted.
func (o *operations) times() []sim.Time {
	list := make([]sim.Time, len(o.list))
	for i, one := range o.list {
		list[i] = (one.To - one.From) / o.each()
	}
	slices.Sort(list)
	return list
}

// Operations are the operations that Run has noted.
func (p *Point) Operations() []Operation {
	if p.done == nil {
		return nil
	}
	return p.done.list
}

// Operation notes an operation that a program began at from and that has just
// ended. Run calls it for each measured operation, for --breakdown and
// --samples.
func (p *Point) Operation(proc *runtime.Proc, from sim.Time) {
	if p.done != nil {
		p.done.add(Operation{Rank: proc.Rank(), Process: proc.Name(), From: from, To: proc.Now()}, p.Cores > 1 && p.experiment.Independent)
	}
}

// NoteOperation is Operation with both times given. process may be "" for any
// program of the node. Programs of an Independent experiment do not call it.
func (p *Point) NoteOperation(rank int, process string, from, to sim.Time) {
	if p.done != nil {
		p.done.add(Operation{Rank: rank, Process: process, From: from, To: to}, false)
	}
}

// OnlyOperations replaces the operations by some of them, for example those of
// the slowest program.
func (p *Point) OnlyOperations(list []Operation) {
	if p.done != nil {
		p.done.list = list
	}
}

// OnlyDuring replaces the operations by the operations of list that of accepts.
func (p *Point) OnlyDuring(list []Operation, of func(o *Operation) bool) {
	var some []Operation
	for i := range list {
		if of(&list[i]) {
			some = append(some, list[i])
		}
	}
	p.OnlyOperations(some)
}

// LastOperation notes an operation of several programs. It ends when the last
// of them has called this.
func (p *Point) LastOperation(proc *runtime.Proc, from sim.Time) {
	if p.done == nil {
		return
	}
	p.done.mu.Lock()
	defer p.done.mu.Unlock()
	one := Operation{Rank: proc.Rank(), Process: proc.Name(), From: from, To: proc.Now()}
	if len(p.done.list) == 0 {
		p.done.list = append(p.done.list, one)
		return
	}
	// of several that end together the first rank: it comes first in the order of events
	if last := &p.done.list[0]; one.To > last.To || one.To == last.To && one.Rank < last.Rank {
		*last = one
	}
}

// OperationOf sets how many values an operation has. For example, an operation
// is a round trip and the value is half of it: 2.
func (p *Point) OperationOf(n int) {
	if p.done != nil {
		p.done.share = n
	}
}

// Percentile is the nearest rank: the smallest of the sorted times such that at
// least percent of them, 1 to 100, are not above it. 0: there are no times.
func Percentile(sorted []sim.Time, percent int) sim.Time {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// samplesOf is the beginning of the command in the record of a table of
// samples.
const samplesOf = "samples of "
