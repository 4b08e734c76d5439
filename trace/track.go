package trace

import (
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// process is a collapsible group in the viewer: a rank, or the fabric.
type process struct {
	id        int32
	name      string
	rank      int32
	described bool
	top       []*track
}

// track is one node of the tree of lines.
type track struct {
	process  *process
	parent   *track // nil: directly below the process
	path     string
	name     string // last component of path
	rank     int32
	handle   sim.TrackID // index in registry.byID; negative if no caller has it
	children []*track
	lanes    []*lane
	late     []*lane
	counters []*counter
	main     lane // lanes[0]; parent of the children
}

// lane is a line whose slices nest.
type lane struct {
	track     *track
	id        uint64
	described bool
	open      []sim.Time // ends of the open slices, outermost first
	free      sim.Time   // late lanes: end of the last slice
}

// counter is a line of values.
type counter struct {
	track     *track
	id        uint64
	name      string
	described bool
}

type processKey struct {
	group string
	id    int
}

type trackKey struct {
	process *process
	path    string
}

// groupRanks is the number of distinct ranks for the ids of a group. Larger ids
// share the last rank. It only affects the order in the picture.
const groupRanks = 1 << 24

// registry numbers processes, tracks and lanes in the order of the calls.
type registry struct {
	processes map[processKey]*process
	groups    map[string]int32
	tracks    map[trackKey]*track
	byID      []*track
	lastID    uint64
}

func (r *registry) nextID() uint64 {
	r.lastID++
	return r.lastID
}

func (r *registry) process(group string, id int) *process {
	key := processKey{group, id}
	if p := r.processes[key]; p != nil {
		return p
	}
	if _, known := r.groups[group]; !known {
		r.groups[group] = int32(len(r.groups))
	}
	p := &process{
		id:   int32(r.nextID()),
		name: group + " " + strconv.Itoa(id),
		rank: r.groups[group]*groupRanks + int32(min(id, groupRanks-1)),
	}
	r.processes[key] = p
	return p
}

func (r *registry) track(p *process, path string) *track {
	key := trackKey{p, path}
	if t := r.tracks[key]; t != nil {
		return t
	}
	t := &track{process: p, path: path, name: path, handle: -1}
	siblings := &p.top
	if dot := strings.LastIndexByte(path, '.'); dot > 0 && dot < len(path)-1 {
		t.name = path[dot+1:]
		t.parent = r.track(p, path[:dot])
		siblings = &t.parent.children
	}
	t.rank = int32(len(*siblings))
	*siblings = append(*siblings, t)
	t.main = lane{track: t, id: r.nextID()}
	t.lanes = append(t.lanes, &t.main)
	r.tracks[key] = t
	return t
}

// laneFor returns a lane on which a slice that ends at to nests. Slices must
// come in the order of their starts, and the caller must have removed the
// completed ones.
func (r *registry) laneFor(t *track, to sim.Time) *lane {
	for _, l := range t.lanes {
		if len(l.open) == 0 || to <= l.open[len(l.open)-1] {
			return l
		}
	}
	l := &lane{track: t, id: r.nextID()}
	t.lanes = append(t.lanes, l)
	return l
}

// lateLaneFor returns a lane whose slices all end at from or earlier.
func (r *registry) lateLaneFor(t *track, from sim.Time) *lane {
	for _, l := range t.late {
		if l.free <= from {
			return l
		}
	}
	l := &lane{track: t, id: r.nextID()}
	t.late = append(t.late, l)
	return l
}

func (r *registry) counter(t *track, name string) *counter {
	for _, c := range t.counters {
		if c.name == name {
			return c
		}
	}
	c := &counter{track: t, id: r.nextID(), name: name}
	t.counters = append(t.counters, c)
	return c
}
