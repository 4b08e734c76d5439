package breakdown

import "github.com/spinsim/spinsim/sim"

// Track is a line of a timeline.
type Track struct {
	Group string // such as "rank"
	ID    int    // of the group: the rank
	Name  string // such as "CPU 0"
	Kind  int    // what Observer.Track has made of it
}

// Observer is told what happens. What it is given is valid during the call only.
type Observer interface {
	// Track is told of a line before anything happens on it, and returns what
	// it wants to know of it: Track.Kind.
	Track(t *Track) (kind int)
	// Span and Instant are those of sim.Tracer.
	Span(t *Track, name string, from, to sim.Time, flow uint64, args []sim.Arg)
	Instant(t *Track, name string, at sim.Time, flow uint64, args []sim.Arg)
}

// Stepped is an Observer that is told of the steps of a sim.Follower, too.
type Stepped interface {
	Observer
	Step(s *sim.Step)
}

// Follower is a Tap that is a sim.Follower.
type Follower struct {
	Tap
	stepped Stepped
	follows sim.Follower // the tracer behind it, if it is one
}

// Follow returns a tracer as NewTap does, which is told of steps, too.
func Follow(o Stepped, next sim.Tracer) *Follower {
	f := &Follower{Tap: *NewTap(o, next), stepped: o}
	f.follows, _ = next.(sim.Follower)
	return f
}

// Watch returns a tracer as NewTap does; where the tracer behind it is a
// sim.Follower, it is one, too.
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

// Tap is a sim.Tracer that tells an observer.
type Tap struct {
	observer Observer
	next     sim.Tracer
	tracks   []tapped
}

type tapped struct {
	Track
	id sim.TrackID // of next
}

// NewTap returns a tracer that tells an observer, and passes on what it is told
// to another tracer, if there is one.
func NewTap(o Observer, next sim.Tracer) *Tap { return &Tap{observer: o, next: next} }

// Track implements sim.Tracer.
func (p *Tap) Track(group string, id int, name string) sim.TrackID {
	for i := range p.tracks {
		if t := &p.tracks[i]; t.Group == group && t.ID == id && t.Name == name {
			return sim.TrackID(i)
		}
	}
	t := tapped{Track: Track{Group: group, ID: id, Name: name}}
	if p.next != nil {
		t.id = p.next.Track(group, id, name)
	}
	t.Kind = p.observer.Track(&t.Track)
	p.tracks = append(p.tracks, t)
	return sim.TrackID(len(p.tracks) - 1)
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

// Number returns the number of an argument; false: there is none of that name.
func Number(args []sim.Arg, key string) (n int64, found bool) {
	for i := range args {
		if args[i].Key == key {
			return args[i].Num, true
		}
	}
	return 0, false
}
