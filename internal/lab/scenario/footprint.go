package scenario

import (
	"math"

	"github.com/spinsim/spinsim/runtime"
)

// Ranks is how many nodes the scenario has.
func (p *Plan) Ranks() int { return p.ranks }

// Memory estimates what a run takes of the machine's memory, bytes: nodes,
// handlers, entries and buffers once, of which half again may be under way as
// messages, and what is measured.
func (p *Plan) Memory() int64 {
	instances := 0
	for _, e := range p.entries {
		if e.handlers != nil {
			instances += len(e.ranks)
		}
	}
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
	return runtime.Footprint(p.profile, p.ranks, p.ranks, instances) + p.memory + p.memory/2 + int64(min(each*samples, math.MaxInt64/4))
}

// Bound lets what a breakdown follows take so much memory, bytes; 0: any. A run
// that takes more ends with a *breakdown.FullError.
func (p *Plan) Bound(bytes int64) { p.room = bytes }

// What a run keeps of each measurement, bytes: a time, and with a breakdown
// when it was; three times as much while a list grows.
const (
	sampleBytes   = 3 * 8
	measuredBytes = 3 * 24
)

// measures is how often steps measure.
func measures(steps []Step, at *env) (n float64) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Measure != nil:
			n++
		case s.Repeat != nil:
			times, err := s.Repeat.Times.int(at, 1, 0, maxCount)
			if err != nil || times == 0 {
				continue // the check has said what is wrong
			}
			first, last := at.with(varRound, 0), at.with(varRound, times-1)
			n += float64(times) * (measures(s.Repeat.Steps, first) + measures(s.Repeat.Steps, last)) / 2
		}
	}
	return n
}
