// Fault-policy compares a page-fault policy of one's own with those of PART: it
// asks for a block when 64 KiB are there, and brings in what is behind them
// while those come. It has the flags, tables, plots and provenance of spinsim
// compare pagefault: try --help.
package main

import (
	"github.com/spinsim/spinsim/experiment"
	pagefault "github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/handlers/part"
)

func main() {
	experiment.Main(experiment.Must(pagefault.PageFault(map[string]func() part.Policy{"early": newEarly})))
}

// newEarly makes the policy of a run: early remembers nothing.
func newEarly() part.Policy { return early }

// early is part.PIA in two steps.
func early(f part.Fault) part.Plan {
	middle := f.Page + 64<<10
	return part.Plan{
		First: part.Range{Start: f.Page, End: middle},        // then the block is asked for,
		Then:  part.Range{Start: middle, End: f.Mapping.End}, // and this comes while that does
	}
}
