package fabric

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/spinsim/spinsim/sim"
)

// FaultSpec says how often what goes wrong. The chances are of one packet, each
// from 0 to 1 and together at most 1: a packet suffers one fault at most.
type FaultSpec struct {
	Drop      float64 `yaml:"drop,omitempty"`
	Duplicate float64 `yaml:"duplicate,omitempty"`
	Delay     float64 `yaml:"delay,omitempty"`
	Corrupt   float64 `yaml:"corrupt,omitempty"`
	// MaxDelay bounds how much later a delayed packet, or the second copy of a
	// duplicated one, arrives: evenly from 1 ps to MaxDelay.
	MaxDelay sim.Time `yaml:"max_delay,omitempty"`
	// Only, if set, spares the packets for which it is false.
	Only func(Packet) bool `yaml:"-"`
}

// Validate reports everything wrong with s, each with the field's name in the
// profile.
func (s *FaultSpec) Validate() error {
	var errs []error
	sum := 0.0
	for _, c := range []struct {
		field  string
		chance float64
	}{{"drop", s.Drop}, {"duplicate", s.Duplicate}, {"delay", s.Delay}, {"corrupt", s.Corrupt}} {
		if !(c.chance >= 0 && c.chance <= 1) {
			errs = append(errs, fmt.Errorf("%s: want a chance from 0 to 1, got %v", c.field, c.chance))
		}
		sum += c.chance
	}
	if sum > 1 {
		errs = append(errs, fmt.Errorf("drop, duplicate, delay, corrupt: want a sum of at most 1, got %v", sum))
	}
	if s.MaxDelay < 1 && s.Delay+s.Duplicate > 0 {
		errs = append(errs, fmt.Errorf("max_delay: want more than 0 s with delay or duplicate, got %v", s.MaxDelay))
	}
	return errors.Join(errs...)
}

// FaultCounts is how many packets suffered what.
type FaultCounts struct{ Dropped, Duplicated, Delayed, Corrupted int64 }

// Faulty is a fabric that spoils packets as they reach their destination, after
// they took their time on every link. What it does follows from the engine's
// seed and, for each node, from the packets that arrive there.
type Faulty struct {
	Fabric
	eng    *sim.Engine
	spec   FaultSpec
	counts FaultCounts
}

// NewFaulty returns inner with faults. It must be in place before nodes attach.
func NewFaulty(eng *sim.Engine, inner Fabric, spec FaultSpec) (*Faulty, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	return &Faulty{Fabric: inner, eng: eng, spec: spec}, nil
}

// Counts returns what was done so far.
func (f *Faulty) Counts() FaultCounts { return f.counts }

// Attach makes the actor id receive what faults leave of what arrives at node.
func (f *Faulty) Attach(node int, id sim.ID) {
	rng := f.eng.Rand("fabric.faults", node)
	f.eng.Wrap(id, func(a sim.Actor) sim.Actor { return &spoiler{a, f, rng} })
	f.Fabric.Attach(node, id)
}

// spoiler stands before an attached actor.
type spoiler struct {
	actor sim.Actor
	f     *Faulty
	rng   *rand.Rand
}

func (s *spoiler) Handle(e *sim.Event) {
	spec, counts := &s.f.spec, &s.f.counts
	switch {
	case e.Kind == kindAgain:
		late := *e
		late.Kind = KindArrive
		s.actor.Handle(&late)
		return
	case e.Kind != KindArrive || spec.Only != nil && !spec.Only(Unpack(e)):
		s.actor.Handle(e)
		return
	}
	x := s.rng.Float64()
	if x -= spec.Drop; x < 0 {
		counts.Dropped++
		return
	}
	if x -= spec.Duplicate; x < 0 {
		counts.Duplicated++
		s.again(e)
		s.actor.Handle(e)
		return
	}
	if x -= spec.Delay; x < 0 {
		counts.Delayed++
		s.again(e)
		return
	}
	if x -= spec.Corrupt; x < 0 {
		counts.Corrupted++
		bad := *e
		bad.Kind = KindCorrupt
		s.actor.Handle(&bad)
		return
	}
	s.actor.Handle(e)
}

func (s *spoiler) again(e *sim.Event) {
	at := e.Time + 1 + sim.Time(s.rng.Int64N(int64(s.f.spec.MaxDelay)))
	s.f.eng.Post(at, e.Dst, e.Dst, kindAgain, e.A, e.B, e.P)
}
