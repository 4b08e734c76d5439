package laws

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/spin"
)

// drawFlow draws what a transport tells a law before the first packet.
func drawFlow(t *rapid.T) spin.Flow {
	f := spin.Flow{
		MTU: rapid.Uint64Range(64, 1<<16).Draw(t, "mtu"), MTUTime: rapid.Uint64Range(1, 1<<40).Draw(t, "time"), Trims: rapid.Uint32Range(0, 1).Draw(t, "trims"),
		Paths: rapid.Uint32Range(1, 512).Draw(t, "paths"), Seed: rapid.Uint64().Draw(t, "seed"), Window: rapid.Uint64Range(0, 1<<30).Draw(t, "window"),
	}
	f.Payload, f.Base = f.MTU-rapid.Uint64Range(0, 63).Draw(t, "header"), 2*f.MTUTime+rapid.Uint64Range(1, 1<<40).Draw(t, "wires")
	return f
}

// Whatever happens to a flow, and whatever its numbers, no law fails, and a
// path is one of those that there are.
func TestLawsNeverFail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Bool().Draw(t, "rate")
		list := Ways
		if rate {
			list = Rates
		}
		l := rapid.SampledFrom(list).Draw(t, "law")
		numbers := map[string]uint64{}
		for _, n := range l.Numbers {
			if rapid.Bool().Draw(t, "own "+n.Name) {
				numbers[n.Name] = rapid.Uint64Range(n.Least, mostNumber).Draw(t, n.Name)
				_, err := l.Check(n.Name, numbers[n.Name])
				require.NoError(t, err)
			}
		}
		var s State
		l.Init(&s, numbers)
		f := drawFlow(t)
		l.Handle(&f, &s)
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			f.Event = spin.FlowEvent(rapid.Uint32Range(uint32(spin.FlowSends), uint32(spin.FlowGranted)).Draw(t, "event"))
			f.Now += rapid.Uint64Range(0, 1<<36).Draw(t, "later")
			f.Bytes = rapid.Uint64Range(1, f.MTU).Draw(t, "bytes")
			f.InFlight = rapid.Uint64Range(0, 1<<30).Draw(t, "in flight")
			f.RTT = rapid.Uint64Range(0, 1<<42).Draw(t, "rtt")
			f.Marked = rapid.Uint32Range(0, 1).Draw(t, "marked")
			f.LeastPause = rapid.Uint64Range(0, 1<<42).Draw(t, "least pause")
			if !rate && f.Event != spin.FlowSends {
				f.Path = rapid.Uint64Range(0, 255).Draw(t, "path")
			}
			if l.Handle(&f, &s); !rate && f.Event == spin.FlowSends {
				require.Less(t, f.Path, max(uint64(f.Paths), 256))
			}
		}
	})
}

// Additive increase, and half the average share of marks off: from 10 packets,
// a window without marks ends at 11, and one in which all are marked ends at
// half of 12, since the share is 1 at first.
func TestDCTCPByHand(t *testing.T) {
	var s State
	dctcp.Init(&s, nil)
	const mtu = 1000
	f := spin.Flow{MTU: mtu, MTUTime: 1, Window: 10 * mtu, Bytes: mtu}
	DCTCP(&f, &s)
	f.Event = spin.FlowAcked
	for range 10 {
		DCTCP(&f, &s)
	}
	require.EqualValues(t, 11*mtu, f.Window)
	f.Marked = 1
	for range 11 {
		DCTCP(&f, &s)
	}
	share := uint64(dctcpWhole)*15/16*15/16 + dctcpWhole/16
	require.InDelta(t, 12*mtu-12*mtu*share/(2*dctcpWhole), f.Window, 1)
}

