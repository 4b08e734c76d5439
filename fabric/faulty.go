package fabric

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/spinsim/spinsim/sim"
)

// FaultSpec is the faults of a fabric and their chances. A chance is for one
// packet on its whole path, from 0 to 1; all together are at most 1. A packet
// suffers at most one fault. It is lost or damaged on a link of its path, each
// link with the same chance. On paths of more than 1024 links only the first
// 1024 count.
type FaultSpec struct {
	Loss    float64 `yaml:"loss,omitempty"`    // the chance that it does not arrive
	Corrupt float64 `yaml:"corrupt,omitempty"` // that it arrives damaged, which its receiver detects
	// that it arrives twice, the second time later by up to MaxDelay
	Duplicate float64 `yaml:"duplicate,omitempty"`
	Delay     float64 `yaml:"delay,omitempty"` // that it arrives later by up to MaxDelay
	// MaxDelay bounds the additional delay of a delayed packet, or of the second
	// copy of a duplicated one. The delay is uniform from 1 ps to MaxDelay, at
	// most 1 s.
	MaxDelay sim.Time `yaml:"max_delay,omitempty"`
	// Down is the times in which a link or a node carries nothing: packets that
	// pass it then are lost.
	Down []Down `yaml:"down,omitempty"`
	// Only, if set, limits the chances to packets for which it is true. Down
	// affects all packets.
	Only func(Packet) bool `yaml:"-"`
}

// Down is a time in which a link, by its name, or a node, with its links in
// both directions, is down.
type Down struct {
	Link string   `yaml:"link,omitempty"`
	Node *int     `yaml:"node,omitempty"`
	From sim.Time `yaml:"from"`
	To   sim.Time `yaml:"to"` // the link is up again
}

// IsZero reports whether s is empty, so that a profile leaves it out.
func (s FaultSpec) IsZero() bool { return s.none() && s.MaxDelay == 0 && s.Only == nil }

// none reports whether there are no faults.
func (s *FaultSpec) none() bool {
	return s.Loss == 0 && s.Corrupt == 0 && s.Duplicate == 0 && s.Delay == 0 && len(s.Down) == 0
}

// Loses reports whether packets may be lost, or damaged, which has the same
// effect.
func (s *FaultSpec) Loses() bool { return s.Loss > 0 || s.Corrupt > 0 || len(s.Down) > 0 }

// Validate reports everything wrong with s, each with the field's name in the
// profile.
func (s *FaultSpec) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	sum, legal := 0.0, true
	for _, c := range []struct {
		field  string
		chance float64
	}{{"loss", s.Loss}, {"corrupt", s.Corrupt}, {"duplicate", s.Duplicate}, {"delay", s.Delay}} {
		if !(c.chance >= 0 && c.chance <= 1) {
			wrong("%s: want a chance from 0 to 1, got %v", c.field, c.chance)
			legal = false
		}
		sum += c.chance
	}
	if legal && sum > 1 {
		wrong("loss, corrupt, duplicate, delay: want a sum of at most 1, got %v", sum)
	}
	if late := s.Delay > 0 || s.Duplicate > 0; s.MaxDelay < 0 || s.MaxDelay > MaxTime || late && s.MaxDelay == 0 {
		wrong("max_delay: want 1 ps to %v with delay or duplicate, got %v", MaxTime, s.MaxDelay)
	}
	for i, d := range s.Down {
		switch {
		case (d.Link == "") == (d.Node == nil):
			wrong("down[%d]: want either link, such as Node[0].Tx, or node, a number", i)
		case d.From < 0:
			wrong("down[%d].from: want at least 0 s, got %v", i, d.From)
		case d.To <= d.From:
			wrong("down[%d].to: want a time after from, %v, got %v", i, d.From, d.To)
		}
	}
	return errors.Join(errs...)
}

// FaultCounts is the number of packets with each fault.
type FaultCounts struct {
	Lost, Corrupted, Duplicated, Delayed int64
	DuplicatedBytes                      int64 // of the second copies
}

