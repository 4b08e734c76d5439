package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// sharer notes whose pieces come.
type sharer struct {
	bus  host.Bus
	eng  *sim.Engine
	came []*host.Access
	at   []sim.Time
}

func (s *sharer) Handle(e *sim.Event)  { s.bus.Handle(e) }
func (s *sharer) Reached(*host.Access) {}
func (s *sharer) Begun(a *host.Access) {}
func (s *sharer) Ended(a *host.Access, _ int, _ host.Status) {
	s.came, s.at = append(s.came, a), append(s.at, s.eng.Now())
}

func newSharer(weights ...float64) *sharer {
	s := &sharer{eng: sim.New(1)}
	spec := host.BusSpec{Latency: 10, Bandwidth: sim.NewRate(1, 1), Charge: host.ChargeFull}
	s.bus.Init(s.eng, s.eng.Add("bus", s), &spec, nil)
	if weights != nil {
		host.Share(&s.bus, weights)
	}
	return s
}

func (s *sharer) stream(line uint16, length int) *host.Access {
	a := &host.Access{Client: s, Line: line, Length: length, Piece: 64}
	s.bus.Stream(a)
	return a
}

// A short stream of a line waits for a piece of another's, however much that has asked
// for before; on a bus that is not shared it waits for all of it.
func TestStreamsOfLinesTakeTurns(t *testing.T) {
	for _, weights := range [][]float64{nil, {1, 1}} {
		s := newSharer(weights...)
		for range 3 {
			s.stream(0, 6400)
		}
		require.NoError(t, s.eng.RunUntil(1000))
		began, short := s.eng.Now(), s.stream(1, 64)
		require.NoError(t, s.eng.Run())
		for i, a := range s.came {
			if a != short {
				continue
			}
			if waited := s.at[i] - began; weights == nil {
				require.Greater(t, waited, sim.Time(3*6400-1000))
			} else {
				require.LessOrEqual(t, waited, sim.Time(2*64+64+20))
			}
		}
		require.Len(t, s.came, 3*100+1)
	}
}

// Lines that always want the bus have it by their weights, and the streams of a line
// come one after the other.
func TestStreamsShareByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := []float64{float64(rapid.IntRange(1, 5).Draw(t, "a")), float64(rapid.IntRange(1, 5).Draw(t, "b"))}
		s := newSharer(weights...)
		var order [2][]*host.Access
		for range 20 {
			for line := range order {
				order[line] = append(order[line], s.stream(uint16(line), rapid.IntRange(600, 2000).Draw(t, "bytes")))
			}
		}
		require.NoError(t, s.eng.RunUntil(10_000)) // neither has all
		var got [2]float64
		for i, a := range s.came {
			got[a.Line]++
			if i > 0 && a != order[a.Line][0] {
				order[a.Line] = order[a.Line][1:]
			}
			require.Same(t, order[a.Line][0], a)
		}
		require.InDelta(t, weights[0]/weights[1], got[0]/got[1], 0.2*weights[0]/weights[1])
	})
}
