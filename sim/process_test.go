package sim

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// hosts returns an engine with one actor, closed at the end of the test.
func hosts(t *testing.T) (*Engine, ID) {
	e := New(0)
	t.Cleanup(e.Close)
	return e, e.Add("Node[0].Host", nil)
}

func TestProcessSleepsAndParks(t *testing.T) {
	e, id := hosts(t)
	var log []string
	note := func(p *Process, what string) { log = append(log, fmt.Sprint(p.Now(), " ", p.Name(), " ", what)) }
	consumer := e.Spawn(id, "consumer", func(p *Process) error {
		note(p, "starts")
		p.Park("the producer")
		note(p, "woken")
		p.Park("the producer")
		note(p, "woken again")
		p.SleepUntil(100)
		note(p, "slept")
		p.Park("a wake sent while asleep")
		note(p, "did not wait")
		return nil
	})
	e.Spawn(id, "producer", func(p *Process) error {
		p.Sleep(10)
		consumer.Wake()
		consumer.Wake() // counts once while the first is pending
		note(p, "woke")
		p.Sleep(20)
		consumer.Wake()
		p.Sleep(20)
		consumer.Wake()
		p.Sleep(100)
		require.True(t, consumer.Done())
		consumer.Wake() // too late to matter
		return nil
	})
	require.Empty(t, log, "a process starts as an event")
	require.NoError(t, e.Run())
	require.Equal(t, []string{
		"0 s consumer starts", "10 ps producer woke", "10 ps consumer woken",
		"30 ps consumer woken again", "100 ps consumer slept", "100 ps consumer did not wait",
	}, log)
	require.Equal(t, Time(150), e.Now())
}

func TestParkUntil(t *testing.T) {
	e, id := hosts(t)
	p := e.Spawn(id, "p", func(p *Process) error {
		require.False(t, p.ParkUntil("nobody", 10))
		require.Equal(t, Time(10), p.Now())
		require.True(t, p.ParkUntil("a wake at 20", 1000))
		require.Equal(t, Time(20), p.Now())
		// Wake and deadline come together, deadline first: the wake is not lost.
		require.True(t, p.ParkUntil("a wake at 30", 30))
		require.Equal(t, Time(30), p.Now())
		require.False(t, p.ParkUntil("nobody", 40))
		return nil
	})
	e.Spawn(id, "waker", func(w *Process) error {
		w.Sleep(20)
		p.Wake()
		w.Sleep(10)
		p.Wake()
		return nil
	})
	require.NoError(t, e.Run())
	require.Equal(t, Time(40), e.Now(), "the void deadline at 1 ns leaves no trace")
	// It does not disturb the queue either, which had gone on to 1 ns = 0x3e8.
	var order []Time
	later := e.Add("later", actorFunc(func(ev *Event) { order = append(order, ev.Time) }))
	for _, at := range []Time{0x3e0, 0x2ff, 41} {
		e.Post(at, later, later, 0, 0, 0, nil)
	}
	require.NoError(t, e.Run())
	require.Equal(t, []Time{41, 0x2ff, 0x3e0}, order)
}

// At its end a run names the processes that wait. A user sees this text.
func TestStuckRunSaysWhoWaitsForWhat(t *testing.T) {
	e, id := hosts(t)
	for i := range 12 {
		e.Spawn(id, fmt.Sprintf("Rank[%d]", i), func(p *Process) error {
			p.Sleep(Time(i) * Nanosecond)
			if i == 3 {
				return nil
			}
			p.Park(fmt.Sprintf("message from %d", i+1))
			return nil
		})
	}
	e.Spawn(id, "noise", func(p *Process) error {
		p.Background()
		p.Park("work")
		return nil
	})
	e.Watch(waiterFunc(func(report func(Waiting)) {
		report(Waiting{Who: "Node[0].NIC", Since: 5 * Nanosecond, What: "acknowledgement of put 7"})
		report(Waiting{Who: "link", What: "itself", Cause: true})
	}))
	err := e.Run()
	var stuck *StuckError
	require.ErrorAs(t, err, &stuck)
	require.Len(t, stuck.Waiting, 13)
	require.Equal(t, Waiting{Who: "Node[0].NIC", Since: 5 * Nanosecond, What: "acknowledgement of put 7"}, stuck.Waiting[12])
	require.EqualError(t, err, `nothing left to happen at 11 ns, but 13 still wait:
  link waits since 0 s for itself
  Rank[0] waits since 0 s for message from 1
  Rank[1] waits since 1 ns for message from 2
  Rank[2] waits since 2 ns for message from 3
  Rank[4] waits since 4 ns for message from 5
  Rank[5] waits since 5 ns for message from 6
  Rank[6] waits since 6 ns for message from 7
  Rank[7] waits since 7 ns for message from 8
  Rank[8] waits since 8 ns for message from 9
  Rank[9] waits since 9 ns for message from 10
  ... and 3 more`)
	require.NoError(t, e.RunUntil(Second), "to wait is no error as long as time can go on")
}

type actorFunc func(ev *Event)

func (f actorFunc) Handle(ev *Event) { f(ev) }

type waiterFunc func(report func(Waiting))

func (f waiterFunc) Waiting(report func(Waiting)) { f(report) }

