package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// gossip is a network of actors: each event makes its actor post some more, to
// itself and its own group at any time, and to others after a least delay. A
// process of each actor sleeps, parks and is woken.
type gossip struct {
	domains int
	main    *Engine
	first   ID
	actors  []gossiper
	ahead   Time
	failAt  Time
}

type gossiper struct {
	of    *gossip
	eng   *Engine
	group int
	rng   *rand.Rand
	seen  []string // what it has handled, in order
	left  int
	proc  *Process
}

func (g *gossiper) Handle(e *Event) {
	o := g.of
	g.seen = append(g.seen, fmt.Sprintf("%d %d %d %d", e.Time, e.Src, e.Kind, e.A))
	if o.failAt > 0 && e.Time >= o.failAt && g.rng.IntN(8) == 0 {
		g.eng.Fail(fmt.Errorf("%s has failed at %v", g.eng.Name(e.Dst), e.Time))
		return
	}
	if g.left == 0 {
		return
	}
	if g.left--; g.rng.IntN(3) == 0 {
		g.proc.Wake()
	}
	for range g.rng.IntN(3) {
		to := g.rng.IntN(len(o.actors))
		other := &o.actors[to]
		at := e.Time + Time(g.rng.IntN(3))
		if other.group != g.group {
			at += o.ahead
		}
		g.eng.PostTo(other.eng, at, o.first+ID(to), e.Dst, Kind(g.rng.IntN(5)), g.rng.Uint64N(100), 0, nil)
	}
}

const gossipGroups = 6

func newGossip(seed uint64, domains, actors int, ahead, failAt Time) *gossip {
	o := &gossip{domains: domains, main: New(seed), actors: make([]gossiper, actors), ahead: ahead, failAt: failAt}
	o.main.Split(domains)
	for i := range domains {
		for j := range domains {
			if i != j {
				o.main.Domain(i).Reach(o.main.Domain(j), ahead)
			}
		}
	}
	for i := range o.actors {
		g := &o.actors[i]
		*g = gossiper{of: o, group: i * gossipGroups / actors, left: 40}
		g.eng = o.main.Domain(g.group * domains / gossipGroups)
		g.rng = g.eng.Rand("gossip", i)
		id := g.eng.Add(fmt.Sprintf("gossiper %d", i), g)
		g.proc = g.eng.Spawn(id, fmt.Sprintf("process %d", i), func(p *Process) error {
			for range 10 {
				p.Sleep(Time(g.rng.IntN(9)))
				g.seen = append(g.seen, fmt.Sprintf("slept until %d", p.Now()))
				if !p.ParkUntil("a word", p.Now()+Time(g.rng.IntN(20))) {
					g.seen = append(g.seen, fmt.Sprintf("nobody until %d", p.Now()))
				}
			}
			if g.rng.IntN(4) == 0 {
				p.Park("the last word")
			}
			return nil
		})
		g.eng.Post(0, id, id, 0, 0, 0, nil)
	}
	return o
}

// result is everything that can be seen of a run.
func (o *gossip) result(err error) string {
	var b strings.Builder
	handled, pending := uint64(0), 0
	for d := range o.main.Domains() {
		handled += o.main.Domain(d).Handled()
		pending += o.main.Domain(d).Pending()
	}
	fmt.Fprintf(&b, "%v at %v\n", err, o.main.Now())
	if limit := (*LimitError)(nil); err == nil || errors.As(err, &limit) || errors.As(err, new(*StuckError)) {
		fmt.Fprintf(&b, "%d handled, %d pending\n", handled, pending)
		for i := range o.actors {
			fmt.Fprintln(&b, o.actors[i].seen)
		}
	}
	return b.String()
}

