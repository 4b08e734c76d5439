package scenario

import (
	"math"

	"github.com/spinsim/spinsim/runtime"
)

// Ranks returns the number of nodes in the scenario.
func (p *Plan) Ranks() int { return p.ranks }

// Memory estimates how many bytes of the machine's memory a run needs. It
// counts nodes, entries and buffers once, and half of that again for
// messages on the way. It adds the measurements.
func (p *Plan) Memory() int64 {
	each := float64(sampleBytes)
	if p.options.Breakdown {
		each += measuredBytes
	}
	samples := 0.0
	for _, g := range p.programs {
		if len(g.ranks) > 0 {
			at := p.env.with(varRank, int64(g.ranks[len(g.ranks)-1]))
			samples += float64(len(g.ranks)) * measures(g.Steps, at)
		}
	}
	return runtime.Footprint(p.profile, p.ranks) + p.memory + p.memory/2 + int64(min(each*samples, math.MaxInt64/4))
}

// Bound limits the memory of a breakdown in bytes; 0: no limit. A run that
// needs more ends with a *breakdown.FullError.
func (p *Plan) Bound(bytes int64) { p.room = bytes }

// Bytes that a run keeps of each measurement: a duration, and with a breakdown
// its beginning and end too. A growing list needs three times as much.
const (
	sampleBytes   = 3 * 8
	measuredBytes = 3 * 24
)

// measures returns how many measurements the steps make.
func measures(steps []Step, at *env) (n float64) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Measure != nil:
			n++
		case s.Repeat != nil:
			times, err := s.Repeat.Times.int(at, 1, 0, maxCount)
			if err != nil || times == 0 {
				continue // the check has reported the error
			}
			first, last := at.with(varRound, 0), at.with(varRound, times-1)
			n += float64(times) * (measures(s.Repeat.Steps, first) + measures(s.Repeat.Steps, last)) / 2
		}
	}
	return n
}
