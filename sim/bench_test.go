package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// increments are distances from an event to the one that it posts.
var increments = []struct {
	name string
	draw func(r *rand.Rand) Time
}{
	{"exponential", func(r *rand.Rand) Time { return Time(r.ExpFloat64() * float64(Microsecond)) }},
	{"bimodal", func(r *rand.Rand) Time {
		if r.IntN(10) == 0 {
			return Time(r.Int64N(int64(Millisecond)))
		}
		return Time(r.Int64N(int64(10 * Nanosecond)))
	}},
}

// holder answers every event with one more: the hold model.
type holder struct {
	eng   *Engine
	left  int
	drawn [1 << 12]Time
}

func (h *holder) Handle(e *Event) {
	if h.left--; h.left == 0 {
		h.eng.Stop()
	}
	h.eng.Post(e.Time+h.drawn[h.left%len(h.drawn)], e.Dst, e.Dst, 0, e.A, 0, h)
}

func newHolder(draw func(r *rand.Rand) Time, pending int) *holder {
	r := rand.New(rand.NewPCG(1, 2))
	h := &holder{eng: New(1)}
	for i := range h.drawn {
		h.drawn[i] = draw(r)
	}
	first := h.eng.AddGroup(1000, func(i int) string { return fmt.Sprint(i) }, h)
	for i := range pending {
		id := first + ID(i%1000)
		h.eng.Post(draw(r), id, id, 0, uint64(i), 0, nil)
	}
	return h
}

// BenchmarkHold measures one event: schedule and dispatch, with the given
// number pending.
func BenchmarkHold(b *testing.B) {
	for _, inc := range increments {
		for _, pending := range []int{1, 1000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", inc.name, pending), func(b *testing.B) {
				h := newHolder(inc.draw, pending)
				h.left = 2*pending + 10000 // to the steady state
				if err := h.eng.Run(); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				h.left = b.N
				if err := h.eng.Run(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// scatterer is a holder whose every event goes to another actor. The events of
// one time are posted in an order unrelated to their order of handling.
type scatterer struct{ *holder }

func (s scatterer) Handle(e *Event) {
	if s.left--; s.left == 0 {
		s.eng.Stop()
	}
	s.eng.Post(e.Time+Nanosecond, ID(uint32(e.A*2654435761)%1000), e.Dst, 0, e.A+1, 0, nil)
}

// BenchmarkLockstep measures one event while n are always due at the same time.
func BenchmarkLockstep(b *testing.B) {
	for _, n := range []int{2, 16, 1024, 1_000_000} {
		for _, scattered := range []bool{false, true} {
			b.Run(fmt.Sprintf("scattered=%v/%d", scattered, n), func(b *testing.B) {
				h := newHolder(func(*rand.Rand) Time { return Nanosecond }, n)
				if scattered {
					for i := range h.eng.actors {
						h.eng.Wrap(ID(i), func(Actor) Actor { return scatterer{h} })
					}
				}
				h.left = 4*n + 1
				if err := h.eng.Run(); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				h.left = b.N
				if err := h.eng.Run(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkCoro measures one Yield and one Resume.
func BenchmarkCoro(b *testing.B) {
	c := NewCoro()
	defer c.Close()
	c.Start(func() {
		for {
			c.Yield()
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		c.Resume()
	}
}

// BenchmarkSleep measures one Sleep of a process that no other event comes
// before: it goes on without a switch.
func BenchmarkSleep(b *testing.B) {
	e := New(1)
	defer e.Close()
	id := e.Add("host", nil)
	e.Spawn(id, "p", func(p *Process) error {
		for range b.N {
			p.Sleep(Nanosecond)
		}
		return nil
	})
	b.ReportAllocs()
	b.ResetTimer()
	if err := e.Run(); err != nil {
		b.Fatal(err)
	}
}
