package part

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// faulted measures a point.
func faulted(t require.TestingT, values experiment.Values, overrides ...string) *experiment.Result {
	device, err := profile.Load("exanest-qfdb", overrides...)
	require.NoError(t, err)
	p, err := pagefault.At(device, values)
	require.NoError(t, err)
	r, err := pagefault.Measure(context.Background(), p)
	require.NoError(t, err, "%s", p)
	return r
}

// us is a time in a column, in microseconds.
func us(r *experiment.Result, column string) float64 { return r.Time(column).Microseconds() }

// drawFaulted draws a point.
func drawFaulted(r *rapid.T) *experiment.Point {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(r, err)
	text := func(axis string) string { return rapid.SampledFrom(pagefault.Axis(axis).Of).Draw(r, axis) }
	values := experiment.Values{
		"policy": text("policy"), "side": text("side"), "by": text("by"), "hupcf": rapid.Bool().Draw(r, "hupcf"),
		"timeout":   rapid.SampledFrom([]string{"20us", "100us", "500us", "1ms", "25ms", "nto"}).Draw(r, "timeout"),
		"frequency": rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(r, "frequency"),
		"pool":      rapid.SampledFrom([]string{"r5", "hpu"}).Draw(r, "pool"),
		"draw":      text("draw"), "align": text("align"), "prepares": text("prepares"), "ends": text("ends"),
		"nodes": rapid.IntRange(1, 2).Draw(r, "nodes"), "runs": 2, "size": rapid.IntRange(1, 70_000).Draw(r, "size"),
	}
	if values["policy"] == policyTimeout && values["timeout"] == noTimeout {
		values["timeout"] = "1ms"
	}
	if by := thesisBy[values["policy"].(string)]; by != "" {
		values["by"] = by
	}
	if values["side"] == SideNone {
		values["policy"] = policyTransfer
	}
	p, err := pagefault.At(device, values)
	require.NoError(r, err)
	p.Seed = rapid.Uint64Range(1, 5).Draw(r, "seed")
	return p
}

// With any absent pages and any policy, every byte arrives (Run compares them).
// The parts add up to the latency to the picosecond, and none is negative.
// Observation changes nothing: the times equal a run without a tracer.
func TestPagefaultPartsAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := drawFaulted(r)
		m, err := pagefault.Measure(context.Background(), p)
		require.NoError(r, err, "%s", p)
		sum := sim.Time(0)
		for _, c := range pagefaultParts {
			require.GreaterOrEqual(r, m.Time(c.Name), sim.Time(0), c.Name)
			sum += m.Time(c.Name)
		}
		require.Equal(r, m.Time(experiment.LatencyColumn), sum)
		// the time-out may be over before an acknowledgement arrives
		if m.Values["absent"].(int64) == 0 && p.Text("timeout") != "20us" {
			for _, c := range []int{partRequest, partRetransmission, partInterrupt, partGetUserPages, partNetlink, partIdle} {
				require.Zero(r, m.Time(pagefaultParts[c].Name), "%s, %s", p, pagefaultParts[c].Name)
			}
		}
		w := newFaulting(p)
		require.NoError(r, w.run(context.Background(), nil, func() error { return nil }))
		least, most := sim.MaxTime, sim.Time(0)
		for i := range w.exchanges[2:] {
			x := &w.exchanges[2+i]
			least, most = min(least, x.latency()), max(most, x.latency())
		}
		require.Equal(r, []sim.Time{m.Time("latency_least"), m.Time("latency_most"), m.Time("present")}, []sim.Time{least, most, w.exchanges[1].latency()}, "%s", p)
	})
}