func TestProcessErrorEndsTheRun(t *testing.T) {
	e, id := hosts(t)
	e.Spawn(id, "other", func(p *Process) error {
		p.Sleep(Second)
		return errors.New("too late")
	})
	bad := errors.New("no such rank")
	e.Spawn(id, "Rank[1]", func(p *Process) error {
		p.Sleep(65 * Nanosecond)
		return bad
	})
	err := e.Run()
	require.ErrorIs(t, err, bad)
	require.EqualError(t, err, "process Rank[1] at 65 ns: no such rank")
	require.Equal(t, 65*Nanosecond, e.Now())
	require.Equal(t, err, e.Run(), "a failed engine stays failed")
}

func TestProcessPanicComesOutOfRun(t *testing.T) {
	e, id := hosts(t)
	e.Spawn(id, "p", func(p *Process) error {
		p.Sleep(1)
		panic("mistake")
	})
	defer func() { require.Equal(t, "mistake", recover().(*PanicError).Value) }()
	require.NoError(t, e.Run())
}

func TestStopAndGoOn(t *testing.T) {
	e, id := hosts(t)
	steps := 0
	e.Spawn(id, "p", func(p *Process) error {
		for range 4 {
			steps++
			p.Sleep(10)
			e.Stop()
		}
		return nil
	})
	require.NoError(t, e.Run())
	require.Equal(t, []any{2, Time(10)}, []any{steps, e.Now()})
	require.NoError(t, e.RunUntil(1000))
	require.Equal(t, []any{3, Time(20)}, []any{steps, e.Now()})
}

// Close runs the deferred calls of every unfinished process. goleak checks that
// no goroutine is left.
func TestCloseUnwindsProcesses(t *testing.T) {
	e := New(0)
	id := e.Add("host", nil)
	unwound := 0
	for i := range 3 {
		e.Spawn(id, fmt.Sprint(i), func(p *Process) error {
			defer func() {
				unwound++
				p.Sleep(1) // cannot wait any more: continues to unwind
				unwound += 100
			}()
			p.Park("ever")
			return nil
		})
	}
	require.Error(t, e.Run())
	never := e.Spawn(id, "not started", func(*Process) error { unwound += 100; return nil })
	e.Close()
	require.Equal(t, 3, unwound)
	require.True(t, never.Done())
	require.Panics(t, func() { require.NoError(t, e.Run()) })
}

// Finished processes are forgotten and their coroutines reused.
func TestManyShortProcesses(t *testing.T) {
	e, id := hosts(t)
	finished := 0
	var next func(p *Process) error
	next = func(p *Process) error {
		p.Sleep(1)
		if finished++; finished < 10_000 {
			e.Spawn(id, "next", next)
		}
		return nil
	}
	e.Spawn(id, "first", next)
	require.NoError(t, e.Run())
	require.Equal(t, 10_000, finished)
	require.Less(t, len(e.processes), 100)
	require.LessOrEqual(t, len(e.coros.idle), 2)
}

func TestSleepAndWakeAllocateNothing(t *testing.T) {
	e, id := hosts(t)
	parked := e.Spawn(id, "parked", func(p *Process) error {
		for {
			p.Park("work")
		}
	})
	e.Spawn(id, "sleeper", func(p *Process) error {
		for {
			p.Sleep(Nanosecond)
			parked.Wake()
		}
	})
	until := Time(0)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		until += 10 * Nanosecond
		require.NoError(t, e.RunUntil(until))
	}))
}

// Describe replaces the text of Park at the end of the run; the empty string
// keeps it.
func TestStuckRunAsksForTheWords(t *testing.T) {
	e, id := hosts(t)
	credits := 0
	words := map[string]string{"first": "", "second": "credit"}
	for _, name := range []string{"first", "second"} {
		p := e.Spawn(id, name, func(p *Process) error {
			p.Sleep(Nanosecond)
			p.Park("anything")
			return nil
		})
		p.Describe(func() string {
			if words[name] == "" {
				return ""
			}
			return fmt.Sprintf("%s (%d so far)", words[name], credits)
		})
	}
	e.Spawn(id, "third", func(p *Process) error {
		p.Sleep(3 * Nanosecond)
		credits = 2
		return nil
	})
	require.EqualError(t, e.Run(), `nothing left to happen at 3 ns, but 2 still wait:
  first waits since 1 ns for anything
  second waits since 1 ns for credit (2 so far)`)
}

// What a process does in Deep happens at once, and its panics come out there.
// Deep within Deep is the same, and a wait is a mistake.
func TestDeep(t *testing.T) {
	e, id := hosts(t)
	e.Spawn(id, "deep", func(p *Process) error {
		var log []string
		p.Deep(func() {
			log = append(log, "outer")
			p.Deep(func() { log = append(log, "inner") })
		})
		require.Equal(t, []string{"outer", "inner"}, log)
		cause := errors.New("a mistake")
		func() {
			defer func() { require.ErrorIs(t, recover().(error), cause) }()
			p.Deep(func() { panic(cause) })
		}()
		func() {
			defer func() { require.ErrorContains(t, recover().(error), "process deep waits while it is not running") }()
			p.Deep(func() { p.Sleep(1) })
		}()
		p.Sleep(1)
		return nil
	})
	require.NoError(t, e.Run())
	require.Equal(t, Time(1), e.Now())
}
