// Package hosttest has translators for tests of devices that access host
// memory: memory that is absent at random, and a record of the questions from a
// bus.
package hosttest

import (
	"math/rand/v2"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// Chances is how often memory fails. Chances are from 0 to 1.
type Chances struct {
	Fault float64 // that an access, or a piece of a stream, faults
	Most  int     // most faults in a row before the access passes: drawn from 1 to Most
	Deny  float64 // that it is denied
	Late  float64 // that an answer is late
	Delay sim.Time
	// Which selects the accesses that may fail or be late; others pass at once.
	// nil: all.
	Which func(a *host.Access) bool
}

// Nodes are the translators of the nodes of a cluster, all with the same chances.
type Nodes struct {
	Chances
	Counts // of all
}

// Make makes the translator of a node; it is for runtime.Config.Translator.
func (n *Nodes) Make(eng *sim.Engine, rank int, bus *host.Bus) host.Translator {
	r := NewRandom(eng, rank, bus, n.Chances)
	r.counts = &n.Counts
	return r
}

// Counts counts the answers of translators so far.
type Counts struct {
	Asked, Faults, Denials int
	Delayed                int // answers, of any kind
}

// Random is a translator that fails or is late at random. Its behaviour depends
// only on the seed of the engine and on the rank.
type Random struct {
	bus     *host.Bus
	engine  *sim.Engine
	id      sim.ID
	rand    *rand.Rand
	chances Chances
	left    map[place]int // remaining faults of a place that has faulted
	counts  *Counts
}

// place identifies a question by its address, not by the access, because a
// device may use several accesses in turn.
type place struct {
	space *host.AddressSpace
	addr  uint64
	dir   host.Direction
}

func placeOf(a *host.Access, off int) place {
	addr, _ := a.At(off)
	return place{a.Space, addr, a.Direction()}
}

// NewRandom makes the translator of a node.
func NewRandom(eng *sim.Engine, rank int, bus *host.Bus, c Chances) *Random {
	r := &Random{bus: bus, engine: eng, rand: eng.Rand("translator", rank), chances: c, left: map[place]int{}, counts: new(Counts)}
	r.id = eng.Add("Translator", r)
	return r
}

// Translate implements host.Translator.
func (r *Random) Translate(a *host.Access, off, _ int) (host.Status, bool) {
	r.counts.Asked++
	if r.chances.Which != nil && !r.chances.Which(a) {
		return host.OK, true
	}
	s := r.draw(placeOf(a, off))
	if r.chances.Late == 0 || r.rand.Float64() >= r.chances.Late {
		return s, true
	}
	r.counts.Delayed++
	r.engine.Post(r.engine.Now()+sim.Time(r.rand.Int64N(int64(r.chances.Delay)+1)), r.id, r.id, 0, uint64(s), 0, a)
	return s, false
}

func (r *Random) draw(p place) host.Status {
	left, faulted := r.left[p]
	switch {
	case faulted && left == 0:
		delete(r.left, p)
		return host.OK
	case faulted:
		r.left[p] = left - 1
	case r.chances.Deny > 0 && r.rand.Float64() < r.chances.Deny:
		r.counts.Denials++
		return host.Denied
	case r.chances.Fault > 0 && r.rand.Float64() < r.chances.Fault:
		r.left[p] = r.rand.IntN(r.chances.Most)
	default:
		return host.OK
	}
	r.counts.Faults++
	return host.Fault
}

// Done implements host.Translator.
func (r *Random) Done(*host.Access, int, int) {}

// Handle gives a late answer; it implements sim.Actor.
func (r *Random) Handle(e *sim.Event) { r.bus.Translated(e.P.(*host.Access), host.Status(e.A)) }

// Question is a question to a translator.
type Question struct {
	Addr      uint64
	Length    int
	Direction host.Direction
	Space     *host.AddressSpace
	At        sim.Time
}

// Recorder is a translator that answers like Then, or lets everything pass. It
// records the questions, one for each contiguous range.
type Recorder struct {
	Engine    *sim.Engine
	Then      host.Translator // nil: OK
	Questions []Question
	Passed    []Question // accesses that passed and have ended
}

// Translate implements host.Translator.
func (r *Recorder) Translate(a *host.Access, off, n int) (host.Status, bool) {
	r.Questions = r.note(r.Questions, a, off, n)
	if r.Then != nil {
		return r.Then.Translate(a, off, n)
	}
	return host.OK, true
}

// Done implements host.Translator.
func (r *Recorder) Done(a *host.Access, off, n int) {
	r.Passed = r.note(r.Passed, a, off, n)
	if r.Then != nil {
		r.Then.Done(a, off, n)
	}
}

func (r *Recorder) note(list []Question, a *host.Access, off, n int) []Question {
	for end := off + n; off < end; {
		addr, k := a.At(off)
		k = min(k, end-off)
		list = append(list, Question{addr, k, a.Direction(), a.Space, r.Engine.Now()})
		off += k
	}
	return list
}

// Func is a translator that answers at once.
type Func func(a *host.Access, off, n int) host.Status

// Translate implements host.Translator.
func (f Func) Translate(a *host.Access, off, n int) (host.Status, bool) { return f(a, off, n), true }

// Done implements host.Translator.
func (f Func) Done(*host.Access, int, int) {}