// Without absent pages, a transfer takes the sum in docs/rdma.md. Touching and
// pinning take the profile's times, before the transfer.
func TestPagefaultWithoutFaults(t *testing.T) {
	// docs/rdma.md
	require.Equal(t, 3934*sim.Nanosecond, faulted(t, experiment.Values{"policy": policyTransfer, "size": 16}).Time(experiment.LatencyColumn))
	const pages = 16
	base := faulted(t, experiment.Values{"policy": policyTransfer, "size": pages * 4096}).Time(experiment.LatencyColumn)
	// exanest-qfdb: host.memory_latency 100 ns, os.fault_absent 3 us,
	// os.lock_call 3 us, os.lock_absent 3 us, os.lock_present 3 us, os.lock_drain
	// 7 us
	for policy, prepared := range map[string]sim.Time{
		policyTouchPresent: pages * 100 * sim.Nanosecond,
		policyTouch:        pages * 3100 * sim.Nanosecond,
		policyPinPresent:   (3 + 7 + 3*pages) * sim.Microsecond,
		policyPin:          (3 + 3*pages) * sim.Microsecond,
	} {
		r := faulted(t, experiment.Values{"policy": policy, "size": pages * 4096})
		require.Equal(t, prepared, r.Time("touch"), policy)
		wire := r.Time(experiment.LatencyColumn) - prepared
		require.Equal(t, wire, r.Time("wire"), policy)
		if policy == policyTouchPresent || policy == policyPinPresent {
			require.Equal(t, base, wire, policy)
			continue
		}
		// the SMMU does not know these pages: at most a cold walk and a warm
		// one for each
		require.GreaterOrEqual(t, wire, base, policy)
		require.Less(t, wire, base+600*sim.Nanosecond+pages*220*sim.Nanosecond, policy)
	}
}

// The destination ends when it sees the notification. It does not wait until
// its own invitation is acknowledged. So on every pool, touching and pinning
// add only their own time, and the SMMU's time for an unknown page.
func TestPagefaultWaitsForTheDataOnly(t *testing.T) {
	for _, pool := range []string{"r5", "hpu"} {
		for _, size := range []int{16, 256, 1024, 2048} {
			base := faulted(t, experiment.Values{"policy": policyTransfer, "size": size, "pool": pool})
			for policy, prepared := range map[string]sim.Time{policyTouch: 3100 * sim.Nanosecond, policyPin: 6 * sim.Microsecond} {
				r := faulted(t, experiment.Values{"policy": policy, "size": size, "pool": pool})
				more := r.Time(experiment.LatencyColumn) - base.Time(experiment.LatencyColumn) - prepared
				require.GreaterOrEqual(t, more, sim.Time(0), "%s, %s, %d B", pool, policy, size)
				require.Less(t, more, 230*sim.Nanosecond, "%s, %s, %d B: a miss of 220 ns (docs/memory.md) and its descriptor", pool, policy, size)
			}
		}
	}
}