// Faulty is a fabric with faults. The fate of a packet depends on the engine's
// seed and on the packets that each node sends and receives; nodes share
// nothing. A lost packet takes its time on every link up to and including the
// one that loses it. Other packets arrive as they would without faults, or
// later.
type Faulty struct {
	Fabric
	eng  *sim.Engine
	spec FaultSpec
	// nil: a fabric of another package; its packets are lost and damaged on
	// arrival
	net    *network
	damage *damage
	counts []FaultCounts // of packets that arrived, per node
}

// NewFaulty returns inner with faults. Call it before nodes attach.
func NewFaulty(eng *sim.Engine, inner Fabric, spec FaultSpec) (*Faulty, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("faults: %w", err)
	}
	f := &Faulty{Fabric: inner, eng: eng, spec: spec, net: networkOf(inner), counts: make([]FaultCounts, inner.Nodes())}
	if f.net == nil {
		if len(spec.Down) > 0 {
			return nil, errors.New("faults: down: the links of this fabric cannot be down")
		}
		f.damage = newDamage(inner.Nodes())
		return f, nil
	}
	if f.net.damage == nil {
		f.net.damage = newDamage(len(f.net.ports) + len(f.net.links))
	}
	for i, d := range spec.Down {
		if err := f.net.breakLinks(d); err != nil {
			return nil, fmt.Errorf("faults: down[%d]: %w", i, err)
		}
	}
	return f, nil
}

// Unwrap returns the fabric within.
func (f *Faulty) Unwrap() Fabric { return f.Fabric }

// HasFaults reports whether packets may be lost, damaged, doubled or delayed: f
// is a Faulty, or its switches drop packets (Spec.Queue), or it decorates such a
// fabric.
func HasFaults(f Fabric) bool {
	if n := networkOf(f); n != nil && n.spec.Queue > 0 {
		return true
	}
	for {
		if _, is := f.(*Faulty); is {
			return true
		}
		d, is := f.(interface{ Unwrap() Fabric })
		if !is {
			return false
		}
		f = d.Unwrap()
	}
}

// networkOf finds the network within decorators, nil if there is none.
func networkOf(f Fabric) *network {
	for {
		if n, is := f.(*network); is {
			return n
		}
		d, is := f.(interface{ Unwrap() Fabric })
		if !is {
			return nil
		}
		f = d.Unwrap()
	}
}

// Counts returns the totals so far.
func (f *Faulty) Counts() (all FaultCounts) {
	for _, c := range f.counts {
		all.Duplicated += c.Duplicated
		all.DuplicatedBytes += c.DuplicatedBytes
		all.Delayed += c.Delayed
		all.Corrupted += c.Corrupted
		all.Lost += c.Lost
	}
	if f.net != nil {
		lost, damaged := f.net.damage.totals()
		all.Lost, all.Corrupted = lost, damaged
	}
	return all
}

// Losses returns the packets that were lost or damaged.
func (f *Faulty) Losses() ([]Loss, int) {
	if f.net != nil {
		return f.Fabric.Losses()
	}
	list, n := f.Fabric.Losses()
	own, more := f.damage.list()
	return sortLosses(append(list, own...)), n + more
}

// Attach makes the actor id receive the packets for node that remain after the
// faults.
func (f *Faulty) Attach(node int, id sim.ID) Port {
	s := &spoiler{f: f, eng: EngineOf(f, node, f.eng), node: node, rng: f.eng.Rand("fabric.faults.delay", node)}
	f.eng.Wrap(id, func(a sim.Actor) sim.Actor { s.actor = a; return s })
	s.port = f.Fabric.Attach(node, id)
	return &faultyPort{s.port, f, f.eng.Rand("fabric.faults", node)}
}

// fate is the fault of a packet. The lower bits are the number of the link on
// its path where it happens, the bits above them the kind.
type fate uint32