// What happens does not depend on the number of domains.
func TestDomainsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed, ahead := rapid.Uint64().Draw(rt, "seed"), Time(rapid.IntRange(1, 12).Draw(rt, "ahead"))
		actors := rapid.IntRange(gossipGroups, 20).Draw(rt, "actors")
		failAt := Time(rapid.SampledFrom([]int{0, 0, 40}).Draw(rt, "fail at"))
		until := Time(rapid.SampledFrom([]int{0, 0, 25, 60}).Draw(rt, "until"))
		pause := Time(rapid.SampledFrom([]int{0, 0, 30}).Draw(rt, "pause"))
		var want string
		for _, domains := range []int{1, 2, 3, 6} {
			o := newGossip(seed, domains, actors, ahead, failAt)
			o.main.SetLimits(Limits{Until: until})
			var err error
			if pause > 0 {
				err = o.main.RunUntil(pause)
			}
			if err == nil {
				err = o.main.Run()
			}
			got := o.result(err)
			o.main.Close()
			if domains == 1 {
				want = got
			}
			if want != got { // a long text: no difference
				rt.Fatalf("%d domains: %s, and with one: %s", domains, got, want)
			}
		}
	})
}

// A panic of an actor comes out of Run, whatever its domain.
func TestPanicInDomain(t *testing.T) {
	for d := range 3 {
		e := New(1)
		e.Split(3)
		for i := range 3 {
			e.Domain(i).Reach(e.Domain((i+1)%3), 5)
		}
		var ids []ID
		for i := range 3 {
			ids = append(ids, e.Domain(i).Add(fmt.Sprint(i), panics(i == d)))
		}
		for i, id := range ids {
			e.Domain(i).Post(Time(i), id, id, 0, 0, 0, nil)
		}
		require.PanicsWithValue(t, "it was me", func() { _ = e.Run() })
		e.Close()
	}
}

type panics bool

func (p panics) Handle(*Event) {
	if p {
		panic("it was me")
	}
}

// Who reaches a domain earlier than promised made a mistake.
func TestPromisesOfDomains(t *testing.T) {
	e := New(1)
	e.Split(2)
	e.Reach(e.Domain(1), 7)
	require.Panics(t, func() { e.Reach(e.Domain(1), 0) })
	a, b := e.Add("a", nil), e.Domain(1).Add("b", nil)
	e.PostTo(e.Domain(1), 7, b, a, 0, 0, 0, nil)
	require.PanicsWithValue(t, "sim: a posts from domain 0 to b of domain 1 for 6 ps after the present time, promised were 7 ps", func() {
		e.PostTo(e.Domain(1), 6, b, a, 0, 0, 0, nil)
	})
	require.Panics(t, func() { e.Domain(1).PostTo(e, Second, a, b, 0, 0, 0, nil) }, "nothing was promised")
	require.Panics(t, func() { e.Split(2) })
}

// An interruption ends all domains, and describes the run.
func TestInterruptOfDomains(t *testing.T) {
	e := New(1)
	e.Split(2)
	e.Reach(e.Domain(1), 10)
	e.Domain(1).Reach(e, 10)
	for d := range 2 {
		x := &ticker{e: e.Domain(d)}
		x.id = x.e.Add(fmt.Sprint("ticker ", d), x)
		x.e.Post(0, x.id, x.id, 0, 0, 0, nil)
	}
	e.Interrupt(&LimitError{Limit: "30s of real time"})
	err := e.Run()
	require.ErrorContains(t, err, "incomplete: stopped by the limit of 30s of real time")
	require.ErrorContains(t, err, "2 more were to come")
	require.Equal(t, err, e.Run())
	e.Close()
}

// pinger posts to the next domain, some times.
type pinger struct {
	eng, next *Engine
	id, to    ID
	rounds    int
}

func (p *pinger) Handle(e *Event) {
	if p.rounds--; p.rounds < 0 {
		return
	}
	p.eng.PostTo(p.next, e.Time+10, p.to, p.id, 0, 0, 0, p)
}

