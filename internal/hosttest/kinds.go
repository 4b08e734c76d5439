package hosttest

import "github.com/spinsim/spinsim/sim"

// Kinds are ways in which memory fails: now and then, at nearly every access,
// late, and all of these together.
var Kinds = map[string]Chances{
	"now and then": {Fault: 0.01, Most: 3},
	"everywhere":   {Fault: 0.5, Most: 5},
	"late":         {Late: 0.5, Delay: 2 * sim.Microsecond},
	"all":          {Fault: 0.2, Most: 4, Late: 0.2, Delay: 700 * sim.Nanosecond},
}
