package sim

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// An interrupt ends an endless run, whether of events of actors or of processes
// only.
func TestInterruptEndsAnEndlessRun(t *testing.T) {
	wanted := errors.New("enough")
	for name, start := range map[string]func(e *Engine, id ID){
		"actors":    func(e *Engine, id ID) { e.Post(0, id, id, 1, 0, 0, nil) },
		"processes": func(e *Engine, id ID) { e.Spawn(id, "sleeper", sleepForEver) },
	} {
		t.Run(name, func(t *testing.T) {
			e := New(1)
			defer e.Close()
			start(e, e.Add("again", again{e}))
			e.Interrupt(wanted)
			require.ErrorIs(t, e.Run(), wanted)
			require.ErrorIs(t, e.Run(), wanted, "a later run does not begin")
		})
	}
}

// again posts an event to itself for every event.
type again struct{ e *Engine }

func (a again) Handle(ev *Event) { a.e.Post(ev.Time+1, ev.Dst, ev.Dst, 1, 0, 0, nil) }

func sleepForEver(p *Process) error {
	for {
		p.Sleep(1)
	}
}