// Rounds allocate nothing, but for the goroutines of a run.
func TestRoundsAllocateNothing(t *testing.T) {
	e := New(1)
	defer e.Close()
	e.Split(2)
	pingers := make([]*pinger, 2)
	for d := range pingers {
		pingers[d] = &pinger{eng: e.Domain(d), next: e.Domain(1 - d)}
		pingers[d].eng.Reach(pingers[d].next, 10)
		pingers[d].id = pingers[d].eng.Add(fmt.Sprint(d), pingers[d])
	}
	pingers[0].to, pingers[1].to = pingers[1].id, pingers[0].id
	run := func(rounds int) func() {
		return func() {
			for _, p := range pingers {
				p.rounds = rounds
				p.eng.Post(e.Now(), p.id, p.id, 0, 0, 0, p)
			}
			require.NoError(t, e.Run())
		}
	}
	few, many := testing.AllocsPerRun(20, run(10)), testing.AllocsPerRun(20, run(10_000))
	require.InDelta(t, few, many, 3)
}

// A meeting of the domains of a run, with an event of each in between.
func BenchmarkMeeting(b *testing.B) {
	for _, domains := range []int{2, 4} {
		b.Run(fmt.Sprint(domains), func(b *testing.B) {
			e := New(1)
			defer e.Close()
			e.Split(domains)
			list := make([]*pinger, domains)
			for d := range list {
				list[d] = &pinger{eng: e.Domain(d), next: e.Domain((d + 1) % domains), rounds: b.N}
				list[d].eng.Reach(list[d].next, 10)
				list[d].id = list[d].eng.Add(fmt.Sprint(d), list[d])
			}
			for d, p := range list {
				p.to = list[(d+1)%domains].id
				p.eng.Post(0, p.id, p.id, 0, 0, 0, p)
			}
			b.ReportAllocs()
			b.ResetTimer()
			require.NoError(b, e.Run())
		})
	}
}

// nothing handles events by doing nothing.
type nothing struct{}

func (nothing) Handle(*Event) {}

// A limit of virtual time sees timers that were postponed, and not those that
// were stopped, in any number of domains.
func TestLimitSeesPostponedTimers(t *testing.T) {
	for _, domains := range []int{1, 2} {
		for _, last := range []bool{false, true} {
			e := New(1)
			e.Split(domains)
			one := e.Domain(domains - 1)
			id := one.Add("a", nothing{})
			e.SetLimits(Limits{Until: 5})
			var timer Timer
			timer.Init(one, id, 1, nil)
			timer.Set(10)
			timer.Stop()
			if last {
				timer.Set(20)
			}
			var limit *LimitError
			if err := e.Run(); !last {
				require.NoError(t, err)
			} else {
				require.ErrorAs(t, err, &limit)
				require.Equal(t, []any{Time(20), 1}, []any{limit.Next, limit.Pending}, "%d domains", domains)
			}
			e.Close()
		}
	}
}

// Stop ends all domains, and a later Run goes on.
func TestStopEndsAllDomains(t *testing.T) {
	e := New(1)
	e.Split(2)
	var seen atomic.Int64
	for d := range 2 {
		one := e.Domain(d)
		var id ID
		id = one.Add("a", handling(func(*Event) {
			if seen.Add(1) == 100 {
				one.Stop()
			}
			if at := one.Now() + 1; at < 1000 {
				one.Post(at, id, id, 1, 0, 0, nil)
			}
		}))
		one.Post(0, id, id, 1, 0, 0, nil)
	}
	e.Domain(0).Reach(e.Domain(1), 5)
	e.Domain(1).Reach(e.Domain(0), 5)
	require.NoError(t, e.Run())
	require.Less(t, seen.Load(), int64(2000))
	require.NoError(t, e.Run())
	require.Equal(t, int64(2000), seen.Load())
	e.Close()
}

type handling func(*Event)

func (f handling) Handle(ev *Event) { f(ev) }
