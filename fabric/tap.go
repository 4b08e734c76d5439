package fabric

import "github.com/spinsim/spinsim/sim"

// Observer sees the packets that pass a tap.
type Observer interface {
	// Sent is called for every packet when its source sends it.
	Sent(at sim.Time, p Packet)
	// Arrived is called for every packet when it reaches its destination, damaged
	// or not.
	Arrived(at sim.Time, p Packet, corrupt bool)
}

// Tap returns inner with an observer of every packet. Call it before nodes
// attach. It changes neither times nor the order of events.
func Tap(eng *sim.Engine, inner Fabric, o Observer) Fabric { return &tap{inner, eng, o} }

type tap struct {
	Fabric
	eng *sim.Engine
	o   Observer
}

// Unwrap returns the fabric within.
func (t *tap) Unwrap() Fabric { return t.Fabric }

func (t *tap) Attach(node int, id sim.ID) Port {
	t.eng.Wrap(id, func(a sim.Actor) sim.Actor { return &tapped{a, t.o} })
	return &tappedPort{t.Fabric.Attach(node, id), t}
}

type tappedPort struct {
	Port
	t *tap
}

func (p *tappedPort) Send(pk Packet) {
	p.t.o.Sent(p.t.eng.Now(), pk)
	p.Port.Send(pk)
}

// tapped is in front of an attached actor.
type tapped struct {
	actor sim.Actor
	o     Observer
}

func (t *tapped) Handle(e *sim.Event) {
	if e.Kind == KindArrive || e.Kind == KindCorrupt {
		t.o.Arrived(e.Time, Unpack(e), e.Kind == KindCorrupt)
	}
	t.actor.Handle(e)
}
