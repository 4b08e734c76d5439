package scenario

import "github.com/spinsim/spinsim/runtime"

// Ranks is how many nodes the scenario has.
func (p *Plan) Ranks() int { return p.ranks }

// Memory estimates what a run takes of the machine's memory, bytes: nodes, handlers, and entries and buffers once, of which half again may be under way as messages.
func (p *Plan) Memory() int64 {
	instances := 0
	for _, e := range p.entries {
		if e.handlers != nil {
			instances += len(e.ranks)
		}
	}
	return runtime.Footprint(p.profile, p.ranks, p.ranks, instances) + p.memory + p.memory/2
}