// The first mark halves the rate, since the estimate is 1 at first; five
// increases by the timer bring it back to 1 - 1/2^6 of the line.
func TestDCQCNByHand(t *testing.T) {
	var s State
	dcqcn.Init(&s, nil)
	f := spin.Flow{MTU: 1000, MTUTime: 80_000, Bytes: 1000, Now: 1} // 100 Gb/s
	DCQCN(&f, &s)
	require.EqualValues(t, 80_000, f.Pause)
	f.Event, f.Marked, f.Now = spin.FlowAcked, 1, 1000
	DCQCN(&f, &s)
	require.EqualValues(t, 160_000, f.Pause)
	DCQCN(&f, &s) // within 50 us: nothing
	require.EqualValues(t, 160_000, f.Pause)
	f.Event, f.Marked = spin.FlowTimer, 0
	for range 5 {
		f.Now = s[dcqcnDue]
		DCQCN(&f, &s)
	}
	require.InDelta(t, 80_000/(1-1.0/64), f.Pause, 2)
}

// A link slower than 1 kb/s has a rate of 1.
func TestDCQCNOnSlowLinks(t *testing.T) {
	var s State
	dcqcn.Init(&s, nil)
	f := spin.Flow{MTU: 64, MTUTime: 1 << 40, Bytes: 64, Now: 1}
	DCQCN(&f, &s)
	require.Equal(t, f.MTUTime, f.Pause)
}

// A flow sends a packet, keeps to what the answer allows, and begins again when
// no answer has come for four pauses.
func TestMaxMinByHand(t *testing.T) {
	var s State
	maxmin.Init(&s, nil)
	f := spin.Flow{MTU: 1000, MTUTime: 100, Base: 10_000, Bytes: 1000}
	MaxMin(&f, &s)
	require.Equal(t, []uint64{1000, 0, 0}, []uint64{f.Window, f.Pause, f.Timer})
	f.Event, f.Now, f.LeastPause = spin.FlowAcked, 10_000, 20_000
	MaxMin(&f, &s)
	require.Equal(t, []uint64{202_000, 20_000, 90_000}, []uint64{f.Window, f.Pause, f.Timer})
	f.Event, f.Now = spin.FlowTimer, 90_000
	MaxMin(&f, &s)
	require.Equal(t, []uint64{1000, 0, 0}, []uint64{f.Window, f.Pause, f.Timer})
}

// Swift by hand: packets of 1,000 B take 100 ps, and 10 ns there and back. The
// target is 10 ns and target_ps, and with range_ps of 9 ns and a window of one
// packet 9 ns (1-0.1)/(3.162-0.1) = 2.645 ns more.
func TestSwiftByHand(t *testing.T) {
	var s State
	swift.Init(&s, map[string]uint64{"target_ps": 5_000, "range_ps": 9_000, "small_percent": 10, "large_packets": 100, "least_bytes": 50})
	f := spin.Flow{MTU: 1000, MTUTime: 100, Base: 10_000, Bytes: 1000, Window: 1000}
	Swift(&f, &s)
	require.InDelta(t, 10_000+5_000+2_645, swiftAim(&f, &s), 2)
	acked := func(now, rtt uint64) uint64 {
		f.Event, f.Now, f.RTT = spin.FlowAcked, now, rtt
		Swift(&f, &s)
		return s[swiftWindow]
	}
	require.EqualValues(t, 2000, acked(10_000, 17_000)) // a packet of a window of one
	require.EqualValues(t, 2500, acked(10_100, 10_000)) // of two
	require.EqualValues(t, 1250, acked(60_000, 60_000)) // 80% of 73% is more than half
	require.EqualValues(t, 1250, acked(80_000, 60_000)) // once a round trip
	require.Zero(t, f.Pause)
	require.EqualValues(t, 625, acked(120_000, 60_000))
	require.Equal(t, []uint64{1000, 96_000}, []uint64{f.Window, f.Pause}) // 60 ns for 625 B
	f.Event, f.Now = spin.FlowLost, 200_000
	for range 4 {
		Swift(&f, &s)
	}
	require.EqualValues(t, 313, s[swiftWindow])
	Swift(&f, &s)
	require.EqualValues(t, 50, s[swiftWindow])
}

func TestRoots(t *testing.T) {
	for _, c := range [][2]uint64{{1, 1}, {1, 4}, {100, 10}, {1, 100}, {65536, 1}, {0, 5}} {
		require.InDelta(t, math.Sqrt(float64(c[0])/float64(c[1]))*swiftWhole, float64(rootOf(c[0], c[1])), 1.5)
	}
}
