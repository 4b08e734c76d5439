package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

type recorder struct{ sent, arrived, corrupt []arrival }

func (r *recorder) Sent(at sim.Time, p Packet) {
	r.sent = append(r.sent, arrival{at, p, KindArrive})
}

func (r *recorder) Arrived(at sim.Time, p Packet, corrupt bool) {
	if corrupt {
		r.corrupt = append(r.corrupt, arrival{at, p, KindCorrupt})
		return
	}
	r.arrived = append(r.arrived, arrival{at, p, KindArrive})
}

// allToAll sends 20 packets from every node to every other, at times that tie.
func allToAll(s *sink) { allToAllEvery(s, 0) }

// allToAllEvery does the same with the packets step apart.
func allToAllEvery(s *sink, step sim.Time) {
	k := sim.Time(0)
	n := int32(s.f.Nodes())
	for i := range uint32(20) {
		for src := range n {
			for dst := range n {
				s.inject(sim.Time(i)*100*sim.Nanosecond+k*step, Packet{Src: src, Dst: dst, Bytes: 500, Seq: i, Ref: s})
				k++
			}
		}
	}
}

// Watching changes nothing, not even the order of events of one time.
func TestTapIsInvisible(t *testing.T) {
	plain := build(t, spinDis(), 5, nil)
	allToAll(plain)
	want := plain.run(t)

	var r recorder
	tapped := build(t, spinDis(), 5, func(eng *sim.Engine, f Fabric) Fabric { return Tap(eng, f, &r) })
	allToAll(tapped)
	got := tapped.run(t)
	for i := range got {
		got[i].p.Ref = plain
	}
	require.Equal(t, want, got)
	require.Equal(t, plain.f.Links(), tapped.f.Links())
	require.Len(t, r.sent, len(want))
	require.Len(t, r.arrived, len(want))
	require.Empty(t, r.corrupt)
	require.Equal(t, want[7].at, r.arrived[7].at)
}

func faulty(t *testing.T, spec FaultSpec) (*sink, *Faulty) {
	var f *Faulty
	s := build(t, spinDis(), 5, func(eng *sim.Engine, inner Fabric) Fabric {
		var err error
		f, err = NewFaulty(eng, inner, spec)
		require.NoError(t, err)
		return f
	})
	allToAllEvery(s, sim.Microsecond) // so that no packet meets another
	return s, f
}

func TestFaults(t *testing.T) {
	const packets = 20 * 5 * 5
	clean := build(t, spinDis(), 5, nil)
	allToAllEvery(clean, sim.Microsecond)
	type key struct {
		src, dst int32
		seq      uint32
	}
	due := map[key]sim.Time{}
	for _, a := range clean.run(t) {
		due[key{a.p.Src, a.p.Dst, a.p.Seq}] = a.at
	}
	require.Len(t, due, packets)

	const late = sim.Microsecond
	run := func() ([]arrival, FaultCounts) {
		s, f := faulty(t, FaultSpec{Loss: 0.1, Duplicate: 0.2, Delay: 0.1, Corrupt: 0.1, MaxDelay: late})
		return s.run(t), f.Counts()
	}
	got, counts := run()
	times := map[key][]arrival{}
	for _, a := range got {
		k := key{a.p.Src, a.p.Dst, a.p.Seq}
		times[k] = append(times[k], a)
	}
	var seen FaultCounts
	for k, at := range due {
		switch a := times[k]; {
		case len(a) == 0:
			seen.Lost++
		case len(a) == 2:
			seen.Duplicated++
			seen.DuplicatedBytes += int64(a[1].p.Bytes)
			require.Equal(t, at, a[0].at)
			require.True(t, at < a[1].at && a[1].at <= at+late)
			require.Equal(t, KindArrive, a[1].kind)
		case a[0].at > at:
			seen.Delayed++
			require.LessOrEqual(t, a[0].at, at+late)
		case a[0].kind == KindCorrupt:
			seen.Corrupted++
		default:
			require.Equal(t, at, a[0].at)
		}
	}
	require.Equal(t, seen, counts)
	for name, c := range map[string][2]float64{
		"lost": {float64(counts.Lost), 0.1}, "duplicated": {float64(counts.Duplicated), 0.2},
		"delayed": {float64(counts.Delayed), 0.1}, "corrupted": {float64(counts.Corrupted), 0.1},
	} {
		require.InDelta(t, c[1]*packets, c[0], 40, name) // over four standard deviations
	}
	again, _ := run()
	for i := range again {
		again[i].p.Ref, got[i].p.Ref = nil, nil
	}
	require.Equal(t, got, again, "same seed, same faults")
}

// A rule that spares all packets but one loses exactly that one, between two
// taps that see it leave.
func TestFaultsOnChosenPackets(t *testing.T) {
	var before, after recorder
	s := build(t, spinDis(), 5, func(eng *sim.Engine, f Fabric) Fabric {
		bad, err := NewFaulty(eng, Tap(eng, f, &before), FaultSpec{
			Loss: 1, Only: func(p Packet) bool { return p.Src == 1 && p.Dst == 2 && p.Seq == 3 },
		})
		require.NoError(t, err)
		return Tap(eng, bad, &after)
	})
	allToAll(s)
	require.Len(t, s.run(t), 499)
	require.Len(t, before.sent, 500)
	require.Len(t, before.arrived, 499)
	require.Len(t, after.arrived, 499)
	losses, n := s.f.Losses()
	require.Equal(t, 1, n)
	require.Equal(t, Packet{Src: 1, Dst: 2, Bytes: 500, Seq: 3, Ref: s}, losses[0].Packet)
	require.Contains(t, []string{"Node[1].Tx", "Switch[0][0].Down[2]"}, losses[0].Link)
}

func TestFaultSpecValidate(t *testing.T) {
	for want, spec := range map[string]FaultSpec{
		"loss: want a chance from 0 to 1, got -0.5":                         {Loss: -0.5},
		"loss, corrupt, duplicate, delay: want a sum of at most 1, got 1.5": {Loss: 0.75, Corrupt: 0.75},
		"max_delay: want 1 ps to 1 s with delay or duplicate, got 0 s":      {Delay: 0.5},
	} {
		require.EqualError(t, spec.Validate(), want)
		_, err := NewFaulty(sim.New(0), nil, spec)
		require.EqualError(t, err, "faults: "+want)
	}
}
