package part

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/sim"
)

// Pages that are absent at a frequency: exactly that share, or by chance, and
// then none or at least one. Never any if the share is less than one page.
func TestPagefaultDraws(t *testing.T) {
	absent := func(draw string, f float64, size int) any {
		return faulted(t, experiment.Values{"policy": policyPIO, "size": size, "frequency": f, "draw": draw, "runs": 1}).Values["absent"]
	}
	require.EqualValues(t, 6, absent(drawExact, 0.4, 65536))
	require.EqualValues(t, 2, absent(drawExact, 0.5, 16384))
	for _, draw := range []string{drawEach, drawOne, drawExact} {
		require.Zero(t, absent(draw, 0.05, 65536), draw)
	}
	for seed := uint64(1); seed < 60; seed++ {
		w := &faulting{}
		w.Point = faulted(t, experiment.Values{"size": 1, "draw": drawOne}).Point
		w.Seed = seed
		if n := count(w.draw(newDraws(seed), 4, 0.25)); n == 0 {
			t.Fatal("no page is absent")
		}
	}
}

func count(holes []bool) (n int) {
	for _, h := range holes {
		if h {
			n++
		}
	}
	return n
}

// Both buffers take twice the preparation of one whose pages are alike, and
// pages of the source are there.
func TestPagefaultPreparesBoth(t *testing.T) {
	touch := func(policy, prepares string) sim.Time {
		return faulted(t, experiment.Values{"policy": policy, "size": 4096, "prepares": prepares}).Time("touch")
	}
	require.Equal(t, 2*touch(policyTouchPresent, preparesAbsent), touch(policyTouchPresent, sideBoth))
	require.Greater(t, touch(policyPin, sideBoth), touch(policyPin, preparesAbsent))
}

// The status at the source comes after the notification: by the way of the
// acknowledgement and the firmware's time for it.
func TestPagefaultEndsAtTheSource(t *testing.T) {
	latency := func(ends string, set ...string) sim.Time {
		return faulted(t, experiment.Values{"policy": policyTransfer, "size": 16, "ends": ends}, set...).Time(experiment.LatencyColumn)
	}
	const r5 = 3 * sim.Microsecond
	more := latency(endsStatus) - latency(endsNotified)
	require.Greater(t, more, r5)
	require.Less(t, more, r5+sim.Microsecond)
	require.Equal(t, more-r5+10*sim.Nanosecond, latency(endsStatus, "pools.r5.quiet=10ns")-latency(endsNotified, "pools.r5.quiet=10ns"), "an R5 that takes nothing for the last ACK")
}

// A buffer that begins a page behind a block's border has one block more.
func TestPagefaultAlignment(t *testing.T) {
	requests := func(align string) any {
		return faulted(t, experiment.Values{"policy": policyPIO, "size": 16384, "align": align}, "os.fault_ask=block").Values["requests"]
	}
	require.EqualValues(t, 1, requests(alignBlock))
	require.EqualValues(t, 2, requests(alignPage))
}
