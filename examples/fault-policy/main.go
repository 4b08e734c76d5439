// Fault-policy compares its own page-fault policy with PART's policies. Its
// policy asks for a block when the first 64 KiB of it are there, and brings in
// the rest while the block arrives. It has the flags, tables, plots and
// provenance of spinsim compare pagefault: try --help.
package main

import (
	"github.com/spinsim/spinsim/experiment"
	pagefault "github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/handlers/part"
)

func main() {
	experiment.Main(experiment.Must(pagefault.PageFault(map[string]func() part.Policy{"early": newEarly})))
}

// newEarly makes the policy of a run. The policy has no state.
func newEarly() part.Policy { return early }

// early is part.PIA in two steps.
func early(f part.Fault) part.Plan {
	middle := f.Page + 64<<10
	return part.Plan{
		First: part.Range{Start: f.Page, End: middle},        // then the block is asked for
		Then:  part.Range{Start: middle, End: f.Mapping.End}, // and this part comes meanwhile
	}
}
