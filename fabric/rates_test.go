package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// A pace is the shortest that is not shorter than its time, and is longer by a
// part in 2,048 at most; longer times have larger paces.
func TestPaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := sim.Time(rapid.Uint64Range(1, uint64(longest)).Draw(t, "time"))
		p := PaceOf(at)
		require.GreaterOrEqual(t, p.Time(), at)
		require.LessOrEqual(t, p.Time()-at, at>>paceBits)
		require.Equal(t, p, PaceOf(p.Time()))
		require.LessOrEqual(t, p, PaceOf(at+1))
		if p > 1 {
			require.Less(t, (p - 1).Time(), at)
		}
	})
	require.EqualValues(t, 1, PaceOf(0))
	require.EqualValues(t, longest, PaceOf(longest+1).Time())
}

// Whatever else a packet has, a limit goes with it, and takes the place of its
// path.
func TestLimitsAreCarried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Packet{
			Src: rapid.Int32Range(0, MaxNodes-1).Draw(t, "src"), Dst: rapid.Int32Range(0, MaxNodes-1).Draw(t, "dst"), Bytes: rapid.Int32Range(0, MaxMTU).Draw(t, "bytes"),
			Seq: rapid.Uint32().Draw(t, "seq"), Class: Class(rapid.IntRange(0, 1).Draw(t, "class")), Notify: rapid.Bool().Draw(t, "notify"),
			Repeated: rapid.Bool().Draw(t, "repeated"), Marked: rapid.Bool().Draw(t, "marked"), Trimmed: rapid.Bool().Draw(t, "trimmed"),
			Limit: Pace(rapid.Uint16().Draw(t, "limit")), fate: rapid.SampledFrom([]fate{0, fateLost | 1, fateCopy | hopMask}).Draw(t, "fate"),
		}
		if p.Limit == 0 {
			p.Path = rapid.Uint16Range(0, Paths-1).Draw(t, "path")
		}
		a, b := p.words()
		require.Equal(t, p, Unpack(&sim.Event{A: a, B: b}))
		require.Equal(t, p.fate != 0, a&fateMask != 0)
	})
}

// oneLink plays flows at a meter: each sends a packet at its pace, and keeps to the
// slower one of what it is allowed and of its own limit. Returned are the
// paces, in times of a full packet.
func oneLink(interval, full sim.Time, own []sim.Time, until sim.Time) []float64 {
	m := NewMeter(interval, full)
	due, paces := make([]sim.Time, len(own)), make([]Pace, len(own))
	for {
		i := 0
		for k := range due {
			if due[k] < due[i] {
				i = k
			}
		}
		if due[i] > until {
			break
		}
		paces[i] = max(m.Pass(due[i], full, 0, paces[i]), PaceOf(own[i]))
		due[i] += paces[i].Time()
	}
	var list []float64
	for _, p := range paces {
		list = append(list, float64(p.Time())/float64(full))
	}
	return list
}

// Four flows get a quarter each. If one can only use a tenth, and one an eighth,
// the other two get half of what is left.
func TestMeterByHand(t *testing.T) {
	const full = 1_000_000
	require.InEpsilonSlice(t, []float64{4, 4, 4, 4}, oneLink(100*full, full, make([]sim.Time, 4), 3000*full), 0.002)
	left := 2 / (1 - 1.0/10 - 1.0/8)
	require.InEpsilonSlice(t, []float64{10, left, 8, left}, oneLink(100*full, full, []sim.Time{10 * full, 0, 8 * full, 0}, 3000*full), 0.002)
}

// Flows that begin at the same time are told of each other at once: the k-th gets
// a part in k. After a pause there is one again.
func TestFlowsThatBegin(t *testing.T) {
	const full = 1_000_000
	m := NewMeter(100*full, full)
	for k := range sim.Time(50) {
		require.Equal(t, PaceOf((k+1)*full), m.Pass(k, full, 0, 0))
	}
	require.Equal(t, PaceOf(full), m.Pass(10_000*full, full, 0, 0))
}

// Half of a backlog that has been there for all of an interval goes to the next.
func TestBacklogsShrink(t *testing.T) {
	const full, interval = 1_000_000, 100_000_000
	m, pace := NewMeter(interval, full), PaceOf(full)
	for at := sim.Time(0); at < 20*interval; at += full {
		m.Pass(at, full, interval/2, pace)
	}
	require.InEpsilon(t, full/0.75, float64(m.allowed.Time()), 0.001)
}

func TestRatesNeedAPort(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.Rates = FatTree, 1
	require.ErrorContains(t, spec.Validate(), "rates: a port needs to know what waits: want answers_first")
	spec.AnswersFirst, spec.PauseFrom = true, 1<<20
	require.ErrorContains(t, spec.Validate(), "rates: with pause_from packets have no room for the pace of their flow: want one of them")
	spec.PauseFrom, spec.Paths = 0, ByPacket
	require.ErrorContains(t, spec.Validate(), "rates: with paths packet a flow takes many ways, and a rate belongs to one: want destination or flow")
	spec.Paths, spec.Rates = ByFlow, MaxTime+1
	require.ErrorContains(t, spec.Validate(), "rates: want 1 ps to 1 s, or none")
	spec.Rates = MaxTime
	require.NoError(t, spec.Validate())
}
