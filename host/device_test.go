package host_test

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// device is a client that retries a faulted access up to so many times, each
// after a pause, and keeps a record.
type device struct {
	engine *sim.Engine
	id     sim.ID
	bus    host.Bus
	tries  int
	used   []*use
	moment int // counts events
}

// use is an access and its history.
type use struct {
	host.Access
	number int
	kind   host.Direction
	stream bool

	begun, reached int
	dropped        bool
	pieces         []int
	ended, at      []int // moments of the ends with OK, and of Reached
	when           []sim.Time
	failures       []sim.Time
}

const (
	kindMake sim.Kind = 1 + iota
	kindRetry
)

func newDevice(spec host.BusSpec, translator func(d *device) host.Translator) *device {
	d := &device{engine: sim.New(1), tries: 4}
	d.id = d.engine.Add("device", d)
	d.bus.Init(d.engine, d.id, &spec, &host.Server{Rate: spec.Bandwidth})
	d.bus.AddPorts(2, sim.NewRate(30, 1))
	if translator != nil {
		d.bus.Translate(translator(d))
	}
	return d
}

// later makes the device start an access at a time.
func (d *device) later(at sim.Time, u *use) *use {
	u.number, u.Client, u.Ref = len(d.used), d, u
	d.used = append(d.used, u)
	d.engine.Post(at, d.id, d.id, kindMake, 0, 0, u)
	return u
}

func (d *device) Handle(e *sim.Event) {
	switch e.Kind {
	case kindMake:
		u := e.P.(*use)
		switch {
		case u.stream:
			d.bus.Stream(&u.Access)
		case u.kind == host.ToMemory:
			if d.bus.Write(&u.Access) {
				u.begun++
			}
		case u.kind == host.FromMemory:
			d.bus.Read(&u.Access)
		default:
			d.bus.Atomic(&u.Access)
		}
	case kindRetry:
		d.bus.Again(&e.P.(*use).Access, int(e.A))
	default:
		d.bus.Handle(e)
	}
}

func (d *device) Reached(a *host.Access) {
	u := a.Ref.(*use)
	u.reached++
	d.moment++
	u.at = append(u.at, d.moment)
}

func (d *device) Begun(a *host.Access) { a.Ref.(*use).begun++ }

func (d *device) Ended(a *host.Access, i int, s host.Status) {
	u := a.Ref.(*use)
	d.moment++
	switch {
	case s == host.OK:
		u.pieces, u.ended, u.when = append(u.pieces, i), append(u.ended, d.moment), append(u.when, d.engine.Now())
		a.Tries = 0
	case s == host.Fault && int(a.Tries) < d.tries:
		u.failures = append(u.failures, d.engine.Now())
		a.Tries++
		d.engine.Post(d.engine.Now()+pause, d.id, d.id, kindRetry, uint64(i), 0, u)
	default:
		u.failures = append(u.failures, d.engine.Now())
		u.dropped = true
		d.bus.Drop(a)
	}
}