const (
	hopBits = 10
	hopMask = 1<<hopBits - 1
	// fateKinds has the bits of a kind
	fateKinds = 7

	fateLost fate = (iota - 2) << hopBits
	fateCorrupt
	fateDuplicate
	fateDelay
	fateDamaged // it was damaged on the way
	fateCopy    // it is the second of a duplicated packet
)

func (f fate) what() fate { return f &^ hopMask }

func (f fate) word() uint64 { return uint64(f&hopMask)<<nodeBits | uint64(f>>hopBits)<<(32+nodeBits) }

func fateOf(a uint64) fate {
	return fate(a>>nodeBits&hopMask) | fate(a>>(32+nodeBits)&fateKinds)<<hopBits
}

// faultyPort decides the fate of the packets that a node sends.
type faultyPort struct {
	Port
	f   *Faulty
	rng *rand.Rand
}

func (p *faultyPort) Send(pk Packet) {
	if spec := &p.f.spec; pk.fate == 0 && (spec.Only == nil || spec.Only(pk)) {
		pk.fate = p.draw(&pk)
	}
	p.Port.Send(pk)
}

func (p *faultyPort) draw(pk *Packet) fate {
	spec := &p.f.spec
	x := p.rng.Float64()
	if x -= spec.Loss; x < 0 {
		return fateLost | p.place(pk)
	}
	if x -= spec.Corrupt; x < 0 {
		return fateCorrupt | p.place(pk)
	}
	if x -= spec.Duplicate; x < 0 {
		return fateDuplicate
	}
	if x -= spec.Delay; x < 0 {
		return fateDelay
	}
	return 0
}

// place draws the link at which a packet meets its fate.
func (p *faultyPort) place(pk *Packet) fate {
	if p.f.net == nil {
		return 0
	}
	return fate(p.rng.IntN(min(hopMask+1, p.f.net.hops(pk))))
}

// Release returns the credit of a packet; a copy has taken none.
func (p *faultyPort) Release(pk Packet) {
	if pk.fate.what() != fateCopy {
		p.Port.Release(pk)
	}
}

// spoiler is in front of an attached actor and carries out the faults.
type spoiler struct {
	actor sim.Actor
	port  Port
	f     *Faulty
	eng   *sim.Engine
	node  int
	rng   *rand.Rand
	event sim.Event
}

func (s *spoiler) Handle(e *sim.Event) {
	if e.Kind == kindAgain {
		s.event = *e
		s.event.Kind = KindArrive
		s.actor.Handle(&s.event)
		return
	}
	if e.Kind != KindArrive || e.A&fateMask == 0 {
		s.actor.Handle(e)
		return
	}
	counts := &s.f.counts[s.node]
	s.event = *e
	s.event.A &^= fateMask
	switch fateOf(e.A).what() {
	case fateLost: // on a fabric of another package
		counts.Lost++
		s.f.damage.record(s.node, Loss{e.Time, "", "loss", false, Unpack(&s.event)})
		s.port.Release(Unpack(&s.event))
		return
	case fateCorrupt:
		counts.Corrupted++
		s.f.damage.record(s.node, Loss{e.Time, "", "corrupt", true, Unpack(&s.event)})
		s.event.Kind = KindCorrupt
	case fateDamaged:
		s.event.Kind = KindCorrupt
	case fateDuplicate:
		counts.Duplicated++
		counts.DuplicatedBytes += int64(e.B >> 32 & lengthMask)
		s.again(e, s.event.A|fateCopy.word())
	case fateDelay:
		counts.Delayed++
		s.again(e, s.event.A)
		return
	default:
		s.event.A = e.A
	}
	s.actor.Handle(&s.event)
}

func (s *spoiler) again(e *sim.Event, a uint64) {
	at := e.Time + 1 + sim.Time(s.rng.Int64N(int64(s.f.spec.MaxDelay)))
	s.eng.Post(at, e.Dst, e.Dst, kindAgain, a, e.B, e.P)
}