// A page of 4 KiB: P's 4 + 1 + 19 + 1 + 6 us, and 7 for what P takes for context
// switches. A part depends only on its own parameter.
func TestPagefaultOfOnePage(t *testing.T) {
	const spins = "os.netlink_wake=0us"
	require.InDelta(t, 31+7, us(faulted(t, experiment.Values{"policy": policyPIO, "size": 4096}), experiment.LatencyColumn), 3)
	base := faulted(t, experiment.Values{"policy": policyPIO, "size": 4096}, spins)
	require.InDelta(t, 31+1, us(base, experiment.LatencyColumn), 3, "P's sum; and a second interrupt, as cells behind the first fault again")
	require.InDelta(t, 9, us(base, "get_user_pages"), 0, "6 + 3")
	require.InDelta(t, 7, us(base, "netlink"), 0)
	require.InDelta(t, 4, us(base, "tasklet"), 0.4)
	require.InDelta(t, 2, us(base, "interrupt"), 0)
	require.InDelta(t, 6, us(base, "retransmission"), 0.5)
	require.InDelta(t, 4, us(base, "wire"), 0.5)
	require.Zero(t, base.Time("idle"))
	for part, override := range map[string]string{"netlink": "os.netlink_send=17us", "get_user_pages": "os.gup_call=16us", "request": "os.netlink_receive=10.88us"} {
		r := faulted(t, experiment.Values{"policy": policyPIO, "size": 4096}, spins, override)
		require.Equal(t, 10*sim.Microsecond, r.Time(experiment.LatencyColumn)-base.Time(experiment.LatencyColumn), part)
		require.Equal(t, 10*sim.Microsecond, r.Time(part)-base.Time(part), part)
	}
	// the time-out alone: P's 1 ms, and the block again
	alone := faulted(t, experiment.Values{"policy": policyTimeout, "size": 4096})
	require.InDelta(t, 1000+3+6, us(alone, experiment.LatencyColumn), 2)
	require.Equal(t, []any{int64(1), int64(1), int64(0)}, []any{alone.Values["timeouts"], alone.Values["resent"], alone.Values["requests"]})
	require.InDelta(t, 1000-10, us(alone, "idle"), 5, "less what brings the page in")
	soon := faulted(t, experiment.Values{"policy": policyTimeout, "size": 4096, "timeout": "100us"})
	require.Equal(t, 900*sim.Microsecond, alone.Time("idle")-soon.Time("idle"))
	// ten time-outs; the last five double, 5+2+4+8+16+32, but only up to a
	// second, the most of a timer
	often := func(timeout string) sim.Time {
		return faulted(t, experiment.Values{"policy": policyTimeout, "size": 16385, "side": sideBoth, "nodes": 1, "timeout": timeout}).Time(experiment.LatencyColumn)
	}
	require.Equal(t, 67*24*sim.Millisecond, often("25ms")-often("1ms"))
	require.Equal(t, 2500*sim.Millisecond, often("1s")-often("500ms"))
}

// P and T (spec/part.md): which method is faster, and how often events happen.
func TestPagefaultShape(t *testing.T) {
	at := func(policy string, size int, more ...any) *experiment.Result {
		v := experiment.Values{"policy": policy, "size": size}
		for i := 0; i < len(more); i += 2 {
			v[more[i].(string)] = more[i+1]
		}
		return faulted(t, v)
	}
	const mib = 1 << 20
	pio, pi4, pia := at(policyPIO, mib), at(policyPI4, mib), at(policyPIA, mib)
	require.Less(t, pia.Time(experiment.LatencyColumn), pi4.Time(experiment.LatencyColumn))
	require.Less(t, pi4.Time(experiment.LatencyColumn), pio.Time(experiment.LatencyColumn))
	require.EqualValues(t, 2, pia.Values["requests"], "only the first two blocks fault (P)")
	require.GreaterOrEqual(t, pio.Values["requests"], int64(256), "one for each page")
	require.EqualValues(t, 64, pi4.Values["requests"], "one for each block")
	for _, r := range []*experiment.Result{pio, pi4, pia} {
		require.EqualValues(t, 256, r.Values["absent"])
		require.EqualValues(t, 256, r.Values["paged_in"])
	}
	// overlap: a time-out while pages are brought in; small transfers do not
	// need it (P)
	nto, early := at(policyPIA, 4*mib, "timeout", noTimeout), at(policyPIA, 4*mib, "timeout", "100us")
	gain := us(nto, experiment.LatencyColumn) / us(early, experiment.LatencyColumn)
	require.InEpsilon(t, early.Float(overlapColumn), gain, 0.15, "P (1)")
	require.Nil(t, nto.Values[overlapColumn])
	require.Nil(t, at(policyPIA, 16384, "timeout", "100us").Values[overlapColumn], "42 us of page-in: the request comes first")
	r := at(policyPIA, 4096, "frequency", 0.5)
	require.Empty(t, pagefaultAnswer([]*experiment.Result{r}), "nothing is absent below one page")
	require.Equal(t, at(policyPIA, 16384, "timeout", noTimeout).Time(experiment.LatencyColumn), at(policyPIA, 16384, "timeout", "100us").Time(experiment.LatencyColumn))
	// sides (T): the source waits for its time-out; 2.5 and 25 ms are worse;
	// for large sizes both sides cost less than the source alone
	source, both := at(policyPIO, 65536, "side", SideSource), at(policyPIO, 65536, "side", sideBoth)
	require.Less(t, both.Time(experiment.LatencyColumn), source.Time(experiment.LatencyColumn))
	require.Greater(t, source.Time(experiment.LatencyColumn), 4*sim.Millisecond)
	require.Greater(t, at(policyPIO, 65536, "side", SideSource, "timeout", "2.5ms").Time(experiment.LatencyColumn), 2*source.Time(experiment.LatencyColumn))
	require.Zero(t, source.Values["requests"])
	// HUPCF off (T): present pages fault while a page of the source is brought
	// in
	on, off := at(policyPIO, 65536, "side", SideSource, "nodes", 1, "by", byTouch), at(policyPIO, 65536, "side", SideSource, "nodes", 1, "by", byTouch, "hupcf", false)
	require.Zero(t, on.Values["terminated"])
	require.Zero(t, on.Values["requests"])
	require.Positive(t, off.Values["terminated"])
	require.Positive(t, off.Values["requests"], "the destination asks again for what the source's fault has terminated, and spares it the time-out")
	require.Less(t, off.Time("wire"), 2*off.Time("present"), "silence before a time-out is idle, whoever waits")
	// by: the kernel alone needs no netlink; a thread that touches replaces the
	// tasklet's time
	alone := at(policyPIO, 4096, "by", byKernelOnly)
	require.Zero(t, alone.Time("netlink"))
	require.Less(t, alone.Time(experiment.LatencyColumn), at(policyPIO, 4096).Time(experiment.LatencyColumn))
	touch := at(policyPIO, 4096, "by", byTouch)
	require.Zero(t, touch.Time("get_user_pages"))
	require.Positive(t, touch.Time("touch"))
	// the NIC without a library
	naive := at(policyNaive, 65536)
	require.Zero(t, naive.Values["timeouts"])
	require.EqualValues(t, 16, naive.Values["faults"])
}

