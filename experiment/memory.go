package experiment

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/cli"
	device "github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// MemoryError is the error of a point that needs more memory than the limit.
type MemoryError struct {
	Point string   // its name
	Axes  []string // axes whose values make it so large
	Need  int64    // bytes, about
	Limit int64    // bytes
}

// Error names the point, its need, and the limit.
func (e *MemoryError) Error() string {
	work, _ := e.What()
	return fmt.Sprintf("%s needs about %s of memory, the limit is %s", work, sim.Size(e.Need).Rounded(), sim.Size(e.Limit).Rounded())
}

// What names the axes as flags, and the point. It returns Need, too.
func (e *MemoryError) What() (work string, need int64) {
	if len(e.Axes) == 0 {
		return e.Point, e.Need
	}
	return "--" + strings.Join(e.Axes, ", --") + ": " + e.Point, e.Need
}

// Footprint estimates the memory of a number of nodes of the point's device, in
// bytes. It is for Experiment.Memory, which adds the memory that processes
// allocate.
func (p *Point) Footprint(nodes int) int64 { return device.Footprint(p.Profile, nodes) }

// Need is about how much memory the point takes, in bytes.
func (p *Point) Need() int64 {
	e := p.experiment
	if e.Memory != nil {
		return e.Memory(p)
	}
	ranks, size := axisOr(p, "ranks", 2), axisOr(p, "size", 0)
	return p.Footprint(ranks) + int64(2*ranks+4)*int64(size)
}

// axisOr is the value of an axis, or otherwise if there is none.
func axisOr(p *Point, axis string, otherwise int) int {
	if i := p.experiment.axis(axis); i >= 0 {
		if v, isInt := p.values[i].(int); isInt {
			return v
		}
	}
	return otherwise
}

// BroadcastMemory is an Experiment.Memory: all ranks get the same bytes, which a
// cluster has once. Handlers of a rank have some packets of them.
func BroadcastMemory(p *Point) int64 {
	const together = 5 // packets in handlers of a rank
	ranks, size, mtu := axisOr(p, "ranks", 2), axisOr(p, "size", 0), int(p.Profile.Fabric.MTU)
	if mtu < host.PageLeast || p.Profile.OS.On() {
		return p.Footprint(ranks) + int64(2*ranks+4)*int64(size)
	}
	lists := size / mtu * 32
	return p.Footprint(ranks) + 8*int64(size) + int64(ranks)*int64(lists+min(size, together*mtu))
}

// large lists the axes whose values each cause most of the point's need.
func large(p *Point) (axes []string) {
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
		return &MemoryError{Point: worst.place(), Axes: large(worst), Need: need, Limit: s.MemoryLimit}
	}
	return nil
}

// share divides the memory that the running points leave free among them, so
// that each may follow its operations. workers is how many run at once.
func (s *Sweep) share(points []*Point, workers int) {
	if s.MemoryLimit <= 0 || !s.grid.experiment.broken {
		return
	}
	need := s.Held
	for _, n := range needs(points)[:workers] {
		need += n
	}
	for _, p := range points {
		p.Room = cli.Beside(s.MemoryLimit, need, workers)
	}
}

// needs lists the memory that each point needs, the largest first.
func needs(points []*Point) []int64 {
	list := make([]int64, len(points))
	for i, p := range points {
		list[i] = p.Need()
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// processors is how many processors workers may take.
func processors(workers int) int { return cmp.Or(max(0, workers), runtime.GOMAXPROCS(0)) }

// atOnce is how many points run at the same time: at least one, at most
// Workers, and only as many as fit into memory in any choice of points.
func (s *Sweep) atOnce(points []*Point) int {
	n := min(len(points), processors(s.Workers))
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
