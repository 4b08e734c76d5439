package npf

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// npf measures a point of one of NPF'17's experiments on Ethernet.
func npf(t *testing.T, e *experiment.Experiment, values experiment.Values, overrides ...string) *experiment.Result {
	return npfAt(t, "eth-npf", e, values, overrides...)
}

func npfAt(t *testing.T, name string, e *experiment.Experiment, values experiment.Values, overrides ...string) *experiment.Result {
	d, err := profile.Load(name, append(overrides, "smmu.stale=poison")...)
	require.NoError(t, err)
	p, err := e.At(d, values)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// NPF'17 §5: with a cold ring, a NIC that drops frames serves almost nothing
// for many seconds, at least one for each page. With a backup ring it is as
// fast as a pinned ring after a moment.
func TestColdRing(t *testing.T) {
	at := func(mode string, at sim.Time) *experiment.Result {
		return npf(t, coldRing, experiment.Values{"mode": mode, "ring": 8, "connections": 1, "at": at})
	}
	rate := map[string]float64{}
	for _, mode := range npfModes() {
		r := at(mode, 20*sim.Second)
		rate[mode] = r.Float("throughput")
		require.Less(t, r.Time("simulated"), 5*sim.Second)
		require.Equal(t, map[string]int{npfDrop: 4, npfBackup: 4, npfPinned: 0}[mode], r.Values["absent"], "8 buffers of 2 KiB: with its neighbour's page a buffer is there, or was asked for")
		if mode == npfDrop {
			require.Equal(t, 4, r.Values["dropped"])
			require.Greater(t, r.Time("silent"), sim.Second, "a SYN is lost")
			require.Less(t, at(mode, 5*sim.Second).Float("throughput"), 0.9*rate[mode])
			continue
		}
		require.Zero(t, r.Values["dropped"])
		require.Less(t, r.Time("silent"), 20*sim.Millisecond)
		require.InEpsilon(t, rate[mode], at(mode, 5*sim.Second).Float("throughput"), 0.03)
	}
	require.InEpsilon(t, rate[npfPinned], rate[npfBackup], 0.03)
	require.InEpsilon(t, rate[npfPinned], rate[npfDrop], 0.03, "in the end")
}

// While a large ring warms up, each operation waits for the page of its frame, so
// the throughput is constant, too. A run that took this for steady printed a
// fortieth of the throughput.
func TestColdRingThatIsLarge(t *testing.T) {
	at := func(mode string) float64 {
		return npf(t, coldRing, experiment.Values{"mode": mode, "ring": 1024, "at": 10 * sim.Second}).Float("throughput")
	}
	require.InEpsilon(t, at(npfPinned), at(npfBackup), 0.02)
}

// An interface that skips the descriptor of a dropped frame. Connections that
// begin at the same time lose a SYN for each descriptor of the first round, and
// Linux sends seven. With seven descriptors for each connection all give up,
// with any time-outs. With fewer, the next SYN arrives. An interface that stays
// at the descriptor has the page ready for the next frame.
func TestColdRingGivesUp(t *testing.T) {
	const connections, syns = 4, 7
	at := func(descriptor string, ring int, timeout sim.Time) *experiment.Result {
		return npf(t, coldRing, experiment.Values{"mode": npfDrop, "descriptor": descriptor, "ring": ring, "connections": connections, "timeout": timeout, "horizon": 130 * sim.Second, "at": 130 * sim.Second})
	}
	for _, timeout := range []sim.Time{0, 10 * sim.Millisecond} {
		over := at(npfSkips, connections*syns, timeout)
		require.Equal(t, connections, over.Values["gave_up"])
		require.Equal(t, connections*syns, over.Values["dropped"])
	}
	require.Less(t, at(npfSkips, connections*(syns-1), 10*sim.Millisecond).Values["gave_up"], connections)
	require.Less(t, at(npfStays, connections*syns, 10*sim.Millisecond).Values["gave_up"], connections)
}

// A plot over the time of a run has linear axes. A plot over sizes of rings
// does not.
func TestCoursesAreLinear(t *testing.T) {
	plot := func(e *experiment.Experiment) report.Plot {
		s, err := experiment.New(e)
		require.NoError(t, err)
		return s.Plot()
	}
	course, sizes := plot(coldRing), plot(ringSize)
	require.Equal(t, "at", course.X)
	require.False(t, course.LogX || course.LogY)
	require.True(t, sizes.LogX && sizes.LogY)
}

// While some connections wait for their time-outs the load is paused. The
// result is the same as without a pause, except that less is simulated.
func TestColdRingPauses(t *testing.T) {
	run := func(steady bool) *cacheRun {
		d, err := profile.Load("eth-npf", "host.message=20us") // few operations
		require.NoError(t, err)
		p, err := coldRing.At(d, experiment.Values{"mode": npfDrop, "ring": 8, "connections": 16})
		require.NoError(t, err)
		w := &cacheRun{Point: p, until: 1450 * sim.Millisecond, steady: steady}
		_, err = w.run(context.Background())
		require.NoError(t, err)
		return w
	}
	paused, whole := run(true), run(false)
	t.Log(paused.total, whole.total, paused.result.skipped)
	require.Positive(t, paused.result.skipped)
	require.Less(t, paused.total, whole.total/2)
	for at := 1100 * sim.Millisecond; at <= 1400*sim.Millisecond; at += 100 * sim.Millisecond {
		require.InEpsilon(t, whole.result.rateIn(at-100*sim.Millisecond, at), paused.result.rateIn(at-100*sim.Millisecond, at), 0.05, "%v", at)
	}
}

// Between two losses every connection is at full speed. A run that took this
// for steady printed three to eight times the throughput.
func TestColdRingWithLosses(t *testing.T) {
	run := func(until sim.Time, steady bool) *cacheResult {
		d, err := profile.Load("eth-npf", "host.message=300us", "fabric.faults.loss=0.006")
		require.NoError(t, err)
		p, err := coldRing.At(d, experiment.Values{"mode": npfPinned})
		require.NoError(t, err)
		w := &cacheRun{Point: p, until: until, steady: steady}
		_, err = w.run(context.Background())
		require.NoError(t, err)
		return &w.result
	}
	found, whole := run(200*sim.Second, true), run(24*sim.Second, false)
	require.Positive(t, found.rate)
	require.GreaterOrEqual(t, found.end, 16*sim.Second)
	require.InEpsilon(t, whole.rateIn(0, 24*sim.Second), found.rate, 0.3) // three standard errors
}

// While a fault is still ahead or under way, nothing is steady. Afterwards the
// throughput is as without the fault.
func TestColdRingWithADownTime(t *testing.T) {
	d, err := profile.Load("eth-npf", "host.message=100us", "fabric.faults.down=[{node: 1, from: 300ms, to: 500ms}]")
	require.NoError(t, err)
	p, err := coldRing.At(d, experiment.Values{"mode": npfPinned})
	require.NoError(t, err)
	w := &cacheRun{Point: p, until: 20 * sim.Second, steady: true}
	_, err = w.run(context.Background())
	require.NoError(t, err)
	require.Greater(t, w.result.end, 500*sim.Millisecond)
	require.Less(t, w.result.end, 10*sim.Second)
	require.Zero(t, w.result.rateIn(400*sim.Millisecond, 500*sim.Millisecond))
	require.InEpsilon(t, w.result.rateIn(100*sim.Millisecond, 300*sim.Millisecond), w.result.rate, 0.05)
}

// In less time than a time-out, the count is either full speed or nothing.
func TestLossesNeedTime(t *testing.T) {
	for _, e := range []*experiment.Experiment{instances, workingSet} {
		d, err := profile.Load("eth-npf")
		require.NoError(t, err)
		p, err := e.At(d, nil)
		require.NoError(t, err)
		_, err = e.Points(p)
		require.NoError(t, err)
		for _, fault := range []string{"loss=0.001", "corrupt=0.001", "down=[{node: 1, from: 1ms, to: 2ms}]"} {
			lossy, err := profile.Load("eth-npf", "fabric.faults."+fault)
			require.NoError(t, err)
			p, err := e.At(lossy, nil)
			if err == nil {
				_, err = e.Points(p)
			}
			require.ErrorContains(t, err, "fabric.faults loses frames", e.Name)
		}
	}
}

// The time of operations grows with the pages of a ring that are brought in: a
// little with a backup ring, and by time-outs without one.
func TestRingSize(t *testing.T) {
	took := func(mode string, ring int) sim.Time {
		return npf(t, ringSize, experiment.Values{"mode": mode, "ring": ring, "operations": 300, "connections": 2}).Time("time")
	}
	// pages of 64 frames of 1,500 B to send from: the interface's tables have
	// none of them
	const sent = 24
	fault := 220 * sim.Microsecond
	for _, ring := range []int{4, 32} {
		pinned, backup := took(npfPinned, ring), took(npfBackup, ring)
		require.Greater(t, backup-pinned, fault)
		require.Less(t, backup-pinned, sim.Time(ring+sent)*fault*3/2)
	}
	require.Less(t, took(npfBackup, 4), took(npfBackup, 32))
	require.Greater(t, took(npfDrop, 4), sim.Second)
	require.InEpsilon(t, took(npfPinned, 4).Seconds(), took(npfPinned, 32).Seconds(), 0.05)
}

// NPF'17 §6: with regular faults a backup ring is much faster than dropping,
// which waits for long time-outs. This holds for minor and major faults.
func TestSynthetic(t *testing.T) {
	at := func(mode, fault string, every int) *experiment.Result {
		return npf(t, syntheticEthernet, experiment.Values{"mode": mode, "fault": fault, "every": every, "messages": 20})
	}
	for _, mode := range []string{npfDrop, npfBackup} {
		best := at(mode, faultMinor, 0)
		require.Zero(t, best.Values["absent"])
		minor, major := at(mode, faultMinor, 100), at(mode, faultMajor, 100)
		require.Greater(t, best.Float("throughput"), minor.Float("throughput"))
		if mode == npfDrop {
			require.InEpsilon(t, minor.Float("throughput"), major.Float("throughput"), 0.1, "time-outs are longer than either")
			require.Positive(t, minor.Values["timeouts"])
			require.Less(t, minor.Float("throughput"), best.Float("throughput")/20)
			continue
		}
		require.Zero(t, minor.Values["dropped"])
		require.Zero(t, minor.Values["timeouts"])
		require.Greater(t, minor.Float("throughput"), best.Float("throughput")/5)
		require.Less(t, major.Float("throughput"), minor.Float("throughput")/5)
		require.Greater(t, minor.Float("hpus_needed"), best.Float("hpus_needed"))
	}
}

// With 32 HPUs a single ring takes frames of 1,500 B at 400 Gb/s, where one in
// a hundred finds its page absent. No frame is lost, and the kernel brings in
// all pages. With 8 HPUs it loses frames. Four rings at 100 Gb/s need only 8
// HPUs.
func TestRingsHoldLineRate(t *testing.T) {
	at := func(rate float64, rings, hpus int) *experiment.Result {
		return npf(t, npfLineRate, experiment.Values{"rate": rate, "rings": rings, "frames": 1024, "hpus": hpus}, fmt.Sprintf("hpu.cores=%d", hpus), "nic.packet_buffer=256KiB")
	}
	one := at(400, 1, 32)
	require.GreaterOrEqual(t, one.Float("line_share"), experiment.LineRate)
	require.Zero(t, one.Values["lost"])
	require.Equal(t, []any{10, 10}, []any{one.Values["absent"], one.Values["kept"]})
	require.Greater(t, one.Time("delivered"), 10*216*sim.Microsecond, "pages come one after the other")
	few := at(400, 1, 8)
	require.Less(t, few.Float("line_share"), 0.6)
	require.Positive(t, few.Values["lost"])
	four := at(100, 4, 8)
	require.GreaterOrEqual(t, four.Float("line_share"), experiment.LineRate)
	require.Zero(t, four.Values["lost"])
	require.Equal(t, []string{
		"400 Gb/s, 1 rings: 32 HPUs are the least of those tried that hold line rate (" + fmt.Sprintf("%.1f%% of it); by Little's law frames keep %.1f of them busy there.", 100*one.Float("line_share"), one.Float("hpus_needed")),
	}, lineAnswer([]*experiment.Result{few, one, at(400, 1, 48)}), "the figure is that of the row which it names")
}

// Lost frames after the last frame taken also count. If all pages are absent
// and the backup ring has one slot, one frame is kept and the others are lost.
// That is no line rate.
func TestLostFramesAreNoLineRate(t *testing.T) {
	require.InDelta(t, 1.0, lineShare(10, 100, 100, 990), 1e-9)
	require.InDelta(t, 0.5, lineShare(10, 100, 100, 2000), 1e-9)
	require.InDelta(t, 0.5, lineShare(10, 100, 50, 490), 1e-9, "the first half at once, the second not at all")
	r := npf(t, npfLineRate, experiment.Values{"rate": 100.0, "rings": 3, "frames": 77, "hpus": 5, "every": 1, "backup-slots": 1}, "hpu.cores=5")
	require.Equal(t, []any{1, 76}, []any{r.Values["kept"], r.Values["lost"]})
	require.InDelta(t, 1.0/77, r.Float("line_share"), 1e-9)
	require.Equal(t, []string{fmt.Sprintf("100 Gb/s, 3 rings: none of those tried hold line rate, 5 reach 1.3%% of it and lose 76 frames; by Little's law frames keep %.1f of them busy there.", r.Float("hpus_needed"))}, lineAnswer([]*experiment.Result{r}))
	none := npf(t, npfLineRate, experiment.Values{"rate": 100.0, "rings": 3, "frames": 77, "hpus": 5, "every": 0, "backup-slots": 1}, "hpu.cores=5")
	lines := lineAnswer([]*experiment.Result{r, none})
	require.Contains(t, lines[0], "100 Gb/s, 3 rings, every 1: ")
	require.Contains(t, lines[1], "100 Gb/s, 3 rings, every 0: ")
}

// A major fault of a reliable connection takes a read of storage, 10 ms, in
// pauses of 240 us, with any cause of the fault. Without pauses it ends before
// the sender's time-out, like a minor fault.
func TestMajorFaultsAreReads(t *testing.T) {
	at := func(mode, fault string) *experiment.Result {
		return npfAt(t, "ib-npf", syntheticInfiniBand, experiment.Values{"mode": mode, "fault": fault, "messages": npfReceives + 2, "frequency": 1.0})
	}
	minor, major := at("rnr", faultMinor), at("rnr", faultMajor)
	require.Equal(t, []any{2, 2}, []any{minor.Values["faults"], major.Values["faults"]})
	const pauses = 10_000/240 + 1 // that begin during the read
	require.InDelta(t, 2*pauses, major.Values["pauses"], 4)
	require.Equal(t, at(npfDropped, faultMinor).Float("throughput"), at(npfDropped, faultMajor).Float("throughput"))
}

// Datagrams: an interface that drops loses all that arrive while a page is
// brought in: 220 us at one in 4 us. With a backup ring none is lost.
func TestDatagrams(t *testing.T) {
	at := func(mode string) *experiment.Result {
		return npf(t, syntheticEthernet, experiment.Values{"transport": syntheticUDP, "mode": mode, "fault": faultMinor, "messages": 30, "every": 500})
	}
	drop, backup := at(npfDrop), at(npfBackup)
	require.Equal(t, 30*45, drop.Values["datagrams"], "pieces of 1,464 bytes")
	require.Equal(t, drop.Values["dropped"], drop.Values["lost"])
	require.InDelta(t, 2*220/4, drop.Values["lost"], 4, "two pages")
	require.Positive(t, backup.Values["absent"])
	require.Equal(t, []any{0, 0, nil}, []any{backup.Values["lost"], backup.Values["dropped"], backup.Values["timeouts"]})
}

// BenchmarkColdRing simulates a minute after the start of a server with a cold
// ring. It must take less than 20 s (.ci/speed.txt).
func BenchmarkColdRing(b *testing.B) {
	d, err := profile.Load("eth-npf")
	require.NoError(b, err)
	for _, mode := range npfModes() {
		b.Run(mode, func(b *testing.B) {
			p, err := coldRing.At(d, experiment.Values{"mode": mode, "at": 60 * sim.Second, "horizon": 60 * sim.Second})
			require.NoError(b, err)
			for b.Loop() {
				_, err := coldRing.Measure(context.Background(), p)
				require.NoError(b, err)
			}
		})
	}
}

// The answer covers every measured choice and names the differences. It warns
// if a run ended before its silence.
func TestColdRingAnswersForEachChoice(t *testing.T) {
	d, err := profile.Load("eth-npf")
	require.NoError(t, err)
	result := func(term string, warm any, silent sim.Time) *experiment.Result {
		p, err := coldRing.At(d, experiment.Values{"mode": npfDrop, "term": term})
		require.NoError(t, err)
		return &experiment.Result{Point: p, Values: experiment.Values{"warm": warm, "silent": silent, "simulated": 200*sim.Second + 80*sim.Nanosecond, "gave_up": 14}}
	}
	ours, pages := result("ours", 15*sim.Second, 8*sim.Second), result("page-buffers", nil, 200*sim.Second)
	const what = "eth-npf, drop, 64 descriptors, 16 connections, linux"
	require.Equal(t, []string{what + ": next to nothing for 8.00 s; all connections are served from 15.00 s on."}, coldRingAnswer([]*experiment.Result{ours, ours}))
	require.Equal(t, []string{
		what + ", term ours, buffer 2 KiB: next to nothing for 8.00 s; all connections are served from 15.00 s on.",
		what + ", term page-buffers, buffer 4 KiB: no steady throughput in 200 s; of the connections 14 have given up.",
	}, coldRingAnswer([]*experiment.Result{ours, pages}))
	require.Equal(t, []string{"drop, page-buffers, 64 descriptors: silent until the run ended, after 200 s; of the connections 14 have given up."}, coldRingEnded([]*experiment.Result{ours, pages}))
}

// With a cold ring at the load, too, answers are dropped beside requests: it
// takes longer than either alone, and only where frames are dropped.
func TestColdRingAtBothEnds(t *testing.T) {
	took := func(mode, cold string) sim.Time {
		return npf(t, ringSize, experiment.Values{"mode": mode, "cold": cold, "ring": 32, "operations": 300, "connections": 2}).Time("time")
	}
	require.Greater(t, took(npfDrop, coldBoth), took(npfDrop, coldServer)*3/2)
	require.InEpsilon(t, took(npfPinned, coldServer).Seconds(), took(npfPinned, coldBoth).Seconds(), 0.05)
}