// Pages that are absent by chance: none if the frequency is less than one page
// of the transfer (P), else more with a higher frequency. Each run draws its
// own from the seed.
func TestPagefaultFrequency(t *testing.T) {
	at := func(f float64, seed uint64) *experiment.Result {
		device, err := profile.Load("exanest-qfdb")
		require.NoError(t, err)
		p, err := pagefault.At(device, experiment.Values{"policy": policyPIO, "size": 65536, "frequency": f})
		require.NoError(t, err)
		p.Seed = seed
		r, err := pagefault.Measure(context.Background(), p)
		require.NoError(t, err)
		return r
	}
	require.Zero(t, at(0.05, 1).Values["absent"], "16 pages: less than one")
	few, many, all := at(0.2, 1), at(0.6, 1), at(1, 1)
	require.Less(t, few.Time(experiment.LatencyColumn), many.Time(experiment.LatencyColumn))
	require.Less(t, many.Time(experiment.LatencyColumn), all.Time(experiment.LatencyColumn))
	require.EqualValues(t, 16, all.Values["absent"])
	require.Less(t, many.Time("latency_least"), many.Time(experiment.LatencyColumn))
	require.Less(t, many.Time(experiment.LatencyColumn), many.Time("latency_most"))
	require.Equal(t, few.Values, at(0.2, 1).Values)
	require.NotEqual(t, many.Time("latency_mean"), at(0.6, 2).Time("latency_mean"))
}

