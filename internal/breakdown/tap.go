package breakdown

import "github.com/spinsim/spinsim/sim"

// Track is a line of a timeline.
type Track struct {
	Group string // for example "rank"
	ID    int    // number in the group: the rank
	Name  string // for example "CPU 0"
	Kind  int    // the result of Observer.Track
}

// Observer receives the events of a timeline. The arguments are valid only
// during the call.
type Observer interface {
	// Track announces a line before its first event. It returns the
	// observer's own classification of the line: Track.Kind.
	Track(t *Track) (kind int)
	// Span and Instant are as in sim.Tracer.
	Span(t *Track, name string, from, to sim.Time, flow uint64, args []sim.Arg)
	Instant(t *Track, name string, at sim.Time, flow uint64, args []sim.Arg)
}

// Stepped is an Observer that also receives the steps of a sim.Follower.
type Stepped interface {
	Observer
	Step(s *sim.Step)
}

// Follower is a Tap that is also a sim.Follower.
type Follower struct {
	Tap
	stepped Stepped
	follows sim.Follower // the next tracer, if it is a sim.Follower
}

// Follow is NewTap for an observer that also receives steps.
func Follow(o Stepped, next sim.Tracer) *Follower {
	f := &Follower{Tap: *NewTap(o, next), stepped: o}
	f.follows, _ = next.(sim.Follower)
	return f
}

// Watch is NewTap, but the result is a sim.Follower if the next tracer is one.
func Watch(o Observer, next sim.Tracer) sim.Tracer {
	follows, is := next.(sim.Follower)
	if !is {
		return NewTap(o, next)
	}
	return &Follower{Tap: *NewTap(o, next), follows: follows}
}

// Step implements sim.Follower.
func (f *Follower) Step(s *sim.Step) {
	if f.stepped != nil {
		f.stepped.Step(s)
	}
	if f.follows != nil {
		f.follows.Step(s)
	}
}

// Tap is a sim.Tracer that passes everything to an observer.
type Tap struct {
	observer Observer
	next     sim.Tracer
	tracks   []tapped
	known    map[trackKey]sim.TrackID // there may be one for each of thousands of cores
}

type trackKey struct {
	group string
	id    int
	name  string
}

type tapped struct {
	Track
	id sim.TrackID // of next
}

// NewTap returns a tracer that passes everything to an observer, and then to
// the next tracer, if there is one.
func NewTap(o Observer, next sim.Tracer) *Tap {
	return &Tap{observer: o, next: next, known: map[trackKey]sim.TrackID{}}
}

// Track implements sim.Tracer.
func (p *Tap) Track(group string, id int, name string) sim.TrackID {
	key := trackKey{group, id, name}
	if i, ok := p.known[key]; ok {
		return i
	}
	t := tapped{Track: Track{Group: group, ID: id, Name: name}}
	if p.next != nil {
		t.id = p.next.Track(group, id, name)
	}
	t.Kind = p.observer.Track(&t.Track)
	p.known[key] = sim.TrackID(len(p.tracks))
	p.tracks = append(p.tracks, t)
	return p.known[key]
}

// Span implements sim.Tracer.
func (p *Tap) Span(t sim.TrackID, name string, from, to sim.Time, flow uint64, args ...sim.Arg) {
	k := &p.tracks[t]
	p.observer.Span(&k.Track, name, from, to, flow, args)
	if p.next != nil {
		p.next.Span(k.id, name, from, to, flow, args...)
	}
}

// Instant implements sim.Tracer.
func (p *Tap) Instant(t sim.TrackID, name string, at sim.Time, flow uint64, args ...sim.Arg) {
	k := &p.tracks[t]
	p.observer.Instant(&k.Track, name, at, flow, args)
	if p.next != nil {
		p.next.Instant(k.id, name, at, flow, args...)
	}
}

// Counter implements sim.Tracer.
func (p *Tap) Counter(t sim.TrackID, name string, at sim.Time, value float64) {
	if p.next != nil {
		p.next.Counter(p.tracks[t].id, name, at, value)
	}
}

// Number returns the number of the named argument. It is false if there is
// none.
func Number(args []sim.Arg, key string) (n int64, found bool) {
	for i := range args {
		if args[i].Key == key {
			return args[i].Num, true
		}
	}
	return 0, false
}
