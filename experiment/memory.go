package experiment

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	device "github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// MemoryError says that a point needs more memory than there may be.
type MemoryError struct {
	Point string   // which
	Axes  []string // whose values make it so large
	Need  int64    // bytes, about
	Limit int64    // bytes
}

// Error says which point it is.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s needs about %s of memory, the limit is %s", e.What(), sim.Size(e.Need).Rounded(), sim.Size(e.Limit).Rounded())
}

// What names the axes as flags, and the point.
func (e *MemoryError) What() string {
	if len(e.Axes) == 0 {
		return e.Point
	}
	return "--" + strings.Join(e.Axes, ", --") + ": " + e.Point
}

// Footprint estimates the memory that a cluster of the point's device takes,
// bytes: so many nodes with a process each, on instances of which handlers are
// installed. It is for Experiment.Memory; what processes allocate comes on top
// of it.
func (p *Point) Footprint(nodes, instances int) int64 {
	return device.Footprint(p.Profile, nodes, nodes, instances)
}

// Need is what the point takes of memory, bytes, about; 0: not known.
func (p *Point) Need() int64 {
	if p.experiment.Memory == nil {
		return 0
	}
	return p.experiment.Memory(p)
}

// large lists the axes without whose values the point would take less than most of what it does.
func (p *Point) large() (axes []string) {
	need := p.Need()
	for i := range p.experiment.Axes {
		a := &p.experiment.Axes[i]
		least, err := a.parse(a.Least)
		if a.Least == "" {
			least, err = a.zero(), nil
		}
		if _, isNumber := number(p.values[i]); !isNumber || len(a.Of) > 0 || a.Fixed() || err != nil {
			continue
		}
		small := *p
		small.values = slices.Clone(p.values)
		small.values[i] = least
		if small.Need() < need/8*7 {
			axes = append(axes, a.Name)
		}
	}
	return axes
}

// checkMemory refuses points that need more than the limit.
func (s *Sweep) checkMemory(points []*Point) error {
	if s.MemoryLimit <= 0 || len(points) == 0 {
		return nil
	}
	worst := slices.MaxFunc(points, func(a, b *Point) int { return int(min(1, max(-1, a.Need()-b.Need()))) })
	if need := worst.Need() + s.Held; need > s.MemoryLimit {
		return &MemoryError{Point: worst.place(), Axes: worst.large(), Need: need, Limit: s.MemoryLimit}
	}
	return nil
}

// leastRoom is the memory that the steps of a point may take in any case,
// bytes, and programMemory what the program takes itself.
const (
	leastRoom     = 16 << 20
	programMemory = 64 << 20
)

// share gives each of the points, of which so many run at once, its part of the
// memory that is left beside them: that of what Broken follows.
func (s *Sweep) share(points []*Point, workers int) {
	if s.MemoryLimit <= 0 || !s.Experiment.broken {
		return
	}
	left := s.MemoryLimit - s.Held - programMemory
	for _, need := range needs(points)[:workers] {
		left -= need
	}
	for _, p := range points {
		p.room = max(leastRoom, left/int64(2*workers)) // half: the garbage collector takes as much
	}
}

// needs are those of points, the largest first.
func needs(points []*Point) []int64 {
	list := make([]int64, len(points))
	for i, p := range points {
		list[i] = p.Need()
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// atOnce is how many of the points run at the same time, at least one: as many
// as Workers says, if there is memory for any so many.
func (s *Sweep) atOnce(points []*Point) int {
	n := s.Workers
	if n < 1 {
		n = runtime.GOMAXPROCS(0)
	}
	n = min(len(points), n)
	if s.MemoryLimit <= 0 {
		return n
	}
	total := int64(0)
	for i, need := range needs(points)[:n] {
		if total += need; total > s.MemoryLimit {
			return max(1, i)
		}
	}
	return n
}