// With pages of 2 MiB the first write also brings in neighbouring pages. So the
// test cannot choose absent pages.
func TestPagefaultOfHugePages(t *testing.T) {
	device, err := profile.Load("exanest-qfdb", "os.huge_pages=always")
	require.NoError(t, err)
	for _, test := range []struct {
		values  experiment.Values
		refused bool
	}{
		{experiment.Values{"policy": policyPIA, "size": 4 << 20, "frequency": 0.5}, true},
		{experiment.Values{"policy": policyTouch, "size": 2 << 20, "frequency": 0.9, "side": SideSource}, true},
		{experiment.Values{"policy": policyPIA, "size": 4 << 20}, false},
		{experiment.Values{"policy": policyPIA, "size": 4 << 20, "frequency": 0.0}, false},
		{experiment.Values{"policy": policyTransfer, "size": 4 << 20, "frequency": 0.5}, false},
		{experiment.Values{"policy": policyPIA, "size": 1 << 20, "frequency": 0.5}, false},
	} {
		p, err := pagefault.At(device, test.values)
		if err == nil {
			_, err = canFault(p)
		}
		if test.refused {
			require.ErrorContains(t, err, "--frequency", "%v", test.values)
			require.ErrorContains(t, err, "os.huge_pages=never", "%v", test.values)
			continue
		}
		require.NoError(t, err, "%v", test.values)
	}
}

// Every preset is a valid sweep, and its smallest points can be measured.
func TestPagefaultPresets(t *testing.T) {
	for _, preset := range pagefault.Presets {
		e, err := pagefault.Preset(preset.Name)
		require.NoError(t, err)
		require.NoError(t, e.Check(), preset.Name)
		s, err := experiment.New(e)
		require.NoError(t, err)
		points, err := s.Points()
		require.NoError(t, err, preset.Name)
		require.Greater(t, len(points), 5, preset.Name)
		require.NoError(t, s.Choose("size", strconv.Itoa(points[0].Int("size"))))
		points, err = s.Points()
		require.NoError(t, err)
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err, preset.Name)
		table, err := s.Table(results)
		require.NoError(t, err)
		_, err = s.Summary(table)
		require.NoError(t, err, preset.Name)
	}
	_, err := pagefault.Preset("nine")
	require.ErrorContains(t, err, `no experiment "nine" of pagefault, expected one of no-fault, small`)
}

// A sweep over a field of the profile shows the published numbers beside the
// profile's own value, with and without a preset.
func TestPublishedBesideVariedFields(t *testing.T) {
	for _, name := range []string{"", "breakdown"} {
		e := pagefault
		if name != "" {
			var err error
			e, err = pagefault.Preset(name)
			require.NoError(t, err)
		}
		s, err := experiment.New(e)
		require.NoError(t, err)
		require.NoError(t, s.Choose("policy", policyPIO))
		require.NoError(t, s.Choose("size", "4KiB"))
		require.NoError(t, s.Set("os.gup_call=6us,7us"))
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		table, err := s.Table(results)
		require.NoError(t, err)
		at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == "get_user_pages_published" })
		require.Positive(t, at)
		require.Equal(t, []any{8 * sim.Microsecond, nil}, []any{table.Rows()[0][at], table.Rows()[1][at]})
	}
}

// BenchmarkPagefault simulates 4 MiB with every page of the destination absent.
// It must take less than half a second (.ci/speed.txt).
func BenchmarkPagefault(b *testing.B) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(b, err)
	for _, policy := range []string{policyPIO, policyPIA, policyNaive} {
		b.Run(policy, func(b *testing.B) {
			p, err := pagefault.At(device, experiment.Values{"policy": policy, "size": 4 << 20})
			require.NoError(b, err)
			for b.Loop() {
				w := newFaulting(p)
				w.exchanges = w.exchanges[2:] // only the exchange with faults
				require.NoError(b, w.run(context.Background(), nil, func() error { return nil }))
			}
		})
	}
}

// Without absent pages on any side, a policy has nothing to do. Points that
// would only repeat transfer do not exist.
func TestPagefaultOfNoSide(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	for _, policy := range policyNames() {
		p, err := pagefault.At(device, experiment.Values{"policy": policy, "side": SideNone, "size": 4096})
		if err == nil {
			measured, failed := pagefault.Points(p)
			require.NoError(t, failed)
			require.Equal(t, policy == policyTransfer, measured, policy)
		}
	}
}
