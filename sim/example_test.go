package sim_test

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// wire is an actor that passes its events to a process, 33.4 ns later.
type wire struct {
	eng *sim.Engine
	id  sim.ID
	to  *sim.Process
}

const (
	send sim.Kind = iota
	deliver
)

func (w *wire) Handle(e *sim.Event) {
	switch e.Kind {
	case send:
		w.eng.Post(e.Time+33400*sim.Picosecond, w.id, w.id, deliver, 0, 0, nil)
	case deliver:
		w.to.Wake()
	}
}

func Example() {
	eng := sim.New(42)
	defer eng.Close()
	host := eng.Add("Node[0].Host", nil)
	w := &wire{eng: eng}
	w.id = eng.Add("Wire", w)

	w.to = eng.Spawn(host, "receiver", func(p *sim.Process) error {
		p.Park("the first message")
		fmt.Println(p.Now(), "received")
		p.Park("a second message")
		return nil
	})
	eng.Spawn(host, "sender", func(p *sim.Process) error {
		p.Sleep(65 * sim.Nanosecond)
		fmt.Println(p.Now(), "sent")
		eng.Post(p.Now(), w.id, host, send, 0, 0, nil)
		return nil
	})
	fmt.Println(eng.Run())
	// Output:
	// 65 ns sent
	// 98.4 ns received
	// nothing left to happen at 98.4 ns, but 1 still wait:
	//   receiver waits since 98.4 ns for a second message
}
